// SPDX-License-Identifier: MIT
// Writes what the calls of a step read from buffers, once per step for all layers: int32 position
// ids, slots of a paged cache, factors of queries, or the number of tokens. They follow from 64-bit
// or f32 ids, sequence offsets, ragged batches, lengths of sequences or zig-zag shards. A pipeline
// writes one of these outputs, with one invocation per number, and never accesses memory outside
// the buffers, whatever they contain.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "interface.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kind = position_output_ids;  // position_output_*
layout(constant_id = 2) const uint seq_lens_bound = 1;          // 1: seq_lens has a binding

layout(push_constant, std430) uniform PushBlock {
    PositionPush push;
};

// clang-format off: one line per binding
layout(set = 0, binding = position_binding_source, std430) readonly buffer Source {
    uint source[];
};
layout(set = 0, binding = position_binding_offsets, std430) readonly buffer Offsets {
    uint offsets[];
};
layout(set = 0, binding = position_binding_seq_lens, std430) readonly buffer SeqLens {
    uint seq_lens[];
};
layout(set = 0, binding = position_binding_table, std430) readonly buffer Table {
    uint table[];
};
layout(set = 0, binding = position_binding_out, std430) writeonly buffer Out {
    uint outputs[];
};
layout(set = 0, binding = position_binding_out_of_range, std430) buffer OutOfRange {
    uint out_of_range[];
};
// clang-format on

const uint one = 0x3f800000u;  // f32 bits

bool has(const uint flag) {
    return (push.flags & flag) != 0;
}
uint start_of(const uint binding_start) {
    return bitfieldExtract(push.starts[binding_start / 4], int(binding_start % 4 * 8), 8);
}
void count(const uint flag) {
    if (has(flag)) atomicAdd(out_of_range[start_of(position_start_out_of_range)], 1);
}

// These functions compute with 64-bit integers as (low, high).
uvec2 extend(const uint value) {
    return uvec2(value, 0u - (value >> 31));
}
uvec2 sum(const uvec2 a, const uvec2 b) {
    uint carry;
    const uint low = uaddCarry(a.x, b.x, carry);
    return uvec2(low, a.y + b.y + carry);
}

// Replaces the sum of the tokens before sequence i - 1 by that before sequence i; sequence 0
// follows the sum 0. A sum beyond 32 bits counts as 2^32 - 1. Returns false, and leaves the sum, if
// the next one is negative or smaller, or if chunks of shards are not of equal length. A sum of
// lengths that overflows is smaller than one beyond all tokens.
bool next_sum(const uint i, inout uint total) {
    const bool wide = has(position_flag_ragged_64), lengths = has(position_flag_query_lens);
    uint low = 0, high = 0;
    if (!lengths || i != 0) {
        const uint at = start_of(position_start_source) + (lengths ? i - 1 : wide ? 2 * i : i);
        low = source[at];
        high = wide ? source[at + 1] : 0u - (low >> 31);
    }
    const uint next = high != 0 ? ~0u : lengths ? total + low : low;
    const uint chunks = push.cp_size == 1 ? 1 : 2 * push.cp_size;
    const bool rises = (high >> 31) == 0 && next >= total && next % chunks == 0;
    if (rises) total = next;
    return rises;
}

uvec2 offset_of(const uint sequence) {
    uvec2 value = uvec2(0);
    if (has(position_flag_offsets)) {
        const uint start = start_of(position_start_offsets);
        if (has(position_flag_offsets_64))
            value = uvec2(offsets[start + 2 * sequence], offsets[start + 2 * sequence + 1]);
        else
            value = extend(offsets[start + sequence]);
    }
    return value;
}

// Returns value * 2^fraction_bits if that is an integer in int32; everything else, including
// infinities and NaN, becomes 2^32.
uvec2 fixed_point(const uint bits) {
    const uint exponent = (bits >> 23) & 255u;
    const uint mantissa = (bits & 0x7fffffu) | (exponent == 0 ? 0u : 0x800000u);
    // The value is mantissa * 2^(shift - 150). A subnormal is twice that, but never an integer.
    // Where a shift is limited, or exceeds 8 bits to the left, only 0 passes the test for integers.
    const uint shift = exponent + push.flags / position_flag_fraction_bits;
    const uint left = min(max(shift, 150u) - 150u, 31u), right = min(150u - min(shift, 150u), 31u);
    const uint magnitude = (mantissa << left) >> right;
    const bool whole = ((magnitude << right) >> left) == mantissa;
    const bool negative = (bits >> 31) != 0;
    const bool fits = magnitude <= (negative ? 0x80000000u : 0x7fffffffu);
    return whole && fits ? extend(negative ? 0u - magnitude : magnitude) : uvec2(0, 1);
}

