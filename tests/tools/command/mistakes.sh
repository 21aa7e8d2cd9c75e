#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests that the table of mistakes in the guide is that of `vkrope check --list`. Then `vkrope
# rotate` makes mistakes with the options or the model file of a faulty engine, and `vkrope check`
# names them. judge_test.cpp and the files next to it test mistakes that no option makes.
# With --write instead of the folder of models, writes the table.
# shellcheck disable=SC2317 # functions called indirectly
here=$(cd "$(dirname "$0")" && pwd)
page=$here/../../../host/guide/mistakes.md
. "$here/check.sh"

"$vkrope" check --list >"$logs/list" || wrong 'check --list'
# The last column of the page, the links, stays.
awk -F ' *[|] *' '
    NR == FNR { at = index($0, ": the engine "); names[NR] = "`" substr($0, 1, at - 1) "`"
                said[count = NR] = substr($0, at + 13) }
    NR == FNR { next }
    /^<!-- table mistakes/ { inside = 1 }
    inside && /^$/ {
        for (i = 1; i <= count; ++i)
            print "| " names[i] " | " said[i] " | " links[names[i]] (links[names[i]] ? " |" : "|")
        inside = 0
    }
    inside && /^[|] `[a-z0-9_]*` [|]/ { links[$2] = $4; next }
    { print }' "$logs/list" "$page" >"$logs/page"
if [ "$models" = --write ]; then
    cp "$logs/page" "$page"
    exit
fi
holds "the table of host/guide/mistakes.md is not that of vkrope check --list; this writes it:
sh $here/mistakes.sh $vkrope --write" cmp "$logs/page" "$page"
works "$vkrope" check --list --json
holds 'the list as JSON' [ "$(grep -c '"mistake":' "$logs/out")" = "$(wc -l <"$logs/list")" ]
holds 'each name has one meaning' [ -z "$(sed 's/:.*//' "$logs/list" | sort | uniq -d)" ]
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
int32 4000 4001 4002 4003 4003 4003 4003 4003 4003 | npy '<i4' '(9,)' >clamped.npy
int32 4003 4000 4006 4001 4008 4002 4007 4005 4004 | npy '<i4' '(9,)' >another_order.npy
int32 4007 4001 4090 4017 4300 4042 4005 4555 4100 | npy '<i4' '(9,)' >other.npy

# config FILE FIELDS: writes a model with heads of 128 channels.
config() {
    printf '{"head_dim": 128, "max_position_embeddings": 131072, %s}\n' "$2" >"$1.json"
}
llama='"model_type": "llama", "rope_theta": 500000.0'
config plain "$llama"
config base_20000 '"model_type": "llama", "rope_theta": 20000.0'
config qwen_eps '"model_type": "qwen3", "rms_norm_eps": 1e-5, "rope_theta": 500000.0'
config qwen '"model_type": "qwen3", "rms_norm_eps": 1e-6, "rope_theta": 500000.0'
before='"original_max_position_embeddings": 8192'
config llama3 "$llama, \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0, $before,
    \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0}"
config linear "$llama, \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 4.0}"
config linear_3 "$llama, \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 3.0}"
config linear_twice "$llama, \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 16.0}"
config base_times_factor '"model_type": "llama", "rope_theta": 2000000.0'
yarn="\"rope_type\": \"yarn\", \"factor\": 16.0, $before"
config yarn "$llama, \"rope_scaling\": {$yarn}"
config yarn_factor_squared "$llama, \"rope_scaling\": {$yarn, \"attention_factor\": 1.6313902266}"
config yarn_factor_1.5 "$llama, \"rope_scaling\": {$yarn, \"attention_factor\": 1.5}"
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
config longrope "$llama, \"rope_scaling\": {\"rope_type\": \"longrope\", \"attention_factor\": 1.0,
    $before, \"short_factor\": [$factors], \"long_factor\": [${factors%, *}, 9]}"
config proportional '"model_type": "llama", "rope_parameters": {"rope_type": "proportional",
    "rope_theta": 500000.0, "partial_rotary_factor": 0.25}'
