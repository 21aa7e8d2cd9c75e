#!/bin/sh
# SPDX-License-Identifier: MIT
# Two devices of different makers give the same bits.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"
[ -n "$swiftshader" ] || skip 'VKROPE_SWIFTSHADER_ICD is empty: no second device'
need_lavapipe

cat >partial.json <<'END'
{"model_type": "gpt_neox", "hidden_size": 256, "num_attention_heads": 4, "rotary_pct": 0.25,
 "rotary_emb_base": 10000,
 "max_position_embeddings": 2048}
END

# rotate DEVICE ARGUMENT...: to DEVICE_q.npy and DEVICE_k.npy
rotate() {
    device=$1
    shift
    works "$vkrope" rotate --verify --q q.npy --k k.npy --out-q "${device}_q.npy" \
        --out-k "${device}_k.npy" --device "$device" "$@"
}
same() {
    use_driver "$lavapipe" && rotate llvmpipe "$@"
    use_driver "$swiftshader" && rotate SwiftShader "$@"
    holds "the same Q: $*" cmp llvmpipe_q.npy SwiftShader_q.npy
    holds "the same K: $*" cmp llvmpipe_k.npy SwiftShader_k.npy
}

# 61 positions each: within the factored table's reach, and all over int32, where the default is
# computed.
edges='4194303 -4194303 131072 -131071 2048 -2048 2047 -2049 4096'
ends='2147483647 -2147483648 -2147483647 4194304 -4194304 4194303 -4194303 1073741824 -1610612737'
# shellcheck disable=SC2046,SC2086 # lists of numbers
int32 $edges $(seq -26 25) | npy '<i4' '(61,)' >edge.npy
# shellcheck disable=SC2046,SC2086
int32 $ends $(seq 2000000000 2000000051) | npy '<i4' '(61,)' >far.npy

for dtype in f32 f16 bf16; do
    works "$vkrope" make-input --shape 2,61,4,64 --dtype $dtype --seed 3 --out q.npy
    works "$vkrope" make-input --shape 2,61,3,64 --dtype $dtype --seed 4 --out k.npy
    same --model "$models/llama-3.2-1b.json" --first-position 100000
    same --model "$models/llama-3.2-1b.json" --angles direct_buffer --pairing interleaved --inverse
    same --model partial.json
    same --model "$models/llama-3.2-1b.json" --positions far.npy
done
works "$vkrope" make-input --shape 2,61,4,64 --seed 5 --out q.npy
works "$vkrope" make-input --shape 2,61,3,64 --seed 6 --out k.npy
for angles in factored_texture computed direct_texture; do
    same --model "$models/llama-3.2-1b.json" --angles $angles --first-position -30
done
same --model "$models/llama-3.2-1b.json" --positions edge.npy
same --model partial.json --positions far.npy --angles computed --pairing interleaved
same --model "$models/llama-3.2-1b.json" --float32-angles --first-position 40000

# With both at hand, a name that fits both is refused with the list, and each can be chosen.
use_driver "$lavapipe:$swiftshader"
works "$vkrope" devices
holds 'two devices' [ "$(grep -c ' yes$' "$logs/out")" = 2 ]
refuse 2 'llvmpipe' "$vkrope" rotate --model partial.json --q q.npy --out-q none.npy --device e
holds 'both are named' grep -q 'SwiftShader' "$logs/err"
rotate llvmpipe --model partial.json
rotate SwiftShader --model partial.json
finish