// Returns the slot of a place, or -1 if it has none. A place that is not negative fits in int32.
uint slot_of(const uint sequence, const uvec2 place) {
    const uint page = place.x / push.item_positions;
    uint slot = ~0u;
    bool outside = place.y != 0 || page >= push.table_items;
    if (!outside) {
        const uint number =
            table[start_of(position_start_table) + sequence * push.table_stride + page];
        if (number < push.cache_pages)
            slot = number * push.item_positions + place.x % push.item_positions;
        else
            outside = number != ~0u;
    }
    if (outside) count(position_flag_count_own);
    return slot;
}

// Returns the f32 bits of the factor of a position.
uint factor_of(const uint position) {
    const uint row = (position + push.shift) / push.item_positions;
    uint factor = one;
    if ((position >> 31) == 0 && row < push.table_items)
        factor = table[start_of(position_start_table) + row];
    else
        count(position_flag_count_own);
    return factor;
}

// Returns the number of tokens of all sequences of a ragged batch.
uint token_count() {
    uint total = 0;
    bool rises = next_sum(0, total);
    for (uint i = 0; rises && i < push.sequences; ++i) rises = next_sum(i + 1, total);
    const uint tokens = total / push.cp_size;
    if (!rises || tokens > push.tokens) count(position_flag_count_own);
    return min(tokens, push.tokens);
}

// Returns the id, the slot or the factor of a token.
uint number_of(const uint index) {
    uint sequence = index / push.tokens, token = index % push.tokens, length = push.tokens;
    bool member = true, idle = false;
    if (has(position_flag_ragged)) {
        // Finds the sequence of the token, unless the sums end or fall before it.
        uint total = 0, start = 0, end;
        bool rises = next_sum(0, total);
        end = total / push.cp_size;
        for (sequence = 0; rises && end <= index && sequence < push.sequences; ++sequence) {
            start = end;
            rises = next_sum(sequence + 1, total);
            end = total / push.cp_size;
        }
        member = sequence != 0 && index < end;
        idle = index >= end && has(position_flag_token_count);
        --sequence;
        token = index - start;
        length = end - start;
    }
    const uint chunk = length / 2;  // without shards both chunks stay where they are
    token = token < chunk ? push.cp_rank * chunk + token
                          : (2 * push.cp_size - 1 - push.cp_rank) * chunk + (token - chunk);
    uvec2 place = uvec2(token, 0), position = uvec2(0, 1);
    if (member) {
        if (seq_lens_bound != 0 && has(position_flag_seq_lens)) {
            // The places of the sequence end before its length.
            const uint end = seq_lens[start_of(position_start_seq_lens) + sequence];
            idle = end == 0 && !has(position_flag_ragged);
            place = sum(extend(end), uvec2(token - length, ~0u));
        }
        position = sum(sum(extend(push.first), offset_of(sequence)), place);
        const uint ids = start_of(position_start_source);
        if (has(position_flag_ids))
            position = uvec2(source[ids + 2 * index], source[ids + 2 * index + 1]);
        if (has(position_flag_ids_f32)) position = fixed_point(source[ids + index]);
        if (!has(position_flag_seq_lens))
            place = position;
        else if (place.y != 0)  // below 0
            position = uvec2(0, 1);
    }
    const bool inside = position.y == 0u - (position.x >> 31);
    if (!inside && !idle) count(position_flag_count_positions);

    uint number = kind == position_output_slots ? ~0u : kind == position_output_factors ? one : 0u;
    if (kind == position_output_ids && !idle) number = inside ? position.x : 0x80000000u;
    if (kind == position_output_slots && !idle && inside) number = slot_of(sequence, place);
    if (kind == position_output_factors && !idle && inside) number = factor_of(position.x);
    return number;
}

void main() {
    const uint index = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) *
                           gl_WorkGroupSize.x +
                       gl_LocalInvocationID.x;
    if (index < push.total) {
        outputs[start_of(position_start_out) + index] = kind == position_output_token_count
                                                            ? token_count()
                                                            : number_of(index);
    }
}
