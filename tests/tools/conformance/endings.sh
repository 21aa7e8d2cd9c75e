#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that a crash, hang, exit or device loss in a check or driver gives a row of the report,
# that the other groups are finished, and that the exit code is right. Further arguments: the tool
# with seeded endings, and the layer that acts as a bad driver.
. "$(dirname "$0")/tool.sh"
seeded=$4
layer=$5
hang=$((4 * ${VKROPE_TIME_FACTOR:-1})) # seconds
# A sanitizer must not handle the crashes.
ASAN_OPTIONS=$ASAN_OPTIONS:handle_segv=0:handle_sigbus=0:handle_abort=0
export ASAN_OPTIONS
# shellcheck disable=SC3045 # every sh of Debian has it
ulimit -c 0

# ends CODE COMMAND...: expects this exit code of a run whose report is report.json.
ends() {
    expected=$1
    shift
    checks=$((checks + 1))
    code=0
    "$@" --json report.json >"$logs/out" 2>"$logs/err" || code=$?
    [ "$code" = "$expected" ] || { wrong "exit code $code, not $expected: $*" && cat "$logs/err"; }
}

# row STATUS ID [PATTERN]: expects a line on stdout whose reason contains PATTERN.
row() {
    checks=$((checks + 1))
    grep -E "^$1 +$2  " "$logs/out" >"$logs/rows"
    says "${3:-}" "$logs/rows" || {
        wrong "$2 is no '$1' with '${3:-}'"
        grep -F "$2" "$logs/out"
    }
}

ends 4 "$seeded" --check-timeout "$hang"
for group in nothing crash abort exit 'exit at once' kill terminate lose loop 'nothing more'; do
    row pass "$group/before"
done
for id in nothing/it nothing/after 'nothing more/it' 'nothing more/after'; do row pass "$id"; done
for group in crash abort exit 'exit at once' kill lose loop; do
    row error "$group/after"
done
row error crash/it 'SIGSEGV*in crash/it'
row error abort/it 'SIGABRT*in abort/it'
row error exit/it 'exit code'
row error 'exit at once/it' 'exit code 0*in exit at once/it'
row error kill/it SIGKILL
row pass terminate/it
row error terminate/after 'signal 15'
row error lose/it lost
row error loop/it "$hang seconds*in loop/it"
row error closing/it 'SIGBUS*after*closing'
holds 'last words are passed on' grep -qF "a driver's last words" "$logs/err"
holds 'the report has a line for each check' \
    [ "$(grep -c '"id":' report.json)" = "$(wc -l <"$logs/out")" ]
holds 'the verdict names an ending' says '"verdict_reason": "*SIGSEGV*in crash/it' report.json
holds 'it is not a conformant device' grep -qF '"verdict": "not conformant"' report.json
holds 'an ending is repeated by a command' \
    says "to repeat it: vkrope-conformance --filter *crash/it" "$logs/err"
ends 6 "$seeded" --filter 'kill/*'

# The limits do not count the time in which a pager keeps this program from going on.
(head -c 65536 /dev/zero && "$tool" --check-timeout "$hang" --filter 'chains/f16*' && echo good) \
    2>"$logs/err" | (sleep $((2 * hang)) && tr -d '\0') >paged
holds 'a pager that waits ends no check' grep -qx good paged

printf '#!/bin/sh\nexec yes >&2\n' >loud && chmod +x loud
slowly() { while head -c 65536 >part && [ -s part ]; do cat part && sleep 0.02; done; }
VKROPE_SELF=./loud timeout $((5 * hang)) "$tool" --check-timeout "$hang" 2>&1 | slowly |
    tail -c 999 >said
holds 'a driver that prints without end is ended' says '*took more than' said

# VKROPE_SELF gives the command for a system that cannot start the program itself (emulators).
works env VKROPE_SELF="env VKROPE_TIMEOUT=20 $seeded" "$seeded" --filter nothing/it
expect 5 none env VKROPE_SELF=./none "$seeded" --filter nothing/it

# Tests a bad driver for each call in which it can end the process.
mkdir layers
cat >layers/bad_driver.json <<END
{"file_format_version": "1.0.0", "layer": {"name": "VK_LAYER_VKROPE_bad_driver",
 "type": "GLOBAL", "api_version": "1.3.0",
 "library_path": "$layer", "implementation_version": "1", "description": "a bad driver"}}
END
VK_LAYER_PATH=$PWD/layers
VK_INSTANCE_LAYERS=VK_LAYER_VKROPE_bad_driver
export VK_LAYER_PATH VK_INSTANCE_LAYERS
# bad_driver CODE FAULT OPTION...: expects this exit code of a run with this fault.
bad_driver() {
    code_wanted=$1
    fault=$2
    shift 2
    ends "$code_wanted" env VKROPE_FAULT="$fault" "$tool" --timeout "$hang" \
        --check-timeout "$((4 * hang))" "$@"
}
bad_driver 0 none --filter 'chains/f16*'
# The first process measures the traits of the device in five submissions before its checks.
bad_driver 4 raise=SEGV@pipelines+9 --filter 'angles/*'
row error 'angles/[a-z0-9_]*' 'SIGSEGV*in angles/'
row pass 'angles/[a-z0-9_]*'
bad_driver 4 lose=@submit+60 --filter 'ar*/*f32*,an*/*f32*'
holds 'a lost device is opened again' [ "$(grep -cF 'VK_ERROR_DEVICE_LOST' "$logs/out")" -ge 2 ]
row pass '[a-z]*/[a-z0-9_]*'
bad_driver 4 hang=@submit+20 --filter 'chains/*'
row error 'chains/[a-z0-9_]*' "$((4 * hang)) seconds*in chains/"
# Nothing works at all: the run stops after three groups.
bad_driver 4 raise=ABRT@pipelines --filter '*half_split*'
holds 'three groups have crashed' \
    [ "$(grep -c 'SIGABRT' "$logs/out")" = 3 ]
# A driver that crashes before there is a device.
bad_driver 4 raise=SEGV@instance
holds 'a way to choose a driver is named' says 'SIGSEGV*VK_DRIVER_FILES' "$logs/err"
finish
