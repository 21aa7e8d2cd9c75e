// SPDX-License-Identifier: MIT
// Rotates Q and K: index -> load -> rotate -> store. One module for each kind of angle table; everything else is specialised.
//
// One invocation owns, in the rows of one token, the same run of units for one or more heads, so that cos and sin are read once
// and shared. It loads every word once, and before it stores it: in place needs no other care. Along x the invocations of a token count
// units first, then heads, then tokens; z is the batch.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require

#include "interface.h"

layout(local_size_x_id = 0) in;  // constant_workgroup_size

layout(constant_id = constant_pairing) const uint pairing = 0;
layout(constant_id = constant_rotary_dim) const uint rotary_dim = 2;
layout(constant_id = constant_positions) const uint positions = 0;
layout(constant_id = constant_access) const uint access = 0;
layout(constant_id = constant_unit_elements) const uint unit_elements = 1;
layout(constant_id = constant_heads_batch) const uint heads_batch = 1;
layout(constant_id = constant_heads_owned) const uint heads_owned = 1;
layout(constant_id = constant_units_owned) const uint units_owned = 1;
layout(constant_id = constant_first_head_dim) const uint first_head_dim = 2;
layout(constant_id = constant_first_offset) const uint first_offset = 0;
layout(constant_id = constant_first_in) const uint first_in_element = 0;
layout(constant_id = constant_first_out) const uint first_out_element = 0;
layout(constant_id = constant_second_head_dim) const uint second_head_dim = 2;
layout(constant_id = constant_second_offset) const uint second_offset = 0;
layout(constant_id = constant_second_in) const uint second_in_element = 0;
layout(constant_id = constant_second_out) const uint second_out_element = 0;

layout(push_constant, std430) uniform PushBlock { Push push; };

// Two views of each tensor; a specialised pipeline uses one.
layout(set = 0, binding = binding_first_in, std430) readonly buffer FirstInWide { uvec4 first_in_wide[]; };
layout(set = 0, binding = binding_first_in, std430) readonly buffer FirstInWord { uint first_in_word[]; };
layout(set = 0, binding = binding_first_out, std430) buffer FirstOutWide { uvec4 first_out_wide[]; };
layout(set = 0, binding = binding_first_out, std430) buffer FirstOutWord { uint first_out_word[]; };
layout(set = 0, binding = binding_second_in, std430) readonly buffer SecondInWide { uvec4 second_in_wide[]; };
layout(set = 0, binding = binding_second_in, std430) readonly buffer SecondInWord { uint second_in_word[]; };
layout(set = 0, binding = binding_second_out, std430) buffer SecondOutWide { uvec4 second_out_wide[]; };
layout(set = 0, binding = binding_second_out, std430) buffer SecondOutWord { uint second_out_word[]; };
layout(set = 0, binding = binding_index_a, std430) readonly buffer Ids { uint ids[]; };
layout(set = 0, binding = binding_status, std430) buffer Status { uint status[]; };

#include "element.glsl"
#include "pairing.glsl"

#if defined(VKROPE_ANGLES_TEXTURE)
layout(set = 0, binding = binding_texture) uniform texture2D angle_texture;
#define VKROPE_ANGLE_TEXTURE angle_texture
#elif defined(VKROPE_ANGLES_BUFFER)
layout(set = 0, binding = binding_table, std430) readonly buffer Table { uint table[]; };
#define VKROPE_ANGLE_WORD(index) table[index]
#else
#error "rope.comp: define VKROPE_ANGLES_TEXTURE or VKROPE_ANGLES_BUFFER"
#endif
#include "angles.glsl"

// ---- What the specialisation constants imply. `second` is always a literal: the branches on it fold away. ----

uint in_element(bool second) { return second ? second_in_element : first_in_element; }
uint out_element(bool second) { return second ? second_out_element : first_out_element; }
uint head_dim(bool second) { return second ? second_head_dim : first_head_dim; }
uint rotary_offset(bool second) { return second ? second_offset : first_offset; }
bool in_place(bool second) { return (push.flags & (second ? flag_second_in_place : flag_first_in_place)) != 0; }

Side in_side(bool second) {
    Side side = push.first_in;
    if (second) side = push.second_in;
    return side;
}

Side out_side(bool second) {
    Side side = push.first_out;
    if (second) side = push.second_out;
    return side;
}

uint runs_of(uint elements) {
    const uint run = unit_elements * units_owned;
    return (elements + run - 1) / run;
}

// ---- Load and store: a unit that starts at element `at` of a tensor. ----

