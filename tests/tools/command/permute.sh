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
works interleaved
holds 'something changed' sh -c '! cmp -s in.safetensors out.safetensors'
holds 'the size stays' [ "$(wc -c <in.safetensors)" = "$(wc -c <out.safetensors)" ]
holds 'the header stays' [ "$(head -c 1000 in.safetensors | cksum)" = \
    "$(head -c 1000 out.safetensors | cksum)" ]
holds 'the report' grep -q '^permuted    4 tensors of Q, 3 of K$' "$logs/out"
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
holds 'a note says that K is missing' grep -q 'note: --in: layer 0 has only Q here' "$logs/err"
works permute --pairing interleaved --pairing-to half_split
holds "half_split:$(first)" [ "$(first)" = ' 0 2 4 6 8 10 12 14' ]

# A dry run writes nothing, lists what would change, and needs no output.
checkpoint $q $k vision_tower.layers.0.self_attn.q_proj.weight:BF16:1:2
listed() { holds "listed: $1" grep -qxF -e "$1" "$logs/out"; }
rm -f out.safetensors
refuse 0 '' "$vkrope" permute --model model.json --in in.safetensors --pairing-to interleaved \
    --dry-run
listed "    $l.q_proj.weight: BF16 (256, 2), 4 x 64 rows, channels 0 to 63 of each head"
listed "    $l.k_proj.weight: BF16 (128, 2), 2 x 64 rows, channels 0 to 63 of each head"
listed 'left        1 tensors that look like Q or K'
listed '    vision_tower.layers.0.self_attn.q_proj.weight: its name is not one of a layer of the language model'
listed 'out         nothing was written: --dry-run'
refuse 0 '' interleaved --dry-run --json
holds 'JSON: the pairing' grep -q '"from": "half_split"' "$logs/out"
holds 'JSON' [ "$(number heads | paste -sd ' ' -)" = '4 2' ]
holds 'JSON: no output' grep -q '"out": null' "$logs/out"
works interleaved --json
holds 'JSON: the output' grep -q '"out": "out.safetensors"' "$logs/out"
rm out.safetensors

# Layers without RoPE stay as they are, and layers that the model does not have.
model_with '"rope_theta": 10000.0, "num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0]' |
    sed 's/"llama"/"smollm3"/' >nope.json
checkpoint model.layers.3.self_attn.q_proj.weight:BF16:256,2:1024 $q \
    model.layers.9.self_attn.q_proj.weight:BF16:256,2:1024 $k
refuse 0 '' "$vkrope" permute --model nope.json --in in.safetensors --pairing-to interleaved \
    --dry-run
listed '    model.layers.3.self_attn.q_proj.weight: layer 3 has no RoPE'
listed '    model.layers.9.self_attn.q_proj.weight: layer is 9: the model has only 4 layers'

# Other names.
checkpoint enc.0.query.weight:BF16:256,2:1024 enc.0.query.norm:F32:4,64:1024 \
    enc.0.key.weight:BF16:128,2:512
refuse 5 "--in: 'in.safetensors': no tensor is known to be of Q or K ('enc.0.query.weight', for one: its name is not one of a layer of the language model); --q and --k say which are" \
    interleaved
works interleaved --q '*.query.*' --k 'enc.*.key.weight'
holds 'by patterns' grep -q '^permuted    2 tensors of Q, 1 of K$' "$logs/out"
rm out.safetensors
refuse 2 "--q: no tensor in the file is named as '*.queries'" interleaved --q '*.queries'
refuse 2 "--k: 'enc.0.query.weight' is named by --q as well" interleaved --q '*.query.*' --k 'enc*'
checkpoint lm_head.weight:BF16:2:4
refuse 5 "no tensor is known to be of Q or K; --q and --k say which are" interleaved
cp in.safetensors model-00002-of-00003.safetensors
works "$vkrope" permute --model model.json --in model-00002-of-00003.safetensors \
    --pairing-to interleaved --out out.safetensors
holds 'a shard whose pairing is not known' grep -qx 'pairing     to interleaved' "$logs/out"
holds 'a note on a shard' grep -q "has nothing of Q or K; it stays as it is" "$logs/err"
holds 'a shard without Q and K' cmp in.safetensors out.safetensors
rm out.safetensors
checkpoint layers.0.attention.wq.weight:BF16:256,2:1024 layers.0.attention.wk.weight:BF16:128,2:512
refuse 2 "--pairing: missing; 'layers.0.attention.wq.weight' is a name of Meta's own files" \
    interleaved
