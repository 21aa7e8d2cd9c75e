#!/bin/sh
# SPDX-License-Identifier: MIT
# Changes single lines of the shaders and expects a check to notice each change. Runs only the
# checks that are meant to notice, since drivers compile each shader anew. Builds nothing: the
# program takes its modules from a folder (given_modules.cpp). Prints the number of failed checks.
# Arguments: the folder of the shaders, a folder to work in, a driver manifest, glslangValidator,
# cmake and the program.
set -eu
shaders=$1 work=$2 driver=$3 glslang=$4 cmake=$5 tool=$6
if [ -z "$driver" ]; then
    echo 'conformance_mutations: skipped: there is no lavapipe'
    exit 77
fi
export VK_DRIVER_FILES="$driver" VK_ICD_FILENAMES="$driver" VKROPE_DEVICE=llvmpipe
export VKROPE_MODULES="$work/modules" VKROPE_TIMEOUT=86400 # CTest ends a hang
rm -rf "$work"
mkdir -p "$work/modules"
cp -R "$shaders" "$work/shaders"
missed=0
level_of_checks=

# compile MODULE: compiles a module as shaders/CMakeLists.txt does.
compile() {
    "$glslang" --quiet -g0 --target-env vulkan1.1 -S comp -I"$work/shaders" \
        -o "$work/$1.spv" "$work/shaders/$1.comp"
    "$cmake" "-DINPUT=$work/$1.spv" "-DOUTPUT=$VKROPE_MODULES/$1.inc" -P "$shaders/embed.cmake"
}

# mutated FILTER NAME FILE SED_EXPRESSION: expects one of these checks to fail.
mutated() {
    sed "$4" "$shaders/$3" >"$work/shaders/$3"
    changed=$(diff "$shaders/$3" "$work/shaders/$3" | grep -c '^>') || true
    [ "$changed" = 1 ] || {
        echo "$2: the expression changes $changed lines, not one"
        exit 1
    }
    compile rope
    # shellcheck disable=SC2086 # one word an option
    if "$tool" $level_of_checks --filter "$1" >"$work/out" 2>"$work/err"; then
        echo "missed    $2"
        missed=$((missed + 1))
    else
        sed -n 's/^fail *\([^ ]*\).*/\1/p' "$work/out" >"$work/failed"
        [ -s "$work/failed" ] || {
            cat "$work/err"
            exit 1
        }
        echo "found     $2: by $(grep -c . "$work/failed") of $(grep -c . "$work/out") checks $1"
    fi
    cp "$shaders/$3" "$work/shaders/$3"
}

compile rope
compile positions
"$tool" --filter variants/mapping_cpu_two_words >"$work/out" 2>"$work/err" || {
    echo 'the shader as it is fails'
    cat "$work/err"
    exit 1
}
mutated variants/angles_of_pairs_64_interleaved_f16_factored_texture \
    'angles_of: one pair short' chunks.glsl \
    's/for (uint i = 0; i < 8; ++i) {/for (uint i = 0; i < 7; ++i) {/'
mutated 'variants/angles_of_pairs_64_unaligned_f16*' \
    'axis_of: the end of the second section' sections.glsl \
    's/if (m >= end) axis = 2;/if (m > end) axis = 2;/'
mutated 'axes/interleaved_leftover_*' 'axis_of: the leftover axis' sections.glsl \
    's/if (m >= 3 \* size) axis/if (m > 3 * size) axis/'
mutated 'variants/angles_of_pairs_64_unaligned*' 'window_of: the fourth window' chunks.glsl \
    's/window = uvec3(pair - (window_dim_0 + window_dim_1 + window_dim_2)/window = uvec3(pair - (window_dim_0 + window_dim_1)/'
mutated 'variants/angles_of_pairs_64_unaligned*' 'around_windows: the third window' tensor.glsl \
    's/at >= start + window_at_2) at += window_dim_2/at >= start + window_at_2) at += window_dim_1/'
mutated variants/angles_of_units_computed 'load: the upper half of a word' tensor.glsl \
    's/(T(load_shared)(at \/ 2) >> (16 \* (at \& 1u)))/T(load_shared)(at \/ 2)/'
