#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests `vkrope rotate` with norms, bias, clip and scale around the rotation, from the model and
# from the options: outputs are within the definition's bound, nothing else changes, and lavapipe
# and SwiftShader give the same bits.
# shellcheck disable=SC2317 # functions called indirectly
. "$(dirname "$0")/check.sh"
need_lavapipe

model() { model_with '"head_dim": 64, "rope_theta": 10000.0'"$2" | sed "s/\"llama\"/\"$1\"/"; }
model llama '' >llama.json
model qwen3 '' >qwen3.json
model gemma3_text '' >gemma3.json
model gemma3n_text '' >gemma3n.json
model olmoe ', "clip_qkv": 0.5' >olmoe.json
model hunyuan_v1_dense '' >hunyuan.json
model chameleon '' >chameleon.json
model ministral3 ', "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
    "llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 8}' >ministral3.json

# tensors DTYPE: makes q.npy, k.npy and v.npy with 7 tokens.
tensors() {
    works "$vkrope" make-input --shape 2,7,4,64 --dtype "$1" --seed 1 --out q.npy
    works "$vkrope" make-input --shape 2,7,2,64 --dtype "$1" --seed 2 --out k.npy
    works "$vkrope" make-input --shape 2,7,2,64 --dtype "$1" --seed 3 --out v.npy
}
# weight COUNT SHAPE FILE: makes a weight from the numbers of another tensor.
weight() {
    works "$vkrope" make-input --shape "1,1,1,$1" --seed "$1" --out made.npy
    tail -c $((4 * $1)) made.npy | npy '<f4' "$2" >"$3"
}
weight 64 '(64,)' w.npy
weight 256 '(4, 64)' w_q.npy
weight 128 '(128,)' w_k.npy
works "$vkrope" make-input --shape 1,1,7,2 --seed 9 --out made.npy
tail -c 56 made.npy | npy '<f4' '(2, 7)' >scales.npy

# finished PREFIX MODEL ARGUMENT...: rotates Q, K and V to PREFIXq_out.npy and so on.
finished() {
    prefix=$1
    of=$2
    shift 2
    works "$vkrope" rotate --model "$of.json" --q q.npy --k k.npy --v v.npy \
        --out-q "${prefix}q_out.npy" --out-k "${prefix}k_out.npy" --out-v "${prefix}v_out.npy" "$@"
}
# right MODEL ARGUMENT...: the ops are within the contract.
right() {
    finished '' "$@" --verify --json
    holds "verified: $*" says '"verified": true'
    # shellcheck disable=SC2046 # three numbers
    holds "within the bound: $*" below 1 $(number share_of_bound)
}
has() { holds "the report has $1" says "$1"; }

tensors f32
right llama
holds 'V without steps keeps its bits' cmp -s v.npy v_out.npy
right hunyuan --q-norm w.npy --k-norm w.npy --store f16
has '"place": "after"'
right ministral3 --model-ops
has '"scale_tokens": true'
tensors f16
right qwen3 --q-norm w.npy --k-norm w.npy
has '"eps": 9.999999974752427e-07'
right olmoe --q-norm w_q.npy --k-norm w_k.npy
has '"span": "token"'
has '"clip": 0.5'
right gemma3n --q-norm w.npy --k-norm w.npy
holds 'V is normed' sh -c '! cmp -s v.npy v_out.npy'
tensors bf16
right gemma3 --q-norm w.npy --k-norm w_k.npy
has '"weight_offset": 1'
right chameleon --q-norm w_q.npy --k-norm w_k.npy --q-norm-bias w_q.npy --k-norm-bias w.npy
right llama --q-bias w_q.npy --k-bias w.npy --v-bias w_k.npy --clip 1 --q-scale 0.125 \
    --q-scale-tokens scales.npy --store f32

# --inverse reverses the rotation, but not the other ops.
right qwen3 --q-norm w.npy --k-norm w.npy --inverse
has '"direction": "inverse"'

# A norm of V alone, without a weight.
right llama --v-norm --norm-eps 1e-5 --pairing interleaved --first-position 100
cp q_out.npy plain_q.npy
works "$vkrope" rotate --model llama.json --pairing interleaved --first-position 100 --q q.npy \
    --out-q rotated_q.npy
holds 'a tensor without steps is rotated with the same bits' cmp -s plain_q.npy rotated_q.npy

# The text report has the ops and their error.
finished '' qwen3 --q-norm w.npy --k-norm w.npy --verify
holds 'the ops' says 'ops *Q to bf16: rms norm*rotation'
holds 'the error' says 'error *Q * of what the contract allows'
holds 'the verdict' says 'verdict *correct'

# SwiftShader gives the same bits.
[ -n "$swiftshader" ] || skip 'VKROPE_SWIFTSHADER_ICD is empty: no second device'
finished '' qwen3 --q-norm w.npy --k-norm w.npy
use_driver "$swiftshader"
finished second_ qwen3 --q-norm w.npy --k-norm w.npy
for tensor in q k v; do
    holds "$tensor has the same bits on both devices" cmp ${tensor}_out.npy second_${tensor}_out.npy
done
finish
