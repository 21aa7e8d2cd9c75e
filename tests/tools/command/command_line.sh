#!/bin/sh
# SPDX-License-Identifier: MIT
# What needs no device: help, usage errors, the frequencies of models, streams that cannot be
# written.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"
llama=$models/llama-3.2-1b.json

works "$vkrope" --version
holds 'version' grep -qx 'vkrope [0-9]*\.[0-9]*\.[0-9]*' "$logs/out"
for command in '' devices frequencies explain positions rotate check permute accuracy \
    make-input dequantise spirv; do
    works "$vkrope" $command --help
    holds "help of '$command' on stdout" grep -q 'Exit codes: 0 success' "$logs/out"
    holds "nothing on stderr" [ ! -s "$logs/err" ]
done

refuse 2 'subcommand is required' "$vkrope"
refuse 2 "'spin' is not a command" "$vkrope" spin
refuse 2 '--model is required' "$vkrope" frequencies
refuse 2 '--nonsense' "$vkrope" devices --nonsense
refuse 2 'spare' "$vkrope" devices spare
refuse 2 '--shape is required' "$vkrope" make-input --out x.npy
refuse 2 '--out is required' "$vkrope" make-input --shape 1
for shape in '' ',' '1,' ',1' '1,,2' 1x2 -1 '1,2,3,4,5,6,7,8,9' 4294967296 ' 1'; do
    refuse 2 '--shape:' "$vkrope" make-input --shape "$shape" --out x.npy
done
refuse 2 '2^63 bytes or more' "$vkrope" make-input --shape 4294967295,4294967295,4294967295 \
    --out x.npy
refuse 2 'at most' "$vkrope" make-input --shape 4294967295,1000000 --out x.npy
refuse 2 "--dtype: 'f64' is not valid; the values are f32|f16|bf16" "$vkrope" make-input \
    --shape 1 --dtype f64 --out x.npy
refuse 2 '--seed' "$vkrope" make-input --shape 1 --seed 0x10 --out x.npy

# The frequencies of a model, as a table and as JSON with the fields that other programs rely on.
works "$vkrope" frequencies --model "$llama"
holds 'a row for each pair' [ "$(grep -c '^ *[0-9][0-9]* ' "$logs/out")" = 32 ]
holds 'no steps around the rotation' sh -c '! grep -q "^steps" "$0"' "$logs/out"
printf '{"model_type": "qwen3", "head_dim": 8, "num_attention_heads": 1, "rms_norm_eps": 1e-5}' \
    >normed.json
works "$vkrope" frequencies --model normed.json
holds 'the steps' grep -q '^steps  *Q: rms norm of each head (eps 1e-05, weight), rotation; K: ' \
    "$logs/out"
works "$vkrope" frequencies --model "$llama" --json --seq-len 4096 --tower text
for key in head_dim rotary_dim q_rotary_offset k_rotary_offset pairing rope_type rotates \
    attention_factor softmax_scale sections \
    inv_freq warnings; do
    holds "the key $key" grep -q "^  \"$key\": " "$logs/out"
done
holds 'head_dim' [ "$(number head_dim)" = 64 ]
holds 'all digits of a double' grep -q '^    0\.66360123769608[0-9]*,$' "$logs/out"
printf '{"model_type": "llama", "head_dim": 8, "num_attention_heads": 1, "rope_theta": 10000.0}' >tenths.json
works "$vkrope" frequencies --model tenths.json --json
holds '17 digits' [ "$(grep -c -e '^    1\.0,$' -e '^    0\.10000000000000001,$' "$logs/out")" = 2 ]

refuse 2 'excludes' "$vkrope" frequencies --model "$llama" --layer-type full_attention --layer 3
refuse 2 'the model has no layer types' "$vkrope" frequencies --model "$llama" \
    --layer-type full_attention
sed 's/"hidden_size"/"num_hidden_layers": 3, "hidden_size"/' "$llama" >three_layers.json
works "$vkrope" frequencies --model three_layers.json --layer 2
refuse 2 'layer is 3: the model has only 3 layers' "$vkrope" frequencies --model three_layers.json \
    --layer 3
refuse 2 'the model has no vision_config' "$vkrope" frequencies --model "$llama" --tower vision
refuse 2 '--seq-len' "$vkrope" frequencies --model "$llama" --seq-len 0
refuse 5 "--model: 'missing.json' cannot be read: No such file" "$vkrope" frequencies \
    --model missing.json
refuse 5 "is a directory; name the config.json" "$vkrope" frequencies --model .
refuse 5 '--model' "$vkrope" frequencies --model ''
refuse 5 "is a directory" "$vkrope" frequencies --model /dev
# Through a pipe, from the standard input, and from a file as that; not what has no end, nor a
# GGUF file, whose parts are read.
"$vkrope" frequencies --model "$llama" --json >expected.json
mkfifo pipe
for from in 'cat "$1" | "$0" frequencies --json --model -' \
    'cat "$1" | "$0" frequencies --json --model /dev/stdin' \
    '"$0" frequencies --json --model - <"$1"' \
    'cat "$1" >pipe & "$0" frequencies --json --model pipe'; do
    works sh -c "$from" "$vkrope" "$llama"
    holds "the same: $from" cmp -s expected.json "$logs/out"
done
rm pipe expected.json
refuse 5 'it is not a config.json' "$vkrope" frequencies --model /dev/zero
refuse 5 "--model: '-' is a GGUF file" sh -c 'printf GGUF123 | "$0" frequencies --model -' "$vkrope"
refuse 5 "--model: '/dev/null': " "$vkrope" frequencies --model /dev/null
printf '{"model_type": "llama", ' >broken.json
refuse 5 "--model: 'broken.json': " "$vkrope" frequencies --model broken.json
printf '\223NUMPY' >binary.json
refuse 5 "--model: 'binary.json': " "$vkrope" frequencies --model binary.json
zeros 70000000 >large.json
refuse 5 'it is not a config.json' "$vkrope" frequencies --model large.json
rm large.json
model_with '"rope_theta": -1' >theta.json
refuse 5 'rope_theta' "$vkrope" frequencies --model theta.json
model_with '"rope_theta": "large"' >theta.json
refuse 5 'rope_theta' "$vkrope" frequencies --model theta.json
model_with '"rope_theta": 10000.0, "rope_scaling": {"rope_type": "spiral"}' >type.json
refuse 5 'spiral' "$vkrope" frequencies --model type.json
model_with '"rope_theta": 10000.0, "head_dim": 7' >odd.json
refuse 5 'dim' "$vkrope" frequencies --model odd.json

# Text that cannot be delivered is not a success. A name in a message cannot start a second line.
if [ -c /dev/full ]; then
    expect 5 'standard output: cannot be written' sh -c '"$0" frequencies --model "$1" >/dev/full' \
        "$vkrope" "$llama"
    expect 5 'standard output: cannot be written' sh -c '"$0" --help >/dev/full' "$vkrope"
fi
expect 5 'standard output: is closed' sh -c '"$0" frequencies --model "$1" >&-' "$vkrope" "$llama"
works sh -c '"$0" frequencies --model "$1" <&- 2>&-' "$vkrope" "$llama"
refuse 5 "'two?lines'" "$vkrope" frequencies --model 'two
lines'
finish
