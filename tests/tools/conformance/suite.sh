#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests the built-in suite as a command: the list of checks, the report, and a failure's output.
# Arguments: those of tool.sh, then the tool with seeded faults.
seeded=$4
hang=$((60 * ${VKROPE_TIME_FACTOR:-1})) # seconds
. "$(dirname "$0")/tool.sh"

# has FILE TEXT...: expects each of the texts in FILE.
has() {
    file=$1
    shift
    for text in "$@"; do
        checks=$((checks + 1))
        grep -qF -e "$text" "$file" || {
            wrong "no '$text' in $(basename "$file")"
            cat "$file"
        }
    done
}

# The list contains every group, more checks at the full level, and each id once.
works "$tool" --list
cp "$logs/out" quick
works "$tool" --list --level full
cp "$logs/out" full
for group in arithmetic elements positions angles offsets chains replays same_bits operations \
    random; do
    grep -q "^$group/" quick || wrong "there is no group $group"
done
[ -z "$(sort full | uniq -d)" ] || wrong 'an id is there twice'
[ "$(wc -l <full)" -gt "$(wc -l <quick)" ] || wrong 'full has no more than quick'
while read -r id; do grep -qxF -e "$id" full || wrong "$id is not in full"; done <quick
works "$tool" --list --filter 'chains/*'
[ "$(grep -c '^chains/' "$logs/out")" = "$(wc -l <"$logs/out")" ] ||
    wrong '--filter lets others through'
works "$tool" --list --filter='-*_f16,elements/*,angles/*,-angles/computed*'
[ "$(grep -cE '^(elements|angles)/' "$logs/out")" = "$(wc -l <"$logs/out")" ] &&
    grep -q '^angles/' "$logs/out" && ! grep -qE '_f16$|^angles/computed' "$logs/out" ||
    wrong '--filter does not take several patterns'
works "$tool" --list --filter='-chains/*'
grep -v '^chains/' quick | cmp -s - "$logs/out" || wrong '--filter leaves out more than it says'
expect 2 '--filter' "$tool" --filter 'chains'
expect 2 '--timeout' "$tool" --timeout 0
expect 2 '--json' "$tool" --json ''
expect 2 '--filter' "$tool" --filter= --list
expect 2 '--level' "$tool" --level lots
expect 3 'no such device' "$tool" --device 'no such device'
works "$tool" --help
works "$tool" --version

# A report.
works "$tool" --filter 'arithmetic/random_f*' --json report.json
has report.json '"version": ' '"level": "quick"' '"interrupted": false' '"driver": ' \
    '"api_version": ' '"limits": ' '"storage_buffer_range": ' '"subgroup_size": ' \
    '"subnormals": ' '"rounding": "to nearest even"' '"specials": "kept"' '"f16": ' '"nan": ' \
    '"system": "' '"tools": ' '"max_u": ' '"max_ulp": ' '"seconds": ' '"status": "pass"' \
    '"verdict": "not judged"' '"verdict_reason": "only a part of the suite ran"'
for word in "$(hostname)" "$(id -un)" "$HOME" "$PWD" "$tool" uuid; do
    ! grep -v '^  "system"' report.json | grep -qiF -e "\"$word" || wrong "the report holds '$word'"
    [ "${#word}" -lt 6 ] || ! grep -qiF -e "$word" report.json || wrong "the report holds '$word'"
done
works "$tool" --filter 'chains/f16_half*' --with-uuid --json with_uuid.json
grep -q '"uuid": "[0-9a-f]\{32\}"' with_uuid.json || wrong '--with-uuid names none'

works "$tool" --filter 'chains/f16_half*' --json -
[ "$(head -c 1 "$logs/out")" = '{' ] || wrong '--json - is not alone on stdout'

# An unsupported check is neither a failure nor a pass.
works "$seeded" --level full --filter 'seeded/g*,seeded/r*'
holds 'the refusal' says 'unsupported *seeded/refusal'
expect 1 '' "$seeded" --level full --filter seeded/refusal

