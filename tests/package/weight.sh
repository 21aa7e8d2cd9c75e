#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks what kernel, frequencies and their C interface add to an engine: the bytes, the symbols and
# the compiler flags. Measures the libraries in the tree that kernel_only.sh leaves.
set -eu
limit=$((195 * 1024))
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

# Every source must be a unit or in a unit of its library, and every unit must be compiled with the
# flags of the build.
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
