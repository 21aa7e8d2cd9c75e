// SPDX-License-Identifier: MIT
// Rotates Q and K: index -> load -> rotate -> store. One module; what it is specialised to, it is pruned to as well (host/kernel),
// so that a branch on a constant decides what is bound. Such a branch stands alone: a condition of its own for each constant.
//
// One invocation owns, in the rows of one token, the same steps for one or more heads, so that cos and sin are read once and
// shared. It loads every word once, and before it stores it: in place needs no other care. Along x the invocations of a token
// count steps first, then heads, then tokens; z is the sequence, or the group of heads.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

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
layout(constant_id = constant_pairing_out) const uint pairing_out = 0;
layout(constant_id = constant_scatter) const uint scatter = 0;
layout(constant_id = constant_window_dim) const uint window_dim_0 = 2;
layout(constant_id = constant_window_dim + 1) const uint window_dim_1 = 0;
layout(constant_id = constant_window_dim + 2) const uint window_dim_2 = 0;
layout(constant_id = constant_window_dim + 3) const uint window_dim_3 = 0;
layout(constant_id = constant_window_at) const uint window_at_0 = 0;
layout(constant_id = constant_window_at + 1) const uint window_at_1 = 0;
layout(constant_id = constant_window_at + 2) const uint window_at_2 = 0;
layout(constant_id = constant_window_at + 3) const uint window_at_3 = 0;

layout(constant_id = constant_angles) const uint angles = 0;
layout(constant_id = constant_tensors) const uint tensors = 2;
layout(constant_id = constant_counter) const uint counter = 1;
layout(constant_id = constant_conversion) const uint conversion = 0;
layout(constant_id = constant_axes) const uint axes = 0;
layout(constant_id = constant_section_order) const uint section_order = 0;
layout(constant_id = constant_leftover_axis) const uint leftover_axis = 0;
layout(constant_id = constant_sections) const uint section_0 = 1;
layout(constant_id = constant_sections + 1) const uint section_1 = 0;
layout(constant_id = constant_sections + 2) const uint section_2 = 0;
layout(constant_id = constant_sections + 3) const uint section_3 = 0;
layout(constant_id = constant_sections + 4) const uint section_4 = 0;
layout(constant_id = constant_sections + 5) const uint section_5 = 0;
layout(constant_id = constant_sections + 6) const uint section_6 = 0;
layout(constant_id = constant_sections + 7) const uint section_7 = 0;

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
layout(set = 0, binding = binding_index_b, std430) readonly buffer Slots { uint slots[]; };
layout(set = 0, binding = binding_index_a, std430) readonly buffer Ids { uint ids[]; };

layout(set = 0, binding = binding_status, std430) buffer Status { uint status[]; };
layout(set = 0, binding = binding_texture) uniform texture2D angle_texture;
layout(set = 0, binding = binding_table, std430) readonly buffer Table { uint table[]; };
layout(set = 0, binding = binding_table_sin, std430) readonly buffer TableSin { uint table_sin[]; };
layout(set = 0, binding = binding_uniforms, std140) uniform Turns { uvec4 turns[turn_header_vec4s + (rotary_dim / 2 + 1) / 2]; };
#define VKROPE_ANGLE_TEXTURE angle_texture
#define VKROPE_ANGLE_WORD(index) table[index]
#define VKROPE_SIN_WORD(index) table_sin[index]
#define VKROPE_TURN_WORDS(index) turns[index]
#define VKROPE_CONVERSION conversion

#include "element.glsl"
#include "pairing.glsl"
#include "turns.glsl"
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
    if (tensors == 1) w = first_in_wide[at];
    else if (second) w = second_in_wide[at];
    else w = first_in_wide[at];
    return w;
}

uint load_word(bool second, uint at) {
    uint w;
    if (tensors == 1) w = first_in_word[at];
    else if (second) w = second_in_word[at];
    else w = first_in_word[at];
    return w;
}

