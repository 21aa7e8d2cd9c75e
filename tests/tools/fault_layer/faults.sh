#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that vkrope-conformance finds each fault of the layer, as findings.txt says, and finds no
# fault in the variations that Vulkan permits. Prints the faults and their findings. Arguments: the
# tool; the folder of the layer's manifest; the program that lists the faults; "all" faults, those
# that checks of "offsets" find, or "permitted" (all quick checks on drivers with permitted
# variations); vkrope-bench or nothing.
set -u
LC_ALL=C
export LC_ALL
tool=$1 VK_LAYER_PATH=$2 list=$3 which=$4 bench=${5:-}
VK_INSTANCE_LAYERS=VK_LAYER_VKROPE_faults
export VK_LAYER_PATH VK_INSTANCE_LAYERS VKROPE_FAULT
# A sanitizer must not handle crashes, and its exit code must differ from those of the tool.
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
# checks STATUS: prints the number of checks with this status in the last run.
checks() { grep -cE "^$1 " "$work/out"; }
# check FILTER OPTION...: runs these checks; results go to out, sentences to err.
check() {
    filter=$1
    shift
    "$tool" "$@" --filter "$filter" >"$work/out" 2>"$work/err" </dev/null
}

# nothing_found FAULT FILTER: expects these checks to pass.
nothing_found() {
    if check "$2"; then
        echo "$1: $(checks pass) checks pass, $(checks unsupported) are unsupported: $2"
    else
        wrong "a driver that may be as it is: $1"
        grep -E '^(fail|error|unstable)' "$work/out"
    fi
}

# found FAULT CHECK OPTIONS WORDS: expects the check to fail; sets `sentence`.
found() {
    # shellcheck disable=SC2086 # one word an option
    check "$2" $3 && wrong "$1: nothing found it"
    case $2 in
        *\**)
            sentence="all of $(checks fail) fail"
            [ "$(checks fail)" = "$(checks '[a-z]+')" ] || wrong "$1: not all of $2 fail"
            return
            ;;
    esac
    sentence=$(sed -n "s|^vkrope: warning: [a-z]*: $2: ||p" "$work/err")
    if [ -z "$sentence" ]; then # a crash may lose the line of the check
        sentence=$(sed -n 's|^vkrope: error: \(crashed\)|\1|p' "$work/err")
    else
        repeated=$3
        case $3 in --timeout*) repeated= ;; esac
        grep -q "^vkrope: note: to repeat it: vkrope-conformance.*$repeated --filter $2\$" \
            "$work/err" || wrong "$1: no command repeats $2"
    fi
}

# found_by_bench FAULT ROW OPTION...: expects vkrope-bench to find the fault; sets `sentence`.
found_by_bench() {
    row=$2
    fault=$1
    shift 2
    "$bench" "$@" >"$work/out" 2>"$work/err" </dev/null && wrong "$fault: nothing found it"
    sentence=$(sed -n "s|^vkrope: error: ${row}[^ ]*: ||p" "$work/err")
}

grep -v '^#' "$findings" >"$work/findings"
"$list" >"$work/faults"
if [ "$which" = permitted ]; then
    awk -F '[\t|]' 'NR == FNR { if ($1 == "variation") permitted[$2] = 1; next }
        { split($1, names, ","); if (names[1] in permitted && $2 !~ /^offsets/) print $1 }' \
        "$work/faults" "$work/findings" >"$work/permitted"
    while read -r VKROPE_FAULT; do nothing_found "$VKROPE_FAULT" '*'; done <"$work/permitted"
    [ -s "$work/permitted" ] && [ "$failures" = 0 ]
    exit
fi

while IFS='|' read -r fault check options words; do
    case $which,$check in offsets,offsets/*) ;; offsets,*) continue ;; esac
    VKROPE_FAULT=$fault
    case $words,$check in
        \*,*)
            nothing_found "$fault" "$check"
            continue
            ;;
        *,bench/*)
            [ -n "$bench" ] || { echo "skipped: $fault: there is no vkrope-bench" && continue; }
            found_by_bench "$fault" "${check#bench/}" --benchmark_filter="^${check#bench/}/" \
                --benchmark_min_time=0.001
            ;;
        *,tune/*)
            [ -n "$bench" ] || { echo "skipped: $fault: there is no vkrope-bench" && continue; }
            found_by_bench "$fault" "${check#tune/}" --tune "${check#tune/}"
            ;;
        *) found "$fault" "$check" "$options" "$words" ;;
    esac
    case $sentence in *"$words"*) ;; *) wrong "$fault: '$words' is not said: $sentence" ;; esac
    name=${fault##*,}
    what=$(awk -F '\t' -v fault="${name%%=*}" '$2 == fault { print $3 }' "$work/faults")
    [ -n "$what" ] || wrong "$fault is not a fault of the layer"
    printf '%s: a driver that %s\n    %s: %s\n' "$fault" "$what" "$check" "$sentence"
done <"$work/findings"
awk -F '[\t|]' 'NR == FNR { split($1, names, ","); for (i in names) { sub(/=.*/, "", names[i])
        found[names[i]] = 1 }; next }
    $1 != "program" && !($2 in found) { print $2 }' "$work/findings" "$work/faults" \
    >"$work/missing"
while read -r fault; do
    wrong "$fault: findings.txt does not say what finds it"
done <"$work/missing"

# The full level has a check for each higher bit of an offset. The check runs if the device has
# enough memory, and must fail if the bit is cut.
bit=28
held=0
for far in 256_MiB 512_MiB 1_GiB 2_GiB 4_GiB; do
    VKROPE_FAULT=none
    id=offsets/beyond_${far}_f32_16_bytes
    check $id --level full
    expected=unsupported
    [ "$(checks pass)" = 0 ] || expected=fail held=$((held + 1))
    for VKROPE_FAULT in cut_descriptors=$bit cut_offsets=$bit; do
        check $id --level full
        [ "$(checks $expected)" = 1 ] || wrong "$VKROPE_FAULT: $id is not $expected"
    done
    bit=$((bit + 1))
done
echo "$held of 5 bits from 28 on are within what the device has room for"
[ "$held" != 0 ] || wrong 'no check is beyond 27 bits'
[ "$failures" = 0 ]
