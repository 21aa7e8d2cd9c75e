#!/bin/sh
# SPDX-License-Identifier: MIT
# The guide's whole program, taken from the guide, compiles against the installed package, runs, and
# prints what the guide says.
set -eu
guide=$SOURCE/host/guide/own_device.md
! grep -n '@[A-Z]*@' "$SOURCE"/*.md "$SOURCE"/host/guide/*.md ||
    { echo "a placeholder was left in the documents"; exit 1; }
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH/app"
"$CMAKE" --install "$BUILD" --prefix "$SCRATCH/installed" >"$SCRATCH/install.log"
awk '/^```cpp program$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' \
    "$guide" >"$SCRATCH/app/main.cpp"
[ -s "$SCRATCH/app/main.cpp" ] || { echo "the guide has no program"; exit 1; }
awk '/^```cmake program$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' \
    "$guide" >"$SCRATCH/app/lines.cmake"
grep -q 'find_package(vkrope' "$SCRATCH/app/lines.cmake" ||
    { echo "the guide has no CMake lines for it"; exit 1; }
{
    echo 'cmake_minimum_required(VERSION 3.25)'
    echo 'project(app CXX)'
    echo 'set(CMAKE_CXX_STANDARD 20)'
    echo 'add_executable(app main.cpp)'
    cat "$SCRATCH/app/lines.cmake"
} >"$SCRATCH/app/CMakeLists.txt"
# What the library was built with, its users need as well.
sanitize=$(sed -n 's/^VKROPE_SANITIZE:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
"$CMAKE" -S "$SCRATCH/app" -B "$SCRATCH/build" -DCMAKE_CXX_COMPILER="$CXX" \
    -DCMAKE_PREFIX_PATH="$SCRATCH/installed" \
    -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror${sanitize:+ -fsanitize=$sanitize}"
"$CMAKE" --build "$SCRATCH/build"
ASAN_OPTIONS=detect_leaks=0 "$SCRATCH/build/app" >"$SCRATCH/output"
grep -qF "It prints \`$(cat "$SCRATCH/output")\`" "$guide" ||
    { echo "the program does not print what the guide says:"; cat "$SCRATCH/output"; exit 1; }
