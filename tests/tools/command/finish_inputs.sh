#!/bin/sh
# SPDX-License-Identifier: MIT
# Every input of `vkrope finish` that is wrong is refused before a device is looked for, by an error
# that names it, and no file is left behind.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"
no_driver

model_with '"rope_theta": 10000.0' >plain.json
model_with '"rope_theta": 10000.0' |
    sed 's/"llama"/"qwen3"/; s/"hidden_size"/"head_dim": 64, &/' >qwen3.json
model_with '"rope_theta": 10000.0' | sed 's/"llama"/"chameleon"/' >chameleon.json
works "$vkrope" make-input --shape 1,5,4,64 --out q.npy
works "$vkrope" make-input --shape 1,5,2,64 --out k.npy
works "$vkrope" make-input --shape 1,5,2,64 --out v.npy
zeros 256 | npy '<f4' '(64,)' >w.npy
zeros 512 | npy '<f4' '(2, 64)' >w_k.npy
zeros 1024 | npy '<f4' '(4, 64)' >w_q.npy
zeros 512 | npy '<f8' '(64,)' >w_f8.npy
zeros 20 | npy '<f4' '(5,)' >scales.npy

given() { "$vkrope" finish --model "$@" --q q.npy --k k.npy --out-q oq.npy --out-k ok.npy; }
plain() { given plain.json "$@"; }
qwen3() { given qwen3.json "$@"; }

# What belongs together.
refuse 2 '--q and --k are missing' "$vkrope" finish --model plain.json
refuse 2 '--out-q is missing; --q needs it' "$vkrope" finish --model plain.json --q q.npy
refuse 2 '--q-norm: missing; the model'"'"'s norm of Q has a weight' qwen3
refuse 2 '--k-norm: missing; the model'"'"'s norm of K has a weight' qwen3 --q-norm w.npy
refuse 2 '--q-norm-bias: missing; the model'"'"'s norm of Q has a bias' \
    given chameleon.json --q-norm w_q.npy
refuse 2 '--norm-eps: missing; the model has no norm of Q that says it' plain --q-norm w.npy
refuse 2 '--norm-place: no tensor has a norm; --q-norm, --k-norm or --v-norm gives one' \
    plain --norm-place after
refuse 2 '--norm-eps: no tensor has a norm' plain --norm-eps 1e-6
refuse 2 '--q-norm-bias: Q has no norm; --q-norm gives it one' plain --q-norm-bias w.npy
refuse 2 '--q-norm-bias: only a layer norm has a bias; --norm-kind is rms' \
    plain --q-norm w.npy --q-norm-bias w.npy --norm-eps 1e-6
refuse 2 '--v-norm: --v is missing' plain --v-norm --norm-eps 1e-6
refuse 2 '--v-bias: --v is missing' plain --v-bias w.npy
k_alone() { "$vkrope" finish --model plain.json --k k.npy --out-k ok.npy "$@"; }
refuse 2 '--q-norm: --q is missing' k_alone --q-norm w.npy --norm-eps 1e-6
refuse 2 '--q-scale: --q is missing' k_alone --q-scale 2
refuse 2 '--q-scale-tokens: --q is missing' k_alone --q-scale-tokens scales.npy

# Numbers.
for eps in 0 -1 1e-21 1.5 NaN inf none; do
    refuse 2 "--norm-eps: '$eps' must be a number from 1e-20 to 1" \
        plain --q-norm w.npy --norm-eps $eps
done
for clip in 0 -2 NaN inf 1e39; do
    refuse 2 "--clip: '$clip' must be a number above 0 that a float holds" plain --clip $clip
done
for scale in 0 NaN inf 1e39 2x; do
    refuse 2 "--q-scale: '$scale' must be a number other than 0 that a float holds" plain --q-scale $scale
done
refuse 2 '--norm-offset' plain --q-norm w.npy --norm-offset 2
refuse 2 '--norm-kind' plain --q-norm w.npy --norm-kind group
refuse 2 '--norm-span' plain --q-norm w.npy --norm-span row
refuse 2 '--norm-place' plain --q-norm w.npy --norm-place between
refuse 2 '--store' plain --store q8_0

# Parameters.
refuse 5 "--q-norm: 'missing.npy'" plain --q-norm missing.npy --norm-eps 1e-6
refuse 5 "--q-norm: 'w_k.npy' has shape (2, 64); --q 'q.npy' needs (64,), (4, 64) or (256,)" \
    plain --q-norm w_k.npy --norm-eps 1e-6
refuse 5 "--k-bias: 'w_q.npy' has shape (4, 64); --k 'k.npy' needs (64,), (2, 64) or (128,)" \
    plain --k-bias w_q.npy
refuse 5 "--q-norm: 'w_f8.npy' has data of type <f8; it must be <f4 (f32), <f2 (f16) or <u2 (bf16)" \
    plain --q-norm w_f8.npy --norm-eps 1e-6
refuse 5 "--q-scale-tokens: 'w.npy' has shape (64,) of <f4; the tensors need (5,) or (1, 5) of <f4" \
    plain --q-scale-tokens w.npy
zeros 4 >not_npy
refuse 5 "--q-bias: 'not_npy'" plain --q-bias not_npy

# An output that is an input as well.
refuse 2 "--out-q: 'w.npy' is an input as well; it would be replaced" \
    "$vkrope" finish --model plain.json --q q.npy --out-q w.npy --q-norm w.npy --norm-eps 1e-6
refuse 2 "--out-q: 'w.npy' is an input as well; it would be replaced" \
    "$vkrope" finish --model plain.json --q q.npy --out-q ./w.npy --q-norm w.npy --norm-eps 1e-6

# Right inputs get as far as looking for a device.
refuse 3 '' qwen3 --q-norm w.npy --k-norm w_k.npy
finish
