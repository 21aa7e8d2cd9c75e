// SPDX-License-Identifier: MIT
// Writes an int32 position id for each token, from 64-bit or f32 ids, sequence offsets, ragged
// batches or zig-zag shards of sequences. The shader runs once per step for all layers, with one
// invocation per token, and never accesses memory outside the buffers, whatever they contain.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "interface.h"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform PushBlock {
    PositionPush push;
};

// clang-format off: one line per binding
layout(set = 0, binding = position_binding_out, std430) writeonly buffer Out {
    uint out_ids[];
};
layout(set = 0, binding = position_binding_source, std430) readonly buffer Source {
    uint source[];
};
layout(set = 0, binding = position_binding_offsets, std430) readonly buffer Offsets {
    uint offsets[];
};
layout(set = 0, binding = position_binding_out_of_range, std430) buffer OutOfRange {
    uint out_of_range[];
};
// clang-format on

bool has(const uint flag) {
    return (push.flags & flag) != 0;
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

// Sets `start` to cu_seqlens[i] / cp_size, the start of sequence i in this rank's tokens. A value
// beyond 32 bits counts as 2^32 - 1. Returns false if no sequence can start there: the value is
// negative, or the chunks of the shards are not of equal length.
bool sequence_start(const uint i, out uint start) {
    const bool wide = has(position_flag_ragged_64);
    const uint at = (push.offsets & 0xffu) + (wide ? 2 * i : i);
    const uint low = source[at], high = wide ? source[at + 1] : 0u - (low >> 31);
    const uint value = high != 0 ? ~0u : low, chunks = push.cp_size == 1 ? 1 : 2 * push.cp_size;
    start = value / push.cp_size;
    return (high >> 31) == 0 && value % chunks == 0;
}

uvec2 offset_of(const uint sequence) {
    uvec2 value = uvec2(0);
    if (has(position_flag_offsets)) {
        const uint start = (push.offsets >> 8) & 0xffu;
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

void main() {
    const uint index = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) *
                           gl_WorkGroupSize.x +
                       gl_LocalInvocationID.x;
    if (index < push.total) {
        uint sequence = index / push.tokens, token = index % push.tokens, length = push.tokens;
        bool member = true;
        if (has(position_flag_ragged)) {
            // Finds the sequence of the token. If the offsets descend, the search ends and the
            // token has no sequence.
            uint start = 0, end;
            member = sequence_start(0, end) && end <= index;
            for (sequence = 0; member; ++sequence) {
                start = end;
                member = sequence_start(sequence + 1, end) && start <= end;
                if (index < end || sequence + 1 == push.sequences) break;
            }
            member = member && index < end;
            token = index - start;
            length = end - start;
        }
        const uint chunk = length / 2;  // without shards both chunks stay where they are
        token = token < chunk ? push.cp_rank * chunk + token
                              : (2 * push.cp_size - 1 - push.cp_rank) * chunk + (token - chunk);
        uvec2 position = sum(sum(extend(push.first), offset_of(sequence)), uvec2(token, 0));
        if (has(position_flag_ids)) {
            const uint at = (push.offsets & 0xffu) + 2 * index;
            position = uvec2(source[at], source[at + 1]);
        }
        if (has(position_flag_ids_f32))
            position = fixed_point(source[(push.offsets & 0xffu) + index]);
        const bool inside = member && position.y == 0u - (position.x >> 31);
        if (!inside && has(position_flag_count))
            atomicAdd(out_of_range[(push.offsets >> 16) & 0xffu], 1);
        out_ids[(push.offsets >> 24) + index] = inside ? position.x : 0x80000000u;
    }
}
