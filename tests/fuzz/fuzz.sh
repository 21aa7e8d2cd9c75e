#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the fuzz targets with clang++ and runs each of them for VKROPE_FUZZ_SECONDS, two at a time. A finding fails, and the input
# that makes it is named. The build and the inputs that were worth keeping stay in $SCRATCH, where the next run starts from them.
set -eu
targets='config gguf npy case'
seconds=${VKROPE_FUZZ_SECONDS:-15}
mkdir -p "$SCRATCH"

# Debian's clang has these libraries in a package of their own.
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' >"$SCRATCH/empty.cpp"
if ! clang++ -fsanitize=fuzzer,address,undefined "$SCRATCH/empty.cpp" -o "$SCRATCH/empty" 2>"$SCRATCH/clang.log"; then
    echo 'fuzz: there is no clang++ that links -fsanitize=fuzzer,address,undefined (Debian: clang and libclang-rt-dev)'
    [ "${COMPLETE:-OFF}" != ON ] || exit 1
    exit 77
fi

build=$SCRATCH/build
{
    "$CMAKE" -S "$SOURCE" -B "$build" -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1" "-DCMAKE_PREFIX_PATH=${PREFIX_PATH:-}" -DVKROPE_FUZZ=ON \
        -DVKROPE_SANITIZE=fuzzer-no-link,address,undefined
    # shellcheck disable=SC2046,SC2086 # one word a target
    "$CMAKE" --build "$build" -j 2 --target $(printf 'fuzz_%s ' $targets)
} >"$SCRATCH/build.log" 2>&1 || { tail -n 40 "$SCRATCH/build.log"; exit 1; }

# Seeds: files of this source tree. Those of targets that take a query begin with its four bytes.
seed() {
    into=$SCRATCH/seeds/$1
    shift
    mkdir -p "$into"
    prefix=
    case $into in */config | */gguf) prefix='\0\0\0\0' ;; esac
    for file in "$@"; do
        name=$(echo "${file#"$SOURCE"/tests/}" | tr / _) # many are called case.json
        { printf %b "$prefix" && cat "$file"; } >"$into/$name"
    done
}
rm -rf "$SCRATCH/seeds"
seed config "$SOURCE"/tests/models/*.json
seed gguf "$SOURCE"/tests/fuzz/corpus/gguf/*
seed npy "$SOURCE"/tests/conformance/cases/half_f32_bshd/*.npy "$SOURCE"/tests/conformance/cases/ids_*/*.npy
seed case "$SOURCE"/tests/conformance/cases/*/case.json

mkdir -p "$SCRATCH/findings"
fuzz() {
    mkdir -p "$SCRATCH/corpus/$1"
    "$build/tests/fuzz/fuzz_$1" -max_total_time="$seconds" -max_len=16384 -timeout=5 -rss_limit_mb=512 -malloc_limit_mb=256 \
        -dict="$SOURCE/tests/fuzz/words.dict" -artifact_prefix="$SCRATCH/findings/$1-" -print_final_stats=1 \
        "$SCRATCH/corpus/$1" "$SCRATCH/seeds/$1" >"$SCRATCH/$1.log" 2>&1 || echo "$1" >>"$SCRATCH/failed"
}
rm -f "$SCRATCH/failed"
# shellcheck disable=SC2086 # one word a target
set -- $targets
while [ $# != 0 ]; do
    fuzz "$1" &
    [ $# = 1 ] || fuzz "$2"
    wait
    shift $(($# > 1 ? 2 : 1))
done

for target in $targets; do
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$SCRATCH/$target.log")
    echo "fuzz_$target: ${executions:-no} executions in $seconds s"
    grep -qx "$target" "$SCRATCH/failed" 2>/dev/null || [ "${executions:-0}" -gt 0 ] || echo "$target" >>"$SCRATCH/failed"
done
[ -e "$SCRATCH/failed" ] || exit 0
while read -r target; do
    echo "fuzz_$target found something ($SCRATCH/$target.log):"
    grep -E '^broken: |ERROR: |SUMMARY: |runtime error: |Test unit written to ' "$SCRATCH/$target.log" ||
        tail -n 20 "$SCRATCH/$target.log"
done <"$SCRATCH/failed"
exit 1
