// SPDX-License-Identifier: MIT
// Applies the ops of one tensor: read from a cache, bias, norm before, clip, (rotation), norm
// after, scale, Hadamard transform, quantised store. tensor.glsl includes this file for each
// tensor. The file needs the macros of tensor.glsl and these:
//
//   T(ops), T(row_heads), ...              the constants of VKROPE_CONSTANTS
//   VKROPE_PARAMETER_WORD(index), _QUAD      the parameters, as f32 bits
//   VKROPE_TENSOR_WEIGHT_WORD(index), _QUAD  a norm's weight that is not among the parameters
//   VKROPE_TENSOR_SCALE_WORD(index)          the factors of tokens
//   VKROPE_TENSOR_SCALE_AT                   offset_q_scales, offset_k_scales or offset_v_scales
//   VKROPE_EXCHANGED(index)                  shared sums of the lanes of a workgroup: float
//   VKROPE_STAGED(index)                     words of rows that lanes store together: uint
//   VKROPE_TENSOR_SCALES_OUT_WORD(index)     computed scales of rows
//   VKROPE_TENSOR_SCALES_OUT_AT              their first word in the binding
//
// A row has T(row_chunks) chunks of two units: first the rotated chunks, then the copied chunks.
// This file contains the ops on the units of a chunk, and the terms of a norm's sums. The files
// included at the end process a row in two ways: ops_owned.glsl and ops_shared.glsl.

const uint T(norm) = T(ops) & (op_rms | op_layer);
const uint T(units) = T(head_dim) / unit_elements;
// The units of a row that a norm takes. norm_in_part is 0 if it takes all.
const uint T(norm_units) = T(norm_dim) / unit_elements;
const uint T(norm_from) = T(norm_first) / unit_elements;
const uint T(norm_in_part) = T(head_dim) ^ T(norm_dim);
const uint T(levels) = VKROPE_LEVELS(T(norm_units));
const uint T(head_levels) = VKROPE_LEVELS(T(row_heads));
#if VKROPE_TENSOR_ROTATES
const uint T(row_chunks) = rotating + T(copying);
#else
const uint T(row_chunks) = T(copying);
#endif
const bool T(norm_before) = (T(ops) & op_before) != 0;
const bool T(norm_after) = (T(ops) & op_after) != 0;
const bool T(whole_token) = (T(ops) & op_token) != 0;
// The lanes of a row store the row together if staged_rows is true.
const bool T(quantised) = T(element_out) > element_bf16;
const bool T(in_blocks) = VKROPE_HAS_BLOCKS(T(element_out));
const bool T(scale_made) = T(store_scale) >= store_scale_made;
const uint T(transforms) = T(hadamard) | T(hadamard_read);
const bool T(staged_rows) = T(quantised) || T(transforms) != 0;
// Type of a unit that is read. Undoing a transform leaves f32.
const uint T(element_unit) = T(hadamard_read) == 0 ? T(element_in) : element_f32;
const uint T(group_channels) = T(head_dim) / T(row_scales);

// These functions return a chunk with channels counted from the start of the row: the copied chunk
// `index`, or a rotated chunk.
Chunk T(copied_chunk)(uint index) {
    Chunk chunk;
    chunk.from = chunk.to = T(copied_channels)(index - (T(row_chunks) - T(copying)));
    chunk.rotates = false;
    chunk.c = chunk.s = chunk.c1 = chunk.s1 = Unit(vec4(0), vec4(0));
    return chunk;
}

Chunk T(shifted_chunk)(Chunk chunk) {
#if VKROPE_TENSOR_ROTATES
    chunk.from += T(rotary_offset);
    chunk.to += T(rotary_offset);
    if (T(keeps) != 0) chunk.rotates = !vkrope_still;
#endif
    return chunk;
}

#if VKROPE_TENSOR_OF_CACHE
// ---- The second destination ----

#define VKROPE_STORE_UNIT T(second_store)
#define VKROPE_STORE_MERGED T(second_merge_word)
#define VKROPE_STORE_ACCESS access
#define VKROPE_STORE_ELEMENTS unit_elements
#define VKROPE_STORE_ELEMENT T(element_second)
#define VKROPE_STORE_WIDE T(second_wide)
#define VKROPE_STORE_PAIR T(second_pair)
#define VKROPE_STORE_WORD T(second_word)
#include "store.glsl"
#endif

// The row of a lane in the second destination, which has the rows of all tokens, and whether its
// token has a row in the first destination.
uint T(second_token), T(second_row);
bool T(in_first);

void T(begin_second)(const uint token, const bool in_first) {
    T(second_token) = token;
    T(in_first) = in_first;
}

// ---- The ops on a unit ----

