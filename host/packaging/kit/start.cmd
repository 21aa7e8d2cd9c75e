@echo off
rem SPDX-License-Identifier: MIT
rem Each command of the kit is a copy of this file: bench times the best Vulkan device, conform
rem tests every one, report also writes a report into this folder, vkrope is the tool.
rem Arguments: --help.
setlocal disabledelayedexpansion
set json=
for %%w in (bench conform report vkrope) do if /i "%~n0"=="%%w" goto %%w
echo vkrope-kit: error: '%~n0' is no command of the kit: bench, conform, report or vkrope 1>&2
set code=2
goto end
:bench
"%~dp0lib\bin\vkrope-bench.exe" %*
goto ended
:vkrope
"%~dp0lib\bin\vkrope.exe" %*
goto ended
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
:ended
set code=%errorlevel%
if /i %~n0==report echo vkrope-kit: a report names no person or machine; please send it 1>&2
:end
rem At the end of a file && and || see the code of the last command, but not that of exit /b.
"%ComSpec%" /d /c exit %code%
