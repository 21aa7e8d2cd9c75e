#!/bin/sh
# SPDX-License-Identifier: MIT
# The commands on GGUF files: the small ones that the fuzz test begins with.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"
files=$models/../corpus/gguf
no_driver

# A GGUF file says so in its first bytes, whatever it is called.
cp "$files/llama3.gguf" config.json
works "$vkrope" frequencies --model config.json --json
holds 'the pairing fits the weights in the file' grep -q '"pairing": "interleaved"' \
    "$logs/out"
holds 'the scaling is a list of divisors' grep -q '"rope_type": "rope_freqs"' "$logs/out"
works "$vkrope" frequencies --model "$files/deepseek2.gguf" --json
holds 'the window of Q' [ "$(number q_rotary_offset)" = 128 ]
holds 'the window of K' [ "$(number k_rotary_offset)" = 512 ]
for file in "$files"/*.gguf; do
    works "$vkrope" frequencies --model "$file"
    works "$vkrope" explain --model "$file" --svg picture.svg
    holds "a picture of $file" sh -c 'tail -n 1 picture.svg | grep -qx "</svg>"'
done
works "$vkrope" explain --model "$files/qwen2vl.gguf"
holds 'the sections' grep -q \
    '3 a token (sequential sections): axis 0 turns 4 pairs, axis 1 turns 6 pairs, axis 2 turns 6 pairs' \
    "$logs/out"
head -c 100 "$files/llama3.gguf" >cut.gguf
refuse 5 "--model: 'cut.gguf': " "$vkrope" frequencies --model cut.gguf
refuse 5 "--model: 'cut.gguf': " "$vkrope" check --model cut.gguf --q q.npy --actual q.npy

need_lavapipe
# rotated MODEL, judged CODE SAYS MODEL ARGUMENT...
rotated() {
    works "$vkrope" rotate --model "$files/$1.gguf" --q q.npy --out-q q_out.npy --first-position 7 \
        --verify
    holds "$1 is verified" grep -q '^verdict .*correct' "$logs/out"
}
judged() {
    code=$1 text=$2 model=$3
    shift 3
    expect "$code" '' "$vkrope" check --model "$files/$model.gguf" --q q.npy --actual q_out.npy \
        --first-position 7 "$@"
    holds "$model: $text" grep -q "^Q  $text" "$logs/out"
}
works "$vkrope" make-input --shape 2,5,4,32 --seed 1 --out q.npy
for model in llama3 linear yarn; do
    rotated $model
    judged 0 'pass' $model
done
rotated llama3
judged 1 'mistake: swapped_pairing' llama3 --pairing half_split
rotated lfm2
judged 1 'mistake: scaling_ignored' linear
rotated gemma3
judged 1 'mistake: other_layer_type' gemma3 --layer-type sliding_attention

# A file that is only called so.
echo '{"model_type": "llama"}' >text.gguf
expect 5 'does not begin with GGUF' "$vkrope" frequencies --model text.gguf

# Latent attention, and positions on several axes.
works "$vkrope" make-input --shape 1,5,4,192 --seed 1 --out q.npy
works "$vkrope" make-input --shape 1,5,1,64 --seed 2 --out k.npy
works "$vkrope" rotate --model "$files/deepseek2.gguf" --q q.npy --k k.npy --out-q q_out.npy \
    --out-k k_out.npy --verify
works "$vkrope" check --model "$files/deepseek2.gguf" --q q.npy --k k.npy --actual q_out.npy \
    --actual-k k_out.npy
works "$vkrope" make-input --shape 1,3,4,32 --seed 1 --out q.npy
int32 0 1 2 5 6 70 3 1000 9 | npy '<i4' '(3, 1, 3)' >axes.npy
works "$vkrope" rotate --model "$files/qwen2vl.gguf" --q q.npy --out-q q_out.npy \
    --positions axes.npy --verify
works "$vkrope" check --model "$files/qwen2vl.gguf" --q q.npy --actual q_out.npy \
    --positions axes.npy
expect 1 '' "$vkrope" check --model "$files/qwen3vl.gguf" --q q.npy --actual q_out.npy \
    --positions axes.npy
finish
