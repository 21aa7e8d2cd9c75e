#!/bin/sh
# SPDX-License-Identifier: MIT
# `vkrope explain`: text, JSON and picture of known models.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"
no_driver
explain() { "$vkrope" explain "$@"; }
# says TEXT: on the last command's stdout, whatever its line breaks.
says() { holds "it says '$1'" sh -c 'tr -s " \n" "  " <"$1" | grep -qF -e "$2"' sh "$logs/out" \
    "$1"; }

works explain --model "$models/llama-3.1-8b.json"
says 'rope type llama3'
says 'all 128 channels of a head'
says 'channel j pairs with channel j + 64'
says 'base 500000; 64 pairs'
says 'pairs 0 to 28 unchanged'
says 'pairs 35 to 63 8 times slower'
says '131072 positions: 39 pairs complete a turn in them, 25 never (pairs 39 to 63)'
says 'attention factor 1:'
holds 'a line for each pair' [ "$(grep -cE '^ +[0-9]+  [0-9]+, [0-9]+ ' "$logs/out")" = 64 ]

works explain --model "$models/qwen2.5-7b.yarn.json"
says 'so their dot product gets the square, 1.29'
works explain --model "$models/deepseek-v2-lite.json"
says 'channels 128 to 191 of a query row, channels 512 to 575 of a key row'
says 'a tensor that holds these 64 alone turns whole'
says 'softmax scale 1.58963: multiply the scale of your softmax'
says 'warnings kv_lora_rank is missing'
works explain --model "$models/gpt-j-6b.json"
says 'channels 0 to 63 of 256; the others pass through'
says 'channel 2j pairs with channel 2j + 1'
says 'scaling none'
works explain --model "$models/gpt-j-6b.json" --pairing half_split
says 'channel j pairs with channel j + 32'
printf '{"_class_name": "LTX2VideoTransformer3DModel", "rope_type": "split"}' >ltx2.json
works explain --model ltx2.json --svg ltx2.svg
says '3 a token: each pair turns by the sum over the axes of position times frequency'
says 'head groups 32: the heads of Q, and those of K'
says 'position 0 is turned by -'
says 'one line in'
holds 'a grid of two axes' grep -q '>A grid: axis 1 down, axis 2 across<' ltx2.svg
holds 'a pair of a head group' grep -q '>group 31, pair 63, axis 2<' ltx2.svg
works explain --model "$models/qwen3-vl-4b.json"
says '3 a token (interleaved sections): axis 0 turns 24 pairs, axis 1 turns 20 pairs, axis 2 turns 20 pairs'
holds 'the axis of a clock' sh -c \
    '"$1" explain --model "$2" --svg axes.svg >/dev/null && grep -q ">pair 0, axis 0<" axes.svg' \
    sh "$vkrope" "$models/qwen3-vl-4b.json"
works explain --model "$models/phi-4-mini.json" --seq-len 131072
says 'times slower'
says '131072 positions: '
# Frequencies of the short list serve no more than the length that it was made for.
works explain --model "$models/phi-4-mini.json" --json
holds 'the length that is served' [ "$(number turns_within)" = 4096.0 ]
holds 'and that of the model' [ "$(number length)" = 131072 ]
works explain --model "$models/phi-4-mini.json" --svg served.svg
says '4096 positions, the longest sequence for these frequencies (longer ones: --seq-len): '
holds 'in the picture' grep -q 'longest sequence for these frequencies, 4096' served.svg
model_with '"rope_theta": 10000.0, "head_dim": 256' >wide.json
works explain --model wide.json
says 'one pair in 4 is shown; --all shows every one of the 128'
works explain --model wide.json --all
holds 'all pairs' [ "$(grep -cE '^ +[0-9]+  [0-9]+, [0-9]+ ' "$logs/out")" = 128 ]
sed 's/"max_position_embeddings": 2048, //' wide.json >endless.json
works explain --model endless.json
says 'unknown; within 4096 positions'
printf '{"model_type": "cohere2", "hidden_size": 256, "num_attention_heads": 4,
 "num_hidden_layers": 4, "sliding_window_pattern": 4,
 "rope_theta": 50000}' >without.json
works explain --model without.json --layer 3
says 'this layer has no rotary position embedding'
refuse 2 '--svg: this layer has no rotary position embedding' "$vkrope" explain \
    --model without.json --layer 3 --svg none.svg

# Lines fit, and neither colour nor a place in time is in them.
# Layers of one kind in Granite SWA have different bases.
# shellcheck disable=SC2086 # $layer is two words or none
for model in "$models"/*.json; do
    layer=
    case $model in */granite-swa.json) layer='--layer 1' ;; esac
    works explain --model "$model" $layer --all
    holds "at most 120 columns: $model" awk 'length > 120 { exit 1 }' "$logs/out"
    holds 'no colour' sh -c '! grep -q "$(printf "\\033")" "$1"' sh "$logs/out"
    cp "$logs/out" first.txt
    works explain --model "$model" $layer --all
    holds 'the same text again' cmp -s first.txt "$logs/out"
    works explain --model "$model" $layer --svg picture.svg
    holds 'an svg element begins' sh -c 'head -n 2 picture.svg | grep -q "^<svg xmlns"'
    holds 'and ends' sh -c 'tail -n 1 picture.svg | grep -qx "</svg>"'
    holds 'no script, no link, no number that is none' \
        sh -c '! grep -qiE "script|href|url\(|nan|inf[^o]" picture.svg'
    mv picture.svg first.svg
    works explain --model "$model" $layer --svg picture.svg
    holds 'the same picture again' cmp -s first.svg picture.svg
    if command -v xmllint >/dev/null; then
        holds "well-formed: $model" xmllint --noout picture.svg
    fi
done

works explain --model "$models/llama-3.1-8b.json" --json
for key in rope_type base length attention_factor q_dot_k_factor softmax_scale pairs \
    pairs_without_a_turn warnings; do
    holds "the key $key" grep -q "^  \"$key\": " "$logs/out"
done
holds 'base' [ "$(number base)" = 500000.0 ]
holds 'all pairs' [ "$(number turns | wc -l)" = 64 ]
holds 'slowest 8 times' [ "$(number slower_by | tail -n 1)" = 8.0 ]

cp "$models/llama-3.1-8b.json" model.json
refuse 2 "is the file of --model" "$vkrope" explain --model model.json --svg model.json
refuse 2 '--svg: the path is empty' "$vkrope" explain --model model.json --svg ''
refuse 5 "--svg: 'missing/p.svg' cannot be written" "$vkrope" explain --model model.json \
    --svg missing/p.svg
refuse 5 "cannot be read" "$vkrope" explain --model missing.json
refuse 2 '--model is required' "$vkrope" explain
finish