// Returns the index in the whole call of head `head` of this dispatch.
uint T(absolute_head)(uint head) {
    uint first = VKROPE_PUSH.flags / flag_first_head;
    if (vkrope_has(flag_z_is_group)) first += gl_WorkGroupID.z * VKROPE_TENSOR_HEADS;
    return first + head;
}

// Returns the index of the first scale of a row: of a token, or of a row in a page of a cache.
uint T(scales_of_row)(const bool in_cache, const uint index, const uint page, const uint line,
                      const uint head) {
    const uint absolute = T(absolute_head)(head);
    uint at = index * T(scale_heads) + absolute;
    if (in_cache) {
        const uint first = page * VKROPE_PUSH.page_size * T(scale_heads);
        at = first + line * T(scale_heads) + absolute;
        if (T(scales_paged) != 0) at = first + absolute * VKROPE_PUSH.page_size + line;
    }
    return at * T(row_scales);
}

#include "cached.glsl"

// Aims at the row of head `head` in the second destination.
void T(aim_second)(uint head) {
    T(second_row) = (T(second_token) * T(scale_heads) + T(absolute_head)(head)) * T(head_dim);
}

// Returns true if a norm takes this channel.
bool T(in_norm)(const uint channel) {
    return channel - T(norm_first) < T(norm_dim);
}

// Returns the parameters of a unit. `row` is the number of parameters of a head.
Unit T(parameters)(uint shape, const uint at, const uint head, const uint channel, const uint row) {
    uint index = VKROPE_OFFSET(offset_parameters) + at + channel;
    if (second_parameters != 0) index += vkrope_parameter_set;
    if (shape == shape_head_channel) index += T(absolute_head)(head) * row;
    uvec4 a = uvec4(0), b = uvec4(0);
    if (unit_elements >= 4) {
        a = VKROPE_PARAMETER_QUAD(index / 4);
        if (unit_elements == 8) b = VKROPE_PARAMETER_QUAD(index / 4 + 1);
    } else {
        a.x = VKROPE_PARAMETER_WORD(index);
        if (unit_elements == 2) a.y = VKROPE_PARAMETER_WORD(index + 1);
    }
    return Unit(uintBitsToFloat(a), uintBitsToFloat(b));
}

// Returns the norm's weight of a unit from its own buffer.
Unit T(bound_weight)(uint shape, const uint head, const uint channel) {
    uint at = channel;
    if (shape == shape_head_channel) at += T(absolute_head)(head) * T(norm_dim);
    const uint word = T(element_weight) == element_f32 ? at : at / 2;
    const uint words = T(element_weight) == element_f32 ? unit_elements : (unit_elements + 1) / 2;
    Words w = Words(uvec4(0), uvec4(0));
    if (words >= 4) {
        w.a = VKROPE_TENSOR_WEIGHT_QUAD(word / 4);
        if (words == 8) w.b = VKROPE_TENSOR_WEIGHT_QUAD(word / 4 + 1);
    } else {
        w.a.x = VKROPE_TENSOR_WEIGHT_WORD(word);
        if (words == 2) w.a.y = VKROPE_TENSOR_WEIGHT_WORD(word + 1);
    }
    if (unit_elements == 1) {
        if (T(element_weight) != element_f32) w.a.x = (w.a.x >> (16 * (at & 1u))) & 0xffffu;
    }
    Unit u = vkrope_decode(T(element_weight), w);
    if (T(weight_added) != 0) u = vkrope_sum(u, Unit(vec4(1), vec4(1)));
    return u;
}

// The parameters of a unit. Parameters that all heads share are loaded once.
struct T(Parameters) {
    Unit bias, weight, norm_bias;
};

// Loads the parameters that have this shape. A condition without `shape` is a constant, so that a
// kernel without parameters does not bind them.
void T(load_parameters)(uint shape, const uint head, const uvec2 channels, inout T(Parameters) p) {
    uint weighed = channels.y;
    if (T(norm_in_part) != 0) weighed = T(in_norm)(weighed) ? weighed - T(norm_first) : 0;
    if (T(bias) != shape_none) {
        if (T(bias) == shape)
            p.bias = T(parameters)(shape, T(bias_at), head, channels.x, T(head_dim));
    }
    if (T(weight) != shape_none) {
        if (T(weight_bound) != 0) {
            if (T(weight) == shape) p.weight = T(bound_weight)(shape, head, weighed);
        } else if (T(weight) == shape) {
            p.weight = T(parameters)(shape, T(weight_at), head, weighed, T(norm_dim));
        }
    }
    if (T(norm_bias) != shape_none) {
        if (T(norm_bias) == shape)
            p.norm_bias = T(parameters)(shape, T(norm_bias_at), head, weighed, T(norm_dim));
    }
}

