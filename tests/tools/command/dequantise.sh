#!/bin/sh
# SPDX-License-Identifier: MIT
# `vkrope dequantise`: values of each type worked out by hand, and every wrong input refused by an
# error that names it.
# shellcheck disable=SC2317 # functions that others call
. "$(dirname "$0")/check.sh"
no_driver

# float NUMBER...: as f32, if the number is in this table.
float() {
    for number; do
        case $number in
            0) int32 0 ;;
            -0) int32 $((0x80000000)) ;;
            0.5) int32 $((0x3f000000)) ;;
            1) int32 $((0x3f800000)) ;;
            2) int32 $((0x40000000)) ;;
            3) int32 $((0x40400000)) ;;
            -1) int32 $((0xbf800000)) ;;
            -2) int32 $((0xc0000000)) ;;
            -8) int32 $((0xc1000000)) ;;
            -16) int32 $((0xc1800000)) ;;
            448) int32 $((0x43e00000)) ;;
            *) echo "float: $number is not in the table" && exit 1 ;;
        esac
    done
}
# repeat COUNT COMMAND...
repeat() {
    count=$1
    shift
    for _ in $(seq "$count"); do "$@"; done
}
# gives BYTES TYPE [OPTION...]: the values in out.npy, BYTES bytes, equal `expected`.
gives() {
    bytes=$1
    shift
    works "$vkrope" dequantise --codes codes.npy --out out.npy --type "$@"
    tail -c "$bytes" out.npy >values
    holds "values of $*" cmp -s values expected
}

# Blocks: d = 1, in f16 0x3c00; m = 2, 0x4000; other channels have code 0.
{ byte 0 60 1 255 3 && zeros 29; } | npy '|u1' '(1, 34)' >codes.npy
{ float 1 -1 3 && repeat 29 float 0; } >expected
gives 128 q8_0
holds 'the shape has channels on the last axis' grep -qa "'shape': (1, 32)" out.npy
holds 'and float32' grep -qa "'descr': '<f4'" out.npy
# Byte 0: channel 0 has code 9 and channel 16 code 10.
{ byte 0 60 169 && zeros 15; } | npy '|u1' '(18,)' >codes.npy
{ float 1 && repeat 15 float -8 && float 2 && repeat 15 float -8; } >expected
gives 128 q4_0
{ byte 0 60 0 64 16 && zeros 15; } | npy '|u1' '(20,)' >codes.npy
{ repeat 16 float 2 && float 3 && repeat 15 float 2; } >expected
gives 128 q4_1
# The fifth bits of channels 0 and 16 are set.
{ byte 0 60 1 0 1 0 33 && zeros 15; } | npy '|u1' '(22,)' >codes.npy
{ float 1 && repeat 15 float -16 && float 2 && repeat 15 float -16; } >expected
gives 128 q5_0
{ byte 0 60 0 192 0 0 0 0 49 && zeros 15; } | npy '|u1' '(24,)' >codes.npy
{ float -1 && repeat 15 float -2 && float 1 && repeat 15 float -2; } >expected
gives 128 q5_1

# Elements, with one scale and with one for each row.
byte 56 184 126 0 | npy '|u1' '(2, 2)' >codes.npy
float 1 -1 448 0 >expected
gives 16 e4m3fn
byte 60 188 64 128 | npy '|u1' '(2, 2)' >codes.npy
float 1 -1 2 -0 >expected
gives 16 e5m2
byte 1 255 2 254 | npy '|u1' '(2, 2)' >codes.npy
float 1 -1 2 -2 >expected
gives 16 int8
float 1 | npy '<f4' '()' >one.npy
float 0.5 -1 | npy '<f4' '(2,)' >scales.npy
byte 2 4 1 2 | npy '|u1' '(2, 2)' >codes.npy
float 1 2 -1 -2 >expected
gives 16 int8 --scales scales.npy
float 1 2 0.5 1 >expected
gives 16 int8 --scale 0.5
float 2 | npy '<f4' '()' >two.npy
byte 1 255 | npy '|u1' '(2,)' >codes.npy
float 2 -2 >expected
gives 8 int8 --scales two.npy

# Nothing at all.
printf '' | npy '|u1' '(0, 34)' >codes.npy
works "$vkrope" dequantise --codes codes.npy --out out.npy --type q8_0
holds 'no rows have their shape' grep -qa "'shape': (0, 32)" out.npy
printf '' | npy '|u1' '(3, 0)' >codes.npy
works "$vkrope" dequantise --codes codes.npy --out out.npy --type q8_0
holds 'empty rows have their shape' grep -qa "'shape': (3, 0)" out.npy

# What is wrong.
dequantise() { "$vkrope" dequantise --codes codes.npy --out new.npy --type "$@"; }
zeros 68 | npy '|u1' '(2, 34)' >codes.npy
refuse 2 '--type' "$vkrope" dequantise --codes codes.npy --out new.npy
refuse 2 '--codes' "$vkrope" dequantise --type q8_0 --out new.npy
refuse 2 '--out' "$vkrope" dequantise --type q8_0 --codes codes.npy
refuse 2 '--type:*q6_k' dequantise q6_k
refuse 2 '--scale:*q8_0' dequantise q8_0 --scale 2
refuse 2 '--scales:*q4_1' dequantise q4_1 --scales scales.npy
refuse 2 '--scale' dequantise int8 --scale 2 --scales scales.npy
for scale in 0 inf 1e39 2x; do refuse 2 "--scale:*'$scale'" dequantise int8 --scale $scale; done
refuse 5 '--codes:*(2, 34)*q4_0*18' dequantise q4_0
refuse 5 '--scales:*one.npy*()*(2,)' dequantise int8 --scales one.npy
zeros 16 | npy '<f8' '(2,)' >wide.npy
refuse 5 '--scales:*wide.npy*<f8*<f4' dequantise int8 --scales wide.npy
refuse 5 '--scales:*missing.npy' dequantise int8 --scales missing.npy
refuse 2 '--out*codes.npy' "$vkrope" dequantise --type q8_0 --codes codes.npy --out codes.npy
refuse 2 '--out*scales.npy' "$vkrope" dequantise --type int8 --codes codes.npy --out scales.npy \
    --scales scales.npy
cp one.npy codes.npy
refuse 5 '--codes:*<f4' dequantise q8_0
byte 1 | npy '|u1' '()' >codes.npy
refuse 5 '--codes:*()' dequantise int8
printf '' | npy '|u1' '(0, 9223372036854775782)' >codes.npy
refuse 5 '--codes:' dequantise q8_0
finish
