@echo off
rem SPDX-License-Identifier: MIT
rem Tests every Vulkan device of this machine and writes one report into this folder.
rem Arguments: those of vkrope-conformance (--help).
setlocal
set device=--device all
if defined VKROPE_DEVICE set device=
set json=--json .
:next
if "%~1"=="" goto start
if "%~1"=="--device" set device=
if "%~1"=="--json" set json=
shift /1
goto next
:start
"%~dp0lib\bin\vkrope-conformance.exe" %device% %json% %*
set code=%errorlevel%
echo vkrope-kit: the report names no person or machine; please send it with what you saw 1>&2
exit /b %code%
