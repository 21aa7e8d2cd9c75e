#!/bin/sh
# SPDX-License-Identifier: MIT
# `vkrope finish` with quantised outputs on lavapipe: the bytes of rows worked out by hand, made
# scales in the order of the file, what `vkrope dequantise` reads back, and --verify of each type
# behind norms and Hadamard transforms.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"
need_lavapipe

model() { model_with '"head_dim": 64, "rope_theta": 10000.0' | sed "s/\"llama\"/\"$1\"/"; }
model llama >llama.json
model qwen3 >qwen3.json
works "$vkrope" make-input --shape 1,1,4,64 --seed 1 --out q.npy
works "$vkrope" make-input --shape 1,1,2,64 --seed 2 --out k.npy
works "$vkrope" make-input --shape 1,1,1,64 --seed 3 --out made.npy
tail -c 256 made.npy | npy '<f4' '(64,)' >w.npy

# float NUMBER...: as f32, if the number is in this table.
float() {
    for number; do
        case $number in
            -64) int32 $((0xc2800000)) ;;
            -8) int32 $((0xc1000000)) ;;
            -1) int32 $((0xbf800000)) ;;
            1) int32 $((0x3f800000)) ;;
            2) int32 $((0x40000000)) ;;
            4) int32 $((0x40800000)) ;;
            7) int32 $((0x40e00000)) ;;
            8) int32 $((0x41000000)) ;;
            23) int32 $((0x41b80000)) ;;
            127) int32 $((0x42fe0000)) ;;
            254) int32 $((0x437e0000)) ;;
            508) int32 $((0x43fe0000)) ;;
            1016) int32 $((0x447e0000)) ;;
            *) echo "float: $number is not in the table" && exit 1 ;;
        esac
    done
}
# repeat COUNT BYTE
repeat() { for _ in $(seq "$1"); do byte "$2"; done; }
# values_of COUNT FILE
values_of() { tail -c "$1" "$2" >values; }

# stores TYPE X0 X1 [ARGUMENT...]: V, a row of X0, X1 and 30 zeros, has the bytes in `expected`. Q
# and K of the same type, behind norms and Hadamard transforms, are right as well.
stores() {
    type=$1
    { float "$2" "$3" && zeros 120; } | npy '<f4' '(1, 1, 1, 32)' >v.npy
    shift 3
    works "$vkrope" finish --model qwen3.json --q q.npy --k k.npy --v v.npy --out-q q_out.npy \
        --out-k k_out.npy --out-v v_out.npy --q-norm w.npy --k-norm w.npy --first-position 5 \
        --hadamard q=64,k=32 --store "$type" --verify --json "$@"
    holds "$type: verified" grep -q '"verified": true' "$logs/out"
    holds "$type: all codes" [ "$(number compared | tr '\n' ' ')" = '256 128 32 ' ]
    # shellcheck disable=SC2046 # three numbers
    holds "$type: none is wrong" below 0 $(number wrong)
    # shellcheck disable=SC2046 # three numbers
    holds "$type: most codes have one possible value" below -26 \
        $(number with_one_possible_value | sed 's/^/-/')
    holds "$type: is bytes" grep -qa "'descr': '|u1'" v_out.npy
    values_of "$(wc -c <expected)" v_out.npy
    holds "$type: the bytes of the row" cmp -s values expected
    [ "$(wc -c <v_out.npy)" -lt $((200 + $(wc -c <expected))) ] || wrong "$type: more bytes"
}
{ byte 208 78 && repeat 30 0; } >expected
stores e4m3fn -8 7
{ byte 200 71 && repeat 30 0; } >expected
stores e5m2 -8 7
{ byte 248 7 && repeat 30 0; } >expected
stores int8 -8 7
# -4; 3.5 is a tie, away from zero.
{ byte 252 4 && repeat 30 0; } >expected
stores int8 -8 7 --store-scale 0.5
# d = 1, in f16 0x3c00; m = -8, 0xc800; d = 0.5, 0x3800.
{ byte 0 60 127 255 && repeat 30 0; } >expected
stores q8_0 127 -1
{ byte 0 60 128 143 && repeat 14 136; } >expected
stores q4_0 -8 7
{ byte 0 60 0 200 128 143 && repeat 14 136; } >expected
stores q4_1 -8 7
{ byte 0 56 254 255 255 255 0 14 && repeat 14 0; } >expected
stores q5_0 -8 7
{ byte 0 60 0 200 2 0 0 0 128 143 && repeat 14 136; } >expected
stores q5_1 -8 23
# The scale is 1, and with the floor 2.
{ byte 127 192 && repeat 30 0; } >expected
stores int8 127 -64 --store-scale row --out-q-scales q_scales.npy --out-k-scales k_scales.npy \
    --out-v-scales v_scales.npy
