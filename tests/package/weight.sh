#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks what kernel, frequencies and their C interface add to an engine: the bytes, the symbols and
# the compiler flags. Measures the libraries in the tree that kernel_only.sh leaves and, for the
# bytes that README.md and copy.md state, a program.
set -eu
limit=$((265 * 1024))
# Archives also have data that the linker drops: relocations, and each file's names and sections.
archive_limit=$((2 * limit))
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH"
tiers=$(dirname "$SCRATCH")/kernel_only
failed=0
complain() { echo "$*"; failed=1; }

kernel=$tiers/host/kernel/libvkrope_kernel.a
frequencies=$tiers/host/frequencies/libvkrope_frequencies.a
for library in "$kernel" "$frequencies"; do
    strip --strip-unneeded -o "$SCRATCH/$(basename "$library")" "$library"
done
total=$(size "$SCRATCH"/libvkrope_*.a | awk \
    'NR > 1 && $1 != "text" { sum += $1 + $2 } END { print sum + 0 }')
archives=$(cat "$SCRATCH"/libvkrope_*.a | wc -c)
echo "kernel and frequencies, stripped: $total bytes of code, constants and data, $archives bytes as archives; at most $limit and $archive_limit"
[ "$total" -gt 10000 ] || complain 'size finds next to nothing: the measurement is broken'
[ "$total" -le "$limit" ] ||
    complain "that is more than $limit bytes (a build without spirv-opt has 6 KB more)"
[ "$archives" -le "$archive_limit" ] || complain "the archives have more than $archive_limit bytes"

cat >"$SCRATCH/engine.cpp" <<'CODE'
#include "vkrope/vkrope.h"
using Function = void (*)();
template <class F>
Function taken(F* function) { return reinterpret_cast<Function>(function); }
Function volatile used[] = {
#ifdef WEIGHT_WITH
    taken(vkrope_default_inv_freq), taken(vkrope_scale_llama3), taken(vkrope_plan_angles),
    taken(vkrope_fill_angles), taken(vkrope_get_angle_image_info), taken(vkrope_get_kernel_info),
    taken(vkrope_record_angle_upload), taken(vkrope_kernel_create), taken(vkrope_arena_create),
    taken(vkrope_record), taken(vkrope_arena_destroy), taken(vkrope_kernel_destroy)
#else
    nullptr
#endif
};
int main() { return used[0] != nullptr; }
CODE
bytes_of() { strip "$1" && size "$1" | awk 'NR == 2 { print $1 + $2 }'; }
# adds KIB INCLUDE SOURCES FLAG...: checks how much a program grows that has the sources (one word
# for each) and calls what an engine calls.
adds() {
    most=$1
    include=$2
    sources=$3
    shift 3
    # shellcheck disable=SC2086 # one word for each source
    "$CXX" -std=c++17 "$@" -DWEIGHT_WITH "-I$include" "$SCRATCH/engine.cpp" $sources \
        -o "$SCRATCH/with"
    "$CXX" -std=c++17 "$@" "-I$include" "$SCRATCH/engine.cpp" -o "$SCRATCH/without"
    added=$(($(bytes_of "$SCRATCH/with") - $(bytes_of "$SCRATCH/without")))
    echo "$* adds $added bytes to a program, $((added / 1024)) KiB; stated: $most KiB"
    [ "$added" -le $((most * 1024)) ] || complain 'that is more than README.md and copy.md state'
    [ "$added" -gt $((most * 960)) ] || complain 'README.md and copy.md state too much'
}
# Measures the installed libraries, and the copied files with the least and the most savings.
sh "$SOURCE/host/packaging/amalgamate.sh" "$SOURCE" "$SCRATCH/vkrope"
adds 341 "$SOURCE/host/include" "$BUILD/host/kernel/libvkrope_kernel.a
    $BUILD/host/frequencies/libvkrope_frequencies.a" -O2 -DVKROPE_STATIC
copied=$SCRATCH/vkrope/vkrope.cpp
adds 359 "$SCRATCH" "$copied" -O2
adds 224 "$SCRATCH" "$copied" -Os -ffunction-sections -fdata-sections -Wl,--gc-sections

for library in "$kernel" "$frequencies"; do
    name=$(basename "$library")
    nm "$library" >"$SCRATCH/$name.symbols"
    nm -C "$library" >"$SCRATCH/$name.names"
    ! grep -E ' U _?vk[A-Z]' "$SCRATCH/$name.symbols" || complain "$name links against Vulkan"
    ! grep -E ' [A-TV-Z] _?vk[A-Z]' "$SCRATCH/$name.symbols" ||
        complain "$name defines names of Vulkan's"
    ! grep -E 'std::ios_base::Init|std::(cout|cerr|clog)|std::locale|basic_ostream' \
        "$SCRATCH/$name.names" || complain "$name uses iostream"
    ! grep -E '_GLOBAL__sub_I_|__cxa_atexit|__cxa_guard' "$SCRATCH/$name.symbols" ||
        complain "$name has static objects that are constructed"
    ! grep -E ' U (__cxa_throw|__cxa_begin_catch|__gxx_personality_v0)| V _ZTI' \
        "$SCRATCH/$name.symbols" ||
        complain "$name uses exceptions or RTTI"
    ! grep -E ' U __cxa_throw$' "$SCRATCH/$name.symbols" || complain "$name throws"
    # Constants that contain addresses are in .data.rel.ro, which the loader makes read-only;
    # the compiler makes DW.ref for type information.
    ! objdump -t "$library" | grep -E ' O \.(data|bss|tdata|tbss)' |
        grep -vE ' O \.data\.rel\.(ro|local\.DW\.ref\.)' ||
        complain "$name has writable global state"
    ! objdump -h "$library" | grep -E '\.(init_array|ctors|fini_array)' ||
        complain "$name has static constructors"
    # Every external symbol must be in the library's namespace or be a function of vkrope.h,
    # except instances of the standard library's templates (W) and DW.ref.
    ! grep -E ' [ABCDGRSTV] ' "$SCRATCH/$name.names" | grep -vE ' (vkrope::|vkrope_|DW\.ref\.)' ||
        complain "$name defines other names than vkrope's"
done

# Every source must be compiled, by itself or as part of a unity file, with the flags of the build.
for tier in kernel frequencies; do
    (cd "$SOURCE" && find host/$tier -name '*.cpp') | while read -r file; do
        grep -qF "/$file\"" "$tiers/host/$tier/CMakeFiles/vkrope_$tier.dir"/Unity/*.cxx \
            "$tiers/compile_commands.json" || echo "$file"
    done >"$SCRATCH/missing"
    [ ! -s "$SCRATCH/missing" ] || complain "not compiled: $(cat "$SCRATCH/missing")"
    grep '"command":' "$tiers/compile_commands.json" |
        grep "vkrope_$tier.dir/" >"$SCRATCH/commands" || complain "$tier is not compiled"
    for flag in -fno-exceptions -fno-rtti; do
        ! grep -vqe " $flag " "$SCRATCH/commands" || complain "$tier is compiled without $flag"
    done
done
exit $failed
