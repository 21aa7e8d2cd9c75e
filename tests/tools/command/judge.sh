#!/bin/sh
# SPDX-License-Identifier: MIT
# `vkrope check` on outputs of `vkrope rotate` on lavapipe, whose options plant the mistakes. The
# judging itself needs no device.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"

model_with '"rope_theta": 500000.0, "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 256}' \
    >model.json
works "$vkrope" make-input --shape 2,37,4,64 --seed 1 --out q.npy
works "$vkrope" make-input --shape 2,37,2,64 --seed 2 --out k.npy
int32 0 0 0 0 | npy '<i4' '(4,)' >ids.npy
check() { "$vkrope" check --model model.json "$@"; }

# What can be refused without an output to judge.
refuse 2 '--q and --k are missing' check
refuse 2 '--actual is missing; --q needs it' check --q q.npy
refuse 2 '--k is missing; --actual-k needs it' check --q q.npy --actual q.npy --actual-k k.npy
refuse 2 '--model is required' "$vkrope" check --q q.npy --actual q.npy
refuse 2 'excludes' check --q q.npy --actual q.npy --positions ids.npy --first-position 3
refuse 5 "--actual: 'missing.npy': cannot be read" check --q q.npy --actual missing.npy
refuse 5 "--actual: 'k.npy' has shape (2, 37, 2, 64); --q 'q.npy' has (2, 37, 4, 64)" check \
    --q q.npy --actual k.npy
refuse 5 "--positions: 'ids.npy' has shape (4,); the tensors need (37,) or (2, 37)" \
    check --q q.npy --actual q.npy --positions ids.npy
refuse 5 "--actual: 'ids.npy' has data of type <i4" check --q q.npy --actual ids.npy
refuse 5 "--model: 'missing.json' cannot be read" "$vkrope" check --model missing.json --q q.npy \
    --actual q.npy
for tolerance in 0 1 -0.1 nan x ''; do
    refuse 2 '--tolerance' check --q q.npy --actual q.npy --tolerance "$tolerance"
done

# Nothing was rotated: found without any device.
no_driver
expect 1 '--actual: a value is too far from the exact one: ' check --q q.npy --actual q.npy \
    --first-position 7 --json
holds 'the verdict' grep -q '^  "verdict": "mistake"' "$logs/out"
holds 'not_rotated is first' [ \
    "$(sed -n 's/.*"mistake": "\(.*\)",*$/\1/p' "$logs/out" | head -n 1)" = not_rotated ]
# Empty tensors are right.
works "$vkrope" make-input --shape 1,0,4,64 --seed 1 --out empty.npy
works check --q empty.npy --actual empty.npy

need_lavapipe
# rotated ARGUMENT...: what the engine makes, q_out.npy and k_out.npy.
rotated() { works "$vkrope" rotate --model model.json --q q.npy --k k.npy --out-q q_out.npy \
    --out-k k_out.npy "$@"; }
# judged VERDICT MISTAKE ARGUMENT...: Q and K both; "" is any mistake.
judged() {
    verdict=$1
    mistake=$2
    shift 2
    expect "$([ "$verdict" = pass ] && echo 0 || echo 1)" '' \
        check --q q.npy --k k.npy --actual q_out.npy --actual-k k_out.npy --json "$@"
    holds "the verdict is $verdict: $*" [ "$(grep -c "^ *\"verdict\": \"$verdict\"" "$logs/out")" \
        = 3 ]
    [ -z "$mistake" ] || holds "$mistake is first, not $(firsts): $*" [ "$(firsts)" = "$mistake " ]
}
# The first match of every list, each once.
firsts() {
    awk -F '"' '/"matches": \[/ { first = 1 } /"mistake":/ && first { print $4; first = 0 }' \
        "$logs/out" |
        sort -u | tr '\n' ' '
}

rotated --first-position 7
judged pass '' --first-position 7
# shellcheck disable=SC2046 # numbers
holds 'error within the bound' below 6 $(number max_error_u | head -n 1)
judged mistake position_plus_one --first-position 6
judged mistake position_minus_one --first-position 8
judged mistake swapped_pairing --first-position 7 --pairing interleaved
judged mistake inverse_direction --first-position 7 --inverse
judged mistake attention_factor_applied --first-position 7 --gain omit
int32 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 \
    39 40 41 42 43 \
    107 108 109 110 111 112 113 114 115 116 117 118 119 120 121 122 123 124 125 126 127 128 129 \
    130 131 132 133 134 135 136 137 \
    138 139 140 141 142 143 | npy '<i4' '(2, 37)' >each.npy
