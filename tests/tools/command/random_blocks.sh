#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests 10^7 random blocks of each ggml type, and as many codes of the other types, on lavapipe. V
# without ops is exact, so --verify knows every byte. SwiftShader gives the same bytes. Nine of ten
# parts are normal numbers in f32. The last part is bf16 with random bits in every other channel, so
# that scales overflow and infinities and NaNs occur. From the environment:
#
#   VKROPE_RANDOM_PARTS=10   number of parts of 10^6 blocks; the last part is bf16
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
# right TYPE V CODES [ARGUMENT...]: stores and verifies V, which has CODES codes, and stores V again
# on the other device.
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
# random TYPE SEED HEADS FILE: makes [1, 1000, HEADS, 1280]. For bf16, each f32 number is split into
# two: the high half is normal, and the low half has random bits.
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
    # The reference takes ten times as long for a single float as for a float in a block.
    for type in q8_0 q4_0 q4_1 q5_0 q5_1; do right $type v.npy 32000000; done
    right e4m3fn few.npy 1280000 --store-scale v=1.5
    right e5m2 few.npy 1280000 --store-scale v=0.7
    right int8 few.npy 1280000 --store-scale v=row --out-v-scales scales.npy
done
finish