// A word that may hold a neighbour's half, which another invocation may be merging: in place, through the binding that is written.
uint load_shared(bool second, uint at) {
    uint w;
    if (in_place(second)) {
        if (tensors == 1) w = atomicOr(first_out_word[at], 0);
        else if (second) w = atomicOr(second_out_word[at], 0);
        else w = atomicOr(first_out_word[at], 0);
    } else {
        if (tensors == 1) w = atomicLoad(first_in_word[at], gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
        else if (second) w = atomicLoad(second_in_word[at], gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
        else w = atomicLoad(first_in_word[at], gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
    }
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
        if (unit_elements >= 2) w.a.y = load_word(second, at + 1);
        if (unit_elements >= 4) w.a.zw = uvec2(load_word(second, at + 2), load_word(second, at + 3));
    } else if (access == access_word) {
        w.a.x = load_word(second, at / 2);
        if (unit_elements >= 4) w.a.y = load_word(second, at / 2 + 1);
    } else {
        w.a.x = (load_shared(second, at / 2) >> (16 * (at & 1u))) & 0xffffu;
    }
    return w;
}

void store_wide(bool second, uint at, uvec4 value) {
    if (tensors == 1) first_out_wide[at] = value;
    else if (second) second_out_wide[at] = value;
    else first_out_wide[at] = value;
}

void store_word(bool second, uint at, uint value) {
    if (tensors == 1) first_out_word[at] = value;
    else if (second) second_out_word[at] = value;
    else first_out_word[at] = value;
}

// Replaces the bits of `mask`, each of which has this invocation as its only writer.
void merge_word(bool second, uint at, uint mask, uint value) {
    if (tensors == 1) {
        atomicAnd(first_out_word[at], ~mask);
        atomicOr(first_out_word[at], value);
    } else if (second) {
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
        if (unit_elements >= 2) store_word(second, at + 1, w.a.y);
        if (unit_elements >= 4) {
            store_word(second, at + 2, w.a.z);
            store_word(second, at + 3, w.a.w);
        }
    } else if (access == access_word) {
        store_word(second, at / 2, w.a.x);
        if (unit_elements >= 4) store_word(second, at / 2 + 1, w.a.y);
    } else {
        const uint shift = 16 * (at & 1u);
        merge_word(second, at / 2, 0xffffu << shift, (w.a.x & 0xffffu) << shift);
    }
}

// ---- One step: two units of a row, the same in every head ----

// Where an angle is read: the position, or its magnitude, and whether sin changes its sign.
struct Angle {
    uint row;
    bool flip;
};

struct Token {
    uint index, z;
    bool covered;     // by the angle table, on every axis
    Angle angle;      // of the only axis
    uint page, line;  // where K's row goes
    bool stored;      // K's row has a place to go to, which this dispatch serves
};

struct Step {
    uvec2 from, to;  // channels where the two units start, before and after
    bool rotates;    // otherwise they are copied, bit for bit unless the element type changes
    Unit c, s;
};

// Of several axes. Not in Token: a structure with an array in it is copied whole.
Angle axis_angles[most_axes];

// Steps that rotate, and steps that copy the channels outside the window: only a tensor that changes places has to move them.
uint rotating_steps() { return rotary_dim / (2 * unit_elements); }
const bool copies_some = first_head_dim > rotary_dim || second_head_dim > rotary_dim;
uint copying_steps(bool second) {
    return in_place(second) ? 0 : (head_dim(second) - rotary_dim + 2 * unit_elements - 1) / (2 * unit_elements);
}

// Invocations of a row. One that owns all heads takes units_owned of the steps that rotate and an equal share of those that copy,
// copies_owned at most: its neighbours, which a software device runs in step with it, then do the same at the same time.
bool owns_all() { return heads_owned == 0; }
uint items_of_row(bool second) {
    uint items = rotating_steps() + copying_steps(second);
    if (owns_all()) {
        items = max((rotating_steps() + units_owned - 1) / units_owned, (copying_steps(second) + copies_owned - 1) / copies_owned);
    }
    return items;
}

// A channel outside the windows, counted without them, to its place in the row.
uint around_windows(bool second, uint channel) {
    const uint start = rotary_offset(second);
    uint at = channel;
    if (at >= start + window_at_0) at += window_dim_0;
    if (window_dim_1 != 0 && at >= start + window_at_1) at += window_dim_1;
    if (window_dim_2 != 0 && at >= start + window_at_2) at += window_dim_2;
    if (window_dim_3 != 0 && at >= start + window_at_3) at += window_dim_3;
    return at;
}

// Channels of the pairs [pair, pair + unit_elements), which lie in one window, from the start of the row, as `order` pairs them.
uvec2 channels_of(bool second, uint order, uint pair) {
    uint dim = window_dim_0, at = window_at_0, inside = pair;
    if (window_dim_1 != 0 && pair >= window_dim_0 / 2) {
        inside = pair - window_dim_0 / 2;
        dim = window_dim_1;
        at = window_at_1;
    }
    if (window_dim_2 != 0 && pair >= (window_dim_0 + window_dim_1) / 2) {
        inside = pair - (window_dim_0 + window_dim_1) / 2;
        dim = window_dim_2;
        at = window_at_2;
    }
    if (window_dim_3 != 0 && pair >= (window_dim_0 + window_dim_1 + window_dim_2) / 2) {
        inside = pair - (window_dim_0 + window_dim_1 + window_dim_2) / 2;
        dim = window_dim_3;
        at = window_at_3;
    }
    return vkrope_pair_channels(order, dim, unit_elements, inside) + at + rotary_offset(second);
}

const uint section_sum = section_0 + section_1 + section_2 + section_3 + section_4 + section_5 + section_6 + section_7;
const uint section_bits = section_0 | section_1 | section_2 | section_3 | section_4 | section_5 | section_6 | section_7;

// Whether one row of a table of ours turns all pairs of a unit.
bool one_angle_a_unit() {
    return angles < angles_apart && (axes == 0 || (section_order == sections_sequential && section_bits % unit_elements == 0));
}

uint axis_of(uint pair) {
    const uint m = pair % section_sum;
    uint axis = 0, end = section_0;
    if (section_order == sections_sequential) {
        if (m >= end) axis = 1;
        end += section_1;
        if (m >= end) axis = 2;
        end += section_2;
        if (m >= end) axis = 3;
        end += section_3;
        if (m >= end) axis = 4;
        end += section_4;
        if (m >= end) axis = 5;
        end += section_5;
        if (m >= end) axis = 6;
        end += section_6;
        if (m >= end) axis = 7;
    } else {
        axis = m % 3;
        const uint size = axis == 0 ? section_0 : axis == 1 ? section_1 : section_2;
        if (m >= 3 * size) axis = leftover_axis;
    }
    return axis;
}

// cos and sin of the n pairs from `pair` on, which one angle turns. A row that the table does not have is not read.
void pairs_angles(bool covered, Angle angle, uint pair, uint n, out Unit c, out Unit s) {
    const uint row = covered ? angle.row : 0;
    if (angles == angles_texture) vkrope_texture_angles(row, pair, n, push.table_stride, push.table_texels, c, s);
    else if (angles == angles_factored)
        vkrope_factored_angles(row, push.table_rows, pair, n, push.table_stride, push.table_texels, c, s);
    else if (angles == angles_computed) vkrope_computed_angles(row, pair, n, c, s);
    else if (angles == angles_pairs) vkrope_buffer_angles((push.offsets >> 24) + row * push.table_stride, pair, n, c, s);
    else vkrope_angle_apart(angles - angles_apart, push.offsets >> 24, push.table_texels, row * push.table_stride + pair, c, s);
    s = vkrope_flip(s, angle.flip);
}

// cos and sin of the pairs [pair, pair + unit_elements).
void angles_of(Token token, uint pair, out Unit c, out Unit s) {
    if (one_angle_a_unit()) {
        Angle angle = token.angle;
        if (axes != 0) angle = axis_angles[axis_of(pair)];
        pairs_angles(token.covered, angle, pair, unit_elements, c, s);
    } else {
        float cosines[8], sines[8];
        for (uint i = 0; i < 8; ++i) {
            cosines[i] = sines[i] = 0;
            if (i < unit_elements) {
                Angle angle = token.angle;
                if (axes != 0) angle = axis_angles[axis_of(pair + i)];
                pairs_angles(token.covered, angle, pair + i, 1, c, s);
                cosines[i] = c.a.x;
                sines[i] = s.a.x;
            }
        }
        c = Unit(vec4(cosines[0], cosines[1], cosines[2], cosines[3]), vec4(cosines[4], cosines[5], cosines[6], cosines[7]));
        s = Unit(vec4(sines[0], sines[1], sines[2], sines[3]), vec4(sines[4], sines[5], sines[6], sines[7]));
    }
}

// The first is the step `index` of those that rotate, the second of those that copy.
Step rotating_step(bool second, Token token, uint index) {
    const uint pair = index * unit_elements;
    Step step;
    step.rotates = token.covered;
    step.from = channels_of(second, pairing, pair);
    step.to = pairing == pairing_out ? step.from : channels_of(second, pairing_out, pair);
    angles_of(token, pair, step.c, step.s);
    if ((push.flags & flag_gain) != 0) {
        step.c = vkrope_scale(step.c, uintBitsToFloat(push.gain));
        step.s = vkrope_scale(step.s, uintBitsToFloat(push.gain));
    }
    return step;
}

// Two units side by side; at the end of an odd number of units, the last one twice.
uvec2 copying_step(bool second, uint index) {
    const uint channel = index * 2 * unit_elements;
    const bool last = channel + unit_elements >= head_dim(second) - rotary_dim;
    return uvec2(around_windows(second, channel), around_windows(second, last ? channel : channel + unit_elements));
}

void finish(bool second, Step step, uint row, Words A, Words B) {
    const uint from = in_element(second), to = out_element(second);
    const Unit a = vkrope_decode(from, A), b = vkrope_decode(from, B);
    Unit x0, x1, y0, y1, p, q;
    vkrope_to_pairs(pairing, unit_elements, a, b, x0, x1);
    vkrope_rotate(x0, x1, step.c, step.s, y0, y1);
    if (pairing != pairing_out && !step.rotates) {
        y0 = x0;
        y1 = x1;
    }
    vkrope_from_pairs(pairing_out, unit_elements, y0, y1, p, q);
    const bool replaced = pairing != pairing_out || step.rotates;
    if (from == to) {
        if (replaced) {
            A = vkrope_encode(to, p);
            B = vkrope_encode(to, q);
        }
    } else {
        if (!replaced) {
            p = a;
            q = b;
        }
        A = vkrope_encode(to, p);
        B = vkrope_encode(to, q);
    }
    store(second, row + step.to.x, A);
    store(second, row + step.to.y, B);
}

Words converted(bool second, Words w) {
    Words to = w;
    if (in_element(second) != out_element(second)) to = vkrope_encode(out_element(second), vkrope_decode(in_element(second), w));
    return to;
}

// Where the rows of a token start.
struct Rows {
    uint from, to;
};

void rotate_heads(bool second, Step step, Rows rows, uint first, uint last) {
    const uint from_head = in_side(second).head, to_head = out_side(second).head;
    if (heads_batch == 1) {
        for (uint head = first; head < last; ++head) {
            const uvec2 at = rows.from + head * from_head + step.from;
            const Words A = load(second, at.x), B = load(second, at.y);
            finish(second, step, rows.to + head * to_head, A, B);
        }
    } else {
        // All loads come before the first store; a group that is not full loads its last head again.
        Words A[4], B[4];
        for (uint h = 0; h < 4; ++h) {
            const uvec2 at = rows.from + min(first + h, last - 1) * from_head + step.from;
            A[h] = load(second, at.x);
            B[h] = load(second, at.y);
        }
        for (uint h = 0; h < 4; ++h) {
            if (first + h < last) finish(second, step, rows.to + (first + h) * to_head, A[h], B[h]);
        }
    }
}

void copy_heads(bool second, uvec2 step, Rows rows, uint first, uint last) {
    const uint from_head = in_side(second).head, to_head = out_side(second).head;
    if (heads_batch == 1) {
        for (uint head = first; head < last; ++head) {
            const uvec2 from = rows.from + head * from_head + step, to = rows.to + head * to_head + step;
            const Words A = load(second, from.x), B = load(second, from.y);
            store(second, to.x, converted(second, A));
            store(second, to.y, converted(second, B));
        }
    } else {
        Words A[4], B[4];
        for (uint h = 0; h < 4; ++h) {
            const uvec2 from = rows.from + min(first + h, last - 1) * from_head + step;
            A[h] = load(second, from.x);
            B[h] = load(second, from.y);
        }
        for (uint h = 0; h < 4; ++h) {
            const uvec2 to = rows.to + (first + h) * to_head + step;
            if (first + h < last) {
                store(second, to.x, converted(second, A[h]));
                store(second, to.y, converted(second, B[h]));
            }
        }
    }
}

// What the invocation `item` of `items` owns of a row, in the heads [first, last) of one token.
void process(bool second, Token token, uint item, uint items, uint first, uint last) {
    const Side in_rows = in_side(second), out_rows = out_side(second);
    Rows rows;
    rows.from = in_rows.offset + token.z * in_rows.z + token.index * in_rows.token;
    rows.to = out_rows.offset + token.z * out_rows.z + token.index * out_rows.token;
    if (second && scatter != 0) rows.to = out_rows.offset + token.page * out_rows.z + token.line * out_rows.token;
    const uint copying = copying_steps(second);
    // The steps [x, y) of each kind.
    uvec2 rotates = uvec2(item, min(item + 1, rotating_steps())), copies = uvec2(item, item + 1) - rotating_steps();
    bool has_copies = item >= rotating_steps();
    if (owns_all()) {
        const uint share = (copying + items - 1) / items;
        rotates = min(uvec2(item, item + 1) * units_owned, rotating_steps());
        copies = min(uvec2(item, item + 1) * share, copying);
        has_copies = true;
    }
    if (first < last) {
        for (uint i = rotates.x; i < rotates.y; ++i) rotate_heads(second, rotating_step(second, token, i), rows, first, last);
        if (copies_some) {
            if (has_copies) {
                for (uint i = copies.x; i < copies.y; ++i) copy_heads(second, copying_step(second, i), rows, first, last);
            }
        }
    }
}

struct Outside {
    bool position, slot;
};

// The angle of a token on an axis; `covered` becomes false where the table has none for its position.
Angle angle_at(uint index, uint z, uint axis, inout bool covered) {
    uint low = push.first_position + z * push.index_z + index;
    bool is_int32 = true;
    if (positions == positions_ids) {
        const uint at = (push.offsets & 0xffu) + z * push.index_z + axis * push.index_axis + index * push.index_token;
        low = ids[at];
        if ((push.flags & flag_ids_64) != 0) is_int32 = ids[at + 1] == 0u - (low >> 31);
    }
    const bool negative = int(low) < 0;
    Angle angle;
    angle.row = angles < angles_apart ? vkrope_magnitude(int(low)) : low;
    angle.flip = (angles < angles_apart && negative) != ((push.flags & flag_inverse) != 0);
    covered = covered && is_int32 && angle.row < push.table_rows;
    return angle;
}

// Where K's row goes.
void scatter_token(inout Token token, inout Outside outside) {
    if ((push.heads >> 16) != 0) {
        const bool wide_slots = (push.flags & flag_slots_64) != 0;
        const uint at = ((push.offsets >> 8) & 0xffu) + token.z * push.slot_z + (wide_slots ? 2 * token.index : token.index);
        const uint low = slots[at];
        const uint high = wide_slots ? slots[at + 1] : 0u - (low >> 31);
        const uint slot = low - push.slot_first;
        token.stored = high == 0 && low >= push.slot_first && slot < push.slot_rows;
        outside.slot = (high != 0 || low >= push.slot_first + push.slot_rows) && (high & low) != ~0u;
        token.page = slot / push.page_size;
        token.line = slot % push.page_size;
    }
}

Token token_of(uint index, uint z, out Outside outside) {
    Token token;
    token.index = index;
    token.z = z;
    token.covered = true;
    if (axes == 0) {
        token.angle = angle_at(index, z, 0, token.covered);
    } else {
        for (uint axis = 0; axis < axes; ++axis) axis_angles[axis] = angle_at(index, z, axis, token.covered);
    }
    token.page = token.line = 0;
    token.stored = true;
    outside = Outside(!token.covered, false);
    if (scatter != 0) scatter_token(token, outside);
    return token;
}

bool counts(Outside outside, uint z) {
    const bool positions_count = (push.flags & flag_count_positions) != 0, slots_count = (push.flags & flag_count_slots) != 0;
    const bool shared_z = (push.flags & flag_z_is_group) != 0 && z != 0;
    return !shared_z && ((positions_count && outside.position) || (slots_count && outside.slot && (positions_count || !outside.position)));
}

void main() {
    const uint first_heads = push.heads & 0xffffu, second_heads = push.heads >> 16;
    const uint first_row = items_of_row(false), second_row = items_of_row(true);
    const uint owned = owns_all() ? 1 : heads_owned;
    // What a token consists of: a row, for an invocation that owns all heads; else rows times groups of heads, Q's and then K's.
    const uint first_items = first_row * ((first_heads + owned - 1) / owned);
    const uint second_items = second_row * ((second_heads + owned - 1) / owned);
    uint items = first_items + second_items;
    if (owns_all()) items = max(first_heads == 0 ? 1 : first_row, second_heads == 0 ? 1 : second_row);

    const uint invocation = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    const uint index = invocation / items, item = invocation % items;
    if (index < push.tokens) {
        Outside outside;
        const Token token = token_of(index, gl_WorkGroupID.z, outside);
        if (counter != 0) {
            if (item == 0 && counts(outside, gl_WorkGroupID.z)) atomicAdd(status[(push.offsets >> 16) & 0xffu], 1);
        }
        uvec3 q = uvec3(item, 0, first_heads);  // item of the row, first head, one past the last head
        uvec3 k = uvec3(item, 0, second_heads);
        if (!owns_all()) {
            const uint k_item = item - first_items;  // wraps where the item is Q's, and is not used then
            const uint q_first = item / first_row * owned, k_first = k_item / second_row * owned;
            const bool is_q = item < first_items;
            q = uvec3(item % first_row, q_first, is_q ? min(q_first + owned, first_heads) : 0);
            k = uvec3(k_item % second_row, k_first, is_q ? 0 : min(k_first + owned, second_heads));
        }
        process(false, token, q.x, items, q.y, q.z);
        if (tensors == 2) process(true, token, k.x, items, k.y, token.stored ? k.z : 0);
    }
}
