// SPDX-License-Identifier: MIT
// Rotates as other libraries do, with cos and sin from their sources: packed rows, half_split, all
// channels, positions from first_position on. One invocation rotates one pair of one head, or in
// f16 and bf16 the two pairs of a word, because the benchmark uses no 16-bit storage.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require

#include "interface.h"

layout(local_size_x_id = 0, local_size_y_id = 4) in;
// 0 and 3: pow, cos and sin, in 0 with a workgroup for each head row; 1: tables in buffers; 2: a
// table in a texture, four heads
layout(constant_id = 1) const uint way = 0;
layout(constant_id = 2) const uint element = 0;  // element_*
layout(constant_id = 3) const uint head_dim = 2;

layout(push_constant, std430) uniform PushBlock {
    uint tokens, heads;
    uint first_position;
    float theta_scale;  // base^(-2 / head_dim)
    uint fold_log2, row_texels;
};
// clang-format off: one line for each binding
layout(set = 0, binding = binding_q_in, std430) readonly buffer In {
    uint words_in[];
};
layout(set = 0, binding = binding_q_out, std430) writeonly buffer Out {
    uint words_out[];
};
layout(set = 0, binding = binding_table, std430) readonly buffer Cos {
    float table_cos[];
};
layout(set = 0, binding = binding_table_sin, std430) readonly buffer Sin {
    float table_sin[];
};
layout(set = 0, binding = binding_texture) uniform texture2D angle_texture;
// clang-format on

// Decodes the pairs of a word: one in f32, otherwise two.
vec2 widened(uint word) {
    vec2 f = vec2(uintBitsToFloat(word), 0);
    if (element == element_f16) f = unpackHalf2x16(word);
    if (element == element_bf16) f = uintBitsToFloat(uvec2(word << 16, word & 0xffff0000u));
    return f;
}

uint narrowed(vec2 f) {
    uint word = floatBitsToUint(f.x);
    if (element == element_f16) word = packHalf2x16(f);
    if (element == element_bf16) {
        const uvec2 bits = floatBitsToUint(f);
        const uvec2 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
        word = rounded.x | (rounded.y << 16);
    }
    return word;
}

vec2 angle(uint position, uint pair) {
    vec2 cs;
    if (way == 0 || way == 3) {
        const float theta = float(position) * pow(theta_scale, float(pair));
        cs = vec2(cos(theta), sin(theta));
    }
    if (way == 1)
        cs = vec2(table_cos[position * (head_dim / 2) + pair],
                  table_sin[position * (head_dim / 2) + pair]);
    if (way == 2) {
        const ivec2 at = ivec2(row_texels * (position >> fold_log2) + pair / 2,
                               position & ((1u << fold_log2) - 1u));
        const vec4 texel = texelFetch(angle_texture, at, 0);
        cs = (pair & 1u) == 0u ? texel.xy : texel.zw;
    }
    return cs;
}

void main() {
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint pairs_a_word = element == element_f32 ? 1 : 2, heads_owned = way == 2 ? 4 : 1;
    const uint half_words = head_dim / 2 / pairs_a_word;
    const uint head_groups = (heads + heads_owned - 1) / heads_owned;
    const uint at = group * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    uint word = at % half_words, row = at / half_words;
    if (way == 0) {
        // The number of workgroups of a row.
        const uint parts = (half_words + gl_WorkGroupSize.y - 1) / gl_WorkGroupSize.y;
        word = group % parts * gl_WorkGroupSize.y + gl_LocalInvocationID.y;
        row = group / parts;
    }
    const uint token = row / head_groups, first_head = row % head_groups * heads_owned;
    if (token < tokens && word < half_words) {
        const uint position = first_position + token, pair = word * pairs_a_word;
        const vec2 a = angle(position, pair);
        vec2 b = vec2(1, 0);
        if (element != element_f32) b = angle(position, pair + 1);
        const vec2 c = vec2(a.x, b.x), s = vec2(a.y, b.y);
        for (uint head = first_head; head < min(first_head + heads_owned, heads); ++head) {
            const uint first = (token * heads + head) * 2 * half_words + word;
            const vec2 x0 = widened(words_in[first]), x1 = widened(words_in[first + half_words]);
            words_out[first] = narrowed(x0 * c - x1 * s);
            words_out[first + half_words] = narrowed(x0 * s + x1 * c);
        }
    }
}
