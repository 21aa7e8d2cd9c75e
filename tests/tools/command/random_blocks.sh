#!/bin/sh
# SPDX-License-Identifier: MIT
# 10^7 random blocks of each ggml type, and as many codes of the others, on lavapipe and on
# SwiftShader: V without steps is exact, so --verify knows every byte. Nine parts of ten are normal
# numbers in f32; the last is bf16 whose every other channel has random bits, so that scales
# overflow, and infinities and NaNs come. From the environment:
#
#   VKROPE_RANDOM_PARTS=10   parts of 10^6 blocks; the last is of bf16
. "$(dirname "$0")/check.sh"
need_lavapipe
parts=${VKROPE_RANDOM_PARTS:-10}

model_with '"head_dim": 64' >llama.json
# verified TYPE V CODES DEVICE [ARGUMENT...]: V, of CODES codes, is stored and verified.
verified() {
    type=$1
    v=$2
    codes=$3
    where=$4
    shift 4
    works "$vkrope" finish --model llama.json --k k.npy --out-k k_out.npy --v "$v" \
        --out-v v_out.npy --store v="$type" --verify --json "$@"
    holds "$type on $where: part $part is right" grep -q '"verified": true' "$logs/out"
    holds "$type on $where: all codes of part $part" [ "$(number compared | tail -n 1)" = "$codes" ]
}
# of_types DEVICE: a float alone takes the reference ten times as long as one of a block.
of_types() {
    for type in q8_0 q4_0 q4_1 q5_0 q5_1; do verified $type v.npy 32000000 "$1"; done
    verified e4m3fn few.npy 1280000 "$1" --store-scale v=1.5
    verified e5m2 few.npy 1280000 "$1" --store-scale v=0.7
    verified int8 few.npy 1280000 "$1" --store-scale v=row --out-v-scales scales.npy
}
# random TYPE SEED HEADS FILE: [1, 1000, HEADS, 1280]. As bf16, numbers of f32 are two: the high
# half is normal, and the low half has bits as random as can be.
random() {
    works "$vkrope" make-input --shape "1,1000,$3,1280" --seed "$2" --out "$4"
    [ "$1" = f32 ] || {
        tail -c $((1000 * $3 * 1280 * 4)) "$4" | head -c $((1000 * $3 * 1280 * 2)) |
            npy '<u2' "(1, 1000, $3, 1280)" >"$4.bf16"
        mv "$4.bf16" "$4"
    }
}
for part in $(seq "$parts"); do
    dtype=f32
    [ "$part" != "$parts" ] || dtype=bf16
    works "$vkrope" make-input --shape 1,1000,1,64 --dtype $dtype --out k.npy
    random $dtype "$part" 25 v.npy
    random $dtype "$part" 1 few.npy
    of_types lavapipe
    [ -z "$swiftshader" ] || {
        use_driver "$swiftshader"
        of_types SwiftShader
        use_driver "$lavapipe"
    }
done
finish
