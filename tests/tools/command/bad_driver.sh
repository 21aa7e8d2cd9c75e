#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests drivers that misbehave (../fault_layer): no such run is a success, no temporary file is
# left, and no device name reaches a terminal or a report unescaped. Further arguments: the layer,
# vkrope-conformance, and vkrope-bench or nothing.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions called indirectly
. "$(dirname "$0")/check.sh"
layer=$4
conformance=$5
bench=$6
# A sanitizer must leave crashes to the handlers of the program.
# check.sh exports this variable.
# shellcheck disable=SC2034
ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0
ASAN_OPTIONS=$ASAN_OPTIONS:handle_abort=0:handle_sigtrap=0:use_sigaltstack=0
need_lavapipe
VKROPE_DEVICE=0
VK_LAYER_PATH=$logs/layers
VK_INSTANCE_LAYERS=VK_LAYER_VKROPE_bad_driver
export VKROPE_DEVICE VK_LAYER_PATH VK_INSTANCE_LAYERS
mkdir "$VK_LAYER_PATH"
cat >"$VK_LAYER_PATH/bad_driver.json" <<END
{"file_format_version": "1.0.0",
 "layer": {"name": "VK_LAYER_VKROPE_bad_driver", "type": "GLOBAL", "api_version": "1.3.0",
 "library_path": "$layer", "implementation_version": "1", "description": "a bad driver"}}
END

model_with '"rope_theta": 10000.0' >model.json
works "$vkrope" make-input --shape 1,30,4,64 --out q.npy
default_signals='env --default-signal' # the caller may ignore some signals
$default_signals true 2>/dev/null || default_signals=
rotate() { VKROPE_FAULT=$1 $default_signals "$vkrope" rotate --model model.json --q q.npy \
    --out-q out.npy; }
works rotate none
rm out.npy

# A driver that ends the program in any way has not rotated anything. Files are written after the
# device is destroyed.
for status in 0 1 3 0@destroy; do
    refuse 4 ended rotate "exit=$status"
done
refuse 4 ended rotate quick_exit=0
check=elements/f32_to_f32
if [ -n "$bench" ]; then
    refuse 2 '' "$bench" --benchmark_format=xml
    # ends after the head of the table, so that stdout is not empty
    for ending in exit=0 raise=SEGV; do
        code=0
        VKROPE_FAULT=$ending "$bench" --benchmark_filter=empty/decode_b1/f16 \
            --benchmark_min_time=0.001 \
            --benchmark_out=run.json >"$logs/out" 2>"$logs/err" || code=$?
        if [ $ending = exit=0 ]; then
            holds 'an exit is a failure of the device' [ "$code" = 4 ]
            holds 'a file that was begun is named' says 'error: *--benchmark_out' "$logs/err"
        else
            holds 'a crash ends the program by its signal' [ "$(kill -l "$code")" = SEGV ]
        fi
        holds 'there is a file that was begun' rm run.json
    done
fi

# A crash, also from an exhausted stack, and a signal that asks a program to end: the program ends
# by the signal and leaves no file behind.
# shellcheck disable=SC3045 # every sh of Debian has ulimit -c
ulimit -c 0
for fault in SEGV SEGV@destroy BUS FPE ABRT HUP INT PIPE TERM XCPU overflow overflow=thread; do
    case $fault in
        overflow*) name=SEGV ;;
        *) name=${fault%@*} fault=raise=$fault ;;
    esac
    code=0
    rotate "$fault" >"$logs/out" 2>"$logs/err" || code=$?
    holds "$fault ends the program: $code" [ "$(kill -l "$code")" = $name ]
    holds "$fault leaves nothing behind" [ -z "$(find . -name '.vkrope-*' -o -name out.npy)" ]
done

# harmless FILE...: the file is UTF-8 text with the device's name, and its only control character is
# the end of a line.
harmless() {
    for file; do
        holds "$file names the device" grep -q 'bad .*2J .*5m .*7m.*name' "$file"
        holds "$file is UTF-8" iconv -f UTF-8 -t UTF-16 -o /dev/null "$file"
        holds "$file has no control character" [ \
            "$(tr -d '\n' <"$file" | iconv -f UTF-8 -t UTF-32LE |
            od -An -v -tu4 | awk '{ for (i = 1; i <= NF; i++) n += $i < 32 || ($i > 126 && $i < 160) } END { print n + 0 }')" = 0 ]
    done
}
VKROPE_FAULT=hostile_name
export VKROPE_FAULT
works "$vkrope" devices
harmless "$logs/out"
works "$vkrope" devices --json
harmless "$logs/out"
works "$vkrope" rotate --model model.json --q q.npy --out-q out.npy
harmless "$logs/out"
works "$vkrope" rotate --model model.json --q q.npy --out-q out.npy --json
harmless "$logs/out"
refuse 3 'no such device' "$vkrope" rotate --model model.json --q q.npy --out-q out.npy \
    --device 'no such device'
harmless "$logs/err"
works "$conformance" --filter $check --json report.json
harmless report.json
harmless "$logs/err"
if [ -n "$bench" ]; then
    works "$bench" --benchmark_filter=host/fill --benchmark_min_time=0.001 \
        --benchmark_out=bench.json
    cat "$logs/out" "$logs/err" >bench.txt
    harmless bench.json bench.txt
fi
finish
