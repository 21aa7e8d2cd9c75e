#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests `vkrope check` on outputs of `vkrope rotate` on lavapipe: every option and file affects the
# verdict. mistakes.sh and, without files, judge_*_test.cpp test which mistakes are named.
# shellcheck disable=SC2317 # functions called indirectly
. "$(dirname "$0")/check.sh"

yarn='"rope_theta": 500000.0, "rope_scaling": {"rope_type": "yarn", "factor": 8.0,'
model_with "$yarn \"original_max_position_embeddings\": 256}" >yarn.json
cp yarn.json model.json
works "$vkrope" make-input --shape 2,9,4,64 --seed 1 --out q.npy
works "$vkrope" make-input --shape 2,9,2,64 --seed 2 --out k.npy
int32 0 0 0 0 | npy '<i4' '(4,)' >ids.npy
check() { "$vkrope" check --model model.json "$@"; }

# Errors that need no output to compare.
refuse 2 '--q*--k' check
refuse 2 '--actual*--q' check --q q.npy
refuse 2 '--k*--actual-k' check --q q.npy --actual q.npy --actual-k k.npy
refuse 2 '--model' "$vkrope" check --q q.npy --actual q.npy
refuse 2 '--positions' check --q q.npy --actual q.npy --positions ids.npy --first-position 3
refuse 5 '--actual:*missing.npy' check --q q.npy --actual missing.npy
refuse 5 '--actual:*k.npy*(2, 9, 2, 64)*q.npy*(2, 9, 4, 64)' check --q q.npy --actual k.npy
refuse 5 '--actual:*ids.npy*<i4' check --q q.npy --actual ids.npy
refuse 5 '--positions:*ids.npy*(4,)*(9,)*(2, 9)' \
    check --q q.npy --actual q.npy --positions ids.npy
refuse 5 '--model:*missing.json' "$vkrope" check --model missing.json --q q.npy --actual q.npy
for tolerance in 0 1 nan x ''; do
    refuse 2 '--tolerance' check --q q.npy --actual q.npy --tolerance "$tolerance"
done

# firsts: prints the first match of every list once, from the JSON on the last command's stdout.
firsts() {
    awk -F '"' '/"matches": \[/ { first = 1 } /"mistake":/ && first { print $4; first = 0 }' \
        "$logs/out" |
        sort -u | tr '\n' ' '
}
# verdicts: prints the verdicts in that JSON, each once.
verdicts() { sed -n 's/^ *"verdict": "\(.*\)",*$/\1/p' "$logs/out" | sort -u | tr '\n' ' '; }

# An output that was not rotated is detected. This check needs no device.
no_driver
expect 1 '--actual: ' check --q q.npy --actual q.npy --first-position 7 --json
holds 'the verdict' [ "$(verdicts)" = 'mistake ' ]
holds 'the mistake' [ "$(firsts)" = 'not_rotated ' ]
# Empty tensors are right.
works "$vkrope" make-input --shape 1,0,4,64 --seed 1 --out empty.npy
works check --q empty.npy --actual empty.npy

need_lavapipe
# rotated ARGUMENT...: rotates like an engine and writes q_out.npy and k_out.npy.
rotated() { works "$vkrope" rotate --model model.json --q q.npy --k k.npy --out-q q_out.npy \
    --out-k k_out.npy "$@"; }
# judged VERDICT MISTAKE ARGUMENT...: the verdict for both Q and K; "" is any mistake.
judged() {
    verdict=$1
    mistake=$2
    shift 2
    expect "$([ "$verdict" = pass ] && echo 0 || echo 1)" '' \
        check --q q.npy --k k.npy --actual q_out.npy --actual-k k_out.npy --json "$@"
    holds "the verdict is $verdict: $*" [ "$(verdicts)" = "$verdict " ]
    [ -z "$mistake" ] || holds "$mistake is first, not $(firsts): $*" [ "$(firsts)" = "$mistake " ]
}