mutated variants/mixed_elements 'load: the second 16 bytes of a unit' tensor.glsl \
    's/w.b = T(in_wide)\[at \/ 4 + 1\]/w.b = T(in_wide)[at \/ 4]/'
mutated variants/mapping_cpu_two_words 'load: the second word of a unit of 4' tensor.glsl \
    's/w.a.y = T(in_word)\[at \/ 2 + 1\]/w.a.y = T(in_word)[at \/ 2]/'
mutated variants/mixed_elements 'store: the second 16 bytes of a unit' tensor.glsl \
    's/T(out_wide)\[at \/ 4 + 1\] = w.b/T(out_wide)[at \/ 4 + 1] = w.a/'
mutated variants/angles_of_units_computed 'store: the mask of a half word' tensor.glsl \
    's/T(merge_word)(at \/ 2, 0xffffu << shift,/T(merge_word)(at \/ 2, 0xffffffffu,/'
mutated variants/four_heads_a_lane_f32_16_bytes 'rotate_batch: the second of four heads' \
    tensor.glsl \
    's/T(rotate_or_pass)(chunk, to + head \* to_head, words)/T(rotate_or_pass)(chunk, to + first * to_head, words)/'
mutated variants/four_heads_a_lane_f32_16_bytes \
    'batch_heads: the last heads of a lane' tensor.glsl \
    's/(VKROPE_TENSOR_HEADS - first + head_lanes - 1)/(VKROPE_TENSOR_HEADS - first)/'
mutated variants/four_heads_a_lane_f32_16_bytes 'copy_group: the second of four heads' tensor.glsl \
    's/row = to + (first + at \/ T(chunks_of_head)) \* to_head/row = to + first * to_head/'
mutated variants/mapping_gpu_interleaved 'pairs_of: the run that lies apart' chunks.glsl \
    's/pairs = uvec2(chunk, rotating + chunk)/pairs = uvec2(chunk, rotating + chunk - 1)/'
mutated variants/mapping_gpu_long_rows 'chunk_of: the second chunk of a lane' chunks.glsl \
    's/return (n \/ chunks_together \* chunk_lanes + lane)/return (n \/ chunks_together * (chunk_lanes - 1) + lane)/'
mutated variants/pages 'scatter: the row of a page' token.glsl \
    's/token.line = slot % VKROPE_PUSH.page_size/token.line = slot % (VKROPE_PUSH.page_size - 1)/'
mutated variants/cos_sin_cache_bf16_of_f16 "angle_apart: the upper half of a word of the caller's" \
    angles.glsl 's/vkrope_widen(element, (bits >> (16 \* (at \& 1u))) \& 0xffffu)/vkrope_widen(element, bits \& 0xffffu)/'
mutated 'variants/angles_of_pairs_64_*_f16_*' 'from_pairs: units of 8' pairing.glsl \
    's/B = Unit(vec4(y0.b.x, y1.b.x, y0.b.y, y1.b.y)/B = Unit(vec4(y0.b.x, y1.b.x, y0.b.y, y1.a.y)/'
mutated values/packed_qkv_gpu_f16 'rotate_batches: V where K goes' rope.comp \
    's/v_store_batch(v, v_copied_channels(lane.chunk), lane.v_from, v_to,/v_store_batch(v, v_copied_channels(lane.chunk), lane.v_from, k_to,/'
mutated values/partial_rotary_cpu_f32 'serve: copies of V where K goes' rope.comp \
    's/v_copy(chunk_lane, lane.v_from, v_to(index, z, token)/v_copy(chunk_lane, lane.v_from, k_to(index, z, token)/'
mutated values/partial_rotary_gpu_f32 'copy_groups: copies of V where K goes' rope.comp \
    's/v_copy_group(lane_of_token, lane.v_from, v_there/v_copy_group(lane_of_token, lane.v_from, k_there/'
mutated values/packed_qkv_gpu_f16 'serve: the last head of V' rope.comp \
    's/lane.has_v = lane.has_k \&\& vkrope_has/lane.has_v = lane.k_head + 1 < (push.heads >> 16) \&\& vkrope_has/'