# sections FILE SIZES INTERLEAVED: writes a model with three axes of positions.
sections() {
    config "$1" "\"model_type\": \"qwen3_vl_text\", \"rope_theta\": 500000.0,
    \"rope_scaling\": {\"mrope_section\": [$2], \"mrope_interleaved\": $3}"
}
sections interleaved '24, 20, 20' true
sections in_sequence '24, 20, 20' false
sections other_sizes '26, 19, 19' true
sections without_end '22, 21, 21' true
config some_without_rope '"model_type": "smollm3", "num_hidden_layers": 8, "hidden_size": 512,
    "num_attention_heads": 4, "rope_theta": 500000.0'
config two_kinds '"model_type": "gemma3_text", "num_hidden_layers": 6, "rope_theta": 1000000.0,
    "rope_local_base_freq": 10000.0, "sliding_window_pattern": 6'

# named MISTAKE RIGHT: checks y.npy with the options RIGHT; the first match must be MISTAKE.
named() {
    # shellcheck disable=SC2086 # options
    expect 1 '' "$vkrope" check --q q.npy --actual y.npy $2
    first=$(sed -n 's/^Q *mistake: //p' "$logs/out")
    case $first in "$1: "*) ;; *) wrong "$1 is not first but $first: $2" ;; esac
    echo "$first" >>"$logs/made"
}
# made MISTAKE RIGHT ENGINE: like named, with the output of `vkrope rotate` with the options ENGINE.
made() {
    # shellcheck disable=SC2086 # options
    works "$vkrope" rotate --q q.npy --out-q y.npy $3
    named "$1" "$2"
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
made_at 4000 another_base "$plain" '--model base_20000.json'
made_at 4000 another_scaling '--model linear.json' '--model linear_3.json'
made_at 4000 another_factor '--model yarn.json' '--model yarn_factor_1.5.json'
made_at 4000 long_sequence '--model longrope.json --seq-len 1' \
    '--model longrope.json --seq-len 131072'
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
made positions_clamped "$plain --first-position 4000" "$plain --positions clamped.npy"
made positions_in_another_order "$plain --first-position 4000" \
    "$plain --positions another_order.npy"
made other_positions "$plain --first-position 4000" "$plain --positions other.npy"
made position_offset "$plain --first-position 4000" "$plain --first-position 9588"
made positions_of_first_sequence "$plain --positions each.npy" "$plain --first-position 7"
axes='--positions axes.npy'
made positions_of_first_token "$plain --positions each.npy" "$plain --positions first_tokens.npy"
made one_position "$plain --positions each.npy" "$plain --positions one.npy"
made sections_ignored "--model interleaved.json $axes" "$plain --first-position 4000"
made sections_in_the_other_order "--model interleaved.json $axes" "--model in_sequence.json $axes"
made pairs_on_other_axes "--model interleaved.json $axes" "--model other_sizes.json $axes"
made sections_without_end "--model interleaved.json $axes" "--model without_end.json $axes"
made_at 100000 float32_angles "$plain" "$plain --float32-angles --angles direct_texture"
made_at 4000 another_eps '--model qwen.json --q-norm norm.npy' \
    '--model qwen_eps.json --q-norm norm.npy'
made_at 4000 norm_missing '--model qwen.json --q-norm norm.npy' "$plain"
made_at 4000 hadamard_missing "$plain --store q8_0 --hadamard 128" "$plain --store q8_0"

# The first token, or the first head, has the row of the second one.
for row in 2048:tokens 512:heads; do
    works "$vkrope" rotate --q q.npy --out-q right.npy --model plain.json --first-position 4000
    header=$(($(wc -c <right.npy) - 2 * 9 * 2048))
    { head -c $header right.npy && tail -c +$((header + ${row%:*} + 1)) right.npy |
        head -c "${row%:*}" && tail -c +$((header + ${row%:*} + 1)) right.npy; } >y.npy
    named "rows_of_other_${row#*:}" "$plain --first-position 4000"
done

# A test makes each mistake, and a report above has the sentence of each example.
while IFS= read -r line; do
    name=${line%%:*}
    case $name in hadamard_of_*) name=hadamard_of_16 ;; esac # one block stands for all
    case $line in
        *', for instance: '*) report="${line%, for instance: *}: ${line#*, for instance: }" ;;
        *) report="$name: " ;;
    esac
    sed "s/.* + .*//" "$logs/made" | grep -F "$name: " | grep -qF "$report" || {
        [ "$report" = "$name: " ] && grep -qF "\"$name\"" "$here"/judge*_test.cpp \
            "$here/../../python/engine.py"
    } || wrong "no test has the report $report"
done <"$logs/list"
finish