rotated --first-position 7
judged pass '' --first-position 7
holds 'no matches of what is right' [ "$(grep -c '"mistake":' "$logs/out")" = 0 ]
# shellcheck disable=SC2046 # numbers
holds 'error within the bound' below 6 $(number max_error_u | head -n 1)
judged mistake swapped_pairing --first-position 7 --pairing interleaved
judged mistake attention_factor_applied --first-position 7 --gain omit
rotated --first-position 7 --inverse --pairing interleaved --gain omit
judged pass '' --first-position 7 --inverse --pairing interleaved --gain omit
judged mistake 'swapped_pairing + attention_factor_missing + inverse_direction + position_offset' \
    --first-position 2007
holds 'the offset' says '"meaning": *2000 too small'
# Random outputs: no match, but what was measured of each tensor.
works "$vkrope" make-input --shape 2,9,4,64 --seed 8 --out q_out.npy
works "$vkrope" make-input --shape 2,9,2,64 --seed 9 --out k_out.npy
judged unexplained '' --first-position 7
holds 'nothing explains them' [ "$(grep -c '"mistake":' "$logs/out")" = 0 ]
holds 'what was measured' [ "$(grep -c '"findings": \[$' "$logs/out")" = 2 ]

# A scaling with factor 1 is no scaling, whatever its name. The model comes through a pipe, and each
# of its RoPEs is read.
printf '{"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64,
 "rope_scaling": {"type": "dynamic", "factor": 2.0}}' >model.json
rotated --first-position 200 --seq-len 64
mkfifo pipe
cat model.json >pipe &
piped_check() { "$vkrope" check --model - --q q.npy --actual q_out.npy --first-position 200 \
    --seq-len 256 --json <pipe; }
expect 1 '' piped_check
holds 'the length of the sequence' [ "$(firsts)" = 'scaling_ignored ' ]
# The RoPE of other layers.
printf '{"model_type": "gemma3_text", "hidden_size": 256, "num_attention_heads": 4,
 "num_key_value_heads": 2, "head_dim": 64, "num_hidden_layers": 12, "rope_theta": 1000000.0,
 "rope_local_base_freq": 10000.0, "sliding_window": 512,
 "max_position_embeddings": 32768, "sliding_window_pattern": 6}' >model.json
rotated --first-position 7 --layer-type sliding_attention
judged mistake other_layer_type --first-position 7 --layer-type full_attention

# Layers of any type that the file has, also selected by number.
compressed='"model_type": "deepseek_v4", "head_dim": 64, "qk_rope_head_dim": 16,
 "num_attention_heads": 4, "num_hidden_layers": 4, "compress_ratios": [0, 0, 4, 128],
 "rope_theta": 10000, "compress_rope_theta": 160000, "max_position_embeddings": 65536'
printf '{%s}' "$compressed" >model.json
works "$vkrope" rotate --model model.json --q q.npy --out-q q_out.npy --first-position 7 --layer 3
of_layer() { check --q q.npy --actual q_out.npy --first-position 7 --json "$@"; }
expect 1 '' of_layer --layer 1
holds 'the layers of another type' [ "$(firsts)" = 'other_layer_type ' ]
works of_layer --layer 2
# Layers without RoPE: one that was rotated, and one that was not.
model_with '"num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0]' | sed 's/"llama"/"smollm3"/' \
    >model.json
works "$vkrope" rotate --model model.json --q q.npy --out-q q_out.npy --first-position 7 --layer 2
expect 1 'no rotary position embedding' of_layer --layer 3
holds 'a layer that should not be rotated' [ "$(firsts)" = 'rotated_without_rope ' ]
sed 's/{/{"rope_theta": 10000.0, /' model.json >usual.json
works "$vkrope" rotate --model usual.json --q q.npy --out-q q_out.npy --first-position 7 --layer 2
expect 1 'no rotary position embedding' of_layer --layer 3
holds 'nor with the usual base' [ "$(firsts)" = 'rotated_without_rope ' ]
works "$vkrope" rotate --model model.json --q q.npy --out-q q_out.npy --first-position 7 --layer 3 \
    --verify
holds 'its output is its input' cmp q.npy q_out.npy
works of_layer --layer 3
expect 1 '' of_layer --layer 2
holds 'a layer that should be rotated' [ "$(firsts)" = 'positions_zero ' ]
refuse 2 '--inverse: *no rotary' "$vkrope" rotate --model model.json --q q.npy --out-q x.npy \
    --layer 3 --inverse