judged mistake positions_of_first_sequence --positions each.npy
rotated --first-position 0
judged mistake positions_from_zero --first-position 7
rotated --first-position 7 --gain omit
judged mistake attention_factor_missing --first-position 7
judged pass '' --first-position 7 --gain omit
rotated --first-position 7 --gain divide_out
judged mistake attention_factor_divided --first-position 7
judged pass '' --first-position 7 --gain divide_out
rotated --first-position 7 --inverse --pairing interleaved
judged pass '' --first-position 7 --inverse --pairing interleaved
judged mistake 'swapped_pairing + inverse_direction' --first-position 7
judged unexplained '' --first-position 2007
mv q_out.npy q_once.npy && mv k_out.npy k_once.npy
works "$vkrope" rotate --model model.json --q q_once.npy --k k_once.npy --out-q q_out.npy \
    --out-k k_out.npy --first-position 7 \
    --inverse --pairing interleaved
judged mistake rotated_twice --first-position 7 --inverse --pairing interleaved

# The same weights under another model: no scaling, another base, another window.
model_with '"rope_theta": 500000.0' >unscaled.json
model_with '"rope_theta": 10000.0' >base.json
model_with '"rope_theta": 500000.0, "partial_rotary_factor": 0.5' >partial.json
works "$vkrope" rotate --model unscaled.json --q q.npy --k k.npy --out-q q_out.npy \
    --out-k k_out.npy --first-position 7
judged mistake scaling_ignored --first-position 7
works "$vkrope" rotate --model base.json --q q.npy --k k.npy --out-q q_out.npy --out-k k_out.npy \
    --first-position 7
judged mistake base_10000 --first-position 7
cp model.json yarn.json
sed 's/500000.0/10000.0/; s/"factor": 8.0/"factor": 1.0, "attention_factor": 1.2079441541679836/' \
    yarn.json >model.json
rotated --first-position 7
cp yarn.json model.json
judged mistake base_10000_with_factor --first-position 7
works "$vkrope" rotate --model unscaled.json --q q.npy --k k.npy --out-q q_out.npy \
    --out-k k_out.npy --first-position 7
cp model.json yarn.json && cp partial.json model.json
judged mistake whole_head --first-position 7
rotated --first-position 7 --rotary-offset 32
judged mistake window_at_end --first-position 7
rotated --first-position 7
judged mistake window_at_start --first-position 7 --rotary-offset 32
cp yarn.json model.json

# The RoPE of other layers, and of another length.
printf '{"model_type": "gemma3_text", "hidden_size": 256, "num_attention_heads": 4,
 "num_key_value_heads": 2, "head_dim": 64, "num_hidden_layers": 12, "rope_theta": 1000000.0,
 "rope_local_base_freq": 10000.0, "sliding_window": 512,
 "max_position_embeddings": 32768, "sliding_window_pattern": 6}' >model.json
rotated --first-position 7 --layer-type sliding_attention
judged mistake other_layer_type --first-position 7 --layer-type full_attention
rotated --first-position 7 --layer-type full_attention
judged mistake other_layer_type --first-position 7 --layer-type sliding_attention
cp yarn.json model.json

# A scaling that did not grow: no scaling, by whatever name. The model comes through a pipe, of
# which each of its RoPEs is read.
printf '{"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64,
 "rope_scaling": {"type": "dynamic", "factor": 2.0}}' >model.json
rotated --first-position 200 --seq-len 64
judged mistake scaling_ignored --first-position 200 --seq-len 256
piped_check() { "$vkrope" check --model - --q q.npy --actual q_out.npy --first-position 200 \
    --seq-len 256 <pipe; }
mkfifo pipe
cat model.json >pipe &
expect 1 '' piped_check
holds 'both its names' grep -q \
    '^Q  mistake: scaling_ignored: .*; the RoPE of a sequence no longer than trained' "$logs/out"
cp yarn.json model.json

# Positions on three axes, [axes, batch, tokens]: frame, height and width; and what comes of
# confusing them.
mrope() {
    printf '{"model_type": "%s", "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,\n' "$1"
    printf ' "rope_theta": 1000000.0, "max_position_embeddings": 32768, "rope_scaling": {"rope_type": "default", %s}}\n' "$2"
}
mrope qwen2_vl '"mrope_section": [8, 12, 12]' >sequential.json
mrope qwen3_vl_text '"mrope_section": [8, 12, 12], "mrope_interleaved": true' >interleaved.json
cp q.npy q_long.npy && cp k.npy k_long.npy
works "$vkrope" make-input --shape 2,3,4,64 --seed 1 --out q.npy
works "$vkrope" make-input --shape 2,3,2,64 --seed 2 --out k.npy
frame='0 1 2 7 8 9' height='0 5 6 70 4 40' width='3 0 1000 2 131071 6'
# shellcheck disable=SC2086 # numbers
{
    int32 $frame $height $width | npy '<i4' '(3, 2, 3)' >axes.npy
    int32 $frame $width $height | npy '<i4' '(3, 2, 3)' >exchanged.npy
    int32 $frame | npy '<i4' '(2, 3)' >frame.npy
}
for order in sequential interleaved; do
    cp $order.json model.json
    rotated --positions axes.npy
    judged pass '' --positions axes.npy
    judged mistake height_and_width_exchanged --positions exchanged.npy
    rotated --positions frame.npy
    judged mistake sections_ignored --positions axes.npy
    works check --q q.npy --actual q_out.npy --positions frame.npy
    holds 'blind spots' grep -q \
        'cannot show: .*sections_ignored, sections_in_the_other_order, height_and_width_exchanged' \
        "$logs/out"