// Decodes a unit, and adds its bias.
Unit T(biased)(Words w, const uint head, const uint channel) {
    Unit u = vkrope_decode(T(element_unit), w);
    if (T(bias) != shape_none)
        u = vkrope_sum(u, T(parameters)(T(bias), T(bias_at), head, channel, T(head_dim)));
    return u;
}

Unit T(rounded)(Unit u) {
    if ((T(ops) & op_rounds) != 0)
        u = vkrope_decode(T(element_in), vkrope_encode(T(element_in), u));
    return u;
}

// Returns a unit, which starts at this channel, after the norm.
Unit T(normed)(VkropeNorm norm, Unit u, const T(Parameters) p, const uint channel) {
    const Unit before = u;
    if (T(norm) == op_layer) u = vkrope_centred(u, norm.scale, norm.mean);
    if ((T(ops) & op_one_sum) == 0) u = vkrope_scale(u, norm.scale_d);
    if (T(norm) == op_layer) u = vkrope_centred(u, 1.0, norm.rest);
    u = T(rounded)(vkrope_scale(u, norm.root));
    if (T(weight) != shape_none) u = T(rounded)(vkrope_product(u, p.weight));
    if (T(norm_bias) != shape_none) u = vkrope_sum(u, p.norm_bias);
    if (T(norm_in_part) != 0) u = vkrope_either(T(in_norm)(channel), u, before);
    return u;
}

// Clips the two units of a chunk, and rotates them if `rotates` is true.
void T(clip_and_rotate)(bool rotates, const Chunk chunk, inout Unit a, inout Unit b) {
    if ((T(ops) & op_clip) != 0) {
        a = vkrope_clip(a, uintBitsToFloat(T(clip)));
        b = vkrope_clip(b, uintBitsToFloat(T(clip)));
    }
    if (rotates) {
        Unit x0, x1, y0, y1;
        vkrope_to_pairs(pairing, unit_elements, a, b, x0, x1);
        vkrope_rotate_channels(x0, x1, chunk.c, chunk.s, chunk.c1, chunk.s1, y0, y1);
        y0 = vkrope_either(chunk.rotates, y0, x0);
        y1 = vkrope_either(chunk.rotates, y1, x1);
        vkrope_from_pairs(pairing_out, unit_elements, y0, y1, a, b);
    }
}

// Returns the factor of a token.
float T(token_factor)(uint index, const uint z) {
    float factor = 1.0;
    if ((T(ops) & op_scale_tokens) != 0) {
        if (!vkrope_has(flag_z_is_group)) index += z * VKROPE_PUSH.tokens;
        factor = uintBitsToFloat(
            VKROPE_TENSOR_SCALE_WORD(VKROPE_OFFSET(VKROPE_TENSOR_SCALE_AT) + index));
    }
    return factor;
}

Unit T(scaled)(Unit u, const float token_factor) {
    if ((T(ops) & op_scale_call) != 0)
        u = vkrope_scale(u, uintBitsToFloat(VKROPE_PUSH.q_scale));
    else if ((T(ops) & op_scale) != 0)
        u = vkrope_scale(u, uintBitsToFloat(T(factor)));
    if ((T(ops) & op_scale_tokens) != 0) u = vkrope_scale(u, token_factor);
    return u;
}

// The parameters of the two units of a chunk.
struct T(ChunkParameters) {
    T(Parameters) a, b;
};

void T(load_chunk_parameters)(uint shape, const Chunk chunk, const uint head,
                              inout T(ChunkParameters) p) {
    // Biases belong to channels of the input, and so do weights of a norm before the rotation.
    const uvec2 weighed = T(norm_after) ? chunk.to : chunk.from;
    T(load_parameters)(shape, head, uvec2(chunk.from.x, weighed.x), p.a);
    T(load_parameters)(shape, head, uvec2(chunk.from.y, weighed.y), p.b);
}

// Encodes two units after all ops, whose words were A and B, as elements of type `element`. Without
// ops, a unit that does not rotate keeps its bits if the element type does not change.
void T(encode_units)(const uint element, bool rotates, const Chunk chunk, const Words A,
                     const Words B, const Unit a, const Unit b, out Words P, out Words Q) {
    P = vkrope_encode(element, a);
    Q = vkrope_encode(element, b);
    if (T(ops) == 0 && T(bias) == shape_none) {
        if (T(element_in) == element) {
            if (!rotates || !chunk.rotates) {
                P = A;
                Q = B;
                if (pairing != pairing_out) {
                    if (rotates)
                        vkrope_change_pairing(pairing, pairing_out, unit_elements, T(element_in), A,
                                              B, P, Q);
                }
            }
        }
    }
}