# The range of YaRN's pairs, rounded or not.
for truncate in true false; do
    model_with '"rope_theta": 150000, "rope_scaling": {"rope_type": "yarn", "factor": 32.0,
 "original_max_position_embeddings": 256, "truncate": '$truncate'}' >"$truncate.json"
done
for pair in 'true false yarn_range_rounded' 'false true yarn_range_unrounded'; do
    # shellcheck disable=SC2086 # words
    set -- $pair
    cp "$1.json" model.json
    works "$vkrope" rotate --model model.json --q q.npy --out-q q_out.npy --first-position 700
    cp "$2.json" model.json
    expect 1 '' check --q q.npy --actual q_out.npy --first-position 700 --json
    holds "$3" [ "$(firsts)" = "$3 " ]
done

# Latent attention: Q and K each have the head_dim of their file.
cp q.npy q_head.npy && cp k.npy k_head.npy
cp "$models/deepseek-v2-lite.json" model.json
works "$vkrope" make-input --shape 2,9,16,192 --seed 1 --out q.npy
works "$vkrope" make-input --shape 2,9,1,576 --seed 2 --out k.npy
rotated --first-position 7
judged pass '' --first-position 7
works "$vkrope" make-input --shape 2,9,1,100 --seed 2 --out k.npy
refuse 5 '--k:*k.npy*(2, 9, 1, 100)*576*192*64' \
    check --q q.npy --k k.npy --actual q_out.npy --actual-k k_out.npy
mv q_head.npy q.npy && mv k_head.npy k.npy

# Positions on three axes, [axes, batch, tokens].
sections() {
    printf '{"model_type": "qwen2_vl", "hidden_size": 256, "num_attention_heads": 4,
 "num_key_value_heads": 2, "head_dim": 64, "rope_theta": 1000000.0,
 "max_position_embeddings": 32768, "rope_scaling": {"rope_type": "default",
 "mrope_section": [8, 12, 12]}, "vision_config": {"depth": 2, "embed_dim": 256, "num_heads": 4,
 "hidden_size": 256}}'
}
sections >model.json
works "$vkrope" make-input --shape 2,3,4,64 --seed 1 --out q.npy
works "$vkrope" make-input --shape 2,3,2,64 --seed 2 --out k.npy
frame='0 1 2 7 8 9' height='0 5 6 70 4 40' width='3 0 1000 2 131071 6'
# shellcheck disable=SC2086 # numbers
{
    int32 $frame $height $width | npy '<i4' '(3, 2, 3)' >axes.npy
    int32 $frame $width $height | npy '<i4' '(3, 2, 3)' >exchanged.npy
    int32 $frame | npy '<i4' '(2, 3)' >frame.npy
    int32 $height $width | npy '<i4' '(2, 2, 3)' >image.npy
}
rotated --positions axes.npy
judged pass '' --positions axes.npy
judged mistake height_and_width_exchanged --positions exchanged.npy
rotated --positions frame.npy
judged mistake sections_ignored --positions axes.npy
works check --q q.npy --actual q_out.npy --positions frame.npy
holds 'what such positions cannot show is said' says '*sections_ignored*height_and_width_exchanged'
refuse 5 '--positions:*(3, 2, 3)*3' \
    "$vkrope" check --model yarn.json --q q.npy --actual q_out.npy --positions axes.npy
# A vision tower of Gemma 4, whose axes have separate windows, and V, which the model normalises but
# does not rotate.
sed 's/qwen2_vl/gemma4/; s/"depth": 2/"rope_theta": 10000/' model.json >windows.json
works "$vkrope" frequencies --model windows.json --tower vision --json
holds 'the windows' [ "$(number offset | paste -sd ' ' -)" = '0 32' ]
mv windows.json model.json
rotated --tower vision --positions image.npy
judged pass '' --tower vision --positions image.npy
# shellcheck disable=SC2046 # one number each: 64 times 1.0
int32 $(yes 1065353216 | head -n 64) | npy '<f4' '(64,)' >ones.npy
works "$vkrope" rotate --model model.json --tower vision --positions image.npy --k k.npy --v k.npy \
    --k-norm ones.npy --out-k k_out.npy --out-v v_out.npy
