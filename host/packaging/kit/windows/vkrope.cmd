@echo off
rem SPDX-License-Identifier: MIT
rem Runs the command vkrope with these arguments (--help).
"%~dp0lib\bin\vkrope.exe" %*
