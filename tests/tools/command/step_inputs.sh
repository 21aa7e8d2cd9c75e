#!/bin/sh
# SPDX-License-Identifier: MIT
# Every option of the steps around a rotation that is wrong is refused before a device is looked
# for, by an error that names it, and no file is left behind. (What an error advises: advice.sh.)
# shellcheck disable=SC2317 # functions that others call
. "$(dirname "$0")/check.sh"
no_driver

model_with '"rope_theta": 10000.0' >plain.json
model_with '"rope_theta": 10000.0' |
    sed 's/"llama"/"qwen3"/; s/"hidden_size"/"head_dim": 64, &/' >qwen3.json
works "$vkrope" make-input --shape 1,5,4,64 --out q.npy
works "$vkrope" make-input --shape 1,5,2,64 --out k.npy
zeros 256 | npy '<f4' '(64,)' >w.npy
zeros 512 | npy '<f4' '(2, 64)' >w_k.npy
zeros 1024 | npy '<f4' '(4, 64)' >w_q.npy
zeros 512 | npy '<f8' '(64,)' >w_f8.npy
zeros 4 >not_npy
zeros 20 | npy '<f4' '(5,)' >scales.npy

given() { "$vkrope" rotate --model "$@" --q q.npy --k k.npy --out-q oq.npy --out-k ok.npy; }
plain() { given plain.json "$@"; }
qwen3() { given qwen3.json "$@"; }

# What belongs together.
k_alone() { "$vkrope" rotate --model plain.json --k k.npy --out-k ok.npy "$@"; }
refuse 2 '--q-norm:' k_alone --q-norm w.npy --norm-eps 1e-6
refuse 2 '--q-scale:' k_alone --q-scale 2
refuse 2 '--q-scale-tokens:' k_alone --q-scale-tokens scales.npy
rms_of_q() { plain --q-norm w.npy --norm-eps 1e-6 "$@"; }
refuse 2 '--first-set-tokens:' rms_of_q --first-set-tokens 3
refuse 2 '--first-set-tokens:' rms_of_q --second-q-norm w.npy
refuse 2 '--first-set-tokens:*5' rms_of_q --second-q-norm w.npy --first-set-tokens 5
refuse 2 '--second-k-norm:*--k-norm' rms_of_q --second-k-norm w.npy --first-set-tokens 3
refuse 2 '--second-v-bias:*--v' rms_of_q --second-v-bias w.npy --first-set-tokens 3
refuse 5 "--second-q-norm:*'w_q.npy'*(4, 64)*--q-norm*(64,)" \
    rms_of_q --second-q-norm w_q.npy --first-set-tokens 3

# Numbers: OPTION:VALUE.
for wrong_value in clip:0 clip:-2 clip:NaN clip:1e39 q-scale:0 q-scale:inf q-scale:2x \
    scale-floor:-1 scale-floor:1e39 norm-kind:group norm-span:row norm-place:between \
    hadamard:96 hadamard:q=1 hadamard:q=513 hadamard:q=x store:q6_k store:q=f16,k=q6_k; do
    value=${wrong_value#*:}
    refuse 2 "--${wrong_value%:*}:*${value##*=}" plain "--${wrong_value%:*}" "$value"
done
for eps in 0 1e-21 1.5 NaN none; do
    refuse 2 "--norm-eps:*'$eps'" plain --q-norm w.npy --norm-eps $eps
done
refuse 2 '--norm-offset' plain --q-norm w.npy --norm-offset 2
refuse 2 '--first-set-tokens' plain --q-norm w.npy --first-set-tokens 0

# Quantised outputs, their scales and Hadamard transforms.
for parts in x=f16 q=f16,q=f32 q=f16,k 'q=f16,' =f16 q=f16,,k=f16; do
    refuse 2 "--store:*'$parts'" plain --store $parts
done
refuse 2 '--store:*--v' plain --store v=q8_0
refuse 2 '--roof:*Q*q8_0' plain --store q=q8_0 --roof
refuse 2 '--hadamard:*--v' plain --hadamard q=64,v=64
refuse 2 '--store-scale:*--v' plain --store int8 --store-scale v=2
refuse 2 '--out-v-scales:*--v' plain --store int8 --out-v-scales s.npy
zeros 1600 | npy '<f4' '(1, 5, 2, 40)' >narrow.npy
refuse 2 "--store:*q5_1*'narrow.npy'*40" plain --v narrow.npy --out-v ov.npy --store v=q5_1
for scale in 0 inf 1e-50 2x rows; do
    refuse 2 "--store-scale:*'$scale'" plain --store int8 --store-scale $scale
done
int32 1 2 3 | npy '<f4' '(3,)' >three.npy
refuse 5 "--store-scale:*'three.npy'*(3,)*(2,)" plain --store k=int8 --store-scale k=three.npy
int32 $((0x3f800000)) 0 | npy '<f4' '(2,)' >zero.npy
refuse 5 "--store-scale:*'zero.npy'*0*1" plain --store k=int8 --store-scale k=zero.npy
refuse 5 "--store-scale:*'absent.npy'" plain --store k=int8 --store-scale k=absent.npy
refuse 2 '--scale-floor:*2^127' plain --store int8 --store-scale k=row_power_of_two \
    --scale-floor 3e38 --out-k-scales s.npy
rows() { plain --store int8 --store-scale row "$@"; }
refuse 2 's.npy*--out-q-scales' rows --out-q-scales s.npy --out-k-scales s.npy
refuse 2 'ok.npy*--out-k' rows --out-q-scales s.npy --out-k-scales ok.npy
refuse 2 "--out-q-scales:*'scales.npy'" \
    rows --q-scale-tokens scales.npy --out-q-scales scales.npy --out-k-scales s.npy
refuse 2 "--out-q-scales:*'s.safetensors'" \
    rows --out-q-scales s.safetensors --out-k-scales s.npy

# Parameters.
refuse 5 "--q-norm:*'missing.npy'" plain --q-norm missing.npy --norm-eps 1e-6
refuse 5 "--q-norm:*'w_f8.npy'*<f8" plain --q-norm w_f8.npy --norm-eps 1e-6
refuse 5 "--q-bias:*'not_npy'" plain --q-bias not_npy

# An output that is an input as well.
refuse 2 "--out-q:*w.npy'" \
    "$vkrope" rotate --model plain.json --q q.npy --out-q ./w.npy --q-norm w.npy --norm-eps 1e-6

# Right inputs get as far as looking for a device. Without an option of a step there is the rotation
# alone, and a note says what else the model has.
expect 3 'note: --model:*rms norm*--model-ops' qwen3
expect 3 '' plain
holds 'no note where the model has no more' sh -c "! grep -q note: '$logs/err'"
refuse 3 '' qwen3 --q-norm w.npy --k-norm w_k.npy
refuse 3 '' plain --store q=f16,k=e4m3fn --hadamard llama.cpp --store-scale k=2
refuse 3 '' rows --out-q-scales s.npy --out-k-scales t.npy --scale-floor 1e-6
finish
