#!/bin/sh
# SPDX-License-Identifier: MIT
# `vkrope check` on the steps around the rotation: what `vkrope finish` makes is right, and each of
# the usual mistakes, which it makes on request, is named.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"
need_lavapipe

model() { model_with '"head_dim": 64, "rope_theta": 10000.0'"$2" | sed "s/\"llama\"/\"$1\"/"; }
model llama '' >llama.json
model qwen3 ', "rms_norm_eps": 0.01' >qwen3.json
model gemma3_text '' >gemma3.json
works "$vkrope" make-input --shape 2,7,4,64 --seed 1 --out q.npy
works "$vkrope" make-input --shape 2,7,2,64 --seed 2 --out k.npy
works "$vkrope" make-input --shape 2,7,2,64 --seed 3 --out v.npy
works "$vkrope" make-input --shape 1,1,1,64 --seed 4 --out made.npy
tail -c 256 made.npy | npy '<f4' '(64,)' >w.npy

# engine MODEL ARGUMENT...: what an engine makes of Q.
engine() {
    of=$1
    shift
    works "$vkrope" finish --model "$of.json" --q q.npy --out-q y.npy --q-norm w.npy "$@"
}
judge() {
    of=$1
    shift
    "$vkrope" check --model "$of.json" --q q.npy --actual y.npy --q-norm w.npy "$@"
}
# named MISTAKE MODEL: the check fails, and its first line names the mistake.
named() {
    expect 1 '--actual: ' judge "$2"
    holds "$1 is named" sh -c 'head -n 1 "$0" | grep -q "mistake: $1 "' "$logs/out" "$1"
}

engine qwen3
works judge qwen3
holds 'it passes' grep -q '^Q  pass: all values are within the error of f32 arithmetic' "$logs/out"
works judge qwen3 --json
holds 'it passes in JSON' grep -q '"verdict": "pass"' "$logs/out"

engine qwen3 --norm-place after
named norm_after_rotation qwen3
engine qwen3 --norm-offset 1
named one_plus_weight qwen3
engine qwen3 --norm-span token
named norm_of_all_heads qwen3
engine qwen3 --norm-kind layer
named layer_norm_instead_of_rms qwen3
engine qwen3 --norm-eps 1e-20
named eps_missing qwen3
engine gemma3 --norm-offset 0
named one_plus_weight_forgotten gemma3
engine qwen3 --first-position 1
named position_plus_one qwen3

# V turned as K is, and V as it is.
works "$vkrope" rotate --model llama.json --k v.npy --out-k turned.npy
check_v() {
    "$vkrope" check --model llama.json --k k.npy --actual-k y_k.npy --v v.npy --actual-v "$1"
}
works "$vkrope" rotate --model llama.json --k k.npy --out-k y_k.npy
expect 1 '--actual-v: ' check_v turned.npy
holds 'v_rotated is named' grep -q '^V  mistake: v_rotated ' "$logs/out"
works check_v v.npy
holds 'V passes' grep -q '^V  pass' "$logs/out"

# stored ARGUMENT...: a K that an engine has stored; judge_k ARGUMENT...: what it is taken for.
stored() {
    works "$vkrope" finish --model llama.json --k k.npy --out-k codes.npy "$@"
}
judge_k() {
    "$vkrope" check --model llama.json --k k.npy --actual-k codes.npy "$@"
}
# named_k MISTAKE ARGUMENT...
named_k() {
    name=$1
    shift
    expect 1 '--actual-k: batch 0 token ' judge_k "$@"
    holds "$name is named" sh -c 'head -n 1 "$0" | grep -q "mistake: $1 "' "$logs/out" "$name"
}
stored --store q4_0 --hadamard 64
works judge_k --store q4_0 --hadamard 64
holds 'codes pass' grep -q '^K  pass: all codes and scales belong to a row' "$logs/out"
named_k hadamard_of_64 --store q4_0
stored --store q4_0
named_k hadamard_missing --store q4_0 --hadamard 64
stored --store q4_0 --first-position 1
named_k position_plus_one --store q4_0
stored --store e4m3fn --store-scale 0.25
works judge_k --store e4m3fn --store-scale 0.25
named_k scale_inverted --store e4m3fn --store-scale 4
stored --store int8 --store-scale row --out-k-scales scales.npy --layout bhsd
works judge_k --store int8 --store-scale row --actual-k-scales scales.npy --layout bhsd
expect 5 "--actual-k: 'codes.npy' has shape (2, 7, 2, 64) of |u1; q8_0 of --k 'k.npy' needs" \
    judge_k --store q8_0
expect 5 "--actual-k-scales: 'k.npy' has shape (2, 7, 2, 64) of <f4; --k 'k.npy' needs (2, 7, 2)" \
    judge_k --store int8 --store-scale row --actual-k-scales k.npy
expect 2 '--actual-k-scales: missing; --store-scale row makes scales of K' \
    judge_k --store int8 --store-scale row
stored --store f32
expect 5 "--actual-k: 'codes.npy' has elements f32; --store has f16" judge_k --store f16
finish
