#!/bin/sh
# SPDX-License-Identifier: MIT
# `vkrope rotate` with quantised outputs on lavapipe: the bytes of rows worked out by hand, made
# scales and codes in the order of the file, and --verify behind norms and Hadamard transforms.
# (random_blocks.sh holds SwiftShader to the same bytes.)
# shellcheck disable=SC2317 # functions that others call
. "$(dirname "$0")/check.sh"
need_lavapipe

model() { model_with '"head_dim": 64, "rope_theta": 10000.0' | sed "s/\"llama\"/\"$1\"/"; }
model llama >llama.json
model qwen3 >qwen3.json
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

# row NUMBER NUMBER FILE: a tensor of one head of these and 30 zeros.
row() { { float "$1" "$2" && zeros 120; } | npy '<f4' '(1, 1, 1, 32)' >"$3"; }
# bytes_of FILE: those that the row has are in `expected`, and there are no more.
bytes_of() {
    holds "$1 is bytes" grep -qa "'descr': '|u1'" "$1"
    values_of "$(wc -c <expected)" "$1"
    holds "the bytes of $1" cmp -s values expected
    [ "$(wc -c <"$1")" -lt $((200 + $(wc -c <expected))) ] || wrong "$1 has more bytes"
}
# stores Q,K,V [ARGUMENT...]: rows of these types; at position 0 nothing turns.
stores() {
    types=$1
    shift
    works "$vkrope" rotate --model narrow.json --q q.npy --k k.npy --v v.npy --out-q q_out.npy \
        --out-k k_out.npy --out-v v_out.npy --store "$types" --verify "$@"
}
model_with '"head_dim": 32, "rope_theta": 10000.0' >narrow.json
for name in q k v; do row -8 7 $name.npy; done
stores q=e4m3fn,k=e5m2,v=int8 --store-scale v=0.5
{ byte 208 78 && zeros 30; } >expected
bytes_of q_out.npy
{ byte 200 71 && zeros 30; } >expected
bytes_of k_out.npy
# -4; 3.5 is a tie, away from zero.
{ byte 252 4 && zeros 30; } >expected
bytes_of v_out.npy
# d = 1, in f16 0x3c00; m = -8, 0xc800; d = 0.5, 0x3800.
stores q=q4_0,k=q4_1,v=q5_0
{ byte 0 60 128 143 && repeat 14 136; } >expected
bytes_of q_out.npy
{ byte 0 60 0 200 128 143 && repeat 14 136; } >expected
bytes_of k_out.npy
{ byte 0 56 254 255 255 255 0 14 && zeros 14; } >expected
bytes_of v_out.npy
row 127 -1 q.npy
row -8 23 k.npy
row 127 -64 v.npy
# The scale of V is 1, and with the floor 2.
stores q=q8_0,k=q5_1,v=int8 --store-scale v=row --scale-floor 2 --out-v-scales v_scales.npy
{ byte 0 60 127 255 && zeros 30; } >expected
bytes_of q_out.npy
{ byte 0 60 0 200 2 0 0 0 128 143 && repeat 14 136; } >expected
bytes_of k_out.npy
{ byte 64 224 && zeros 30; } >expected
bytes_of v_out.npy
float 2 >expected
values_of 4 v_scales.npy
holds 'the scale of the floor' cmp -s values expected

# With a floor of 1.5 it is the next power of two. The scale of Q is 127 / 448, so 0.5.
stores q=e4m3fn,k=q5_1,v=int8 --store-scale v=row_power_of_two --scale-floor 1.5 \
    --out-v-scales v_scales.npy
{ byte 64 224 && zeros 30; } >expected
bytes_of v_out.npy
float 2 >expected
values_of 4 v_scales.npy
holds 'the power of two from the floor on' cmp -s values expected
stores q=e4m3fn,k=q5_1,v=int8 --store-scale q=row_power_of_two --out-q-scales q_scales.npy
# Of 254 the nearest is 256.
{ byte 120 192 && zeros 30; } >expected
bytes_of q_out.npy
int32 $((0x3f000000)) >expected
values_of 4 q_scales.npy
holds 'a power of two above the quotient' cmp -s values expected

