#!/bin/sh
# SPDX-License-Identifier: MIT
# `vkrope check` on the steps around the rotation: what `vkrope rotate` makes is right, and a
# mistake in a norm, in V and in a store, which it makes on request, is named. (All mistakes:
# judge_steps_test.cpp and judge_codes_test.cpp.)
# shellcheck disable=SC2317 # functions that others call
. "$(dirname "$0")/check.sh"
need_lavapipe

model() { model_with '"head_dim": 64, "rope_theta": 10000.0'"$2" | sed "s/\"llama\"/\"$1\"/"; }
model llama '' >llama.json
model qwen3 ', "rms_norm_eps": 0.01' >qwen3.json
works "$vkrope" make-input --shape 2,7,4,64 --seed 1 --out q.npy
works "$vkrope" make-input --shape 2,7,2,64 --seed 2 --out k.npy
works "$vkrope" make-input --shape 2,7,2,64 --seed 3 --out v.npy
works "$vkrope" make-input --shape 1,1,1,64 --seed 4 --out made.npy
tail -c 256 made.npy | npy '<f4' '(64,)' >w.npy

# engine ARGUMENT...: what an engine makes of Q; judge ARGUMENT...: what it is taken for.
engine() {
    works "$vkrope" rotate --model qwen3.json --q q.npy --out-q y.npy --q-norm w.npy "$@"
}
judge() { "$vkrope" check --model qwen3.json --q q.npy --actual y.npy --q-norm w.npy "$@"; }
# named MISTAKE COMMAND...: the check fails, and names the mistake.
named() {
    mistake=$1
    shift
    expect 1 '--actual' "$@"
    holds "$mistake is named" says "mistake: $mistake: "
}

engine
works judge --json
holds 'it passes' says '"verdict": "pass"'
engine --norm-place after
named norm_after_rotation judge
works judge --norm-place after
engine --norm-eps 1e-20 --first-position 1
works judge --norm-eps 1e-20 --first-position 1

# Weights of two streams: the first 5 of 7 tokens take w.npy, the others w2.npy.
works "$vkrope" make-input --shape 1,1,1,64 --seed 5 --out made.npy
tail -c 256 made.npy | npy '<f4' '(64,)' >w2.npy
two="--first-set-tokens 5 --second-q-norm w2.npy"
# shellcheck disable=SC2086 # words
engine --verify --json $two
holds 'the sets are reported' says '"first_set_tokens": 5'
# shellcheck disable=SC2086 # words
works judge $two
expect 1 '--actual' judge
# shellcheck disable=SC2086 # words
engine --store int8 --store-scale 2 --verify $two
engine
# shellcheck disable=SC2086 # words
named second_set_missing judge $two
works "$vkrope" rotate --model qwen3.json --q q.npy --out-q y.npy --q-norm w2.npy \
    --first-set-tokens 5 --second-q-norm w.npy
# shellcheck disable=SC2086 # words
named sets_exchanged judge $two

# A layer without RoPE: norm and scale, and no rotation.
model smollm3 ', "num_hidden_layers": 2, "no_rope_layers": [1, 0]' >nope.json
sed 's/"smollm3"/"llama4_text"/' nope.json >llama4.json
steps='--q-norm w.npy --norm-eps 0.01 --q-scale 0.5 --first-position 9000'
# shellcheck disable=SC2086 # words
of_layer() {
    works "$vkrope" rotate --model nope.json --q q.npy --out-q y.npy --layer "$1" --verify $steps
}
# shellcheck disable=SC2086 # words
still() { "$vkrope" check --model nope.json --layer 1 --q q.npy --actual y.npy $steps; }
of_layer 1
works still
of_layer 0
named rotated_without_rope still
# Llama 4 scales by position where it does not rotate.
tempered() { "$vkrope" "$@" --model llama4.json --q q.npy --layer 1 --clip 100 \
    --first-position 9000; }
works tempered rotate --out-q y.npy --verify
works tempered check --actual y.npy
named scale_missing tempered check --actual q.npy

# V turned as K is, and V as it is.
works "$vkrope" rotate --model llama.json --k v.npy --out-k turned.npy
works "$vkrope" rotate --model llama.json --k k.npy --out-k y_k.npy
check_v() {
    "$vkrope" check --model llama.json --k k.npy --actual-k y_k.npy --v v.npy --actual-v "$1"
}
named v_rotated check_v turned.npy
works check_v v.npy

# stored ARGUMENT...: a K that an engine has stored; judge_k ARGUMENT...: what it is taken for.
stored() { works "$vkrope" rotate --model llama.json --k k.npy --out-k codes.npy "$@"; }
judge_k() { "$vkrope" check --model llama.json --k k.npy --actual-k codes.npy "$@"; }
stored --store q4_0 --hadamard 64
works judge_k --store q4_0 --hadamard 64
named hadamard_of_64 judge_k --store q4_0
refuse 5 '--actual-k:*codes.npy*q8_0' judge_k --store q8_0
stored --store int8 --store-scale row --out-k-scales scales.npy --layout bhsd
works judge_k --store int8 --store-scale row --actual-k-scales scales.npy --layout bhsd
refuse 5 '--actual-k-scales:*k.npy*(2, 7, 2, 64)*(2, 7, 2)' \
    judge_k --store int8 --store-scale row --actual-k-scales k.npy
refuse 2 '--actual-k-scales:' judge_k --store int8 --store-scale row
named scale_not_power_of_two judge_k --store int8 --store-scale row_power_of_two \
    --actual-k-scales scales.npy --layout bhsd
stored --store e4m3fn --store-scale row_power_of_two --out-k-scales scales.npy --layout bhsd
works judge_k --store e4m3fn --store-scale row_power_of_two --actual-k-scales scales.npy \
    --layout bhsd
refuse 5 '--actual-k:*y_k.npy*f32*f16' "$vkrope" check --model llama.json --k k.npy \
    --actual-k y_k.npy --store f16
finish
