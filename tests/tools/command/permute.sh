#!/bin/sh
# SPDX-License-Identifier: MIT
# `vkrope permute`: what it writes and says, and every input that is refused, by an error that names
# it.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"
no_driver

# checkpoint TENSOR...: in.safetensors with these tensors, of the bytes of noise.
checkpoint() { tensors "$@" <noise >in.safetensors; }
works "$vkrope" make-input --shape 1,512,4,64 --out noise.npy
tail -c 262144 noise.npy >noise

model_with '"rope_theta": 10000.0, "num_hidden_layers": 2' >model.json # 4 and 2 heads of 64
permute() { "$vkrope" permute --model model.json --in in.safetensors --out out.safetensors "$@"; }
# words KEY: the strings of a key in the JSON on the last command's stdout.
words() { sed -n 's/^ *"'"$1"'": "\(.*\)",*$/\1/p' "$logs/out" | paste -sd ' ' -; }
interleaved() { permute --pairing-to interleaved "$@"; }

l=model.layers.0.self_attn
# Two bytes a row and element, four rows of 64 channels: hidden_size is 2 here, which no rule needs.
q=$l.q_proj.weight:BF16:256,2:1024
k=$l.k_proj.weight:BF16:128,2:512
v=$l.v_proj.weight:BF16:128,2:512

# There and back: byte for byte, whatever lies between the tensors.
checkpoint embed:F16:3:6 $v $k other:NEW_TYPE:5:7 $q $l.q_proj.bias:F32:256:1024 \
    $l.k_norm.weight:F32:64:256 model.layers.1.self_attn.q_proj.weight:F8_E4M3:256,3:768 \
    model.layers.1.self_attn.k_proj.weight:F8_E4M3:128,3:384 \
    model.layers.1.self_attn.q_proj.weight_scale:F32:256,1:1024 \
    model.layers.1.self_attn.k_proj.weight_scale:F32:1:4
works interleaved --json
holds 'tensors of Q and K' [ "$(words tensor)" = 'k q q k q k q' ]
holds 'the output' says '"out": "out.safetensors"'
holds 'something changed' sh -c '! cmp -s in.safetensors out.safetensors'
holds 'the size stays' [ "$(wc -c <in.safetensors)" = "$(wc -c <out.safetensors)" ]
holds 'the header stays' [ "$(head -c 1000 in.safetensors | cksum)" = \
    "$(head -c 1000 out.safetensors | cksum)" ]
works "$vkrope" permute --model model.json --pairing interleaved --pairing-to half_split \
    --in out.safetensors --out back.safetensors
holds 'there and back' cmp in.safetensors back.safetensors

# One row a byte: half_split puts channel j beside channel j + 32.
{ seq 0 255 | while read -r channel; do byte "$channel"; done; } >bytes
tensors $l.q_proj.weight:U8:256,1:256 <bytes >in.safetensors
works interleaved
# first: the first eight bytes of the data.
first() { tail -c 256 out.safetensors | od -An -tu1 -N 8 -v | tr -s ' '; }
holds "interleaved:$(first)" [ "$(first)" = ' 0 32 1 33 2 34 3 35' ]
holds 'a note on a layer without K' says 'note: --in:*layer 0*Q' "$logs/err"
works permute --pairing interleaved --pairing-to half_split
holds "half_split:$(first)" [ "$(first)" = ' 0 2 4 6 8 10 12 14' ]

# A dry run writes nothing, lists what would change, and needs no output.
tower=vision_tower.layers.0.self_attn.q_proj.weight
checkpoint $q $k $tower:BF16:1:2
rm -f out.safetensors
refuse 0 '' "$vkrope" permute --model model.json --in in.safetensors --pairing-to interleaved \
    --dry-run
for name in $l.q_proj.weight $l.k_proj.weight $tower; do
    holds "$name is listed" says "    $name: "
done
refuse 0 '' interleaved --dry-run --json
holds 'the pairing' says '"from": "half_split"'
holds 'heads' [ "$(number heads | paste -sd ' ' -)" = '4 2' ]
holds 'tensors' [ "$(words name)" = "$l.q_proj.weight $l.k_proj.weight $tower" ]
holds 'no output' says '"out": null'

# Layers without RoPE stay as they are, and layers that the model does not have.
model_with '"rope_theta": 10000.0, "num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0]' |
    sed 's/"llama"/"smollm3"/' >nope.json
checkpoint model.layers.3.self_attn.q_proj.weight:BF16:256,2:1024 $q \
    model.layers.9.self_attn.q_proj.weight:BF16:256,2:1024 $k
refuse 0 '' "$vkrope" permute --model nope.json --in in.safetensors --pairing-to interleaved \
    --dry-run --json
