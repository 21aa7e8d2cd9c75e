#!/bin/sh
# SPDX-License-Identifier: MIT
# 10^7 random blocks of each ggml type, and as many codes of the others, on lavapipe: V without
# steps is exact, so --verify knows every byte. SwiftShader has the same bytes. Nine parts of ten
# are normal numbers in f32; the last is bf16 whose every other channel has random bits, so that
# scales overflow, and infinities and NaNs come. From the environment:
#
#   VKROPE_RANDOM_PARTS=10   parts of 10^6 blocks; the last is of bf16
. "$(dirname "$0")/check.sh"
need_lavapipe
parts=${VKROPE_RANDOM_PARTS:-10}

model_with '"head_dim": 64' >llama.json
# stored TYPE V [ARGUMENT...]: rotates, and stores the file V as TYPE.
stored() {
    type=$1
    v=$2
    shift 2
    works "$vkrope" rotate --model llama.json --k k.npy --out-k k_out.npy --v "$v" \
        --out-v v_out.npy --store v="$type" "$@"
}
# right TYPE V CODES [ARGUMENT...]: V, of CODES codes, is stored and verified, and stored again by
# the other device.
right() {
    type=$1
    v=$2
    codes=$3
    shift 3
    stored "$type" "$v" --verify --json "$@"
    holds "$type: part $part is right" grep -q '"verified": true' "$logs/out"
    holds "$type: all codes of part $part" [ "$(number compared | tail -n 1)" = "$codes" ]
    [ -n "$swiftshader" ] || return 0
    mv v_out.npy v_first.npy
    [ ! -e scales.npy ] || mv scales.npy scales_first.npy
    use_driver "$swiftshader"
    stored "$type" "$v" "$@"
    use_driver "$lavapipe"
    holds "$type: SwiftShader has the same bytes of part $part" cmp v_out.npy v_first.npy
    [ ! -e scales.npy ] ||
        holds "$type: and the same scales" cmp scales.npy scales_first.npy
    rm -f scales.npy
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
    # A float alone takes the reference ten times as long as one of a block.
    for type in q8_0 q4_0 q4_1 q5_0 q5_1; do right $type v.npy 32000000; done
    right e4m3fn few.npy 1280000 --store-scale v=1.5
    right e5m2 few.npy 1280000 --store-scale v=0.7
    right int8 few.npy 1280000 --store-scale v=row --out-v-scales scales.npy
done
finish
