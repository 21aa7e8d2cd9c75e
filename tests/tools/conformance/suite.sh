#!/bin/sh
# SPDX-License-Identifier: MIT
# The built-in suite as a command: what there is, what a report says, what a failure prints, one
# table of several reports. Arguments: those of cases.sh, then the tool with seeded faults.
seeded=$5
hang=$((60 * ${VKROPE_TIME_FACTOR:-1})) # seconds
. "$(dirname "$0")/cases.sh"

# has FILE TEXT...: each of the texts is in FILE.
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

# What there is: every group, more of it in full, and ids once each.
works "$tool" --list
cp "$logs/out" quick
works "$tool" --list --level full
cp "$logs/out" full
for group in arithmetic pairings elements layouts positions axes angles limits offsets variants \
    in_place values chains replays algebra same_bits; do
    [ "$(grep -c "^$group/" quick)" -ge 8 ] || wrong "the group $group has fewer than 8 checks"
done
[ -z "$(sort full | uniq -d)" ] || wrong 'an id is there twice'
[ "$(wc -l <full)" -gt "$(wc -l <quick)" ] || wrong 'full has no more than quick'
while read -r id; do grep -qxF -e "$id" full || wrong "$id is not in full"; done <quick
works "$tool" --list --filter 'algebra/*'
[ "$(grep -c '^algebra/' "$logs/out")" = "$(wc -l <"$logs/out")" ] ||
    wrong '--filter lets others through'
works "$tool" --list --filter='-*_f16,algebra/*,layouts/*,-layouts/bhsd*'
[ "$(grep -cE '^(algebra|layouts)/' "$logs/out")" = "$(wc -l <"$logs/out")" ] &&
    grep -q '^layouts/' "$logs/out" && ! grep -qE '_f16$|^layouts/q' "$logs/out" ||
    wrong '--filter does not take several patterns'
works "$tool" --list --filter='-algebra/*'
grep -v '^algebra/' quick | cmp -s - "$logs/out" || wrong '--filter leaves out more than it says'
expect 2 '--filter' "$tool" --filter 'algebra'
expect 2 '--timeout' "$tool" --timeout 0

# A report.
works "$tool" --filter 'algebra/composition_*_computed' --json report.json
has report.json '"version": ' '"level": "quick"' '"interrupted": false' '"driver": ' \
    '"api_version": ' '"limits": ' '"storage_buffer_range": ' '"subgroup_size": ' \
    '"subnormals": ' '"rounding": "to nearest even"' '"specials": "kept"' '"f16": ' '"nan": ' \
    '"tools": ' '"max_u": ' '"max_ulp": ' '"seconds": ' '"status": "pass"' \
    '"verdict": "not judged"' '"verdict_reason": "only a part of the suite ran"'
for word in "$(hostname)" "$(id -un)" "$HOME" "$PWD" "$tool" uuid; do
    ! grep -qiF -e "\"$word" report.json || wrong "the report holds '$word'"
    [ "${#word}" -lt 6 ] || ! grep -qiF -e "$word" report.json || wrong "the report holds '$word'"
done
works "$tool" --filter 'algebra/norm_*_computed' --with-uuid --json with_uuid.json
grep -q '"uuid": "[0-9a-f]\{32\}"' with_uuid.json || wrong '--with-uuid names none'
has "$logs/err" 'algebra ' '2 pass' 'subnormals of f32' 'rounding of f32' 'specials of f32' \
    'f16 it converts' 'verdict'

# An unsupported check is neither a failure nor a pass.
expect 0 'unsup.' "$seeded" --level full --filter 'seeded/[gr]*'
has "$logs/out" 'unsupported  seeded/refusal  seeded: a refusal'
expect 1 '' "$seeded" --level full --filter seeded/refusal

# A tool between us and the driver that alters features: nothing is conformant then.
works "$seeded" --filter seeded/good --validation --json validation.json
has validation.json '"alters_features": true' '"verdict": "not judged"'
works "$tool" --validation --filter 'positions/*'

