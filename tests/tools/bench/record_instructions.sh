#!/bin/sh
# SPDX-License-Identifier: MIT
# Compares the number of instructions of one record() and of one create(), counted by callgrind,
# with tests/tools/bench/record_instructions.txt, and fails if a count is more than 2 % above.
# Arguments: the program next to this script, that file, the target and compiler of the library
# (machine-compiler-major), the kind of build, and whether a missing tool is a failure. The lines
# that the script prints are lines for that file.
set -u
LC_ALL=C
export LC_ALL
program=$1
budgets=$2
compiler=$3
build=$4
complete=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
failed=0
wrong() { echo "FAILED: $*" && failed=1; }
skip() { echo "bench_record_instructions: skipped: $*" && exit 77; }

[ "$build" = RelWithDebInfo ] || skip \
    "the counts are those of RelWithDebInfo, this is ${build:-an unnamed build}"
if ! command -v valgrind >/dev/null; then
    [ "$complete" != ON ] || { wrong 'there is no valgrind' && exit 1; }
    skip 'there is no valgrind'
fi

# Old valgrinds cannot read the debug information of newer compilers; stripping it keeps the names.
strip --strip-debug -o "$work/program" "$program" || exit 1

# measure FOLDER [ARGUMENT]: writes FOLDER/counts, with one line per case.
measure() {
    mkdir "$work/$1" || exit 1
    # shellcheck disable=SC2086 # no word if there is no argument
    valgrind --tool=callgrind --callgrind-out-file="$work/$1/out" \
        --toggle-collect='vkrope::record(*' \
        --toggle-collect='vkrope::test::counted_create(*' \
        --dump-after='vkrope::test::few_calls(*' --dump-after='vkrope::test::many_calls(*' \
        "$work/program" ${2:-} \
        >"$work/$1/cases" 2>"$work/$1/log" || { wrong "callgrind: exit code $?" &&
        cat "$work/$1/log" && exit 1; }
    dump=0
    while read -r name calls; do
        few=$(sed -n 's/^totals: //p' "$work/$1/out.$((dump + 1))")
        many=$(sed -n 's/^totals: //p' "$work/$1/out.$((dump + 2))")
        dump=$((dump + 2))
        echo "$compiler $name $(((many - few) / calls))"
    done <"$work/$1/cases" >"$work/$1/counts"
}

# compare COUNTS BUDGETS: prints one line per case. Status 1 if a case is over its budget, 2 if the
# file has no budget for this compiler.
compare() {
    awk 'FILENAME == ARGV[1] { if (!/^#/) budget[$1 " " $2] = $3; next }
        { key = $1 " " $2; cases++ }
        !(key in budget) { print $0, "no budget"; unknown = 1; next }
        {
            exceeds = $3 <= 0 || $3 > 1.02 * budget[key]
            over += exceeds
            print $0, "budget", budget[key], exceeds ? "OVER" : "ok"
        }
        END { exit !cases || over ? 1 : unknown ? 2 : 0 }' "$2" "$1"
}

measure once
measure again
cmp -s "$work/once/counts" "$work/again/counts" || { wrong 'two runs differ' &&
    diff "$work/once/counts" "$work/again/counts"; }
[ "$(wc -l <"$work/once/counts")" = 16 ] || wrong 'not sixteen cases'
status=0
compare "$work/once/counts" "$budgets" || status=$?

# The test detects calls that are made twice, and budgets lowered by an eighth.
measure twice twice
compare "$work/twice/counts" "$work/once/counts" >"$work/seen" &&
    wrong 'twice the work is within the budget'
[ "$(grep -c OVER "$work/seen")" = 16 ] || wrong 'twice the work is not over in each case'
awk '{ print $1, $2, int($3 * 7 / 8) }' "$work/once/counts" >"$work/lower"
compare "$work/once/counts" "$work/lower" >/dev/null &&
    wrong 'an eighth above the budget is within it'

[ "$status" != 1 ] || wrong "more than 2 % above $budgets: see above"
[ "$failed" = 0 ] || exit 1
[ "$status" != 2 ] || skip "$budgets has no lines for $compiler; those above are measured"