# With a tool between library and driver that alters features, no device is conformant.
works "$seeded" --filter seeded/good --validation --json validation.json
has validation.json '"alters_features": true' '"verdict": "not judged"'
works "$tool" --validation --filter 'positions/*'

# A failure, and the command that repeats it.
expect 1 '' "$seeded" --json fault.json
has fault.json '"verdict": "not conformant"' '"status": "fail"'
has "$logs/err" 'note: to repeat it: vkrope-conformance --filter seeded/fault'
expect 1 '' "$seeded" --level full --device llvmpipe
has "$logs/err" \
    "to repeat it: vkrope-conformance --device llvmpipe --level full --filter 'seeded/fault of full'"
expect 1 'seeded/fault of full' "$seeded" --device llvmpipe --level full \
    --filter 'seeded/fault of full'

# Checks that run several times.
works "$tool" --filter 'chains/f16_half*' --repeat 3
expect 2 '--repeat' "$tool" --repeat 0
expect 1 '' "$seeded" --repeat 2 --filter seeded/fault
has "$logs/err" 'to repeat it: vkrope-conformance --repeat 2 --filter seeded/fault'

# If the report cannot be written, no check runs.
expect 5 '--json:*none/report.json' "$tool" --json none/report.json
! grep -q 'running on' "$logs/err" || wrong 'checks ran whose report cannot be written'
[ -z "$(find . -name '.vkrope-*')" ] || wrong 'a temporary file is left'

# Lines are printed as checks end, and an interrupt keeps the results so far, also when a second
# signal follows at once. The two signals have different names, because two of one name may arrive
# as one.
# shellcheck disable=SC3045 # every sh of Debian has it
ulimit -c 0
keeps_report() {
    has interrupted.json '"interrupted": true' '"verdict": "not judged"' '"status": "pass"'
    [ "$(grep -c '"id"' interrupted.json)" -lt "$(grep -c '^a' quick)" ] ||
        wrong 'it ran to the end all the same'
    rm -f interrupted.json
}
# interrupted SIGNAL...: starts a run, sends the signals after two printed lines, sets `code`.
interrupted() {
    checks=$((checks + 1))
    : >lines
    env --default-signal "$tool" --filter 'a*' --json interrupted.json >lines 2>"$logs/err" &
    pid=$!
    for _ in $(seq $((10 * hang))); do
        [ "$(wc -l <lines)" -lt 2 ] || break
        sleep 0.1
    done
    for signal; do kill -s "$signal" "$pid" ||
        wrong "no line came before the run ended, or it ended before SIG$signal"; done
    code=0
    wait "$pid" || code=$?
    case " $* " in *" $(kill -l "$code") "*) ;; *) wrong "exit code $code after SIG$*" ;; esac
}
for signal in TERM PROF 'INT TERM' 'PIPE XCPU HUP'; do
    # shellcheck disable=SC2086 # one word a signal
    interrupted $signal
    [ "$(grep -c '"id"' interrupted.json)" = "$(wc -l <lines)" ] ||
        wrong 'report and lines do not tell the same'
    keeps_report
done
# A third signal ends the run at once, without leaving temporary files.
interrupted INT TERM HUP
[ -z "$(find . -name '.vkrope-*')" ] || wrong 'a temporary file is left after three signals'
rm -f interrupted.json

# A line that cannot be printed does not lose the report either: the reader of the pipe has left,
# with or without SIGPIPE, or the disk is full.
for mode in default ignore; do
    {
        env --$mode-signal=PIPE "$tool" --filter 'a*' --json interrupted.json 2>"$logs/err"
        echo $? >"$logs/code"
    } | head -n 1 >"$logs/out"
    read -r code <"$logs/code"
    case $mode:$code in
        default:141 | ignore:5) ;;
        *) wrong "exit code $code where the pipe is closed, SIGPIPE: $mode" ;;
    esac
    keeps_report
done
expect 5 'standard output' \
    sh -c 'exec "$@" >/dev/full' sh "$tool" --filter 'a*' --json interrupted.json
keeps_report
no_driver
expect 3 '' "$tool"
finish
