#!/bin/sh
# SPDX-License-Identifier: MIT
# vkrope-conformance finds each lie of the layer: the check that findings.txt names fails, with a
# sentence that has its words, and a command that repeats it. Prints the table of lies and findings,
# each with the level of ./dev test that runs the check.
# Arguments: the tool, the folder of the layer's manifest, the program that lists the lies, the
# filter with which --thorough runs the quick checks, and vkrope-bench or nothing.
set -u
LC_ALL=C
export LC_ALL
tool=$1 VK_LAYER_PATH=$2 list=$3 usual=$4 bench=${5:-}
VK_INSTANCE_LAYERS=VK_LAYER_VKROPE_lies
export VK_LAYER_PATH VK_INSTANCE_LAYERS VKROPE_LIE
# What a sanitizer makes of a crash is its own business, and its exit code none of the tool's.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_segv=0:handle_abort=0:exitcode=99
export ASAN_OPTIONS
findings=$(dirname "$0")/findings.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
failures=0
wrong() {
    failures=$((failures + 1))
    echo "FAILED: $*"
}

grep -v '^#' "$findings" >"$work/findings"
"$list" >"$work/lies"
"$tool" --list --filter "$usual" >"$work/usual" || wrong "--thorough has no checks: $usual"
while IFS='|' read -r lie check options words; do
    VKROPE_LIE=$lie
    case $check in
        bench/*)
            [ -n "$bench" ] || { echo "skipped: $lie: there is no vkrope-bench" && continue; }
            "$bench" --benchmark_filter="^${check#bench/}/" --benchmark_min_time=0.001 \
                >"$work/out" 2>"$work/err" </dev/null && wrong "$lie: nothing found it"
            sentence=$(sed -n "s|^vkrope: error: ${check#bench/}: ||p" "$work/err")
            ;;
        *)
            # shellcheck disable=SC2086 # one word an option
            "$tool" $options --filter "$check" >"$work/out" 2>"$work/err" </dev/null &&
                wrong "$lie: nothing found it"
            sentence=$(sed -n "s|^vkrope: warning: [a-z]*: $check: ||p" "$work/err")
            repeated=$options
            case $options in --timeout*) repeated= ;; esac
            command="vkrope-conformance.*$repeated --filter $check"
            if [ -z "$sentence" ]; then # a crash may take the line of the check with it
                sentence=$(sed -n 's|^vkrope: error: \(crashed\)|\1|p' "$work/err")
            else
                grep -q "^vkrope: note: to repeat it: $command\$" "$work/err" ||
                    wrong "$lie: no command repeats $check"
            fi
            ;;
    esac
    case $sentence in *"$words"*) ;; *) wrong "$lie: '$words' is not said, but: $sentence" ;; esac
    what=$(awk -F '\t' -v lie="$lie" '$2 == lie { print $3 }' "$work/lies")
    [ -n "$what" ] || wrong "$lie is not a lie of the layer"
    case $check in bench/*) level=thorough ;; *) level=all ;; esac
    ! grep -qxF "$check" "$work/usual" || level=thorough
    printf '%s  %s: a driver that %s\n    %s: %s\n' "$level" "$lie" "$what" "$check" "$sentence"
done <"$work/findings"
awk -F '[\t|]' 'NR == FNR { found[$1] = 1; next } $1 == "lie" && !($2 in found) { print $2 }' \
    "$work/findings" "$work/lies" >"$work/missing"
while read -r lie; do wrong "$lie: findings.txt does not say what finds it"; done <"$work/missing"
[ "$failures" = 0 ]
