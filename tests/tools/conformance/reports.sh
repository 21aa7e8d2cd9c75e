#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks the output and exit codes of the tool: counts, the report, outputs, filters, and a failure
# with the command that repeats it.
. "$(dirname "$0")/cases.sh"

# A wrong value, or a wrong bit where no bit may change, fails, and the printed command repeats it.
own_case half_f32_bshd cases/a
own_case scaling_yarn cases/b
printf '\000\000\200\077' | dd of=cases/a/expected_k.npy bs=1 seek=200 conv=notrunc 2>"$logs/dd"
runs 1 --cases cases
reports fail 'k?0, 1, 0, 2?'
command=$(sed -n 's/^vkrope: note: to repeat it: vkrope-conformance //p' "$logs/err")
[ "$command" = '--no-builtin --cases cases --filter own/half_f32_bshd' ] ||
    wrong "the repeating command is '$command'"
# shellcheck disable=SC2086 # the words of the command
runs 1 $command
reports fail 'k?0, 1, 0, 2?'
verdicts | grep -qv '^own/half_f32_bshd	' && wrong 'the repeating command runs another case'

# A change within the tolerance is no failure; one in the last bit of a copied channel is.
own_case infinities_outside_the_window bits
printf '\001' | dd of=bits/expected_q.npy bs=1 seek=128 conv=notrunc 2>"$logs/dd"
runs 1 --cases bits
reports fail ''

# The report has these keys. (suite.sh checks that it names no host, user or path.)
runs 0 --cases "$own" --filter 'own/table_f*'
for key in devices name driver cases id status max_error reason; do
    grep -qF "\"$key\": " "$logs/report.json" || wrong "the report lacks '$key'"
done
"$tool" --no-builtin --cases "$own" --filter own/table_f32 --json - >"$logs/out" 2>"$logs/err" ||
    wrong '--json - fails'
[ "$(head -c 1 "$logs/out")" = '{' ] || wrong '--json - is not alone on stdout'

# The outputs are the expected values, or as close as the tolerance, in the types of the files. A
# case with nothing to compare with is computed.
runs 0 --device all --cases "$own" --filter 'own/table_f*' --write-outputs outputs
for name in table_f32 table_f16; do
    cmp -s "outputs/own/$name/actual_q.npy" "$own/$name/expected_q.npy" ||
        wrong "the output of $name is not what was expected"
done
[ ! -e outputs/own/table_f32/actual_k.npy ] || wrong 'there is a K where there was none'
runs 0 --cases "$own" --filter own/nothing_expected --write-outputs outputs
reports computed ''
[ -s outputs/own/nothing_expected/actual_q.npy ] || wrong 'no output of a case that expects nothing'

# Positions far beyond any table: their angles are computed.
own_case nothing_expected far
sed -i 's|"value": [0-9]*|"value": 2000000000|' far/case.json
grep -q 2000000000 far/case.json || wrong 'the case has no position to change'
runs 0 --cases far
reports computed ''

# A case of many calls stops at a signal. The report lacks this case but has the earlier ones.
own_case half_f32_bshd long/a
own_case nothing_expected long/b
zeros 33554432 | npy '<f4' '(1, 32768, 16, 16)' >long/b/q.npy
many=$(awk 'BEGIN { for (i = 0; i < 64; ++i) printf "%s{\"offset\": 0, \"rotary_dim\": 4}", i ? ", " : "" }')
sed -i 's|"shape": \[[^]]*\]|"shape": [1, 32768, 16, 16]|
    s|"rotary_dim": [0-9]*|"rotary_dim": null|; s|"rotary_offset": [0-9]*|"rotary_offset": null|
    s|"head_dim": [0-9]*|"head_dim": 16, "windows": ['"$many"']|
    s|"exponent_dim": [0-9]*|"exponent_dim": null|' long/b/case.json
: >lines
env --default-signal "$tool" --no-builtin --cases long --json "$logs/report.json" >lines \
    2>"$logs/err" &
pid=$!
for _ in $(seq 600); do
    [ ! -s lines ] || break
    sleep 0.1
done
sleep 0.2
kill -s TERM "$pid" || wrong 'the long case has ended by itself'
code=0
wait "$pid" || code=$?
[ "$code" = 143 ] || wrong "exit code $code after SIGTERM"
reports pass ''
grep -qF '"interrupted": true' "$logs/report.json" ||
    wrong 'the report is not of an interrupted run'
[ "$(grep -c '"id"' "$logs/report.json")" = 1 ] || wrong 'the long case ran to its end all the same'

# Exit codes and usage.
works "$tool" --no-builtin --cases "$own" --list
[ "$(wc -l <"$logs/out")" = "$(find "$own" -name case.json | wc -l)" ] ||
    wrong '--list does not list all cases'
works "$tool" --help
works "$tool" --version
expect 2 '' "$tool" --no-builtin
expect 2 '--filter:*own/none' "$tool" --no-builtin --cases "$own" --filter own/none
expect 2 '--level' "$tool" --no-builtin --cases "$own" --level lots
expect 3 'no such device' "$tool" --no-builtin --cases "$own" --device 'no such device'
touch file
expect 5 '--write-outputs' "$tool" --no-builtin --cases "$own" --write-outputs file
no_driver
expect 3 '' "$tool" --no-builtin --cases "$own"
finish
