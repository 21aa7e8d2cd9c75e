// SPDX-License-Identifier: MIT
// Finds the pairs, channels and angles of the rotated chunks of a row. Needs interface.h,
// pairing.glsl, angles.glsl, sections.glsl, token.glsl, and the constants of VKROPE_CONSTANTS.
// Declares no binding, push constant or workgroup size.
#ifndef VKROPE_CHUNKS_GLSL
#define VKROPE_CHUNKS_GLSL

#ifndef VKROPE_TOKEN_GLSL
#error "chunks.glsl: include interface.h, pairing.glsl, angles.glsl and token.glsl first"
#endif

const uint rotating = rotary_dim / (2 * unit_elements);
const uint lane_chunks = chunk_lanes == 1 ? rotating
                                          : (rotating + chunk_lanes * chunks_together - 1) /
                                                (chunk_lanes * chunks_together) * chunks_together;
// 0 if every lane has lane_chunks chunks. (glslang turns || in a constant into control flow.)
const uint uneven_chunks = chunk_lanes == 1 ? 0 : rotating % (chunk_lanes * chunks_together);

uint chunk_of(const uint lane, const uint n) {
    return (n / chunks_together * chunk_lanes + lane) * chunks_together + n % chunks_together;
}

// True if each of the two units of a chunk contains whole pairs; the units are then `rotating`
// units apart.
const bool runs_apart = units_apart != 0 && pairing == pairing_interleaved &&
                        pairing_out == pairing_interleaved && unit_elements > 1;

// Returns the first pairs of the two runs of a chunk. Runs are adjacent if the units are.
uvec2 pairs_of(const uint chunk) {
    uvec2 pairs = uvec2(chunk * unit_elements, chunk * unit_elements + unit_elements / 2);
    if (runs_apart) pairs = uvec2(chunk, rotating + chunk) * (unit_elements / 2);
    return pairs;
}

// Returns (index of the pair in its window, channels of the window, first channel of the window).
uvec3 window_of(const uint pair) {
    uvec3 window = uvec3(pair, window_dim_0, window_at_0);
    if (window_dim_1 != 0 && pair >= window_dim_0 / 2)
        window = uvec3(pair - window_dim_0 / 2, window_dim_1, window_at_1);
    if (window_dim_2 != 0 && pair >= (window_dim_0 + window_dim_1) / 2)
        window = uvec3(pair - (window_dim_0 + window_dim_1) / 2, window_dim_2, window_at_2);
    if (window_dim_3 != 0 && pair >= (window_dim_0 + window_dim_1 + window_dim_2) / 2) {
        window = uvec3(pair - (window_dim_0 + window_dim_1 + window_dim_2) / 2, window_dim_3,
                       window_at_3);
    }
    return window;
}

// Returns the first channels of the two units that contain these pairs, with the pairing `order`.
uvec2 channels_of(const uint order, const uvec2 pairs) {
    uvec3 window = window_of(pairs.x);
    uvec2 channels = vkrope_pair_channels(order, window.y, unit_elements, window.x) + window.z;
    if (runs_apart) {
        window = window_of(pairs.y);
        channels.y = 2 * window.x + window.z;
    }
    return channels;
}

// The number of axes whose products position * fraction are summed, and the number of vec4s that
// hold the fractions of one axis.
const uint summed_axes = section_order == sections_sum ? axes : 1;
const uint fractions_vec4s = (rotary_dim / 2 + 1) / 2;

// Computes cos and sin from the position of a token, or from its positions on all axes.
void turned_angles(const Token token, const uint position, const uint pair, const uint n,
                   out Unit c, out Unit s) {
    VkropeTurns turns = VkropeTurns(uvec4(0), uvec4(0), uvec4(0), uvec4(0));
    uint at = turn_header_vec4s + token.head_group * ((summed_axes + phase) * fractions_vec4s);
    if (section_order == sections_sum) {
        VKROPE_UNROLL for (uint axis = 0; axis < axes; ++axis) {
            vkrope_add_axis(at + axis * fractions_vec4s, vkrope_axis_angle(axis).row, pair, n,
                            turns);
        }
    } else {
        vkrope_add_axis(at, position, pair, n, turns);
    }
    at += summed_axes * fractions_vec4s;
    if (phase != 0) vkrope_add_axis(at, 1, pair, n, turns);
    vkrope_turned_angles(turns, n, c, s);
}

