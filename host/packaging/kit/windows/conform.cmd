@echo off
rem SPDX-License-Identifier: MIT
rem Tests every Vulkan device of this machine: vkrope-conformance with these arguments (--help).
setlocal
set device=--device all
if defined VKROPE_DEVICE set device=
:next
if "%~1"=="" goto start
for %%w in (--device --list --help) do if "%~1"=="%%w" set device=
shift /1
goto next
:start
"%~dp0lib\bin\vkrope-conformance.exe" %device% %*
