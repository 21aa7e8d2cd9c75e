// SPDX-License-Identifier: MIT
// Applies the ops in a lane that owns its rows. The lane first sums its rows, and then processes
// chunk by chunk, each chunk in all heads, so that it reads angles once. ops.glsl includes this
// file.

// Numbers of sums that are added later: of units, if units do not come in order, and of heads.
const uint T(owned_units) = T(norm_after) ? T(units) : 1;
float T(unit_sums)[T(owned_units)];
float T(head_sums)[T(row_heads)];
VkropeNorm T(norms)[norms_held];

float T(owned_head)(uint what, const Token token, const uint from, const uint head,
                    const VkropeNorm norm, const float scale) {
    const uint row = from + head * T(source_head)();
#if VKROPE_TENSOR_OF_CACHE
    if (T(scales_read) != 0) T(aim_source)(head);
#endif
    if (T(norm_after)) {
        for (uint index = 0; index < T(row_chunks); ++index) {
            const uvec2 at = T(row_channels)(index);
            const T(Summed)
                summed = T(summed_of)(token, index, T(read)(row, at.x), T(read)(row, at.y), head);
            T(unit_sums)[summed.units.x] = T(leaf)(what, norm, summed.a, scale);
            T(unit_sums)[summed.units.y] = T(leaf)(what, norm, summed.b, scale);
        }
    }
    float sum = 0;
    for (uint unit = 0; unit < T(norm_units); ++unit) {
        float leaf;
        if (T(norm_after)) {
            leaf = T(unit_sums)[T(norm_from) + unit];
        } else {
            const uint channel = (T(norm_from) + unit) * unit_elements;
            leaf = T(leaf)(what, norm, T(biased)(T(read)(row, channel), head, channel), scale);
        }
        sum = vkrope_tree_add(T(levels), unit, leaf);
    }
    for (uint unit = T(norm_units); unit < 1u << T(levels); ++unit)
        sum = vkrope_tree_add(T(levels), unit, 0.0);
    return sum;
}

// Returns the sum over a head, or over all heads of its token.
float T(owned_sum)(uint what, const Token token, const uint from, const uint head,
                   const VkropeNorm norm, const float scale) {
    float sum = 0;
    if (T(whole_token)) {
        for (uint each = 0; each < T(row_heads); ++each)
            T(head_sums)[each] = T(owned_head)(what, token, from, each, norm, scale);
        for (uint each = 0; each < 1u << T(head_levels); ++each) {
            float leaf = 0;
            if (each < T(row_heads)) leaf = T(head_sums)[each];
            sum = vkrope_tree_add(T(head_levels), each, leaf);
        }
    } else {
        sum = T(owned_head)(what, token, from, head, norm, scale);
    }
    return sum;
}

// Returns the sum and the sum of scaled values. The latter is added up only if the first is not
// finite. The code is a loop, because software devices run both sides of a branch, but a loop only
// while a lane needs it.
vec2 T(owned_sums)(uint what, const Token token, const uint from, const uint head,
                   const VkropeNorm norm) {
    vec2 sums = vec2(0);
    uint rounds = 1;
    float scale = 1;
    for (uint round = 0; round < rounds; ++round) {
        const float sum = T(owned_sum)(what, token, from, head, norm, scale);
        if (round == 0) {
            precise float scaled = sum * vkrope_small;
            sums = vec2(sum, scaled);
            if ((T(ops) & op_one_sum) == 0) {
                if (!vkrope_is_finite(sum)) rounds = 2;
            }
        } else {
            sums.y = sum;
        }
        scale = vkrope_small;
    }
    return sums;
}

VkropeNorm T(owned_norm)(Token token, const uint from, const uint head) {
    VkropeNorm norm = vkrope_no_norm();
    const float inverse_n = uintBitsToFloat(T(inverse_n));
    vec2 sums = vec2(0);
    if (T(norm) == op_layer) {
        vkrope_set_mean(norm, T(owned_sums)(sum_values, token, from, head, norm), inverse_n);
        sums = T(owned_sums)(sum_differences, token, from, head, norm);
    }
    vkrope_set_root(norm, sums, T(owned_sums)(sum_squares, token, from, head, norm), inverse_n,
                    uintBitsToFloat(T(eps)));
    return norm;
}

// Computes the norms of the heads first, first + apart, ... below `heads`. The norm of a whole
// token is computed at its first heads and kept, because in place these are overwritten later.
void T(hold_norms)(Token token, const uint from, const uint first, const uint apart,
                   const uint heads) {
    if (T(norm) != 0) {
        if (T(whole_token)) {
            if (first < min(heads, apart)) T(norms)[0] = T(owned_norm)(token, from, 0);
        } else {
            for (uint i = 0; i < norms_held && first + i * apart < heads; ++i)
                T(norms)[i] = T(owned_norm)(token, from, first + i * apart);
        }
    }
}

// Applies the ops to one chunk in these heads.
void T(ops_heads)(bool rotates, const Chunk chunk, const uint from, const uint to, const uint first,
                  const uint apart, const uint heads, const float token_factor) {
    T(ChunkParameters) p;
    T(load_chunk_parameters)(shape_channel, chunk, first, p);
    for (uint i = 0; i < norms_held && first + i * apart < heads; ++i) {
        const uint head = first + i * apart;
        const uint row = from + head * T(source_head)(),
                   there = to + head * VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(out).head;
#if VKROPE_TENSOR_OF_CACHE
        if (T(scales_read) != 0) T(aim_source)(head);
#endif
        const Words A = T(read)(row, chunk.from.x), B = T(read)(row, chunk.from.y);
        VkropeNorm norm = vkrope_no_norm();
        if (T(norm) != 0) norm = T(norms)[T(whole_token) ? 0 : i];
        T(load_chunk_parameters)(shape_head_channel, chunk, head, p);
        if (T(second_of) != second_none) T(aim_second)(head);
        T(ops_units)(rotates, chunk, A, B, there, p, norm, token_factor);
    }
}

void T(ops_copied)(uint from, const uint to, const uint first, const uint apart, const uint heads,
                   const float token_factor) {
    for (uint index = T(row_chunks) - T(copying); index < T(row_chunks); ++index)
        T(ops_heads)(false, T(copied_chunk)(index), from, to, first, apart, heads, token_factor);
}
