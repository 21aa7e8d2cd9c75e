#!/bin/sh
# SPDX-License-Identifier: MIT
# The README's C++ example, taken from the README, compiles against the installed package and runs.
set -eu
! grep -n '@[A-Z]*@' "$SOURCE"/*.md || { echo "a placeholder was left in the documents"; exit 1; }
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH/app"
"$CMAKE" --install "$BUILD" --prefix "$SCRATCH/installed" >"$SCRATCH/install.log"
awk '/^```cpp$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$SOURCE/README.md" >"$SCRATCH/app/main.cpp"
lines=$(wc -l <"$SCRATCH/app/main.cpp")
[ "$lines" -gt 5 ] || { echo "the README has no C++ example"; exit 1; }
[ "$lines" -le 15 ] || { echo "the README's example has $lines lines: 15 at most"; exit 1; }
awk '/^```cmake$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$SOURCE/README.md" >"$SCRATCH/app/lines.cmake"
grep -q 'find_package(vkrope' "$SCRATCH/app/lines.cmake" || { echo "the README has no CMake lines"; exit 1; }
{
    echo 'cmake_minimum_required(VERSION 3.25)'
    echo 'project(app CXX)'
    echo 'set(CMAKE_CXX_STANDARD 20)'
    echo 'add_executable(app main.cpp)'
    cat "$SCRATCH/app/lines.cmake"
} >"$SCRATCH/app/CMakeLists.txt"
# What the library was built with, its users need as well.
sanitize=$(sed -n 's/^VKROPE_SANITIZE:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
"$CMAKE" -S "$SCRATCH/app" -B "$SCRATCH/build" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_PREFIX_PATH="$SCRATCH/installed" \
    -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror${sanitize:+ -fsanitize=$sanitize}"
"$CMAKE" --build "$SCRATCH/build"
ASAN_OPTIONS=detect_leaks=0 "$SCRATCH/build/app" >"$SCRATCH/output"
[ -s "$SCRATCH/output" ] || { echo "the example prints nothing"; exit 1; }
# The README shows what it prints.
printed=$(cat "$SCRATCH/output")
grep -qF -e "$printed" "$SOURCE/README.md" || { echo "the README shows another output than: $printed"; exit 1; }