# Rows behind norms and Hadamard transforms; most of their codes have one possible value.
works "$vkrope" make-input --shape 1,1,4,64 --seed 1 --out q.npy
works "$vkrope" make-input --shape 1,1,2,64 --seed 2 --out k.npy
works "$vkrope" rotate --model qwen3.json --q q.npy --k k.npy --out-q q_out.npy \
    --out-k k_out.npy --q-norm w.npy --k-norm w.npy --first-position 5 --hadamard q=64,k=32 \
    --store q=q5_1,k=int8 --store-scale k=row --out-k-scales k_scales.npy --verify --json
holds 'verified' says '"verified": true'
holds 'all codes' [ "$(number compared | tr '\n' ' ')" = '256 128 ' ]
# shellcheck disable=SC2046 # numbers
holds 'none is wrong' below 0 $(number wrong)
# shellcheck disable=SC2046 # numbers
holds 'most codes have one possible value' below -100 \
    $(number with_one_possible_value | sed 's/^/-/')
holds 'the shape of the scales' grep -qa "'shape': (1, 1, 2)" k_scales.npy

# Scales lie as the rows of the file do, here [batch, heads, tokens]. Two tokens and two heads, with
# scales 1, 2, 4 and 8.
for scale in 1 2 4 8; do float $((127 * scale)) && zeros 124; done |
    npy '<f4' '(1, 2, 2, 32)' >v.npy
works "$vkrope" make-input --shape 1,4,2,64 --seed 4 --out q2.npy
works "$vkrope" rotate --model llama.json --layout bhsd --q q2.npy --v v.npy --out-q q_out.npy \
    --out-v v_out.npy --store v=int8 --store-scale row --out-v-scales v_scales.npy --verify
float 1 2 4 8 >expected
values_of 16 v_scales.npy
holds 'scales in the order of the file' cmp -s values expected
for _ in 1 2 3 4; do byte 127 && repeat 31 0; done >expected
values_of 128 v_out.npy
holds 'each row by its own scale' cmp -s values expected

# A scale for each head, 0.5 and 0.125: 63.5 is a tie, away from zero.
int32 $((0x3f000000)) $((0x3e000000)) | npy '<f4' '(2,)' >heads.npy
works "$vkrope" rotate --model llama.json --layout bhsd --q q2.npy --v v.npy --out-q q_out.npy \
    --out-v v_out.npy --store v=int8 --store-scale v=heads.npy --verify
for code in 64 127 64 127; do byte $code && repeat 31 0; done >expected
values_of 128 v_out.npy
holds 'a scale of each head' cmp -s values expected
works "$vkrope" check --model llama.json --layout bhsd --q q2.npy --v v.npy --actual q_out.npy \
    --actual-v v_out.npy --store v=int8 --store-scale v=heads.npy

# What llama.cpp transforms, from f16, to types of their own.
works "$vkrope" make-input --shape 2,7,4,64 --dtype f16 --seed 5 --out q.npy
works "$vkrope" make-input --shape 2,7,2,64 --dtype f16 --seed 6 --out k.npy
works "$vkrope" make-input --shape 2,7,2,64 --dtype f16 --seed 7 --out v.npy
works "$vkrope" rotate --model llama.json --q q.npy --k k.npy --v v.npy --out-q q_out.npy \
    --out-k k_out.npy --out-v v_out.npy --store q=f32,k=q8_0,v=q4_0 --hadamard llama.cpp \
    --verify --json
holds 'Q is transformed as K is, and V' [ "$(number hadamard | tr '\n' ' ')" = '64 64 64 ' ]
holds 'the bytes of K in two blocks a row' grep -qa "'shape': (2, 7, 2, 68)" k_out.npy
finish
