#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests the table of mistakes in the guide (host/guide/mistakes.md): `vkrope rotate` makes each
# mistake with the options or the model file of a faulty engine, and `vkrope check` names it.
# judge_test.cpp and the files next to it test mistakes that no option makes.
# shellcheck disable=SC2317 # functions called indirectly
here=$(cd "$(dirname "$0")" && pwd)
page=$here/../../../host/guide/mistakes.md
. "$here/check.sh"
need_lavapipe

works "$vkrope" make-input --shape 2,9,4,128 --seed 1 --out q.npy
# A weight: 128 times 0.5.
i=0
while [ $((i += 1)) -le 128 ]; do byte 0 0 0 63; done | npy '<f4' '(128,)' >norm.npy
# Positions on three axes: time from 4000, and height and width in rows of three.
for axis in time height width; do
    for sequence in 0 1; do
        token=-1
        while [ $((token += 1)) -lt 9 ]; do
            case $axis in
                time) int32 $((4000 + token)) ;;
                height) int32 $((100 + token / 3)) ;;
                width) int32 $((500 + token % 3 + sequence)) ;;
            esac
        done
    done
done | npy '<i4' '(3, 2, 9)' >axes.npy
for start in 7 900; do
    token=-1
    while [ $((token += 1)) -lt 9 ]; do int32 $((start + token)); done
done | npy '<i4' '(2, 9)' >each.npy
# The positions of the first tokens, 37 only, and 4004 to 4012 in bf16, which has every 16th number.
int32 7 7 7 7 7 7 7 7 7 900 900 900 900 900 900 900 900 900 | npy '<i4' '(2, 9)' >first_tokens.npy
int32 37 37 37 37 37 37 37 37 37 | npy '<i4' '(9,)' >one.npy
int32 4000 4000 4000 4000 4000 4016 4016 4016 4016 | npy '<i4' '(9,)' >in_bf16.npy

# config FILE FIELDS: writes a model with heads of 128 channels.
config() {
    printf '{"head_dim": 128, "max_position_embeddings": 131072, %s}\n' "$2" >"$1.json"
}
llama='"model_type": "llama", "rope_theta": 500000.0'
config plain "$llama"
config qwen '"model_type": "qwen3", "rms_norm_eps": 1e-6, "rope_theta": 500000.0'
before='"original_max_position_embeddings": 8192'
config llama3 "$llama, \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0, $before,
    \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0}"
config linear "$llama, \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 4.0}"
config linear_twice "$llama, \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 16.0}"
config base_times_factor '"model_type": "llama", "rope_theta": 2000000.0'
yarn="\"rope_type\": \"yarn\", \"factor\": 16.0, $before"
config yarn "$llama, \"rope_scaling\": {$yarn}"
config yarn_factor_squared "$llama, \"rope_scaling\": {$yarn, \"attention_factor\": 1.6313902266}"
config yarn_factor_1 "$llama, \"rope_scaling\": {$yarn, \"attention_factor\": 1.0}"
config partial "$llama, \"partial_rotary_factor\": 0.25"
# 500000^(1 / 4): with this base, a quarter of the channels has the frequencies of all channels.
config head_exponents '"model_type": "llama", "rope_theta": 26.591479484724942,
    "partial_rotary_factor": 0.25'
# The factors of longrope divide the frequencies. These factors round the frequencies to bf16.
factors=$(awk 'BEGIN {
    for (j = 0; j < 64; j++) {
        frequency = exp(-j / 64 * log(500000))
        for (last = 1; last * 128 > frequency; last /= 2);
        printf "%s%.17g", j ? ", " : "", frequency / (int(frequency / last + 0.5) * last)
    }
}')
config bf16 "$llama, \"rope_scaling\": {\"rope_type\": \"longrope\", \"attention_factor\": 1.0,
    \"original_max_position_embeddings\": 131072, \"short_factor\": [$factors],
    \"long_factor\": [$factors]}"
config proportional '"model_type": "llama", "rope_parameters": {"rope_type": "proportional",
    "rope_theta": 500000.0, "partial_rotary_factor": 0.25}'
# sections FILE SIZES INTERLEAVED: writes a model with three axes of positions.
sections() {
    config "$1" "\"model_type\": \"qwen3_vl_text\", \"rope_theta\": 500000.0,
    \"rope_scaling\": {\"mrope_section\": [$2], \"mrope_interleaved\": $3}"
}
sections interleaved '24, 20, 20' true
sections in_sequence '24, 20, 20' false
sections without_end '22, 21, 21' true
config some_without_rope '"model_type": "smollm3", "num_hidden_layers": 8, "hidden_size": 512,
    "num_attention_heads": 4, "rope_theta": 500000.0'
