#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks the amalgamated sources: they contain the modules of the build, are small, compile as
# strict C++17 with both compilers, also as clang reads code for Microsoft's, alone and in the
# caller's namespace, and include only Vulkan's and the standard library's headers. Engines with the
# system's loader and with volk compute the same bits as with the library. The commands of copy.md
# build the C program of languages.md, which prints what that page says.
set -eu
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH"
copied=$SCRATCH/vkrope
sh "$SOURCE/host/packaging/amalgamate.sh" "$SOURCE" "$copied"
for module in rope positions; do
    awk 'FNR == NR { part = part $0; next } { whole = whole $0 } END { exit !index(whole, part) }' \
        "$BUILD/spirv/$module.inc" "$copied/vkrope.cpp" ||
        { echo "vkrope.cpp does not contain the module $module of the build"; exit 1; }
done
bytes=$(cat "$copied"/* | wc -c)
[ "$bytes" -lt 1100000 ] || { echo "the three files have $bytes bytes"; exit 1; }
if grep -hE '^ *#include' "$copied"/* |
    grep -vE '<vulkan/vulkan_core\.h>|"vkrope\.(h|hpp)"|<[a-z_]+(\.h)?>'; then
    echo 'the form to copy includes these, too'
    exit 1
fi

consumer=$SCRATCH/consumer
cp -r "$SOURCE/tests/package/consumers/copied" "$consumer"
ln -s "$copied" "$consumer/vkrope"
strict='-std=c++17 -O1 -Wall -Wextra -Wconversion -Werror -fno-exceptions -fno-rtti'
for compiler in "$CXX" clang++; do
    command -v "$compiler" >/dev/null || { echo "$compiler: skipped: not installed"; continue; }
    name=$SCRATCH/$(basename "$compiler")
    # shellcheck disable=SC2086
    "$compiler" $strict -c "$copied/vkrope.cpp" -o "$name.o"
    # shellcheck disable=SC2086
    "$compiler" $strict -DVKROPE_NAMESPACE=mine "-I$SCRATCH" "$copied/vkrope.cpp" \
        "$consumer/main.cpp" -o "$name.named"
    "$name.named" >"$consumer/expected.txt" ||
        { echo "$compiler: the program in a namespace fails"; exit 1; }
    ! nm "$name.named" | grep -E ' [TtWw] vkrope_' ||
        { echo "$compiler: these names are not in the namespace"; exit 1; }
done

# As .github/workflows/ci.yml does on other systems.
"$CMAKE" -S "$consumer" -B "$consumer/build" -DCMAKE_CXX_COMPILER="$CXX" >"$consumer/log" &&
    "$CMAKE" --build "$consumer/build" >>"$consumer/log" &&
    "${CMAKE%cmake}ctest" --test-dir "$consumer/build" --no-tests=error >>"$consumer/log" ||
    { cat "$consumer/log"; exit 1; }

# engine NAME ARGUMENT...: builds the engine; sets `bits` to the hash of the engine's results.
engine() {
    program=$SCRATCH/$1
    shift
    "$CXX" -std=c++20 -O0 "-DENGINE_NAME=\"engine\"" \
        "$SOURCE"/tests/package/consumers/engine/main.cpp \
        "$SOURCE"/tests/package/consumers/engine/gpu.cpp "$@" -o "$program"
    said=$("$program") || { echo "$program fails: $said"; exit 1; }
    bits=${said##*bits }
    [ "${#bits}" -gt 8 ] || { echo "$program says no bits: $said"; exit 1; }
}
engine library -DVKROPE_STATIC "-I$SOURCE/host/include" "$BUILD/host/kernel/libvkrope_kernel.a" \
    "$BUILD/host/frequencies/libvkrope_frequencies.a" -lvulkan
right=$bits
engine copied "-I$SCRATCH" "$SCRATCH/$(basename "$CXX").o" -lvulkan
[ "$bits" = "$right" ] || { echo "the copied form gives $bits, the library $right"; exit 1; }
volk=/usr/include/volk.c
if [ -f "$volk" ]; then
    engine volk -w -DENGINE_VOLK -DVK_NO_PROTOTYPES "-I$SCRATCH" \
        "$SCRATCH/$(basename "$CXX").o" -x c++ "$volk" -ldl
    [ "$bits" = "$right" ] || { echo "the copied form with volk gives $bits, not $right"; exit 1; }
else
    echo 'volk: skipped: no volk.c (Debian: libvulkan-volk-dev)'
fi

guide=$SOURCE/host/guide
awk '/^```c program$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$guide/languages.md" \
    >"$copied/engine.c"
# MinGW's headers stand for Microsoft's. They put what is empty here after declarators, where only
# GCC takes it. Nothing is linked.
if command -v clang++ && command -v x86_64-w64-mingw32-g++; then
    {
        echo '#include <_mingw.h>'
        for name in ATTRIB_DEPRECATED ATTRIB_DEPRECATED_SEC_WARN ATTRIB_NORETURN NOTHROW; do
            printf '#undef __MINGW_%s\n#define __MINGW_%s\n' $name $name
        done
    } >"$SCRATCH/mingw.h"
    mkdir "$SCRATCH/include" && ln -s /usr/include/vulkan /usr/include/vk_video "$SCRATCH/include"
    gcc=$(x86_64-w64-mingw32-g++ -print-file-name=include)
    # msvc COMPILER FILE ARGUMENT...: compiles the file for Windows, and as windows.h changes names.
    msvc() {
        compiler=$1 file=$2
        shift 2
        "$compiler" --target=x86_64-pc-windows-msvc -Wall -Wextra -Wpedantic -Werror -O0 \
            -include "$SCRATCH/mingw.h" "$@" -isystem "$SCRATCH/include" \
            -isystem "${gcc%/lib/gcc*}/x86_64-w64-mingw32/include" "-I$SCRATCH" \
            -Dnear= -Dfar= -c "$copied/$file" -o "$SCRATCH/$file.obj"
    }
    # shellcheck disable=SC2086
    msvc clang++ vkrope.cpp $strict -D__STRICT_ANSI__ -D__GCC_ATOMIC_TEST_AND_SET_TRUEVAL=1 \
        -nostdinc++ -isystem "$gcc/c++" -isystem "$gcc/c++/x86_64-w64-mingw32"
    msvc clang engine.c -std=c11
else
    echo "clang for Microsoft's compiler: skipped: no clang++ or no x86_64-w64-mingw32-g++"
fi

sed -n '/^c++ /,/^cc /p; /^cc /q' "$guide/copy.md" >"$copied/commands.sh"
(cd "$copied" && CPATH=$SCRATCH sh -e commands.sh)
prints=$("$copied/a.out")
grep -qF "It prints \`$prints\`" "$guide/languages.md" ||
    { echo "the program in C prints $prints"; exit 1; }
echo "the copied form has $bytes bytes; the bits are $right"
