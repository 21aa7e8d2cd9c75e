#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that in a path with a $, a space and quotes, the shared library's linker still gets its
# list of exports: Ninja's command for the shell must name an existing file. Nothing is compiled.
# shellcheck disable=SC2016 # the $ is a part of the path
set -eu
[ "$CMAKE_GENERATOR" = Ninja ] ||
    { echo 'skipped: only Ninja gives its commands to a shell by itself'; exit 77; }
folder="$SCRATCH/a \$b 'c'"
rm -rf "$SCRATCH"
mkdir -p "$folder"
cp -r "$SOURCE/CMakeLists.txt" "$SOURCE/host" "$SOURCE/shaders" "$folder"
prefixes=$(sed -n 's/^CMAKE_PREFIX_PATH:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
"$CMAKE" -S "$folder" -B "$folder/build" -G Ninja -DCMAKE_CXX_COMPILER="$CXX" \
    -DCMAKE_PREFIX_PATH="$prefixes" \
    -DVKROPE_TOOLS=OFF -DVKROPE_TESTS=OFF -DVKROPE_BENCH=OFF >"$SCRATCH/configure.log"
ninja=$(sed -n 's/^CMAKE_MAKE_PROGRAM:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
library=$("$ninja" -C "$folder/build" -t targets all |
    sed -n 's/^\(.*libvkrope\.so[.0-9]*\): CXX_SHARED.*/\1/p')
[ -n "$library" ] || { echo 'no shared library is built'; exit 1; }
cd "$folder/build"
command=$("$ninja" -t commands "$library" | tail -n 1)
# Prints the words of the command as a shell splits them, with printf in place of the linker.
words=$(printf '%s\n' "$command" | sed 's/^: && //; s/ && :$//' | sed 's/^[^ ]* /printf "%s\\n" /')
exports=$(sh -c "$words" | sed -n 's/^-Wl,--version-script=//p; s/^--version-script=//p')
[ -n "$exports" ] || { echo "no version script is named: $command"; exit 1; }
[ -f "$exports" ] || { echo "the linker is told of '$exports', which is not there: $command";
    exit 1; }