beside_v() {
    check --tower vision --positions image.npy --k k.npy --actual-k k_out.npy --v k.npy \
        --k-norm ones.npy --actual-v "$1"
}
works beside_v v_out.npy
holds 'V is not rotated' says 'V  pass'
expect 1 '--actual-v: ' beside_v k_out.npy
holds 'V was rotated' says 'V  mistake: v_rotated: '
cp yarn.json model.json

# Angles in float32 at far positions: wrong by more than the bound, and close enough if the user
# accepts that. The text report also says what is wrong.
works "$vkrope" make-input --shape 1,37,4,64 --seed 1 --out q.npy
works "$vkrope" make-input --shape 1,37,2,64 --seed 2 --out k.npy
rotated --first-position 30000 --float32-angles --angles direct_buffer
judged mistake float32_angles --first-position 30000
far() { check --q q.npy --actual q_out.npy --first-position 30000 "$@"; }
expect 1 '--actual: ' far
holds 'the mistake in a sentence' says 'Q  mistake: float32_angles: '
holds 'the error' says '   error *e+04 u, * of 9472 values within 6 u'
works far --tolerance 0.01
holds 'the verdict of a tolerance' says 'Q  close: '
expect 1 '--actual: ' far --tolerance 1e-6
refuse 5 '--dtype*f16' far --dtype f16

# A single wrong value: 1 is added to the third byte of a float.
rotated --first-position 30000
tail -c 4096 q_out.npy | od -An -v -t u1 -w1 |
    awk '{ print NR == 3 ? ($1 + 1) % 256 : $1 }' >bytes.txt
{
    head -c "$(($(wc -c <q_out.npy) - 4096))" q_out.npy
    # shellcheck disable=SC2046 # numbers
    byte $(cat bytes.txt)
} >close.npy
alone() { check --q q.npy --actual close.npy --first-position 30000 "$@"; }
expect 1 '' alone --json
holds 'one element' says '"region": "element"'
holds 'close' [ "$(verdicts)" = 'close ' ]
works alone --tolerance 0.1
expect 1 '' alone --tolerance 1e-7 --json
holds 'unexplained' [ "$(verdicts)" = 'unexplained ' ]

# Layouts, and mistakes from confusing them.
works "$vkrope" make-input --shape 2,37,4,64 --dtype f16 --seed 1 --out q.npy
works "$vkrope" rotate --model model.json --q q.npy --out-q q_out.npy --first-position 7 \
    --layout bhsd
works check --q q.npy --actual q_out.npy --first-position 7 --layout bhsd
expect 1 '' check --q q.npy --actual q_out.npy --first-position 7 --json
holds 'heads taken for tokens' [ "$(firsts)" = 'positions_along_heads ' ]

# Wrong values outside the window have no error in u, and the report does not print 0 for it.
model_with '"rope_theta": 500000.0, "partial_rotary_factor": 0.5' >model.json
works "$vkrope" rotate --model model.json --q q.npy --out-q q_out.npy --first-position 7 \
    --rotary-offset 16
expect 1 '' check --q q.npy --actual q_out.npy --first-position 7
holds 'not 0 u' says '   error outside window, '
works check --q q.npy --actual q_out.npy --first-position 7 --rotary-offset 16

# The ops around the rotation.
model() { model_with '"head_dim": 64, "rope_theta": 10000.0'"$2" | sed "s/\"llama\"/\"$1\"/"; }
model llama '' >llama.json
model qwen3 ', "rms_norm_eps": 0.01' >qwen3.json
works "$vkrope" make-input --shape 2,7,4,64 --seed 1 --out q.npy
works "$vkrope" make-input --shape 2,7,2,64 --seed 2 --out k.npy
works "$vkrope" make-input --shape 2,7,2,64 --seed 3 --out v.npy
works "$vkrope" make-input --shape 1,1,1,64 --seed 4 --out made.npy
tail -c 256 made.npy | npy '<f4' '(64,)' >w.npy