// Applies all ops to two units, from their words to the store at element `to`, or in the staged
// row.
void T(ops_units)(bool rotates, const Chunk chunk, const Words A, const Words B, const uint to,
                  const T(ChunkParameters) p, const VkropeNorm norm, const float token_factor) {
    Unit a = vkrope_decode(T(element_unit), A), b = vkrope_decode(T(element_unit), B);
#if VKROPE_TENSOR_OF_CACHE
    if (T(second_of) == second_input) {
        if (vkrope_has(flag_second)) {
            Words P = A, Q = B;
            if (T(element_in) != T(element_second)) {
                P = vkrope_encode(T(element_second), a);
                Q = vkrope_encode(T(element_second), b);
            }
            T(second_store)(T(second_row) + chunk.from.x, P);
            T(second_store)(T(second_row) + chunk.from.y, Q);
        }
    }
#endif
    if (T(bias) != shape_none) {
        a = vkrope_sum(a, p.a.bias);
        b = vkrope_sum(b, p.b.bias);
    }
    if (T(norm_before)) {
        a = T(normed)(norm, a, p.a, chunk.from.x);
        b = T(normed)(norm, b, p.b, chunk.from.y);
    }
    T(clip_and_rotate)(rotates, chunk, a, b);
    if (T(norm_after)) {
        a = T(normed)(norm, a, p.a, chunk.to.x);
        b = T(normed)(norm, b, p.b, chunk.to.y);
    }
    a = T(scaled)(a, token_factor);
    b = T(scaled)(b, token_factor);
#if VKROPE_TENSOR_OF_CACHE
    if (T(second_of) == second_result && T(hadamard) == 0) {
        Words P, Q;
        T(encode_units)(T(element_second), rotates, chunk, A, B, a, b, P, Q);
        if (vkrope_has(flag_second)) {
            T(second_store)(T(second_row) + chunk.to.x, P);
            T(second_store)(T(second_row) + chunk.to.y, Q);
        }
    }
#endif
    if (T(staged_rows)) {
        a = vkrope_hadamard_inside(unit_elements, T(hadamard), a);
        b = vkrope_hadamard_inside(unit_elements, T(hadamard), b);
        vkrope_stage_unit(unit_elements, to + vkrope_place(chunk.to.x), 1, a);
        vkrope_stage_unit(unit_elements, to + vkrope_place(chunk.to.y), 1, b);
    } else {
        Words P, Q;
        T(encode_units)(T(element_out), rotates, chunk, A, B, a, b, P, Q);
        bool stores = true;
        if (T(second_of) != second_none) stores = T(in_first);
        if (stores) {
            T(store)(to + chunk.to.x, P);
            T(store)(to + chunk.to.y, Q);
        }
    }
}

// ---- Sums ----

// Returns the sum of a unit's terms of a norm: values, differences or their squares for a layer
// norm; squares of values for an RMS norm.
float T(leaf)(uint what, const VkropeNorm norm, Unit u, const float scale) {
    if (T(norm) == op_layer && what != sum_values) u = vkrope_centred(u, norm.scale, norm.mean);
    if ((T(ops) & op_one_sum) == 0) u = vkrope_scale(u, scale);
    if (what == sum_squares) u = vkrope_squares(u);
    return vkrope_unit_sum(unit_elements, u);
}

// Returns the channels of the two units of a chunk in the input.
uvec2 T(row_channels)(uint index) {
    uvec2 channels;
#if VKROPE_TENSOR_ROTATES
    if (T(copying) == 0 || index < rotating)
        channels = channels_of(pairing, pairs_of(index)) + T(rotary_offset);
    else
#endif
        channels = T(copied_channels)(index - (T(row_chunks) - T(copying)));
    return channels;
}

// Two units of a row as terms of a norm, and their indices in the row.
struct T(Summed) {
    uvec2 units;
    Unit a, b;
};

T(Summed)
T(summed_of)(Token token, const uint index, const Words A, const Words B, const uint head) {
    uvec2 channels = T(row_channels)(index);
    Unit a = T(biased)(A, head, channels.x), b = T(biased)(B, head, channels.y);
    if (T(norm_after)) {
        Chunk chunk;
#if VKROPE_TENSOR_ROTATES
        if (rotating != 0) {
            if (index < rotating) {
                chunk = T(shifted_chunk)(rotating_chunk(token, pairs_of(index)));
                T(clip_and_rotate)(true, chunk, a, b);
                channels = chunk.to;
            } else {
                T(clip_and_rotate)(false, chunk, a, b);
            }
        } else
#endif
            T(clip_and_rotate)(false, chunk, a, b);
    }
    return T(Summed)(channels / unit_elements, a, b);
}

#include "ops_owned.glsl"
#include "ops_shared.glsl"