uvec4 load_wide(bool second, uint at) { return second ? second_in_wide[at] : first_in_wide[at]; }
uint load_word(bool second, uint at) { return second ? second_in_word[at] : first_in_word[at]; }

// A half word next to one that another invocation may be merging: in place, through the binding that is written.
uint load_shared(bool second, uint at) {
    if (!in_place(second)) return load_word(second, at);
    return second ? atomicOr(second_out_word[at], 0) : atomicOr(first_out_word[at], 0);
}

Words load(bool second, uint at) {
    Words w = Words(uvec4(0), uvec4(0));
    const bool f32 = in_element(second) == element_f32;
    if (access == access_wide) {
        w.a = load_wide(second, f32 ? at / 4 : at / 8);
        if (f32 && unit_elements == 8) w.b = load_wide(second, at / 4 + 1);
    } else if (f32) {
        w.a.x = load_word(second, at);
        if (unit_elements == 2) w.a.y = load_word(second, at + 1);
    } else if (access == access_word) {
        w.a.x = load_word(second, at / 2);
    } else {
        w.a.x = (load_shared(second, at / 2) >> (16 * (at & 1u))) & 0xffffu;
    }
    return w;
}

void store_wide(bool second, uint at, uvec4 value) {
    if (second) second_out_wide[at] = value;
    else first_out_wide[at] = value;
}

void store_word(bool second, uint at, uint value) {
    if (second) second_out_word[at] = value;
    else first_out_word[at] = value;
}

// Replaces the bits of `mask`, each of which has this invocation as its only writer.
void merge_word(bool second, uint at, uint mask, uint value) {
    if (second) {
        atomicAnd(second_out_word[at], ~mask);
        atomicOr(second_out_word[at], value);
    } else {
        atomicAnd(first_out_word[at], ~mask);
        atomicOr(first_out_word[at], value);
    }
}

void store(bool second, uint at, Words w) {
    const bool f32 = out_element(second) == element_f32;
    if (access == access_wide) {
        store_wide(second, f32 ? at / 4 : at / 8, w.a);
        if (f32 && unit_elements == 8) store_wide(second, at / 4 + 1, w.b);
    } else if (f32) {
        store_word(second, at, w.a.x);
        if (unit_elements == 2) store_word(second, at + 1, w.a.y);
    } else if (access == access_word) {
        store_word(second, at / 2, w.a.x);
    } else {
        const uint shift = 16 * (at & 1u);
        merge_word(second, at / 2, 0xffffu << shift, (w.a.x & 0xffffu) << shift);
    }
}

// Unrotated: the same bits, unless the element type changes.
Words convert(bool second, Words w) {
    if (in_element(second) == out_element(second)) return w;
    return vkrope_encode(out_element(second), vkrope_decode(in_element(second), w));
}

// ---- The rows of one token ----

struct Token {
    uint index, batch;
    uint row;      // of the angle table
    bool covered;  // by the angle table
    bool flip;     // the sign of sin
};

uint row_start(Side side, Token token) {
    return side.offset + token.batch * side.batch + token.index * side.token;
}

// Rotates the n pairs from `pair` on in the heads [first, last), `heads_batch` heads at a time: all their loads come before the
// first store.
void rotate_heads(bool second, Token token, uint pair, uint first, uint last) {
    const uint n = unit_elements;
    const Side from = in_side(second);
    const Side to = out_side(second);
    const uvec2 channels = vkrope_pair_channels(pairing, rotary_dim, n, pair) + rotary_offset(second);
    Unit c, s;
#ifdef VKROPE_ANGLE_TEXTURE
    vkrope_angles(token.row, pair, n, push.table_stride, push.table_texels, c, s);
#else
    vkrope_angles(push.table_offset + token.row * push.table_stride, pair, n, c, s);
#endif
    s = vkrope_flip(s, token.flip);
    for (uint head = first; head < last; head += heads_batch) {
        Words A[4], B[4];
        for (uint i = 0; i < heads_batch; ++i) {
            const uint row = row_start(from, token) + min(head + i, last - 1) * from.head;
            A[i] = load(second, row + channels.x);
            B[i] = load(second, row + channels.y);
        }
        for (uint i = 0; i < heads_batch; ++i) {
            if (head + i >= last) break;
            Unit x0, x1, y0, y1;
            vkrope_to_pairs(pairing, n, vkrope_decode(in_element(second), A[i]), vkrope_decode(in_element(second), B[i]), x0, x1);
            vkrope_rotate(x0, x1, c, s, y0, y1);
            Unit a, b;
            vkrope_from_pairs(pairing, n, y0, y1, a, b);
            const uint row = row_start(to, token) + (head + i) * to.head;
            store(second, row + channels.x, vkrope_encode(out_element(second), a));
            store(second, row + channels.y, vkrope_encode(out_element(second), b));
        }
    }
}

