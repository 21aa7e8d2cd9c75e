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

# Quantised outputs, their scales and Hadamard transforms.
types='f32|f16|bf16|e4m3fn|e5m2|int8|q8_0|q4_0|q4_1|q5_0|q5_1'
refuse 2 "--store: 'q6_k' is not valid; the values are $types" plain --store q6_k
refuse 2 "--store: 'q6_k' is not valid; the values are $types" plain --store q=f16,k=q6_k
for parts in x=f16 q=f16,q=f32 q=f16,k 'q=f16,' =f16 q=f16,,k=f16 Q=f16; do
    refuse 2 "--store: '$parts' must be one value, or some of q=, k= and v= with a value each, once" \
        plain --store $parts
done
refuse 2 '--store: --v is missing' plain --store v=q8_0
refuse 2 '--hadamard: --v is missing' plain --hadamard q=64,v=64
refuse 2 '--store-scale: --v is missing' plain --store int8 --store-scale v=2
refuse 2 '--out-v-scales: --v is missing' plain --store int8 --out-v-scales s.npy
for block in 3 96; do
    refuse 2 "--hadamard: '$block' must be a power of two from 2 to 512" plain --hadamard $block
done
for block in 0 1 513 1024 -2 x ggml; do
    refuse 2 "--hadamard: '$block' must be a decimal integer from 2 to 512" \
        plain --hadamard q=$block
done
refuse 2 "--hadamard: blocks have 128 channels; --k 'k.npy' has head_dim 64, which must be a multiple" \
    plain --hadamard k=128
refuse 2 '--hadamard: llama.cpp transforms Q as the type of K demands, and --k is missing' \
    "$vkrope" finish --model plain.json --q q.npy --out-q oq.npy --hadamard llama.cpp
works "$vkrope" make-input --shape 1,5,2,40 --out narrow.npy
refuse 2 "--store: blocks of q5_1 have 32 channels; --v 'narrow.npy' has head_dim 40, which must be" \
    plain --v narrow.npy --out-v ov.npy --store v=q5_1
for scale in 0 NaN inf 1e39 1e-50 2x rows; do
    refuse 2 "--store-scale: '$scale' must be row, a file, or a number other than 0 that a float holds" \
        plain --store int8 --store-scale $scale
done
int32 1 2 3 | npy '<f4' '(3,)' >three.npy
refuse 5 "--store-scale: 'three.npy' has shape (3,) of <f4; --k 'k.npy' needs (2,) of <f4, one for" \
    plain --store k=int8 --store-scale k=three.npy
int32 $((0x3f800000)) 0 | npy '<f4' '(2,)' >zero.npy
refuse 5 "--store-scale: 'zero.npy' has 0 for head 1; it must be finite and not 0" \
    plain --store k=int8 --store-scale k=zero.npy
refuse 5 "--store-scale: 'absent.npy'" plain --store k=int8 --store-scale k=absent.npy
refuse 2 '--store-scale: only e4m3fn, e5m2 and int8 take a scale; --store gives no tensor one of them' \
    plain --store q8_0 --store-scale 2
refuse 2 '--store-scale: only e4m3fn, e5m2 and int8 take a scale' plain --store-scale 2
refuse 2 '--store-scale: Q is stored as q8_0; only e4m3fn, e5m2 and int8 take a scale' \
    plain --store q=q8_0,k=int8 --store-scale q=2
refuse 2 '--out-q-scales: missing; --store-scale row makes scales of Q' \
    plain --store int8 --store-scale row
refuse 2 '--out-k-scales: no scales are made of K; --store-scale row makes them of e4m3fn, e5m2 and' \
    plain --store int8 --store-scale 2 --out-k-scales s.npy
for floor in -1 NaN inf 1e39; do
    refuse 2 "--scale-floor: '$floor' must be a number from 0 that a float holds" \
        plain --scale-floor $floor
done
refuse 2 '--scale-floor: no scales are made; --store-scale row makes them' \
    plain --store int8 --store-scale 2 --scale-floor 1
rows() { plain --store int8 --store-scale row "$@"; }
refuse 2 "s.npy' is also the file of --out-q-scales; each output must be a separate file" \
    rows --out-q-scales s.npy --out-k-scales s.npy
refuse 2 "ok.npy' is also the file of --out-k; each output must be a separate file" \
    rows --out-q-scales s.npy --out-k-scales ok.npy
refuse 2 "--out-q-scales: 'scales.npy' is an input as well; it would be replaced" \
    rows --q-scale-tokens scales.npy --out-q-scales scales.npy --out-k-scales s.npy
refuse 2 "--out-q-scales: 's.safetensors': outputs are .npy files" \
    rows --out-q-scales s.safetensors --out-k-scales s.npy

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
refuse 3 '' plain --store q8_0 --hadamard 64
refuse 3 '' plain --store q=f16,k=e4m3fn --hadamard llama.cpp --store-scale k=2
refuse 3 '' rows --out-q-scales s.npy --out-k-scales t.npy --scale-floor 1e-6
finish
