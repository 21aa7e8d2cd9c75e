#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests what needs no device: help, usage errors, the frequencies of models, and output streams that
# cannot be written.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions called indirectly
. "$(dirname "$0")/check.sh"
llama=$models/llama-3.2-1b.json

works "$vkrope" --version
holds 'version' says 'vkrope [0-9]*.[0-9]*.[0-9]*'
for command in '' devices frequencies explain rotate check make-input; do
    # shellcheck disable=SC2086 # no word if there is no command
    works "$vkrope" $command --help
    holds "help of '$command' on stdout" [ -s "$logs/out" ]
    holds "nothing on stderr" [ ! -s "$logs/err" ]
done

refuse 2 '' "$vkrope"
refuse 2 "'spin'" "$vkrope" spin
refuse 2 '--nonsense' "$vkrope" devices --nonsense
refuse 2 'spare' "$vkrope" devices spare
refuse 2 '--shape' "$vkrope" make-input --out x.npy
refuse 2 '--out' "$vkrope" make-input --shape 1
for shape in '' '1,' '1,,2' 1x2 -1 '1,2,3,4,5,6,7,8,9' 4294967296 ' 1' 4294967295,1000000 \
    4294967295,4294967295,4294967295; do
    refuse 2 '--shape:' "$vkrope" make-input --shape "$shape" --out x.npy
done
refuse 2 '--dtype:*f64' "$vkrope" make-input --shape 1 --dtype f64 --out x.npy
refuse 2 '--seed' "$vkrope" make-input --shape 1 --seed 0x10 --out x.npy

# The frequencies of a model, as a table and as JSON with the fields that other programs rely on.
works "$vkrope" frequencies --model "$llama"
holds 'a row of the last pair, and no colour' \
    sh -c 'grep -q "^ *31 " "$0" && ! grep -q "$(printf "\\033")" "$0"' "$logs/out"
works "$vkrope" frequencies --model "$llama" --json --seq-len 4096 --tower text
for key in head_dim rotary_dim q_rotary_offset k_rotary_offset pairing rope_type rotates \
    attention_factor softmax_scale sections \
    inv_freq warnings; do
    holds "the key $key" grep -q "^  \"$key\": " "$logs/out"
done
holds 'head_dim' [ "$(number head_dim)" = 64 ]
holds 'all digits of a double' says ' 0.66360123769608[0-9]'
printf '{"model_type": "llama", "head_dim": 8, "num_attention_heads": 1, "rope_theta": 10000.0}' >tenths.json
works "$vkrope" frequencies --model tenths.json --json
holds 'the shortest digits that give the double' says ' 0.1,'

refuse 2 '--layer-type' "$vkrope" frequencies --model "$llama" --layer-type full_attention --layer 3
sed 's/"hidden_size"/"num_hidden_layers": 3, "hidden_size"/' "$llama" >three_layers.json
works "$vkrope" frequencies --model three_layers.json --layer 2
refuse 2 'layer is 3' "$vkrope" frequencies --model three_layers.json --layer 3
refuse 2 'vision' "$vkrope" frequencies --model "$llama" --tower vision
refuse 2 '--seq-len' "$vkrope" frequencies --model "$llama" --seq-len 0

# Paths that are not model files: nothing, a folder, an endless device, a file that is too long, a
# file that is not JSON or not text, and a file with a wrong value.
printf '{"model_type": "llama", ' >broken.json
printf '\223NUMPY' >binary.json
zeros 70000000 >large.json
for file in missing.json . /dev/null /dev/zero broken.json binary.json large.json; do
    refuse 5 "--model:*'$file'" "$vkrope" frequencies --model "$file"
done
rm large.json
refuse 2 '--model' "$vkrope" frequencies --model ''
model_with '"rope_theta": 10000.0, "rope_scaling": {"rope_type": "spiral"}' >type.json
refuse 5 '--model:*type.json*spiral' "$vkrope" frequencies --model type.json
# A model comes through a pipe, from the standard input, and from a file as standard input. A GGUF
# file may not, because it is read in parts.
"$vkrope" frequencies --model "$llama" --json >expected.json
mkfifo pipe
for from in 'cat "$1" | "$0" frequencies --json --model -' \
    '"$0" frequencies --json --model - <"$1"' \
    'cat "$1" >pipe & "$0" frequencies --json --model pipe'; do
    works sh -c "$from" "$vkrope" "$llama"
    holds "the same: $from" cmp -s expected.json "$logs/out"
done
rm pipe expected.json
refuse 5 "--model: '-'*16777216" \
    sh -c 'yes | timeout "$1" "$0" frequencies --model -' "$vkrope" \
    $((60 * ${VKROPE_TIME_FACTOR:-1})) # an endless stream
refuse 5 '--model:*-*GGUF' sh -c 'printf GGUF123 | "$0" frequencies --model -' "$vkrope"

# Undelivered text is not a success. A name in a message cannot start a second line.
if [ -c /dev/full ]; then
    expect 5 'standard output' sh -c '"$0" frequencies --model "$1" >/dev/full' "$vkrope" "$llama"
    expect 5 'standard output' sh -c '"$0" --help >/dev/full' "$vkrope"
fi
expect 5 'standard output' sh -c '"$0" frequencies --model "$1" >&-' "$vkrope" "$llama"
works sh -c '"$0" frequencies --model "$1" <&- 2>&-' "$vkrope" "$llama"
refuse 5 'two?lines' "$vkrope" frequencies --model 'two
lines'
finish