mutated values/partial_rotary_gpu_f32 \
    'v_misfit: a row of V that is longer than a chunk of all lanes' rope.comp \
    's/(v_head_dim ^ (2 \* unit_elements \* chunk_lanes));/0;/'
mutated 'offsets/beyond_4_*_16_bytes' 'load: offsets of 22 bits, 16 bytes at a time' tensor.glsl \
    's/w.a = T(in_wide)\[f32 ? at \/ 4 : at \/ 8\]/w.a = T(in_wide)[(f32 ? at \/ 4 : at \/ 8) \& 0x3ffffu]/'
mutated 'offsets/beyond_4_*_words' 'store: offsets of 22 bits, a word at a time' tensor.glsl \
    's/T(out_word)\[at\] = w.a.x;/T(out_word)[at \& 0xfffffu] = w.a.x;/'
mutated turns/phase_computed_special_positions 'turned_angles: no phase' chunks.glsl \
    's/if (phase != 0) vkrope_add_axis/if (phase > 1) vkrope_add_axis/'
mutated turns/phase_factored_texture_special_positions \
    'phased_angles: the sign of a coarse digit' angles.glsl \
    's/vkrope_summed_angles(coarse, position \& 0x80000000u, fine,/vkrope_summed_angles(coarse, 0, fine,/'
mutated turns/phase_direct_buffer_special_positions \
    'angle_at: the rows of positions below 0' token.glsl \
    's/angle.row += VKROPE_PUSH.table_rows - 1;/angle.row += VKROPE_PUSH.table_rows;/'
mutated turns/sum_of_3_axes 'turned_angles: one axis short' chunks.glsl \
    's/for (uint axis = 0; axis < axes; ++axis)/for (uint axis = 0; axis + 1 < axes; ++axis)/'
mutated turns/sum_of_3_axes 'add_turns: positions below 0' turns.glsl \
    's/ - low \* (position >> 31);/;/'
mutated turns/head_groups_half_split_gpu 'token: one head group for all' token.glsl \
    's/token.head_group += z;/token.head_group += 0;/'
mutated 'turns/head_groups_of_many_sequences,turns/head_groups_in_parts' \
    'token: the first head group of a dispatch' token.glsl \
    's/token.head_group = VKROPE_PUSH.table_stride;/token.head_group = 0;/'
mutated turns/channels_f32_half_split 'rotating_chunk: the angle of channel 1' chunks.glsl \
    's/angles_of(token, pairs, 1, chunk.c1, chunk.s1);/angles_of(token, pairs, 0, chunk.c1, chunk.s1);/'
mutated turns/channels_f32_half_split 'rotating_chunk: the gradient of channels' chunks.glsl \
    's/chunk.s = chunk.s1;/chunk.s1 = chunk.s1;/'
mutated ops/rms_of_heads_f16 'unit_sum: units of 8' norm.glsl \
    's/all = (pairs.x + pairs.y) + (pairs.z + pairs.w);/all = (pairs.x + pairs.y) + (pairs.z + pairs.z);/'
mutated ops/rms_of_heads_f16 'tree_add: the sums that wait' norm.glsl \
    's/precise float both = vkrope_waiting\[level\] + sum;/precise float both = vkrope_waiting[0] + sum;/'
mutated ops/rms_of_heads_f16 'shared_rest: the upper half of 16 sums' shared_sums.glsl \
    's/vkrope_shared_eight(sums, 0) + vkrope_shared_eight(sums, 8);/vkrope_shared_eight(sums, 0) + vkrope_shared_eight(sums, 0);/'
mutated ops/rms_of_tokens_f32 'shared_stage: the last sums of a row' shared_sums.glsl \
    's/sums.count % 8u == 0 ? 8u : sums.count - first;/8u;/'
mutated ops/rms_of_tokens_f32 'shared_sums: the last head of a token' ops_shared.glsl \
    's/if (share.chunk_lane == 0 \&\& head < T(row_heads))/if (share.chunk_lane == 0 \&\& head + 1 < T(row_heads))/'
