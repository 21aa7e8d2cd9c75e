#!/bin/sh
# SPDX-License-Identifier: MIT
# Shaders with one line changed: quick checks notice every one of them. Only those run that are
# meant to, since drivers compile each shader anew. Nothing is built: the program takes its modules
# from a folder (given_modules.cpp). Prints for each the level of ./dev test that notices it.
# Arguments: the folder of the shaders, a folder to work in, a driver manifest, glslangValidator,
# cmake, the program, and the filter with which ./dev test runs the quick checks.
set -eu
shaders=$1 work=$2 driver=$3 glslang=$4 cmake=$5 tool=$6 usual=$7
if [ -z "$driver" ]; then
    echo 'conformance_mutations: skipped: there is no lavapipe'
    exit 77
fi
export VK_DRIVER_FILES="$driver" VK_ICD_FILENAMES="$driver" VKROPE_DEVICE=llvmpipe
export VKROPE_MODULES="$work/modules"
rm -rf "$work"
mkdir -p "$work/modules"
cp -R "$shaders" "$work/shaders"
missed=0

# compile MODULE: as shaders/CMakeLists.txt does.
compile() {
    "$glslang" --quiet -g0 --target-env vulkan1.1 -S comp -I"$work/shaders" \
        -o "$work/$1.spv" "$work/shaders/$1.comp"
    "$cmake" "-DINPUT=$work/$1.spv" "-DOUTPUT=$VKROPE_MODULES/$1.inc" -P "$shaders/embed.cmake"
}

# mutated FILTER NAME FILE SED_EXPRESSION: fails one of these checks.
mutated() {
    sed "$4" "$shaders/$3" >"$work/shaders/$3"
    changed=$(diff "$shaders/$3" "$work/shaders/$3" | grep -c '^>') || true
    [ "$changed" = 1 ] || {
        echo "$2: the expression changes $changed lines, not one"
        exit 1
    }
    compile rope
    if "$tool" --filter "$1" >"$work/out" 2>"$work/err"; then
        echo "missed    $2"
        missed=$((missed + 1))
    else
        sed -n 's/^fail *\([^ ]*\).*/\1/p' "$work/out" >"$work/failed"
        [ -s "$work/failed" ] || {
            cat "$work/err"
            exit 1
        }
        level=thorough
        ! grep -qxF -f "$work/failed" "$work/usual" || level=quick
        echo "$level  $2: by $(grep -c . "$work/failed") of $(grep -c . "$work/out") checks $1"
    fi
    cp "$shaders/$3" "$work/shaders/$3"
}

compile rope
compile positions
"$tool" --list --filter "$usual" >"$work/usual"
"$tool" --filter variants/mapping_cpu_two_words >"$work/out" 2>"$work/err" || {
    echo 'the shader as it is fails'
    cat "$work/err"
    exit 1
}
mutated variants/angles_of_pairs_64_interleaved_f16_factored_texture 'angles_of: one pair short' steps.glsl \
    's/for (uint i = 0; i < 8; ++i) {/for (uint i = 0; i < 7; ++i) {/'
mutated 'variants/angles_of_pairs_64_unaligned_f16*' 'axis_of: the end of the second section' sections.glsl \
    's/if (m >= end) axis = 2;/if (m > end) axis = 2;/'
mutated 'axes/interleaved_leftover_*' 'axis_of: the leftover axis' sections.glsl \
    's/if (m >= 3 \* size) axis/if (m > 3 * size) axis/'
mutated 'variants/angles_of_pairs_64_unaligned*' 'window_of: the fourth window' steps.glsl \
    's/window = uvec3(pair - (window_dim_0 + window_dim_1 + window_dim_2)/window = uvec3(pair - (window_dim_0 + window_dim_1)/'
mutated 'variants/angles_of_pairs_64_unaligned*' 'around_windows: the third window' tensor.glsl \
    's/at >= start + window_at_2) at += window_dim_2/at >= start + window_at_2) at += window_dim_1/'
mutated variants/angles_of_units_computed 'load: the upper half of a word' tensor.glsl \
    's/(T(load_shared)(at \/ 2) >> (16 \* (at \& 1u)))/T(load_shared)(at \/ 2)/'
mutated variants/mixed_elements_half_split 'load: the second 16 bytes of a unit' tensor.glsl \
    's/w.b = T(in_wide)\[at \/ 4 + 1\]/w.b = T(in_wide)[at \/ 4]/'
mutated variants/mapping_cpu_two_words 'load: the second word of a unit of 4' tensor.glsl \
    's/w.a.y = T(in_word)\[at \/ 2 + 1\]/w.a.y = T(in_word)[at \/ 2]/'
mutated variants/mixed_elements_half_split 'store: the second 16 bytes of a unit' tensor.glsl \
    's/T(out_wide)\[at \/ 4 + 1\] = w.b/T(out_wide)[at \/ 4 + 1] = w.a/'
mutated variants/angles_of_units_computed 'store: the mask of a half word' tensor.glsl \
    's/T(merge_word)(at \/ 2, 0xffffu << shift,/T(merge_word)(at \/ 2, 0xffffffffu,/'
mutated variants/four_heads_a_lane_f32_16_bytes 'turn_batch: the second of four heads' tensor.glsl \
    's/T(turn_or_pass)(step, to + head \* to_head, words)/T(turn_or_pass)(step, to + first * to_head, words)/'
