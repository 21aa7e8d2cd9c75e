#!/bin/sh
# SPDX-License-Identifier: MIT
# `vkrope spirv`: valid modules and a manifest that names them, for every field of KernelInfo, and
# every wrong input refused by an error that names the field. It needs no device: the modules come
# from one that exists on paper.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"
no_driver
source=$models/../../..

q='"rotary_dim": 64, "q": {"head_dim": 64, "in": "f16"}'
# spirv FIELDS [OPTION...]: of one kernel "one" with these fields.
spirv() {
    printf '{"name": "one", %s}' "$1" >one.json
    shift
    "$vkrope" spirv --info one.json --out modules "$@"
}
# modules COUNT: checks that there are COUNT modules, each named by the manifest, each valid.
modules() {
    holds "$1 modules" [ "$(find modules -name '*.spv' | wc -l)" = "$1" ]
    for module in modules/*.spv; do
        name=${module#modules/}
        holds "the manifest names $name" grep -qF "\"file\": \"$name\"" modules/manifest.json
        ! have spirv-val || holds "$name is valid" spirv-val --target-env vulkan1.1 "$module"
    done
    rm -r modules
}
have() { command -v "$1" >/dev/null; }

works spirv "$q"
holds 'access in the names' [ -e modules/one.wide.few_tokens.spv ]
for words in '"format": "vkrope-spirv/1"' '"bytes": 128' '"entry_point": "main"' \
    '"name": "q_in"' '"tokens_per_group": ' '"workgroup_size": ' '"q_head_dim": 64'; do
    holds "the manifest has $words" grep -qF "$words" modules/manifest.json
done
modules 6
# Every constant of the table is in the manifest, under its name and in its order.
works spirv "$q"
sed -n 's/^ *X(\([0-9]*\), \([a-z0-9_]*\),.*/\2/p' "$source/shaders/interface.h" >names
holds 'interface.h has constants' [ "$(wc -l <names)" -gt 100 ]
sed -n '/"constants": {/,/}/p' modules/manifest.json |
    sed -n 's/^ *"\([a-z0-9_]*\)": [0-9].*/\1/p' |
    head -n "$(($(wc -l <names) + 1))" | tail -n +2 >named
holds 'the constants of a module are those of the table' cmp names named
rm -r modules

works spirv "$q, \"mapping\": \"cpu\""
modules 3
works spirv "$q,
    \"k\": {\"head_dim\": 64, \"in\": \"f32\", \"out\": \"q8_0\", \"rotary_offset\": 0},
    \"v\": {\"head_dim\": 64, \"out\": \"bf16\"}, \"pairing\": \"interleaved\",
    \"pairing_out\": \"half_split\", \"angles\": \"factored_texture\", \"positions\": \"ids\",
    \"scatter_k\": true, \"q_heads\": 8, \"k_heads\": 2, \"v_heads\": 2"
holds 'V has modules of its own' [ -e modules/one.wide.v.spv ]
rm -r modules
works spirv "\"rotary_dim\": 64, \"q\": {\"head_dim\": 80}, \"positions\": \"axis_ids\",
    \"windows\": [{\"offset\": 0, \"rotary_dim\": 32}, {\"offset\": 32, \"rotary_dim\": 32}],
    \"sections\": {\"order\": \"sequential\", \"axes\": 2, \"pairs\": [16, 16]},
    \"angles\": \"cos_sin_cache\", \"table\": \"bf16\""
rm -r modules
works spirv "$q, \"angles\": \"computed\", \"phase\": true, \"head_groups\": 4"
rm -r modules
works spirv "$q, \"angles\": \"cos_sin_cache\", \"channel_angles\": true"
rm -r modules
refuse 2 'channel_angles is true: angles must be cos_sin_cache' spirv \
    "$q, \"angles\": \"computed\", \"channel_angles\": true"
works spirv "$q, \"q_heads\": 4, \"q_finish\": {\"bias\": \"channel\", \"norm\": {\"kind\": \"rms\",
    \"span\": \"head\", \"place\": \"before\", \"eps\": 1e-6, \"weight\": \"channel\",
    \"weight_offset\": 1, \"round_between\": true}, \"clip\": 8, \"scale\": 0.125,
    \"scale_call\": true, \"scale_tokens\": true, \"hadamard\": 64}"
holds 'parameters are bound' grep -q '"name": "parameters"' modules/manifest.json
rm -r modules

# Several kernels, from several files; tables for a model.
printf '[{"name": "a", %s}, {"name": "b", "angles": "computed", %s}]' "$q" "$q" >two.json
printf '{"name": "c", "angles": "direct_buffer", %s}' "$q" >three.json
model_with '"rope_theta": 10000.0' >model.json
works "$vkrope" spirv --info two.json --info three.json --out modules --model model.json \
    --max-position 100
holds 'a table of 100 rows of 32 pairs' [ "$(wc -c <modules/c.angles.bin)" = 25600 ]
holds 'constants of computed angles' [ "$(wc -c <modules/b.angles.bin)" = 288 ]
modules 18
works sh -c '"$1" spirv --info - --out modules <three.json' sh "$vkrope"
rm -r modules

# What is wrong is named, and leaves nothing.
refuse 2 '--info is required' "$vkrope" spirv --out modules
refuse 2 '--out is required' "$vkrope" spirv --info two.json
refuse 5 "--info: 'none.json': cannot be read" "$vkrope" spirv --info none.json --out modules
printf 'x' >bad.json
refuse 5 "--info: 'bad.json' is not JSON" "$vkrope" spirv --info bad.json --out modules
printf '[]' >bad.json
refuse 5 "--info: 'bad.json' is an empty array" "$vkrope" spirv --info bad.json --out modules
printf '[1]' >bad.json
refuse 5 "[0] is 1; it must be an object" "$vkrope" spirv --info bad.json --out modules
printf '{%s}' "$q" >bad.json
refuse 5 'name is null; it must be the name of the files' "$vkrope" spirv --info bad.json \
    --out modules
for name in '""' '"../one"' '".x"' '"a b"' 7; do
    printf '{"name": %s, %s}' "$name" "$q" >bad.json
    refuse 5 "name is $name; it must be a file name" "$vkrope" spirv --info bad.json --out modules
done
refuse 2 "two kernels have the name 'c'" "$vkrope" spirv --info three.json --info three.json \
    --out modules
refuse 5 'q.head_width is not a field of KernelInfo' spirv '"q": {"head_width": 1}'
refuse 5 'pairing is "odd"; it must be half_split|interleaved' spirv '"pairing": "odd"'
refuse 5 'rotary_dim is -2; it must be an integer from 0 to 4294967295' spirv '"rotary_dim": -2'
refuse 5 'rotary_dim is 4294967296; it must be' spirv '"rotary_dim": 4294967296'
refuse 5 'scatter_k is 1; it must be true or false' spirv '"scatter_k": 1'
refuse 5 'windows is [0,0,0,0,0]; it must be an array of at most 4' spirv '"windows": [0,0,0,0,0]'
refuse 5 'windows[0] is 0; it must be an object' spirv '"windows": [0]'
refuse 5 'sections.pairs[1] is 1.5; it must be' spirv '"sections": {"pairs": [1, 1.5]}'
refuse 5 'q_finish.norm.eps is "0"; it must be a number' spirv '"q_finish": {"norm": {"eps": "0"}}'
refuse 2 "--info: kernel 'one': rotary_dim is 65" spirv '"rotary_dim": 65, "q": {"head_dim": 128}'
refuse 2 '--max-position' spirv "$q" --model model.json
refuse 2 '--model' spirv "$q" --max-position 5
refuse 2 "kernel 'one': the model: rotary_dim is 64 and the kernel has 32" \
    spirv '"rotary_dim": 32, "q": {"head_dim": 64}' --model model.json --max-position 5
mkdir modules
cp three.json modules/manifest.json
expect 2 "--out: 'modules/manifest.json' is the file of --info" "$vkrope" spirv \
    --info modules/manifest.json --out modules
holds 'the file of --info stays' cmp -s three.json modules/manifest.json
rm -r modules
: >file
refuse 5 "--out: 'file'" "$vkrope" spirv --info three.json --out file

finish