# A failure, and the command that repeats it.
expect 1 'of 2 checks, 1 pass, 1 fail' "$seeded" --json fault.json
has fault.json '"verdict": "not conformant"' '"verdict_reason": "1 of 2 checks failed"' \
    'seeded: other frequencies give different bits'
has "$logs/err" 'note: to repeat it: vkrope-conformance --filter seeded/fault' '1 pass, 1 FAIL'
expect 1 '' "$seeded" --level full --device llvmpipe
has "$logs/err" \
    "to repeat it: vkrope-conformance --device llvmpipe --level full --filter 'seeded/fault of full'" \
    'the check looked at nothing' '1 pass, 3 FAIL, 1 unsup., 1 ERROR'
expect 1 'seeded/fault of full' "$seeded" --device llvmpipe --level full \
    --filter 'seeded/fault of full'

# Checks that run several times.
works "$tool" --filter 'algebra/norm_*_computed' --repeat 3
expect 2 '--repeat' "$tool" --repeat 0
expect 1 'of 1 checks, 1 fail' "$seeded" --repeat 2 --filter seeded/fault
has "$logs/err" 'to repeat it: vkrope-conformance --repeat 2 --filter seeded/fault'
sed 's/"status": "pass"/"status": "unstable"/; s/"verdict": "not judged"/"verdict": "unstable"/' \
    report.json >broken.json
expect 1 'device 1 is unstable' "$tool" --table broken.json
has "$logs/out" ' UNSTABLE'

# One table.
works "$tool" --table report.json with_uuid.json --missing 'SwiftShader=not here' --missing 'a=b=c'
has "$logs/out" '  1  llvmpipe' '  2  llvmpipe' '  -  SwiftShader: not run: not here' \
    '  -  a: not run: b=c' 'algebra ' '  2  not judged: '
expect 1 'device 2 is not conformant' "$tool" --table report.json fault.json
has "$logs/out" '  2  not conformant: 1 of 2 checks failed' 'seeded faults '
# A report in which nothing was checked is not a success, and neither is such a run.
expect 1 'nothing was checked, because there is no device' "$tool" --missing 'SwiftShader=not here'
has "$logs/out" '  -  SwiftShader: not run: not here'
printf '{"devices": []}' >none_checked.json
expect 1 'nothing was checked, because there is no device' "$tool" --table none_checked.json
expect 1 "'none_checked.json' has no device: nothing was checked" "$tool" \
    --table none_checked.json report.json
expect 1 '' "$seeded" --level full --filter seeded/refusal --json none_checked.json
expect 1 'on device 2 nothing was checked' "$tool" --table report.json none_checked.json
expect 1 'device 2 is not conformant' "$tool" --table none_checked.json fault.json
sed '/"cases": \[/,/^ *\]$/c "cases": []' report.json >none_checked.json
expect 1 'on device 1 nothing was checked' "$tool" --table none_checked.json report.json
# A verdict counts by itself, and has to be one.
sed 's/"verdict": "not judged"/"verdict": "not conformant"/' report.json >broken.json
expect 1 'device 2 is not conformant' "$tool" --table report.json broken.json
sed 's/"verdict": "not judged"/"verdict": "splendid"/' report.json >broken.json
expect 5 "has the verdict 'splendid', which is not a known verdict" "$tool" --table report.json \
    broken.json
sed 's/"status": "pass"/"status": "fail"/' report.json >broken.json
expect 1 'device 2 has failed: algebra/composition_' "$tool" --table report.json broken.json
# About as many groups as a report has room for take a second, not half a minute.
{
    sed '/"cases": \[/q' report.json
    awk 'BEGIN {
        for (i = 0; i < 80000; ++i) {
            printf "%s{\"id\": \"a\", \"group\": \"g%d\", \"status\": \"pass\", ", i ? "," : "", i
            print "\"max_u\": null, \"seconds\": 0}"
        }
    }'
    sed '1,/"cases": \[/d' report.json | sed -n '/^ *]/,$p'
} >many_groups.json
works timeout "$hang" "$tool" --table many_groups.json
[ "$(grep -c '^g[0-9]* *1 pass$' "$logs/out")" = 80000 ] || wrong 'not all groups are in the table'
rm many_groups.json
expect 2 'NAME=REASON' "$tool" --table report.json --missing SwiftShader
expect 5 'cannot be read' "$tool" --table none.json
for text in '' '{' '{"devices": 3}' '{"devices": [{"name": "x"}]}' '[]'; do
    printf '%s' "$text" >broken.json
    expect 5 'is not a report' "$tool" --table broken.json
