#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests `vkrope explain`: numbers of known models as JSON, their pictures, and errors.
# shellcheck disable=SC2317 # functions called indirectly
. "$(dirname "$0")/check.sh"
no_driver
explain() { "$vkrope" explain "$@"; }
# has KEY VALUE: the JSON on the last command's stdout has VALUE for KEY.
has() { holds "$1 is $(number "$1"), not $2" [ "$(number "$1")" = "$2" ]; }

works explain --model "$models/llama-3.1-8b.json" --json
has base 500000.0
has length 131072
has attention_factor 1.0
holds 'all pairs' [ "$(number turns | wc -l)" = 64 ]
holds 'slowest 8 times' [ "$(number slower_by | tail -n 1)" = 8.0 ]
works explain --model "$models/deepseek-v2-lite.json" --json
has q_rotary_offset 128
has k_rotary_offset 512
holds 'a warning' says '*kv_lora_rank'
holds 'the channels of a norm' says '"first_channel": 0,'
holds 'the number of them' says '"channels": 512'
works explain --model "$models/deepseek-v2-lite.json"
holds 'the norm of a latent row' says \
    'K as a row of the latent cache: rms norm of channels 0 to 511 (eps 1e-06, weight), rotation'
works explain --model "$models/gpt-j-6b.json" --pairing half_split --json
holds 'the pairing' says '"pairing": "half_split"'
# Frequencies of the short list are valid only up to the length that they were made for.
works explain --model "$models/phi-4-mini.json" --json
has turns_within 4096.0
has length 131072
works explain --model "$models/phi-4-mini.json" --json --seq-len 131072
has turns_within 131072.0

# Norms: a model has norms, has none, or its norms are not known.
works explain --model "$models/llama-3.1-8b.json"
holds 'no norms' says 'norms of Q and K: none'
works "$vkrope" frequencies --model "$models/llama-3.1-8b.json" --json
holds 'no norm is null' says '"norm": null'
works explain --model "$models/qwen3-vl-4b.json"
holds 'norms' says 'Q: rms norm of each head (eps 1e-06, weight), rotation'
sed 's/"model_type": "llama"/"model_type": "of_mine"/' "$models/llama-3.1-8b.json" >of_mine.json
works explain --model of_mine.json
holds 'norms that are not known' says 'norms of Q and K: not known'
works "$vkrope" frequencies --model of_mine.json --json
holds 'a norm that is not known is not null' says '"norm": "not known"'

# The text lists each pair.
works explain --model "$models/llama-3.1-8b.json" --all
holds 'the last pair' says '63  63, 127'

# Pictures of scaling, sections, a grid with head groups, and a vision tower.
printf '{"_class_name": "LTX2VideoTransformer3DModel", "rope_type": "split"}' >ltx2.json
for model in "$models/llama-3.1-8b.json" "$models/qwen3-vl-4b.json" ltx2.json \
    "$models/gpt-j-6b.json"; do
    works explain --model "$model" --svg picture.svg
    holds "a title: $model" says '<title>?*</title>' picture.svg
    holds "no script, no link: $model" sh -c '! grep -qiE "script|href|url\(" picture.svg'
    ! command -v xmllint >/dev/null || holds "well-formed: $model" xmllint --noout picture.svg
done
# In the last picture, wavelengths without scaling are equal steps on a logarithmic axis.
grep -m 1 '<polyline class="s0"' picture.svg | sed 's/.*points="//; s/".*//' | tr ' ' '\n' >points
holds 'the curve of the wavelengths' awk -F , '
    NR == 2 { x = $1 - last_x; y = $2 - last_y }
    NR > 2 { dx = $1 - last_x - x; dy = $2 - last_y - y
        if (dx * dx > 0.05 || dy * dy > 0.05) exit bad = 1 }
    { last_x = $1; last_y = $2 }
    END { exit bad || NR != 32 || x <= 0 || y >= 0 }' points

cp "$models/llama-3.1-8b.json" model.json
printf '{"model_type": "cohere2", "hidden_size": 256, "num_attention_heads": 4,
 "num_hidden_layers": 4, "sliding_window_pattern": 4,
 "rope_theta": 50000}' >without.json
works explain --model without.json --layer 3
refuse 2 '--svg:' explain --model without.json --layer 3 --svg none.svg
refuse 2 '--svg:*model.json*--model' explain --model model.json --svg model.json
refuse 2 '--svg:' explain --model model.json --svg ''
refuse 5 '--svg:*missing/p.svg' explain --model model.json --svg missing/p.svg
refuse 5 '--model:*missing.json' explain --model missing.json
refuse 2 '--model' explain
finish