float 1 >expected
values_of 4 v_scales.npy
holds 'the scale of the row' cmp -s values expected
holds 'the shape of the scales of Q' grep -qa "'shape': (1, 1, 4)" q_scales.npy
{ byte 64 224 && repeat 30 0; } >expected
stores int8 127 -64 --store-scale v=row --scale-floor 2 --out-v-scales v_scales.npy
float 2 >expected
values_of 4 v_scales.npy
holds 'the scale of the floor' cmp -s values expected

# Scales lie as the rows of the file do, here [batch, heads, tokens], and with them dequantise gives
# the numbers back. Two tokens and two heads, with scales 1, 2, 4 and 8.
for scale in 1 2 4 8; do float $((127 * scale)) && zeros 124; done |
    npy '<f4' '(1, 2, 2, 32)' >v.npy
works "$vkrope" make-input --shape 1,4,2,64 --seed 4 --out q2.npy
works "$vkrope" finish --model llama.json --layout bhsd --q q2.npy --v v.npy --out-q q_out.npy \
    --out-v v_out.npy --store v=int8 --store-scale row --out-v-scales v_scales.npy --verify
holds 'the report counts' grep -qF '128 compared, 128 of them with only one possible value; 4 scales' \
    "$logs/out"
holds 'the report names the scales' grep -qF 'f32 to int8 with scales of rows: none' "$logs/out"
float 1 2 4 8 >expected
values_of 16 v_scales.npy
holds 'scales in the order of the file' cmp -s values expected
works "$vkrope" dequantise --type int8 --codes v_out.npy --scales v_scales.npy --out back.npy
tail -c 512 v.npy >expected
values_of 512 back.npy
holds 'there and back' cmp -s values expected

# A scale for each head, 0.5 and 0.125: 63.5 is a tie, away from zero.
int32 $((0x3f000000)) $((0x3e000000)) | npy '<f4' '(2,)' >heads.npy
works "$vkrope" finish --model llama.json --layout bhsd --q q2.npy --v v.npy --out-q q_out.npy \
    --out-v v_out.npy --store v=int8 --store-scale v=heads.npy --verify
holds 'the report names scales of heads' grep -qF 'f32 to int8 times a scale of each head: none' \
    "$logs/out"
for code in 64 127 64 127; do byte $code && repeat 31 0; done >expected
values_of 128 v_out.npy
holds 'a scale of each head' cmp -s values expected
works "$vkrope" check --model llama.json --layout bhsd --q q2.npy --v v.npy --actual q_out.npy \
    --actual-v v_out.npy --store v=int8 --store-scale v=heads.npy

# What llama.cpp transforms, from f16, to types of their own; the same bytes by SwiftShader.
works "$vkrope" make-input --shape 2,7,4,64 --dtype f16 --seed 5 --out q.npy
works "$vkrope" make-input --shape 2,7,2,64 --dtype f16 --seed 6 --out k.npy
works "$vkrope" make-input --shape 2,7,2,64 --dtype f16 --seed 7 --out v.npy
mixed() {
    works "$vkrope" finish --model llama.json --q q.npy --k k.npy --v v.npy --out-q q_out.npy \
        --out-k k_out.npy --out-v v_out.npy --store q=f32,k=q8_0,v=q4_0 --hadamard llama.cpp \
        --verify
    holds 'Q is transformed as K is' \
        grep -qF 'f16 to f32: rotation, Hadamard transform of 64' "$logs/out"
    holds 'and V' grep -qF 'f16 to q4_0: Hadamard transform of 64' "$logs/out"
}
mixed
works "$vkrope" dequantise --type q8_0 --codes k_out.npy --out back.npy
holds 'the shape of K' grep -qa "'shape': (2, 7, 2, 64)" back.npy
if [ -n "$swiftshader" ]; then
    for tensor in q k v; do cp ${tensor}_out.npy ${tensor}_first.npy; done
    use_driver "$swiftshader"
    mixed
    for tensor in q k v; do
        holds "$tensor has the same bytes" cmp -s ${tensor}_out.npy ${tensor}_first.npy
    done
fi
finish