done
brackets() { head -c 200000 /dev/zero | tr '\0' "$1"; }
{ printf '{"devices": ' && brackets '[' && brackets ']' && printf '}'; } >broken.json
expect 5 'nested more than 64 deep' "$tool" --table broken.json
sed 's/"status": "pass"/"status": "passed"/' report.json >broken.json
expect 5 "has the status 'passed', which is not a known status" "$tool" --table report.json \
    broken.json
sed 's/"subgroup_size": [0-9]*/"subgroup_size": -5.5e30/' report.json >broken.json
expect 5 'is not a report' "$tool" --table broken.json
mkfifo fifo
expect 5 "'.' is a directory; it must be a regular file" "$tool" --table .
expect 5 "'fifo' is not a regular file" timeout "$hang" "$tool" --table fifo
expect 5 "'/dev/zero' is not a regular file" timeout "$hang" "$tool" --table /dev/zero
# The limit is the parser's, and has one number: white space up to it is a report, one byte more
# is none.
head -c $((16777216 - $(wc -c <report.json))) /dev/zero | tr '\0' ' ' |
    cat report.json - >endless.json
works "$tool" --table endless.json
printf ' ' >>endless.json
expect 5 'has more than 16777216 bytes, more than any report has' "$tool" --table endless.json
rm endless.json

# A report that could not be written is not a reason to run anything.
expect 5 "--json: 'none/report.json' cannot be written" "$tool" --json none/report.json
! grep -q 'running on' "$logs/err" || wrong 'checks ran whose report cannot be written'
[ -z "$(find . -name '.vkrope-*')" ] || wrong 'a temporary file is left'

# Lines come as checks end, and an interrupt keeps what there is: each signal that ends programs,
# and a second one right behind the first. Two of different names, for two of one name may arrive
# as one.
# shellcheck disable=SC3045 # every sh of Debian has it
ulimit -c 0
keeps_report() {
    has interrupted.json '"interrupted": true' '"verdict_reason": "the run was interrupted after ' \
        '"status": "pass"'
    [ "$(grep -c '"id"' interrupted.json)" -lt "$(grep -c '^a' quick)" ] ||
        wrong 'it ran to the end all the same'
    works "$tool" --table interrupted.json
    has "$logs/out" 'not judged: the run was interrupted after'
    rm -f interrupted.json
}
# interrupted SIGNAL...: starts a run, sends these once it has printed two lines, sets `code`.
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
for signal in TERM INT HUP QUIT ALRM USR1 USR2 PROF VTALRM XCPU 'INT TERM' 'TERM INT' \
    'PIPE XCPU HUP'; do
    # shellcheck disable=SC2086 # one word a signal
    interrupted $signal
    [ "$(grep -c '"id"' interrupted.json)" = "$(wc -l <lines)" ] ||
        wrong 'report and lines do not tell the same'
    keeps_report
done
# A third need not wait. It leaves nothing behind.
interrupted INT TERM HUP
[ -z "$(find . -name '.vkrope-*')" ] || wrong 'a temporary file is left after three signals'
rm -f interrupted.json

# Nor does a line that cannot be printed take the report with it: who read the pipe has left, with
# a signal or without, or a disk is full.
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
expect 5 'standard output: cannot be written: No space left on device' \
    sh -c 'exec "$@" >/dev/full' sh "$tool" --filter 'a*' --json interrupted.json
keeps_report
finish
