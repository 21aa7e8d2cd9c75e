@echo off
rem SPDX-License-Identifier: MIT
rem Times the best Vulkan device of this machine: vkrope-bench with these arguments (--help).
"%~dp0lib\bin\vkrope-bench.exe" %*