works permute --pairing interleaved --pairing-to half_split
rm out.safetensors

# What is refused.
checkpoint $q $k
refuse 2 '--out is missing; --dry-run lists what would change without it' \
    "$vkrope" permute --model model.json --in in.safetensors --pairing-to interleaved
refuse 2 '--pairing-to' "$vkrope" permute --model model.json --in in.safetensors --out out
refuse 2 "--pairing-to: 'both' is not valid" permute --pairing-to both
refuse 2 '--pairing-to: the weights are half_split already; give --pairing if they are not' \
    permute --pairing-to half_split
refuse 2 'the weights are interleaved already' interleaved --pairing interleaved
refuse 2 "--in: 'model.json' is not a tensor file; each .safetensors file that an index names" \
    "$vkrope" permute --model model.json --in model.json --pairing-to interleaved --dry-run
cp in.safetensors before.safetensors
ln -s in.safetensors link.safetensors
refuse 2 "--out: 'link.safetensors' is the file of --in; an output must be another file" \
    "$vkrope" permute --model model.json --in in.safetensors --out link.safetensors \
    --pairing-to interleaved
holds 'the input is untouched' cmp in.safetensors before.safetensors
refuse 2 "is a GGUF file, and GGUF weights have their own pairing; give the config.json" \
    "$vkrope" permute --model "$models/../corpus/gguf/llama3.gguf" --in in.safetensors \
    --out out.safetensors --pairing-to interleaved
sed 's/"num_attention_heads": 4,/"head_dim": 64,/; s/"num_key_value_heads": 2,//' model.json \
    >headless.json
refuse 5 "--model: 'headless.json': num_attention_heads is missing; it says how many heads" \
    "$vkrope" permute --model headless.json --in in.safetensors --out out.safetensors \
    --pairing-to interleaved
# wrong TEXT TENSOR...: a checkpoint of these tensors is refused.
wrong_tensors() {
    text_of_error=$1
    shift
    checkpoint "$@"
    refuse 5 "$text_of_error" interleaved
}
wrong_tensors "tensor '$l.q_proj.weight' has shape (512, 2); 4 heads of 64 channels have 256 rows" \
    $l.q_proj.weight:BF16:512,2:2048
wrong_tensors "tensor '$l.k_proj.weight' has shape (64, 2); 2 heads of 64 channels have 128 rows" \
    $l.k_proj.weight:BF16:64,2:256
wrong_tensors "has shape (); 4 heads of 64" $l.q_proj.weight:BF16::2
wrong_tensors "has shape (128,); 4 heads of 64" $l.q_norm.weight:BF16:128:256
wrong_tensors "tensor '$l.q_proj.weight' has dtype NEW_TYPE, which is not known" \
    $l.q_proj.weight:NEW_TYPE:256,2:512
wrong_tensors 'has 256 rows in 384 bytes; a row must fill whole bytes' $l.q_proj.weight:F4:256,3:384
wrong_tensors "tensor '$l.qkv_proj.weight' holds Q, K and V in one tensor" $q $k \
    $l.qkv_proj.weight:BF16:512,2:2048
wrong_tensors 'tensors of more than 256 layers' \
    $(seq -f 'model.layers.%g.self_attn.q_proj.weight:U8:256,0:0' 0 256)
wrong_tensors "tensor '$l.q_proj.qweight' is a parameter of Q that is not known" \
    $l.q_proj.qweight:I32:256,2:2048
refuse 5 "--in: 'missing.safetensors': cannot be read: No such file" "$vkrope" permute \
    --model model.json --in missing.safetensors --dry-run --pairing-to interleaved
refuse 5 "--in: '.': is a directory" "$vkrope" permute \
    --model model.json --in . --dry-run --pairing-to interleaved
checkpoint $q $k
cp in.safetensors whole.safetensors
for cut in 0 7 8 9 100 1000; do
    head -c $cut whole.safetensors >in.safetensors
    refuse 5 "--in: 'in.safetensors': " interleaved
done

finish
