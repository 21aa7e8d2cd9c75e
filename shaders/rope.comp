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

// Two views of each tensor; a specialised pipeline uses one. VKROPE_LEAN: one tensor, first, so that four storage buffers do.
layout(set = 0, binding = binding_first_in, std430) readonly buffer FirstInWide { uvec4 first_in_wide[]; };
layout(set = 0, binding = binding_first_in, std430) readonly buffer FirstInWord { uint first_in_word[]; };
layout(set = 0, binding = binding_first_out, std430) buffer FirstOutWide { uvec4 first_out_wide[]; };
layout(set = 0, binding = binding_first_out, std430) buffer FirstOutWord { uint first_out_word[]; };
#ifdef VKROPE_LEAN
#define second_in_wide first_in_wide
#define second_in_word first_in_word
#define second_out_wide first_out_wide
#define second_out_word first_out_word
#else
layout(set = 0, binding = binding_second_in, std430) readonly buffer SecondInWide { uvec4 second_in_wide[]; };
layout(set = 0, binding = binding_second_in, std430) readonly buffer SecondInWord { uint second_in_word[]; };
layout(set = 0, binding = binding_second_out, std430) buffer SecondOutWide { uvec4 second_out_wide[]; };
layout(set = 0, binding = binding_second_out, std430) buffer SecondOutWord { uint second_out_word[]; };
#endif
layout(set = 0, binding = binding_index_a, std430) readonly buffer Ids { uint ids[]; };

// The fourth storage buffer of a lean module is the table, where the angles come from one, else the counter.
#if !defined(VKROPE_LEAN) || !defined(VKROPE_ANGLES_BUFFER)
#define VKROPE_STATUS
layout(set = 0, binding = binding_status, std430) buffer Status { uint status[]; };
#endif

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

// Functions have one exit and few callers: a compiler inlines them all, and works on what that makes.
// `second` is always a literal, so that the branches on it fold away.

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

// ---- Load and store: a unit that starts at element `at` of a tensor ----

uvec4 load_wide(bool second, uint at) {
    uvec4 w;
    if (second) w = second_in_wide[at];
    else w = first_in_wide[at];
    return w;
}

uint load_word(bool second, uint at) {
    uint w;
    if (second) w = second_in_word[at];
    else w = first_in_word[at];
    return w;
}