done
cp sequential.json model.json
rotated --positions axes.npy
cp interleaved.json model.json
judged mistake sections_in_the_other_order --positions axes.npy
rotated --positions axes.npy
cp sequential.json model.json
judged mistake sections_in_the_other_order --positions axes.npy
refuse 5 'has shape (3, 2, 3), 3 position axes; the model has one position axis' \
    "$vkrope" check --model yarn.json --q q.npy --actual q_out.npy --positions axes.npy
# A vision tower: height and width.
printf '{"model_type": "qwen2_vl", "hidden_size": 256, "num_attention_heads": 4,
 "num_key_value_heads": 2, "head_dim": 64, "rope_theta": 1000000.0,
 "vision_config": {"depth": 2, "embed_dim": 256, "num_heads": 4, "hidden_size": 256}}' >model.json
# shellcheck disable=SC2086 # numbers
int32 $height $width | npy '<i4' '(2, 2, 3)' >image.npy
# shellcheck disable=SC2086 # numbers
int32 $width $height | npy '<i4' '(2, 2, 3)' >turned.npy
rotated --positions image.npy --tower vision
judged pass '' --positions image.npy --tower vision
judged mistake height_and_width_exchanged --positions turned.npy --tower vision
# The same as one of Gemma 4, whose axes have windows of their own.
sed 's/qwen2_vl/gemma4/; s/"depth": 2/"rope_theta": 10000/' model.json >windows.json
works "$vkrope" rotate --model windows.json --tower vision --positions image.npy --verify \
    --q q.npy --out-q windows_out.npy
works "$vkrope" check --model windows.json --tower vision --positions image.npy --q q.npy \
    --actual windows_out.npy
works "$vkrope" rotate --model windows.json --tower vision --positions image.npy --k k.npy \
    --out-k windows_k.npy
beside_v() {
    "$vkrope" check --model windows.json --tower vision --positions image.npy --k k.npy \
        --actual-k windows_k.npy --v k.npy --actual-v "$1"
}
works beside_v k.npy
holds 'V is not rotated' grep -q '^V  pass' "$logs/out"
expect 1 '--actual-v: ' beside_v windows_k.npy
holds 'V was rotated' grep -q '^V  mistake: v_rotated ' "$logs/out"
works "$vkrope" frequencies --model windows.json --tower vision
holds 'frequencies has the windows' grep -qx \
    'windows           32 channels from 0, 32 channels from 32' "$logs/out"
cp windows.json model.json
judged mistake windows_joined --positions image.npy --tower vision
mv q_long.npy q.npy && mv k_long.npy k.npy
cp yarn.json model.json

# Latent attention: Q and K have each their own head_dim, as their files say.
cp "$models/deepseek-v2-lite.json" model.json
cp q.npy q_long.npy && cp k.npy k_long.npy
works "$vkrope" make-input --shape 2,5,16,192 --seed 1 --out q.npy
for k in 64:1 192:16 576:1; do
    works "$vkrope" make-input --shape "2,5,${k#*:},${k%:*}" --seed 2 --out k.npy
    rotated --first-position 7
    judged pass '' --first-position 7
    judged mistake position_plus_one --first-position 6
    judged mistake swapped_pairing --first-position 7 --pairing half_split
done
rotated --first-position 7 --rotary-offset 0
judged mistake window_at_start --first-position 7
works "$vkrope" make-input --shape 2,5,1,100 --seed 2 --out k.npy
refuse 5 "--k: 'k.npy' has shape (2, 5, 1, 100), head_dim 100; the model's head_dim is 576 (a row of the latent cache) or 192 (a" \
    check --q q.npy --k k.npy --actual q_out.npy --actual-k k_out.npy
mv q_long.npy q.npy && mv k_long.npy k.npy
cp yarn.json model.json

# 16 bits, in and out.
for dtype in f16 bf16; do
    works "$vkrope" make-input --shape 2,37,4,64 --seed 1 --dtype $dtype --out q.npy
    works "$vkrope" make-input --shape 2,37,2,64 --seed 2 --dtype $dtype --out k.npy
    rotated --first-position 7
    judged pass '' --first-position 7
    judged mistake position_plus_one --first-position 6
    refuse 5 '--dtype says f32' check --q q.npy --actual q_out.npy --dtype f32
