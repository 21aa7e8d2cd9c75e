#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests the commands on GGUF files: the small files that are the seeds of the fuzz test.
# shellcheck disable=SC2317 # functions called indirectly
. "$(dirname "$0")/check.sh"
files=$models/../corpus/gguf
no_driver

# A GGUF file is recognised by its first bytes, whatever its name.
cp "$files/llama3.gguf" config.json
works "$vkrope" frequencies --model config.json --json
holds 'the pairing fits the weights in the file' says '"pairing": "interleaved"'
holds 'the scaling is a list of divisors' says '"rope_type": "rope_freqs"'
works "$vkrope" frequencies --model "$files/deepseek2.gguf" --json
holds 'the window of Q' [ "$(number q_rotary_offset)" = 128 ]
holds 'the window of K' [ "$(number k_rotary_offset)" = 512 ]
works "$vkrope" explain --model "$files/qwen2vl.gguf" --json
holds 'the sections' [ "$(number axis | sort | uniq -c | tr -s ' \n' ' ')" = ' 4 0 6 1 6 2 ' ]
head -c 100 "$files/llama3.gguf" >cut.gguf
echo '{"model_type": "llama"}' >text.gguf # a GGUF file only by name
for file in cut.gguf text.gguf; do
    refuse 5 "--model:*'$file'" "$vkrope" frequencies --model $file
    refuse 5 "--model:*'$file'" "$vkrope" check --model $file --q q.npy --actual q.npy
done

# Half a TiB after a valid file changes nothing. The time limit detects hangs.
cp "$files/llama3.gguf" hole.gguf
if truncate -s 512G hole.gguf 2>/dev/null; then
    works timeout $((60 * ${VKROPE_TIME_FACTOR:-1})) "$vkrope" frequencies --model hole.gguf
else
    echo 'this file system has no files of half a TiB: one with a hole was left out'
fi
rm hole.gguf

# The option that an error asks for is read before the file is rejected.
LC_ALL=C sed 's/llama/nauti/g' "$files/llama3.gguf" >unknown.gguf
echo '{"model_type": "llama", "head_dim": 32, "rope_theta": 1e4, "rope_interleaved": true}' >told.json
for model in unknown.gguf told.json; do
    for command in frequencies explain; do
        refuse 5 "--model:*'$model'*give a pairing*" "$vkrope" $command --model $model
        works "$vkrope" $command --model $model --pairing interleaved --json
        holds "$command: the pairing" says '"pairing": "interleaved"'
    done
    refuse 5 "--model:*'$model'*give a pairing*" \
        "$vkrope" check --model $model --q q.npy --actual q.npy
done

need_lavapipe
# rotated MODEL: rotates Q and K like an engine with this model.
rotated() {
    works "$vkrope" rotate --model "$files/$1.gguf" --q q.npy --out-q q_out.npy --first-position 7 \
        --verify
}
# judged CODE VERDICT MODEL ARGUMENT...: check ends with CODE and VERDICT.
judged() {
    verdict=$2
    model=$3
    wanted=$1
    shift 3
    expect "$wanted" '' "$vkrope" check --model "$files/$model.gguf" --q q.npy --actual q_out.npy \
        --first-position 7 "$@"
    holds "$model: $verdict" says "Q  $verdict"
}
works "$vkrope" make-input --shape 2,5,4,32 --seed 1 --out q.npy
rotated llama3
judged 0 pass llama3
judged 1 'mistake: swapped_pairing' llama3 --pairing half_split
for model in unknown.gguf told.json; do
    works "$vkrope" rotate --model $model --pairing interleaved --q q.npy --out-q q_out.npy --verify
    works "$vkrope" check --model $model --pairing interleaved --q q.npy --actual q_out.npy
    works "$vkrope" rotate --model $model --pairing interleaved --q q.npy --out-q q_out.npy \
        --verify --model-ops
done
rotated llama3
rotated lfm2
judged 1 'mistake: scaling_ignored' linear
rotated gemma3
judged 1 'mistake: other_layer_type' gemma3 --layer-type sliding_attention

# Latent attention, and positions on several axes.
works "$vkrope" make-input --shape 1,5,4,192 --seed 1 --out q.npy
works "$vkrope" make-input --shape 1,5,1,64 --seed 2 --out k.npy
works "$vkrope" rotate --model "$files/deepseek2.gguf" --q q.npy --k k.npy --out-q q_out.npy \
    --out-k k_out.npy --verify
works "$vkrope" make-input --shape 1,3,4,32 --seed 1 --out q.npy
int32 0 1 2 5 6 70 3 1000 9 | npy '<i4' '(3, 1, 3)' >axes.npy
works "$vkrope" rotate --model "$files/qwen2vl.gguf" --q q.npy --out-q q_out.npy \
    --positions axes.npy --verify
expect 1 '' "$vkrope" check --model "$files/qwen3vl.gguf" --q q.npy --actual q_out.npy \
    --positions axes.npy
finish