config two_kinds '"model_type": "gemma3_text", "num_hidden_layers": 6, "rope_theta": 1000000.0,
    "rope_local_base_freq": 10000.0, "sliding_window_pattern": 6'

# made MISTAKE RIGHT ENGINE: rotates with the options ENGINE, and checks with the options RIGHT that
# the first match is MISTAKE.
made() {
    # shellcheck disable=SC2086 # options
    works "$vkrope" rotate --q q.npy --out-q y.npy $3
    # shellcheck disable=SC2086
    expect 1 '' "$vkrope" check --q q.npy --actual y.npy --json $2
    first=$(sed -n 's/.*"mistake": "\(.*\)",*$/\1/p' "$logs/out" | head -n 1)
    [ "$first" = "$1" ] || wrong "$1 is not first but $first: $2; $3"
    echo "$1" >>"$logs/made"
}
# made_at POSITION MISTAKE RIGHT ENGINE: like made, with POSITION for the first token.
made_at() { made "$2" "$3 --first-position $1" "$4 --first-position $1"; }
plain='--model plain.json'
made_at 4000 swapped_pairing "$plain" "$plain --pairing interleaved"
made_at 4000 inverse_direction "$plain" "$plain --inverse"
made_at 4000 scaling_ignored '--model llama3.json' "$plain"
made_at 4000 'swapped_pairing + scaling_ignored' '--model llama3.json' \
    "$plain --pairing interleaved"
made_at 4000 scaling_twice '--model linear.json' '--model linear_twice.json'
made_at 4000 factor_in_power '--model linear.json' '--model base_times_factor.json'
made_at 4000 attention_factor_missing '--model yarn.json' '--model yarn.json --gain omit'
made_at 4000 attention_factor_twice '--model yarn.json' '--model yarn_factor_squared.json'
made_at 4000 yarn_magnitude_applied '--model yarn_factor_1.json' '--model yarn.json'
made_at 4000 other_layer_type '--model two_kinds.json --layer 0' '--model two_kinds.json --layer 5'
made_at 4000 rotated_without_rope '--model some_without_rope.json --layer 3' \
    '--model some_without_rope.json --layer 0'
made_at 4000 whole_head '--model partial.json' "$plain"
made_at 4000 exponent_of_head_dim '--model partial.json' '--model head_exponents.json'
made_at 4000 proportional_instead_of_partial '--model partial.json' '--model proportional.json'
made_at 4000 partial_instead_of_proportional '--model proportional.json' '--model partial.json'
made_at 4000 pair_distance_of_partial '--model proportional.json' '--model head_exponents.json'
made_at 4000 frequencies_in_16_bits "$plain" '--model bf16.json'
made positions_in_16_bits "$plain --first-position 4004" "$plain --positions in_bf16.npy"
made positions_from_zero "$plain --first-position 4000" "$plain"
made position_plus_one "$plain --first-position 4000" "$plain --first-position 4001"
made position_offset "$plain --first-position 4000" "$plain --first-position 9588"
made positions_of_first_sequence "$plain --positions each.npy" "$plain --first-position 7"
axes='--positions axes.npy'
made positions_of_first_token "$plain --positions each.npy" "$plain --positions first_tokens.npy"
made one_position "$plain --positions each.npy" "$plain --positions one.npy"
made sections_ignored "--model interleaved.json $axes" "$plain --first-position 4000"
made sections_in_the_other_order "--model interleaved.json $axes" "--model in_sequence.json $axes"
made sections_without_end "--model interleaved.json $axes" "--model without_end.json $axes"
made_at 100000 float32_angles "$plain" "$plain --float32-angles --angles direct_texture"
made_at 4000 norm_missing '--model qwen.json --q-norm norm.npy' "$plain"
made_at 4000 hadamard_missing "$plain --store q8_0 --hadamard 128" "$plain --store q8_0"

# The page has each of these mistakes, and no mistake that no test makes.
sed -n 's/^|.*| `\([a-z0-9_ +]*\)` |.*/\1/p' "$page" >"$logs/named"
holds 'the page names mistakes' [ "$(wc -l <"$logs/named")" -gt 20 ]
while IFS= read -r name; do
    grep -qxF "$name" "$logs/named" || wrong "mistakes.md does not have $name"
done <"$logs/made"
while IFS= read -r name; do
    grep -qxF "$name" "$logs/made" || grep -qF "\"$name\"" "$here"/judge*_test.cpp \
        "$here"/../../python/engine.py ||
        wrong "mistakes.md names $name, but no test makes it"
done <"$logs/named"
finish