mutated variants/four_heads_a_lane_f32_16_bytes 'batch_heads: the last heads of a lane' tensor.glsl \
    's/(VKROPE_TENSOR_HEADS - first + head_lanes - 1)/(VKROPE_TENSOR_HEADS - first)/'
mutated variants/four_heads_a_lane_f32_16_bytes 'copy_group: the second of four heads' tensor.glsl \
    's/row = to + (first + at \/ T(steps_of_head)) \* to_head/row = to + first * to_head/'
mutated 'variants/mapping_gpu_interleaved_f??' 'pairs_of: the run that lies apart' steps.glsl \
    's/pairs = uvec2(step, rotating + step)/pairs = uvec2(step, rotating + step - 1)/'
mutated 'variants/mapping_gpu_long_rows_f32' 'step_of: the second step of a lane' steps.glsl \
    's/return (n \/ steps_together \* step_lanes + lane)/return (n \/ steps_together * (step_lanes - 1) + lane)/'
mutated variants/pages_f16 'scatter: the row of a page' token.glsl \
    's/token.line = slot % VKROPE_PUSH.page_size/token.line = slot % (VKROPE_PUSH.page_size - 1)/'
mutated variants/cos_sin_cache_bf16_of_f16 "angle_apart: the upper half of a word of the caller's" \
    angles.glsl 's/vkrope_widen(element, (bits >> (16 \* (at \& 1u))) \& 0xffffu)/vkrope_widen(element, bits \& 0xffffu)/'
mutated 'variants/angles_of_pairs_64_*_f16_*' 'from_pairs: units of 8' pairing.glsl \
    's/B = Unit(vec4(y0.b.x, y1.b.x, y0.b.y, y1.b.y)/B = Unit(vec4(y0.b.x, y1.b.x, y0.b.y, y1.a.y)/'
mutated values/packed_qkv_gpu_f16 'turn_batches: V where K goes' rope.comp \
    's/v_store_batch(v, v_copied_channels(lane.step), lane.v_from, v_to,/v_store_batch(v, v_copied_channels(lane.step), lane.v_from, k_to,/'
mutated values/partial_rotary_cpu_f32 'serve: copies of V where K goes' rope.comp \
    's/v_copy(step_lane, lane.v_from, v_to(index, z, token)/v_copy(step_lane, lane.v_from, k_to(index, z, token)/'
mutated values/partial_rotary_gpu_f32 'copy_groups: copies of V where K goes' rope.comp \
    's/v_copy_group(lane_of_token, lane.v_from, v_there/v_copy_group(lane_of_token, lane.v_from, k_there/'
mutated values/packed_qkv_gpu_f16 'serve: the last head of V' rope.comp \
    's/lane.has_v = lane.has_k \&\& vkrope_has/lane.has_v = lane.k_head + 1 < (push.heads >> 16) \&\& vkrope_has/'
mutated 'values/partial_rotary_gpu_*' \
    'v_misfit: a row of V that is longer than a step of all lanes' rope.comp \
    's/(v_head_dim ^ (2 \* unit_elements \* step_lanes));/0;/'
mutated 'offsets/beyond_4_*_16_bytes' 'load: offsets of 22 bits, 16 bytes at a time' tensor.glsl \
    's/w.a = T(in_wide)\[f32 ? at \/ 4 : at \/ 8\]/w.a = T(in_wide)[(f32 ? at \/ 4 : at \/ 8) \& 0x3ffffu]/'
mutated 'offsets/beyond_4_*_words' 'store: offsets of 22 bits, a word at a time' tensor.glsl \
    's/T(out_word)\[at\] = w.a.x;/T(out_word)[at \& 0xfffffu] = w.a.x;/'
mutated turns/phase_computed_special_positions 'turned_angles: no phase' steps.glsl \
    's/if (phase != 0) vkrope_add_axis/if (phase > 1) vkrope_add_axis/'
mutated turns/phase_factored_texture_special_positions 'phased_angles: the sign of a coarse digit' angles.glsl \
    's/vkrope_summed_angles(coarse, position \& 0x80000000u, fine,/vkrope_summed_angles(coarse, 0, fine,/'
mutated turns/phase_direct_buffer_special_positions 'angle_at: the rows of positions below 0' token.glsl \
    's/angle.row += VKROPE_PUSH.table_rows - 1;/angle.row += VKROPE_PUSH.table_rows;/'
mutated turns/sum_of_3_axes 'turned_angles: one axis short' steps.glsl \
    's/for (uint axis = 0; axis < axes; ++axis)/for (uint axis = 0; axis + 1 < axes; ++axis)/'
mutated turns/sum_of_3_axes 'add_turns: positions below 0' turns.glsl \
    's/ - low \* (position >> 31);/;/'
mutated turns/head_groups_half_split_gpu 'token: one head group for all' token.glsl \
    's/token.head_group += z;/token.head_group += 0;/'
mutated 'turns/head_groups_of_many_sequences,turns/head_groups_in_parts' \
    'token: the first head group of a dispatch' token.glsl \
    's/token.head_group = VKROPE_PUSH.table_stride;/token.head_group = 0;/'
mutated turns/channels_f32_half_split 'rotating_step: the angle of channel 1' steps.glsl \
    's/angles_of(token, pairs, 1, step.c1, step.s1);/angles_of(token, pairs, 0, step.c1, step.s1);/'
mutated turns/channels_f32_half_split 'rotating_step: the gradient of channels' steps.glsl \
    's/step.s = step.s1;/step.s1 = step.s1;/'
echo "$missed missed"
[ "$missed" = 0 ]