// Computes cos and sin of the n pairs from `pair` on, which share one position. Reads no row
// outside the table.
void pairs_angles(const Token token, const Angle angle, const uint pair, const uint n, out Unit c,
                  out Unit s) {
    const uint row = token.covered ? angle.row : 0;
    if (angles == angles_texture)
        vkrope_texture_angles(row, pair, n, VKROPE_PUSH.texture_fold_log2,
                              VKROPE_PUSH.texture_row_texels, c, s);
    else if (angles == angles_factored) {
        if (phase == 0)
            vkrope_factored_angles(row, VKROPE_PUSH.table_rows, pair, n,
                                   VKROPE_PUSH.texture_fold_log2, VKROPE_PUSH.texture_row_texels, c,
                                   s);
        else
            vkrope_phased_angles(row, VKROPE_PUSH.table_rows, pair, n,
                                 VKROPE_PUSH.texture_fold_log2, VKROPE_PUSH.texture_row_texels, c,
                                 s);
    } else if (angles == angles_computed) {
        if (vkrope_signed_positions == 0)
            vkrope_computed_angles(row, pair, n, c, s);
        else
            turned_angles(token, row, pair, n, c, s);
    } else if (angles == angles_pairs)
        vkrope_buffer_angles(VKROPE_OFFSET(offset_table) + row * VKROPE_PUSH_TABLE_STRIDE, pair, n,
                             c, s);
    else
        vkrope_angle_apart(angles - angles_cos_sin_cache, VKROPE_OFFSET(offset_table),
                           VKROPE_PUSH_TABLE_SIN_OFFSET, row * VKROPE_PUSH_TABLE_STRIDE + pair, c,
                           s);
    s = vkrope_flip(s, angle.sign);
}

Angle angle_of(const Token token, const uint pair) {
    Angle angle = token.angle;
    if (axes != 0) {
        angle = vkrope_axis_angles[0];
        if (section_order != sections_sum) angle = vkrope_axis_angle(vkrope_axis_of(pair));
    }
    return angle;
}

const uint run_elements = runs_apart ? unit_elements / 2 : unit_elements;
// 0 if all pairs of a run have their angles in one row of a vkrope table (not a cos_sin_cache).
const uint angles_misfit = (angles >= angles_cos_sin_cache ? 1 : 0) |
                           (axes == 0                       ? 0
                            : section_order == sections_sum ? 0
                                                            : VKROPE_AXES_MISFIT(run_elements));

// Returns the index, in a row of a cos_sin_cache, of the angle of a pair, or of its channel 0 or 1.
uint angle_index(const uint pair, const uint channel) {
    uint index = pair;
    if (channel_angles != 0)
        index = pairing == pairing_half_split ? pair + channel * (rotary_dim / 2)
                                              : 2 * pair + channel;
    return index;
}

// Computes cos and sin of the pairs of a chunk, or of their channels 0 or 1.
void angles_of(const Token token, const uvec2 pairs, const uint channel, out Unit c, out Unit s) {
    if (angles_misfit == 0) {
        pairs_angles(token, angle_of(token, pairs.x), pairs.x, run_elements, c, s);
        if (runs_apart) {
            Unit other_c, other_s;
            pairs_angles(token, angle_of(token, pairs.y), pairs.y, run_elements, other_c, other_s);
            c = vkrope_join(unit_elements, c, other_c);
            s = vkrope_join(unit_elements, s, other_s);
        }
    } else {
        float cosines[8], sines[8];
        VKROPE_UNROLL for (uint i = 0; i < 8; ++i) {
            cosines[i] = sines[i] = 0;
            if (i < unit_elements) {
                const uint pair = i < unit_elements / 2 ? pairs.x + i
                                                        : pairs.y + i - unit_elements / 2;
                pairs_angles(token, angle_of(token, pair), angle_index(pair, channel), 1, c, s);
                cosines[i] = c.a.x;
                sines[i] = s.a.x;
            }
        }
        c = Unit(vec4(cosines[0], cosines[1], cosines[2], cosines[3]),
                 vec4(cosines[4], cosines[5], cosines[6], cosines[7]));
        s = Unit(vec4(sines[0], sines[1], sines[2], sines[3]),
                 vec4(sines[4], sines[5], sines[6], sines[7]));
    }
}

Chunk rotating_chunk(const Token token, const uvec2 pairs) {
    Chunk chunk;
    chunk.rotates = token.covered;
    chunk.from = channels_of(pairing, pairs);
    chunk.to = pairing == pairing_out ? chunk.from : channels_of(pairing_out, pairs);
    angles_of(token, pairs, 0, chunk.c, chunk.s);
    chunk.c = vkrope_scale(chunk.c, uintBitsToFloat(VKROPE_PUSH.gain));
    chunk.s = vkrope_scale(chunk.s, uintBitsToFloat(VKROPE_PUSH.gain));
    chunk.c1 = chunk.c;
    chunk.s1 = chunk.s;
    if (channel_angles != 0) {
        angles_of(token, pairs, 1, chunk.c1, chunk.s1);
        chunk.c1 = vkrope_scale(chunk.c1, uintBitsToFloat(VKROPE_PUSH.gain));
        chunk.s1 = vkrope_scale(chunk.s1, uintBitsToFloat(VKROPE_PUSH.gain));
        // The gradient transposes the matrix of a pair.
        if (vkrope_has(flag_inverse)) {
            const Unit other = chunk.s;
            chunk.s = chunk.s1;
            chunk.s1 = other;
        }
    }
    return chunk;
}

#endif