mutated ops/rms_of_tokens_f32 'owned_sum: the last head of a token' ops_owned.glsl \
    's/if (each < T(row_heads)) leaf = T(head_sums)\[each\];/if (each + 1 < T(row_heads)) leaf = T(head_sums)[each];/'
mutated ops/rms_of_heads_after_bf16 'ops_units: the norm after the rotation' ops.glsl \
    '/^    if (T(norm_after)) {$/{N;s/a = T(normed)(norm, a, p.a);/a = T(normed)(norm, a, p.b);/;}'
mutated ops/layer_norm_bf16 'normed: the mean' ops.glsl \
    '/what != sum_values/!s/vkrope_centred(u, norm.scale, norm.mean);/vkrope_centred(u, norm.scale, 0.0);/'
mutated ops/layer_norm_bf16 'normed: the bias of a norm' ops.glsl \
    's/u = vkrope_sum(u, p.norm_bias);/u = vkrope_sum(u, p.bias);/'
mutated ops/rms_of_tokens_f32 'parameters: the weights of a head' ops.glsl \
    's/index += T(absolute_head)(head) \* T(head_dim);/index += 0;/'
mutated ops/bias_clip_and_scale 'token_factor: the second sequence' ops.glsl \
    's/index += z \* VKROPE_PUSH.tokens;/index += 0;/'
mutated ops/bias_clip_and_scale 'clip: numbers below 0' norm.glsl \
    's/return mix(below, vec4(least), lessThan(x, vec4(least)));/return below;/'
mutated ops/extreme_rows_rms 'set_root: squares that overflow' norm.glsl \
    's/norm.scale_d = overflows ? vkrope_small : 1.0;/norm.scale_d = 1.0;/'
mutated store/in_every_way 'store_bytes: the first word of a row' ops_shared.glsl \
    's/mask <<= uint(-8 \* from);/mask <<= 0u;/'
mutated store/in_every_way 'store_bytes: the last word of a row' ops_shared.glsl \
    's/mask \&= ~0u >> uint(8 \* beyond);/mask \&= ~0u;/'
mutated store/q5_1_int8_made 'end_blocks: the upper channels' staging.glsl \
    's/(type == element_q8_0 ? lanes : 2 \* lanes)/lanes/'
mutated store/q4_0_q4_1_q8_0 'begin_blocks: the order of channels' staging.glsl \
    's/part \* near + i + (i < near ? 0u : 4u - near)/part * quads + i/'
mutated store/q4_0_q4_1_q8_0 'begin_blocks: a NaN' staging.glsl \
    's/has_nan = most > 0xff000000u;/has_nan = false;/'
mutated store/q4_0_q4_1_q8_0 'staged_word: the half that each block has more' staging.glsl \
    's/at = 2 \* index + 2 \* index \/ halves + 1;/at = 2 * index + 1;/'
mutated store/in_every_way 'made_scale: the scales of a cache' ops_shared.glsl \
    's/share.token.page \* VKROPE_PUSH.page_size \* T(scale_heads);/share.token.page * VKROPE_PUSH.page_size;/'
mutated store/in_every_way 'given_scale: the scale of a head' ops_shared.glsl \
    's/if (T(store_scale) == store_scale_given_head) at += T(absolute_head)(head);/at += 0;/'
mutated store/hadamard 'hadamard_pass: levels beyond a unit' staging.glsl \
    's/count = row.channels >> levels, stride = 1u << level;/count = row.channels >> levels, stride = 1u;/'
mutated store/hadamard 'hadamard_pass: the fourth level of a pass' staging.glsl \
    's/upper = vkrope_butterfly(true, v, u);/upper = vkrope_butterfly(true, u, v);/'
mutated store/hadamard 'hadamard_inside: the levels of a unit' staging.glsl \
    's/Unit after = vkrope_butterflies(n, all, u);/Unit after = u;/'
mutated store/hadamard 'butterflies: the second level' hadamard.glsl \
    's/u.b = vec4(sum.z, sum.w, difference.z, difference.w);/u.b = vec4(sum.z, sum.w, difference.w, difference.z);/'