holds 'Q and K of layer 0' [ "$(words tensor)" = 'q k' ]
holds 'what is left' [ "$(words name)" = "$l.q_proj.weight $l.k_proj.weight \
model.layers.3.self_attn.q_proj.weight model.layers.9.self_attn.q_proj.weight" ]

# Other names.
checkpoint enc.0.query.weight:BF16:256,2:1024 enc.0.query.norm:F32:4,64:1024 \
    enc.0.key.weight:BF16:128,2:512
refuse 5 '--in:*in.safetensors*enc.0.query.weight' interleaved
works interleaved --q '*.query.*' --k 'enc.*.key.weight' --json
holds 'by patterns' [ "$(words tensor)" = 'q q k' ]
rm out.safetensors
refuse 2 '--q:*.queries' interleaved --q '*.queries'
refuse 2 '--k:*enc.0.query.weight*--q' interleaved --q '*.query.*' --k 'enc*'
checkpoint lm_head.weight:BF16:2:4
refuse 5 '--in:' interleaved
# A shard without Q and K stays as it is.
cp in.safetensors model-00002-of-00003.safetensors
works "$vkrope" permute --model model.json --in model-00002-of-00003.safetensors \
    --pairing-to interleaved --out out.safetensors --json
holds 'a shard whose pairing is not known' says '"from": null'
holds 'a note on a shard' says 'note: ' "$logs/err"
holds 'a shard without Q and K' cmp in.safetensors out.safetensors
rm out.safetensors
# Names of Meta's own files do not say which pairing they have.
checkpoint layers.0.attention.wq.weight:BF16:256,2:1024 layers.0.attention.wk.weight:BF16:128,2:512
refuse 2 '--pairing:*wq.weight' interleaved
works permute --pairing interleaved --pairing-to half_split
rm out.safetensors

# What is refused.
checkpoint $q $k
refuse 2 '--out' "$vkrope" permute --model model.json --in in.safetensors --pairing-to interleaved
refuse 2 '--pairing-to' "$vkrope" permute --model model.json --in in.safetensors --out out
refuse 2 '--pairing-to:*both' permute --pairing-to both
refuse 2 '--pairing-to:*half_split' permute --pairing-to half_split
refuse 2 'interleaved' interleaved --pairing interleaved
refuse 2 '--in:*model.json' \
    "$vkrope" permute --model model.json --in model.json --pairing-to interleaved --dry-run
cp in.safetensors before.safetensors
ln -s in.safetensors link.safetensors
refuse 2 '--out:*link.safetensors*--in' "$vkrope" permute --model model.json --in in.safetensors \
    --out link.safetensors --pairing-to interleaved
holds 'the input is untouched' cmp in.safetensors before.safetensors
refuse 2 'llama3.gguf*GGUF' "$vkrope" permute --model "$models/../corpus/gguf/llama3.gguf" \
    --in in.safetensors --out out.safetensors --pairing-to interleaved
sed 's/"num_attention_heads": 4,/"head_dim": 64,/; s/"num_key_value_heads": 2,//' model.json \
    >headless.json
refuse 5 '--model:*headless.json*num_attention_heads' "$vkrope" permute --model headless.json \
    --in in.safetensors --out out.safetensors --pairing-to interleaved
# wrong_tensors PATTERN TENSOR...: a checkpoint of these tensors is refused.
wrong_tensors() {
    named=$1
    shift
    checkpoint "$@"
    refuse 5 "--in:*$named" interleaved
}
wrong_tensors "$l.q_proj.weight*(512, 2)*4*64*256" $l.q_proj.weight:BF16:512,2:2048
wrong_tensors "$l.k_proj.weight*(64, 2)*2*64*128" $l.k_proj.weight:BF16:64,2:256
wrong_tensors "()*4*64" $l.q_proj.weight:BF16::2
wrong_tensors "(128,)*4*64" $l.q_norm.weight:BF16:128:256
wrong_tensors "$l.q_proj.weight*NEW_TYPE" $l.q_proj.weight:NEW_TYPE:256,2:512
wrong_tensors '256*384' $l.q_proj.weight:F4:256,3:384
wrong_tensors "$l.qkv_proj.weight" $q $k $l.qkv_proj.weight:BF16:512,2:2048
wrong_tensors 256 $(seq -f 'model.layers.%g.self_attn.q_proj.weight:U8:256,0:0' 0 256)
wrong_tensors "$l.q_proj.qweight" $l.q_proj.qweight:I32:256,2:2048
for file in missing.safetensors .; do
    refuse 5 "--in:*'$file'" "$vkrope" permute --model model.json --in $file --dry-run \
        --pairing-to interleaved
done
checkpoint $q $k
head -c 1000 in.safetensors >cut.safetensors && mv cut.safetensors in.safetensors
refuse 5 "--in:*'in.safetensors'" interleaved
finish
