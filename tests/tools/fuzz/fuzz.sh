#!/bin/sh
# SPDX-License-Identifier: MIT
# fuzz.sh replay: runs the seeds and inputs derived from them with $REPLAY (see replay.cpp).
# fuzz.sh: builds the fuzz targets with clang++ and runs each of them, two at a time. A finding
# fails, and its input is named. Too few executions also fail, because they prove nothing. The build
# and the useful inputs stay in $SCRATCH for the next run. From the environment:
#
#   VKROPE_FUZZ_SECONDS=15   run time of each target; at least 5000 executions in 15 seconds are
#                            required, and in proportion for other times: a tenth or less of what
#                            a loaded machine with two cores reaches
#   VKROPE_FUZZ_RUNS=N       number of executions of each target, which replaces the run time
#   VKROPE_TIME_FACTOR=1     how many times slower this machine is than one with two idle cores
#   VKROPE_FUZZ_SANITIZE=address,undefined
#                            sanitizers of the build; without any the build is several times faster
set -eu
mkdir -p "$SCRATCH"

# Seeds: files of this source tree. For targets that take a query, adds the four bytes of the query.
seed() {
    into=$SCRATCH/seeds/$1
    shift
    mkdir -p "$into"
    prefix=
    case $into in */config | */gguf) prefix='\0\0\0\0' ;; esac
    for file in "$@"; do
        name=$(echo "${file#"$SOURCE"/tests/}" | tr / _) # names in different folders may be equal
        { printf %b "$prefix" && cat "$file"; } >"$into/$name"
    done
}
rm -rf "$SCRATCH/seeds"
seed config "$SOURCE"/tests/data/models/*.json
seed gguf "$SOURCE"/tests/data/corpus/gguf/*
# array NAME PREAMBLE TYPE SHAPE BYTES: an array of zeros.
array() {
    printf "\\223NUMPY$2%-117s\\n" "{'descr': '$3', 'fortran_order': False, 'shape': $4, }"
    head -c "$5" /dev/zero
} >"$SCRATCH/seeds/npy/$1"
mkdir -p "$SCRATCH/seeds/npy"
array values.npy '\1\0\166\0' '<f4' '(2, 3, 4, 8)' 768
array halves.npy '\1\0\166\0' '<f2' '(2, 3, 2, 8)' 192
array ids.npy '\1\0\166\0' '<i8' '(5,)' 40
array codes.npy '\1\0\166\0' '|u1' '(4, 34)' 136
# In format version 2 the length of the header has four bytes.
array version_2.npy '\2\0\166\0\0\0' '<i4' '(2, 5)' 40
seed safetensors "$SOURCE"/tests/data/corpus/safetensors/*

if [ "${1:-}" = replay ]; then
    cd "$SCRATCH"
    exec "$REPLAY" seeds "$SOURCE/tests/data/words.dict"
fi

targets='config gguf npy safetensors'
seconds=${VKROPE_FUZZ_SECONDS:-15}
runs=${VKROPE_FUZZ_RUNS:-}
slower=${VKROPE_TIME_FACTOR:-1}
sanitize=${VKROPE_FUZZ_SANITIZE:-address,undefined}
whole() { # NAME VALUE: requires a whole number above 0; for libFuzzer 0 is no limit
    echo "$2" | grep -qx '[1-9][0-9]*' ||
        { echo "fuzz: $1 is '$2'; it must be a whole number above 0" && exit 1; }
}
whole VKROPE_FUZZ_SECONDS "$seconds"
whole VKROPE_TIME_FACTOR "$slower"
[ -z "$runs" ] || whole VKROPE_FUZZ_RUNS "$runs"
case $sanitize in
    none) sanitizers=fuzzer-no-link ;;
    address,undefined) sanitizers=fuzzer-no-link,$sanitize ;;
    *) echo "fuzz: VKROPE_FUZZ_SANITIZE is '$sanitize'; it must be none or address,undefined" &&
        exit 1 ;;
esac
if [ -n "$runs" ]; then
    extent="-runs=$runs"
    required=$runs
else
    extent="-max_total_time=$seconds"
    required=$((5000 * seconds / 15 / slower))
fi
seeds=$SCRATCH/seeds
# Builds with different sanitizers have different folders.
SCRATCH=$SCRATCH/$(echo "$sanitize" | tr , _)
mkdir -p "$SCRATCH"

# On Debian, a separate package has these libraries of clang.
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' >"$SCRATCH/empty.cpp"
if ! clang++ -fsanitize=fuzzer,address,undefined "$SCRATCH/empty.cpp" -o "$SCRATCH/empty" \
    2>"$SCRATCH/clang.log"; then
    echo 'fuzz: there is no clang++ that links -fsanitize=fuzzer,address,undefined (Debian: clang and libclang-rt-dev)'
    [ "${COMPLETE:-OFF}" != ON ] || exit 1
    exit 77
fi

build=$SCRATCH/build
# shellcheck disable=SC2046,SC2086 # one word per target
{
    "$CMAKE" -S "$SOURCE" -B "$build" -DCMAKE_CXX_COMPILER=clang++ \
        -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1" "-DCMAKE_PREFIX_PATH=${PREFIX_PATH:-}" \
        -DVKROPE_FUZZ=ON \
        "-DVKROPE_SANITIZE=$sanitizers" &&
        "$CMAKE" --build "$build" -j 2 --target $(printf 'fuzz_%s ' $targets)
} >"$SCRATCH/build.log" 2>&1 || { tail -n 40 "$SCRATCH/build.log"; exit 1; }

mkdir -p "$SCRATCH/findings"
fuzz() {
    mkdir -p "$SCRATCH/corpus/$1"
    "$build/tests/tools/fuzz/fuzz_$1" "$extent" -max_len=16384 "-timeout=$((5 * slower))" \
        -rss_limit_mb=512 -malloc_limit_mb=256 \
        -dict="$SOURCE/tests/data/words.dict" -artifact_prefix="$SCRATCH/findings/$1-" \
        -print_final_stats=1 \
        "$SCRATCH/corpus/$1" "$seeds/$1" >"$SCRATCH/$1.log" 2>&1 ||
        echo "$1" >>"$SCRATCH/failed"
}
rm -f "$SCRATCH/failed" "$SCRATCH/too_few"
# shellcheck disable=SC2086 # one word per target
set -- $targets
while [ $# != 0 ]; do
    fuzz "$1" &
    [ $# = 1 ] || fuzz "$2"
    wait
    shift $(($# > 1 ? 2 : 1))
done

for target in $targets; do
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$SCRATCH/$target.log")
    echo "fuzz_$target: ${executions:-no} executions${runs:+ of $runs}, sanitizers: $sanitize"
    if ! grep -qx "$target" "$SCRATCH/failed" 2>/dev/null &&
        [ "${executions:-0}" -lt "$required" ]; then
        echo "fuzz_$target: at least $required executions are required" | tee "$SCRATCH/too_few"
    fi
done
[ -e "$SCRATCH/failed" ] || { [ ! -e "$SCRATCH/too_few" ] && exit 0 || exit 1; }
while read -r target; do
    echo "fuzz_$target found something ($SCRATCH/$target.log):"
    grep -E '^broken: |ERROR: |SUMMARY: |runtime error: |Test unit written to ' \
        "$SCRATCH/$target.log" ||
        tail -n 20 "$SCRATCH/$target.log"
done <"$SCRATCH/failed"
exit 1