// A word that holds a neighbour's half, which another invocation may be merging: in place, through the binding that is written.
uint load_shared(bool second, uint at) {
    uint w;
    if (!in_place(second)) w = load_word(second, at);
    else if (second) w = atomicOr(second_out_word[at], 0);
    else w = atomicOr(first_out_word[at], 0);
    return w;
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

// ---- One step: two units of a row, the same in every head ----

struct Token {
    uint index, batch;
    uint row;      // of the angle table
    bool covered;  // by the angle table
    bool flip;     // the sign of sin
};

struct Step {
    uvec2 channels;  // where the two units start
    bool rotates;    // otherwise they are copied, bit for bit unless the element type changes
    Unit c, s;
};

uint runs_of(uint steps) { return (steps + units_owned - 1) / units_owned; }

// Steps that rotate, and steps that copy the channels outside the window: only a tensor that changes places has to move them.
uint rotating_steps() { return rotary_dim / (2 * unit_elements); }
uint copying_steps(bool second) {
    return in_place(second) ? 0 : (head_dim(second) - rotary_dim + 2 * unit_elements - 1) / (2 * unit_elements);
}
uint runs(bool second, uint heads) {
    return heads == 0 ? 0 : runs_of(rotating_steps()) + runs_of(copying_steps(second));
}

// A channel outside the window, counted without it, to its place in the row.
uint around_window(bool second, uint channel) {
    return channel < rotary_offset(second) ? channel : channel + rotary_dim;
}

Step step_of(bool second, Token token, uint run, uint index) {
    Step step;
    const uint before = runs_of(rotating_steps());
    if (run < before) {
        const uint pair = (run * units_owned + index) * unit_elements;
        step.rotates = token.covered;
        step.channels = vkrope_pair_channels(pairing, rotary_dim, unit_elements, pair) + rotary_offset(second);
        // A row outside the table is not read.
        const uint row = token.covered ? token.row : 0;
#ifdef VKROPE_ANGLE_TEXTURE
        vkrope_angles(row, pair, unit_elements, push.table_stride, push.table_texels, step.c, step.s);
#else
        vkrope_angles(push.table_offset + row * push.table_stride, pair, unit_elements, step.c, step.s);
#endif
        step.s = vkrope_flip(step.s, token.flip);
    } else {
        // Two units side by side; at the end of an odd number of units, the last one twice.
        const uint channel = ((run - before) * units_owned + index) * 2 * unit_elements;
        const bool last = channel + unit_elements >= head_dim(second) - rotary_dim;
        step.rotates = false;
        step.channels = uvec2(around_window(second, channel), around_window(second, last ? channel : channel + unit_elements));
        step.c = step.s = Unit(vec4(0), vec4(0));
    }
    return step;
}

void finish(bool second, Step step, uint row, Words A, Words B) {
    const uint from = in_element(second), to = out_element(second);
    const Unit a = vkrope_decode(from, A), b = vkrope_decode(from, B);
    Unit x0, x1, y0, y1, p, q;
    vkrope_to_pairs(pairing, unit_elements, a, b, x0, x1);
    vkrope_rotate(x0, x1, step.c, step.s, y0, y1);
    vkrope_from_pairs(pairing, unit_elements, y0, y1, p, q);
    if (from == to) {
        if (step.rotates) {
            A = vkrope_encode(to, p);
            B = vkrope_encode(to, q);
        }
    } else {
        if (!step.rotates) {
            p = a;
            q = b;
        }
        A = vkrope_encode(to, p);
        B = vkrope_encode(to, q);
    }
    store(second, row + step.channels.x, A);
    store(second, row + step.channels.y, B);
}

// The run `run` of the heads [first, last) of one token.
void process(bool second, Token token, uint run, uint first, uint last) {
    const Side in_rows = in_side(second), out_rows = out_side(second);
    const uint from = in_rows.offset + token.batch * in_rows.batch + token.index * in_rows.token;
    const uint to = out_rows.offset + token.batch * out_rows.batch + token.index * out_rows.token;
    const uint before = runs_of(rotating_steps());
    const uint steps_left = run < before ? rotating_steps() - run * units_owned : copying_steps(second) - (run - before) * units_owned;
    const uint steps = first < last ? min(steps_left, units_owned) : 0;
    for (uint i = 0; i < steps; ++i) {
        const Step step = step_of(second, token, run, i);
        if (heads_batch == 1) {
            for (uint head = first; head < last; ++head) {
                const uvec2 at = from + head * in_rows.head + step.channels;
                const Words A = load(second, at.x), B = load(second, at.y);
                finish(second, step, to + head * out_rows.head, A, B);
            }
        } else {
            // All loads come before the first store; a group that is not full loads its last head again.
            Words A[4], B[4];
            for (uint h = 0; h < 4; ++h) {
                const uvec2 at = from + min(first + h, last - 1) * in_rows.head + step.channels;
                A[h] = load(second, at.x);
                B[h] = load(second, at.y);
            }
            for (uint h = 0; h < 4; ++h) {
                if (first + h < last) finish(second, step, to + (first + h) * out_rows.head, A[h], B[h]);
            }
        }
    }
}

Token token_of(uint index, uint batch) {
    Token token;
    token.index = index;
    token.batch = batch;
    int position = int(push.first_position + index);
    if (positions == positions_ids) position = int(ids[push.index_offset + batch * push.index_batch + index]);
    token.row = vkrope_magnitude(position);
    token.covered = token.row < push.table_rows;
    token.flip = (position < 0) != ((push.flags & flag_inverse) != 0);
    return token;
}

void main() {
    const uint first_heads = push.heads & 0xffffu, second_heads = push.heads >> 16;
    const uint first_runs = runs(false, first_heads), second_runs = runs(true, second_heads);
    const bool owns_all = heads_owned == 0;
    const uint owned = owns_all ? 1 : heads_owned;
    // What a token consists of: runs, for an invocation that owns all heads; else runs times groups of heads, Q's and then K's.
    const uint first_items = first_runs * ((first_heads + owned - 1) / owned);
    const uint second_items = second_runs * ((second_heads + owned - 1) / owned);
    const uint items = owns_all ? max(first_runs, second_runs) : first_items + second_items;

    const uint invocation = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    const uint index = invocation / items, item = invocation % items;
    if (index < push.tokens) {
        const Token token = token_of(index, gl_WorkGroupID.z);
#ifdef VKROPE_STATUS
        if (item == 0 && !token.covered && (push.flags & flag_count_uncovered) != 0) atomicAdd(status[push.status_offset], 1);
#endif
        uvec3 q = uvec3(item, 0, item < first_runs ? first_heads : 0);  // run, first head, one past the last head
        uvec3 k = uvec3(item, 0, item < second_runs ? second_heads : 0);
        if (!owns_all) {
            const uint k_item = item - first_items;  // wraps where the item is Q's, and is not used then
            const uint q_first = item / max(first_runs, 1) * owned, k_first = k_item / max(second_runs, 1) * owned;
            const bool is_q = item < first_items;
            q = uvec3(item % max(first_runs, 1), q_first, is_q ? min(q_first + owned, first_heads) : 0);
            k = uvec3(k_item % max(second_runs, 1), k_first, is_q ? 0 : min(k_first + owned, second_heads));
        }
        process(false, token, q.x, q.y, q.z);
#ifndef VKROPE_LEAN
        process(true, token, k.x, k.y, k.z);
#endif
    }
}