mutated store/q4_0_q4_1_q8_0 'finite_block_codes: ties' blocks.glsl \
    's/| 0x3effffffu;/| 0x3f000000u;/'
mutated store/q4_0_q4_1_q8_0 'block: the sign of a scale' blocks.glsl \
    's/d |= ~extremes.most \& 0x80000000u;/d |= 0u;/'
mutated store/q4_0_q4_1_q8_0 'block_codes: the last code of q4_0' blocks.glsl \
    's/uvec4(type == element_q4_0 ? 15 : 31)/uvec4(31)/'
mutated store/q5_0_e4m3fn_e5m2 'block_codes: the middle of q5_0' blocks.glsl \
    's/type == element_q4_0 ? 8.5 : 16.5;/type == element_q4_0 ? 8.5 : 16.0;/'
mutated store/q5_0_e4m3fn_e5m2 'join_fifth_bits: the upper channels' blocks.glsl \
    's/vkrope_fifth_bits(word_16) << 16/vkrope_fifth_bits(word_16) << 15/'
mutated store/q5_0_e4m3fn_e5m2 'block_word: the parts of fifth bits' staging.glsl \
    's/for (uint part = 0; part < lanes; ++part)/for (uint part = 1; part < lanes; ++part)/'
mutated store/q4_0_q4_1_q8_0 'divided: q4_1' quantise.glsl \
    's|quotient = n / 15u;|quotient = n / 14u;|'
mutated store/q5_1_int8_made 'divided: q5_1' quantise.glsl \
    's|quotient = n / 31u;|quotient = n / 30u;|'
mutated store/q5_1_int8_made 'join_extremes: the least number' quantise.glsl \
    's/int(vkrope_rank(second.least)) < int(vkrope_rank(first.least))/int(second.least) < int(first.least)/'
mutated store/q5_1_int8_made 'round_int8: ties' quantise.glsl \
    's/greaterThanEqual(rest, vec4(0.5))/greaterThan(rest, vec4(0.5))/'
mutated store/q5_0_e4m3fn_e5m2 'round_float8: ties of e4m3fn' quantise.glsl \
    's/((limited >> 20) \& 1u) - (120u << 23)/1u - (120u << 23)/'
mutated store/q5_0_e4m3fn_e5m2 'round_float8: ties of e5m2' quantise.glsl \
    's/((limited >> 21) \& 1u) - (112u << 23)/1u - (112u << 23)/'
level_of_checks='--level full'
mutated ops/shape_two_parameter_sets 'given_scale: the second set' ops_shared.glsl \
    '/^float T(given_scale)/,/^}/s/if (second_parameters != 0) at += vkrope_parameter_set;//'
mutated ops/shape_in_parts 'absolute_head: the first head of a part' ops.glsl \
    's|uint first = VKROPE_PUSH.flags / flag_first_head;|uint first = 0;|'
mutated ops/shape_round_between 'normed: the second rounding' ops.glsl \
    's/u = T(rounded)(vkrope_product(u, p.weight));/u = vkrope_product(u, p.weight);/'
mutated ops/shape_long_rows 'exchange_units: the second chunk of a lane' ops_shared.glsl \
    '/^void T(exchange_units)/,/^}/s/T(load_shared_chunk)(share, index, head, A, B);/T(load_shared_chunk)(share, share.chunk_lane, head, A, B);/'
mutated ops/shape_many_heads 'hold_norms: once for a token' ops_owned.glsl \
    's/if (first < min(heads, apart)) T(norms)/if (first < heads) T(norms)/'
mutated ops/shape_few_tokens 'ops_rows: the next heads of a lane' ops_lanes.glsl \
    's/first += apart \* norms_held) {/first += 2 * apart * norms_held) {/'
mutated ops/shape_many_stored_heads 'ops_rounds: the next heads' ops_shared.glsl \
    's/next.first += head_lanes \* gl_NumWorkGroups.y;/next.first += 2 * head_lanes * gl_NumWorkGroups.y;/'
echo "$missed missed"
[ "$missed" = 0 ]