# engine ARGUMENT...: makes an engine's output of Q; of_q ARGUMENT...: checks it.
engine() {
    works "$vkrope" rotate --model qwen3.json --q q.npy --out-q y.npy --q-norm w.npy "$@"
}
of_q() { "$vkrope" check --model qwen3.json --q q.npy --actual y.npy --q-norm w.npy "$@"; }
# named MISTAKE COMMAND...: the check fails and names the mistake.
named() {
    mistake=$1
    shift
    expect 1 '--actual' "$@"
    holds "$mistake is named" says "mistake: $mistake: "
}

engine
works of_q --json
holds 'it passes' says '"verdict": "pass"'
engine --norm-place after
named norm_after_rotation of_q
works of_q --norm-place after
engine --norm-eps 1e-20 --first-position 1
works of_q --norm-eps 1e-20 --first-position 1

# A layer without RoPE: norm and scale, but no rotation.
model smollm3 ', "num_hidden_layers": 2, "no_rope_layers": [1, 0]' >nope.json
sed 's/"smollm3"/"llama4_text"/' nope.json >llama4.json
ops='--q-norm w.npy --norm-eps 0.01 --q-scale 0.5 --first-position 9000'
# shellcheck disable=SC2086 # words
rotated_layer() {
    works "$vkrope" rotate --model nope.json --q q.npy --out-q y.npy --layer "$1" --verify $ops
}
# shellcheck disable=SC2086 # words
still() { "$vkrope" check --model nope.json --layer 1 --q q.npy --actual y.npy $ops; }
rotated_layer 1
works still
rotated_layer 0
named rotated_without_rope still
# Llama 4 scales by position in layers that it does not rotate.
tempered() { "$vkrope" "$@" --model llama4.json --q q.npy --layer 1 --clip 100 \
    --first-position 9000; }
works tempered rotate --out-q y.npy --verify
works tempered check --actual y.npy
named scale_missing tempered check --actual q.npy

# V rotated like K, and V unchanged.
works "$vkrope" rotate --model llama.json --k v.npy --out-k turned.npy
works "$vkrope" rotate --model llama.json --k k.npy --out-k y_k.npy
check_v() {
    "$vkrope" check --model llama.json --k k.npy --actual-k y_k.npy --v v.npy --actual-v "$1"
}
named v_rotated check_v turned.npy
works check_v v.npy

# stored ARGUMENT...: stores K like an engine; judge_k ARGUMENT...: checks it.
stored() { works "$vkrope" rotate --model llama.json --k k.npy --out-k codes.npy "$@"; }
judge_k() { "$vkrope" check --model llama.json --k k.npy --actual-k codes.npy "$@"; }
stored --store q4_0 --hadamard 64
works judge_k --store q4_0 --hadamard 64
named hadamard_of_64 judge_k --store q4_0
refuse 5 '--actual-k:*codes.npy*q8_0' judge_k --store q8_0
stored --store int8 --store-scale row --out-k-scales scales.npy --layout bhsd
works judge_k --store int8 --store-scale row --actual-k-scales scales.npy --layout bhsd
refuse 5 '--actual-k-scales:*k.npy*(2, 7, 2, 64)*(2, 7, 2)' \
    judge_k --store int8 --store-scale row --actual-k-scales k.npy
refuse 2 '--actual-k-scales:' judge_k --store int8 --store-scale row
expect 1 '--actual-k: 0 of 1792 codes and [1-9]* of 28 scales *: batch 0 token 0 head 0 scale: ' \
    judge_k --store int8 --store-scale row_power_of_two --actual-k-scales scales.npy --layout bhsd
stored --store e4m3fn --store-scale row_power_of_two --out-k-scales scales.npy --layout bhsd
works judge_k --store e4m3fn --store-scale row_power_of_two --actual-k-scales scales.npy \
    --layout bhsd
refuse 5 '--actual-k:*y_k.npy*f32*f16' "$vkrope" check --model llama.json --k k.npy \
    --actual-k y_k.npy --store f16
finish