// Copies the unit at `channel` of the heads [first, last).
void copy_heads(bool second, Token token, uint channel, uint first, uint last) {
    const Side from = in_side(second);
    const Side to = out_side(second);
    for (uint head = first; head < last; ++head) {
        const Words w = load(second, row_start(from, token) + head * from.head + channel);
        store(second, row_start(to, token) + head * to.head + channel, convert(second, w));
    }
}

// The run of pairs `run` in the heads [first, last).
void rotate_run(bool second, Token token, uint run, uint first, uint last) {
    const uint n = unit_elements;
    if (!token.covered && in_place(second)) return;
    for (uint unit = 0; unit < units_owned; ++unit) {
        const uint pair = (run * units_owned + unit) * n;
        if (pair >= rotary_dim / 2) break;
        if (token.covered) {
            rotate_heads(second, token, pair, first, last);
        } else {
            const uvec2 channels = vkrope_pair_channels(pairing, rotary_dim, n, pair) + rotary_offset(second);
            copy_heads(second, token, channels.x, first, last);
            copy_heads(second, token, channels.y, first, last);
        }
    }
}

// The run `run` of the channels outside the window, those before it first.
void copy_run(bool second, Token token, uint run, uint first, uint last) {
    for (uint unit = 0; unit < units_owned; ++unit) {
        const uint channel = (run * units_owned + unit) * unit_elements;
        if (channel >= head_dim(second) - rotary_dim) break;
        copy_heads(second, token, channel < rotary_offset(second) ? channel : channel + rotary_dim, first, last);
    }
}

Token token_of(uint index, uint batch) {
    Token token;
    token.index = index;
    token.batch = batch;
    const int position = positions == positions_ids ? int(ids[push.index_offset + batch * push.index_batch + index])
                                                    : int(push.first_position + index);
    token.row = vkrope_magnitude(position);
    token.covered = token.row < push.table_rows;
    token.flip = (position < 0) != ((push.flags & flag_inverse) != 0);
    return token;
}

void main() {
    const uint first_heads = push.heads & 0xffffu;
    const uint second_heads = push.heads >> 16;
    // Groups of heads: Q's, then K's. An invocation that owns all heads owns both.
    const uint owned = heads_owned == 0 ? 1 : heads_owned;
    const uint first_groups = heads_owned == 0 ? 1 : (first_heads + owned - 1) / owned;
    const uint second_groups = heads_owned == 0 ? 0 : (second_heads + owned - 1) / owned;

    // Runs of a row: the pairs, then the channels outside the window, which only a tensor that changes places has to move.
    const uint pair_runs = runs_of(rotary_dim / 2);
    const uint first_copies = first_heads == 0 || in_place(false) ? 0 : runs_of(first_head_dim - rotary_dim);
    const uint second_copies = second_heads == 0 || in_place(true) ? 0 : runs_of(second_head_dim - rotary_dim);
    const uint second_copy_groups = heads_owned == 0 ? 1 : second_groups;

    const uint pair_items = pair_runs * (first_groups + second_groups);
    const uint first_copy_items = first_copies * first_groups;
    const uint items = pair_items + first_copy_items + second_copies * second_copy_groups;

    const uint invocation = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (invocation / items >= push.tokens) return;
    const Token token = token_of(invocation / items, gl_WorkGroupID.z);
    uint item = invocation % items;

    if (item == 0 && !token.covered && (push.flags & flag_count_uncovered) != 0) atomicAdd(status[push.status_offset], 1);

    if (item < pair_items) {
        const uint run = item % pair_runs;
        const uint group = item / pair_runs;
        if (heads_owned == 0) {
            rotate_run(false, token, run, 0, first_heads);
            rotate_run(true, token, run, 0, second_heads);
        } else if (group < first_groups) {
            rotate_run(false, token, run, group * owned, min(group * owned + owned, first_heads));
        } else {
            rotate_run(true, token, run, (group - first_groups) * owned, min((group - first_groups) * owned + owned, second_heads));
        }
    } else if (item - pair_items < first_copy_items) {
        item -= pair_items;
        const uint first = item / first_copies * owned;
        copy_run(false, token, item % first_copies, first, heads_owned == 0 ? first_heads : min(first + owned, first_heads));
    } else {
        item -= pair_items + first_copy_items;
        const uint first = item / second_copies * owned;
        copy_run(true, token, item % second_copies, first, heads_owned == 0 ? second_heads : min(first + owned, second_heads));
    }
}
