@echo off
rem SPDX-License-Identifier: MIT
rem Each command of the kit is a copy of this file: bench times the best Vulkan device, conform
rem tests every one, report also writes a report into this folder, vkrope is the tool.
rem Arguments: --help.
setlocal
set json=
goto %~n0
:bench
"%~dp0lib\bin\vkrope-bench.exe" %*
exit /b %errorlevel%
:vkrope
"%~dp0lib\bin\vkrope.exe" %*
exit /b %errorlevel%
:report
set json=--json .
:conform
set device=--device all
if defined VKROPE_DEVICE set device=
:next
if "%~1"=="" goto start
for %%w in (--device --list --help) do if "%~1"=="%%w" set device=
if "%~1"=="--json" set json=
shift /1
goto next
:start
"%~dp0lib\bin\vkrope-conformance.exe" %device% %json% %*
set code=%errorlevel%
if /i %~n0==report echo vkrope-kit: the report names no person or machine; please send it 1>&2
exit /b %code%