done

# Angles in float32, far out: wrong by more than the bound, and close enough for those who say so.
works "$vkrope" make-input --shape 1,37,4,64 --seed 1 --out q.npy
works "$vkrope" make-input --shape 1,37,2,64 --seed 2 --out k.npy
rotated --first-position 30000 --float32-angles --angles direct_buffer
judged mistake float32_angles --first-position 30000
far() { check --q q.npy --actual q_out.npy --first-position 30000 "$@"; }

# The text. What is not exact but close has a verdict of its own, and is a success only where
# --tolerance says so.
expect 1 'too far from the exact one' far
holds 'the mistake in a sentence' grep -q \
    '^Q  mistake: float32_angles: angles are float32 products' "$logs/out"
holds 'a table, the best first' grep -q '^  float32_angles  *[0-9.]* u  *100.00 %' "$logs/out"
holds 'no colour' sh -c '! grep -q "$(printf "\\033")" "$1"' sh "$logs/out"
works far --tolerance 0.01
holds 'arithmetic that is close is a success where that is asked for' grep -q '^Q  close: ' \
    "$logs/out"
expect 1 'too far from the exact one' far --tolerance 1e-6
holds 'and a mistake where it is not that close' grep -q '^Q  mistake: float32_angles' "$logs/out"
rotated --first-position 30000
works far
holds 'a pass' grep -qx 'Q  pass: all 9472 values are within 6 u' "$logs/out"
# The last bit but ten of one value.
tail -c 4096 q_out.npy | od -An -v -t u1 -w1 |
    awk '{ print NR == 3 ? ($1 + 1) % 256 : $1 }' >bytes.txt
{
    head -c "$(($(wc -c <q_out.npy) - 4096))" q_out.npy
    # shellcheck disable=SC2046 # numbers
    byte $(cat bytes.txt)
} >close.npy
expect 1 'too far from the exact one' check --q q.npy --actual close.npy --first-position 30000
holds 'the one value that is wrong' grep -qE \
    '^   one value alone is wrong: \[batch 0, token 33, head 0, channel 0\]: expected [-.e0-9]+, actual [-.e0-9]+, off by [-+.e0-9]+ u$' \
    "$logs/out"
expect 1 '' check --q q.npy --actual close.npy --first-position 30000 --json
holds 'the same as JSON' grep -q '"region": "element"' "$logs/out"
expect 1 'too far from the exact one' check --q q.npy --actual close.npy --first-position 30000
holds 'close' grep -q '^Q  close: the operation is right, but not exact: it is correct to' "$logs/out"
works check --q q.npy --actual close.npy --first-position 30000 --tolerance 0.1
expect 1 '' check --q q.npy --actual close.npy --first-position 30000 --tolerance 1e-7
holds 'unexplained' grep -q '^Q  unexplained: no known mistake explains the output' "$logs/out"

# Data that could not show a mistake are said to be such.
int32 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 |
    npy '<i4' '(37,)' >zero.npy
rotated --positions zero.npy
works check --q q.npy --actual q_out.npy --positions zero.npy
holds 'blind spots' grep -q 'these files cannot show: swapped_pairing' "$logs/out"

# Layouts, and what comes of confusing them.
for layout in bshd:2,37,4,64 bhsd:2,4,37,64 sbhd:37,2,4,64 thd:37,4,64; do
    works "$vkrope" make-input --shape "${layout#*:}" --seed 1 --out q.npy
    works "$vkrope" rotate --model model.json --q q.npy --out-q q_out.npy --first-position 7 \
        --layout "${layout%:*}"
    works check --q q.npy --actual q_out.npy --first-position 7 --layout "${layout%:*}"
done
works "$vkrope" make-input --shape 2,37,4,64 --seed 1 --out q.npy
works "$vkrope" rotate --model model.json --q q.npy --out-q q_out.npy --first-position 7 \
    --layout bhsd
expect 1 '' check --q q.npy --actual q_out.npy --first-position 7
holds 'heads taken for tokens' grep -q '^Q  mistake: positions_along_heads' "$logs/out"

# What is wrong outside the window has no error in u: a row of the table does not say 0 of it.
cp partial.json model.json
works "$vkrope" rotate --model model.json --q q.npy --out-q q_out.npy --first-position 7 \
    --rotary-offset 16
expect 1 '' check --q q.npy --actual q_out.npy --first-position 7
holds 'not 0 u' sh -c 'grep -q "^  positions_zero  *outside window" "$1"' sh "$logs/out"
cp yarn.json model.json
finish
