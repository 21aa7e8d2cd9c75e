#!/bin/sh
# SPDX-License-Identifier: MIT
# `vkrope spirv`: valid modules and a manifest that names them, for every field of KernelInfo, and
# wrong inputs refused by an error that names the field. It needs no device: the modules come from
# one that exists on paper.
# shellcheck disable=SC2317 # functions that others call
. "$(dirname "$0")/check.sh"
no_driver
source=$models/../../..

q='"rotary_dim": 64, "q": {"head_dim": 64, "in": "f16"}'
# kernels FIELDS...: several kernels, "k1" and so on, with these fields, as JSON.
kernels() {
    name=0
    printf '['
    for fields; do
        [ $name = 0 ] || printf ', '
        name=$((name + 1))
        printf '{"name": "k%d", %s}' $name "$fields"
    done
    printf ']'
}
# spirv FIELDS [OPTION...]: of one kernel "one" with these fields.
spirv() {
    printf '{"name": "one", %s}' "$1" >one.json
    shift
    "$vkrope" spirv --info one.json --out modules "$@"
}
# The manifest names the files beside it, and no others.
named_files() {
    sed -n 's/^ *"file": "\(.*\)",*$/\1/p' modules/manifest.json | sort >named
    find modules -type f | sed 's|.*/||' | grep -v '^manifest' | sort >present
    holds 'the manifest names the files' cmp named present
}

kernels "$q" "$q, \"mapping\": \"cpu\"" \
    "$q,
    \"k\": {\"head_dim\": 64, \"in\": \"f32\", \"out\": \"q8_0\", \"rotary_offset\": 0},
    \"v\": {\"head_dim\": 64, \"out\": \"bf16\"}, \"pairing\": \"interleaved\",
    \"pairing_out\": \"half_split\", \"angles\": \"factored_texture\", \"positions\": \"ids\",
    \"scatter_k\": true, \"q_heads\": 8, \"k_heads\": 2, \"v_heads\": 2" \
    "\"rotary_dim\": 64, \"q\": {\"head_dim\": 80}, \"positions\": \"axis_ids\",
    \"windows\": [{\"offset\": 0, \"rotary_dim\": 32}, {\"offset\": 32, \"rotary_dim\": 32}],
    \"sections\": {\"order\": \"sequential\", \"axes\": 2, \"pairs\": [16, 16]},
    \"angles\": \"cos_sin_cache\", \"table\": \"bf16\"" \
    "$q, \"angles\": \"computed\", \"phase\": true, \"head_groups\": 4" \
    "$q, \"angles\": \"cos_sin_cache\", \"channel_angles\": true" \
    "$q, \"q_heads\": 4, \"q_finish\": {\"bias\": \"channel\", \"norm\": {\"kind\": \"rms\",
    \"span\": \"head\", \"place\": \"before\", \"eps\": 1e-6, \"weight\": \"channel\",
    \"weight_offset\": 1, \"round_between\": true}, \"clip\": 8, \"scale\": 0.125,
    \"scale_call\": true, \"scale_tokens\": true, \"hadamard\": 64}" >kinds.json
works "$vkrope" spirv --info kinds.json --out modules
named_files
if command -v spirv-val >/dev/null; then
    for module in modules/*.spv; do
        holds "$module is valid" spirv-val --target-env vulkan1.1 "$module"
    done
fi
for word in 'format": "vkrope-spirv/1' 'bytes": 128' 'entry_point": "main' 'name": "q_in' \
    'name": "parameters' 'tokens_per_group": ' 'workgroup_size": ' 'q_head_dim": 64'; do
    holds "the manifest has $word" grep -qF "\"$word" modules/manifest.json
done
holds 'V has modules of its own' [ -e modules/k3.wide.v.spv ]
# Every constant of the table is in the manifest, under its name and in its order.
sed -n 's/^ *X(\([0-9]*\), \([a-z0-9_]*\),.*/\2/p' "$source/shaders/interface.h" >names
holds 'interface.h has constants' [ -s names ]
awk '/"constants": {/ { inside = 1; next } /}/ && inside { exit }
    inside { split($1, part, "\""); print part[2] }' modules/manifest.json >constants
holds 'the constants of a module are the size of a workgroup and those of the table' \
    sh -c '{ echo workgroup_size && cat names; } | cmp - constants'
rm -r modules

# Several files, one of them a stream; tables for a model.
printf '{"name": "b", "angles": "computed", %s}' "$q" >two.json
printf '{"name": "c", "angles": "direct_buffer", %s}' "$q" >three.json
model_with '"rope_theta": 10000.0' >model.json
works sh -c '"$1" spirv --info two.json --info - --out modules --model model.json \
    --max-position 100 <three.json' sh "$vkrope"
named_files
holds 'a table of 100 rows of 32 pairs' [ "$(wc -c <modules/c.angles.bin)" = 25600 ]
holds 'constants of computed angles' [ "$(wc -c <modules/b.angles.bin)" = 288 ]
rm -r modules

# What is wrong is named, and leaves nothing.
touch one.json
from() { "$vkrope" spirv --out modules --info "$@"; }
refuse 2 '--info' "$vkrope" spirv --out modules
refuse 2 '--out' "$vkrope" spirv --info two.json
refuse 5 '--info:*none.json' from none.json
for text in x '[]' '[1]' '{}' '{"name": "../one"}' '{"name": 7}'; do
    printf '%s' "$text" >bad.json
    refuse 5 '--info:*bad.json' from bad.json
done
refuse 2 "'c'" from three.json --info three.json
# An unknown field, a wrong word, numbers of a wrong kind or beyond their limits, and a field of
# a list and of another field.
refuse 5 'q.head_width' spirv '"q": {"head_width": 1}'
refuse 5 'pairing*"odd"' spirv '"pairing": "odd"'
refuse 5 'rotary_dim*-2*4294967295' spirv '"rotary_dim": -2'
refuse 5 'rotary_dim*4294967296' spirv '"rotary_dim": 4294967296'
refuse 5 'scatter_k*1' spirv '"scatter_k": 1'
refuse 5 'windows*[[]0,0,0,0,0]*4' spirv '"windows": [0,0,0,0,0]'
refuse 5 'windows?0?*0' spirv '"windows": [0]'
refuse 5 'sections.pairs?1?*1.5' spirv '"sections": {"pairs": [1, 1.5]}'
refuse 5 'q_finish.norm.eps*"0"' spirv '"q_finish": {"norm": {"eps": "0"}}'
refuse 2 "--info:*'one'*rotary_dim*65" spirv '"rotary_dim": 65, "q": {"head_dim": 128}'
refuse 2 'channel_angles' spirv "$q, \"angles\": \"computed\", \"channel_angles\": true"
refuse 2 '--max-position' spirv "$q" --model model.json
refuse 2 '--model' spirv "$q" --max-position 5
refuse 2 "'one'*rotary_dim*64*32" \
    spirv '"rotary_dim": 32, "q": {"head_dim": 64}' --model model.json --max-position 5
mkdir modules
cp three.json modules/manifest.json
expect 2 '--out:*modules/manifest.json*--info' from modules/manifest.json
holds 'the file of --info stays' cmp -s three.json modules/manifest.json
rm -r modules
: >file
refuse 5 '--out:*file' "$vkrope" spirv --info three.json --out file
finish
