// SPDX-License-Identifier: MIT
#include "verify/arrangement.hpp"

#include <algorithm>

namespace vkrope::verify {
namespace {

// Returns the layout [batch, tokens, heads, head_dim] with gaps of the given number of elements
// after each row, token and sequence.
oracle::Tensor packed(const Shape& shape, std::uint64_t heads, std::uint64_t head_dim,
                      std::uint64_t after_row = 0, std::uint64_t after_token = 0,
                      std::uint64_t after_sequence = 0) {
    oracle::Tensor rows = {
        .batch = shape.batch, .tokens = shape.tokens, .heads = heads, .head_dim = head_dim};
    rows.head_stride = head_dim + after_row;
    rows.token_stride = heads * rows.head_stride + after_token;
    rows.batch_stride = shape.tokens * rows.token_stride + after_sequence;
    return rows;
}

// Returns a layout whose strides are odd multiples of `step` elements.
oracle::Tensor odd(const Shape& shape, std::uint64_t heads, std::uint64_t head_dim,
                   std::uint64_t step) {
    const std::uint64_t row = (head_dim + step - 1) / step, head = row + 1 + row % 2,
                        token = (heads * head + 2) | 1;
    oracle::Tensor rows = packed(shape, heads, head_dim);
    rows.head_stride = step * head;
    rows.token_stride = step * token;
    rows.batch_stride = step * ((shape.tokens * token + 2) | 1);
    return rows;
}

oracle::Tensor gathered(const Shape& shape, std::uint64_t heads, std::uint64_t head_dim) {
    const std::uint64_t in_part = heads % 2 == 0 ? heads / 2 : 1;
    oracle::Tensor rows = packed(shape, in_part, head_dim);
    rows.heads = heads;
    rows.heads_per_group = in_part;
    rows.group_stride = shape.batch * rows.batch_stride;
    return rows;
}

oracle::Tensor strided(oracle::Tensor rows, std::uint64_t batch, std::uint64_t token,
                       std::uint64_t head) {
    rows.batch_stride = batch;
    rows.token_stride = token;
    rows.head_stride = head;
    return rows;
}

// Returns the layout of one tensor for arrangements that place K and V in the same way as Q.
oracle::Tensor alike(Arrangement arrangement, const Shape& shape, std::uint64_t heads,
                     std::uint64_t D) {
    const std::uint64_t B = shape.batch, S = shape.tokens;
    oracle::Tensor plain = packed(shape, heads, D);
    switch (arrangement) {
        case Arrangement::bhsd: return strided(plain, heads * S * D, D, S * D);
        case Arrangement::sbhd: return strided(plain, heads * D, B * heads * D, D);
        case Arrangement::heads_first: return strided(plain, D, B * D, S * B * D);
        case Arrangement::gaps: return packed(shape, heads, D, 16, 32, 48);
        case Arrangement::odd_offsets: return odd(shape, heads, D, 1);
        case Arrangement::odd_pairs: return odd(shape, heads, D, 2);
        case Arrangement::gathered: return gathered(shape, heads, D);
        case Arrangement::slice_of_heads:
            return strided(plain, S * (heads + 3) * D, (heads + 3) * D, D);
        default: return plain;
    }
}

}  // namespace

std::uint64_t span_of(const oracle::Tensor& rows) {
    if (rows.cache) {
        const oracle::Cache& cache = *rows.cache;
        return (cache.pages - 1) * cache.page_stride + (cache.page_size - 1) * cache.row_stride +
               (rows.heads - 1) * rows.head_stride + rows.head_dim;
    }
    std::uint64_t end = 0;
    oracle::each_row(rows, [&](std::uint64_t, std::uint64_t first) {
        end = std::max(end, first + rows.head_dim);
    });
    return end;
}

Tensor tensor_of(const Placed& placed, const VkDescriptorBufferInfo& buffer, std::uint64_t byte) {
    const oracle::Tensor& rows = placed.rows;
    const std::uint64_t size = oracle::bytes_of(rows.type);
    Tensor tensor = {.where = {buffer.buffer, byte + placed.first * size, span_of(rows) * size},
                     .heads = std::uint32_t(rows.heads),
                     .heads_per_group = std::uint32_t(rows.heads_per_group),
                     .buffer_size = buffer.range};
    if (!placed.strides_by_rule) {
        tensor.head_stride = rows.head_stride == 0 ? broadcast : std::int64_t(rows.head_stride);
        tensor.token_stride = std::int64_t(rows.token_stride);
        tensor.batch_stride = std::int64_t(rows.batch_stride);
        tensor.group_stride = std::int64_t(rows.group_stride);
    }
    return tensor;
}

Piece arrange(Arrangement arrangement, const Shape& shape, std::uint64_t q_head_dim,
              std::uint64_t k_head_dim, std::uint64_t v_head_dim) {
    const std::uint64_t S = shape.tokens, G = shape.groups, P = shape.q_per_group, Dq = q_head_dim,
                        Dk = k_head_dim;
    const bool has_v = v_head_dim != 0;
    const std::uint64_t H = has_v ? shape.v_heads() : G, Dv = has_v ? v_head_dim : Dk;
    Piece piece;
    oracle::Tensor &q = piece.q.rows, &k = piece.k.rows, &v = piece.v.rows;
    q = alike(arrangement, shape, shape.q_heads(), Dq);
    k = alike(arrangement, shape, G, Dk);
    v = alike(arrangement, shape, H, Dv);
    bool one_after_the_other = true, v_after_k = true;
    switch (arrangement) {
        case Arrangement::bshd:
        case Arrangement::thd:
            piece.q.strides_by_rule = piece.k.strides_by_rule = piece.v.strides_by_rule = true;
            break;
        case Arrangement::grouped_qkv: {
            const std::uint64_t group = P * Dq + Dk + (H == G ? Dv : 0);
            q = strided(q, S * G * group, G * group, Dq);
            q.heads_per_group = P;
            q.group_stride = group;
            k = strided(k, S * G * group, G * group, group);
            piece.k.first = P * Dq;
            one_after_the_other = false;
            if (H == G) {  // a V with another number of heads is not part of a group
                v = strided(v, S * G * group, G * group, group);
                piece.v.first = P * Dq + Dk;
                v_after_k = false;
            }
            break;
        }
        case Arrangement::groups_first:
            q = strided(q, G * S * P * Dq, P * Dq, Dq);
            q.heads_per_group = P;
            q.group_stride = S * P * Dq;
            k = strided(k, G * S * Dk, Dk, Dk);
            k.heads_per_group = 1;
            k.group_stride = S * Dk;
            v = strided(v, H * S * Dv, Dv, Dv);
            v.heads_per_group = 1;
            v.group_stride = S * Dv;
            break;
        case Arrangement::packed_qkv: {
            const std::uint64_t token = G * P * Dq + G * Dk + H * Dv;
            q = strided(q, S * token, token, Dq);
            k = strided(k, S * token, token, Dk);
            v = strided(v, S * token, token, Dv);
            piece.k.first = G * P * Dq;
            piece.v.first = piece.k.first + G * Dk;
            one_after_the_other = v_after_k = false;
            break;
        }
        case Arrangement::packed_kv: {
            const std::uint64_t token = G * Dk + H * Dv;
            k = strided(k, S * token, token, Dk);
            v = strided(v, S * token, token, Dv);
            v_after_k = false;
            break;
        }
        case Arrangement::odd_offsets: piece.q.first = 3; break;
        case Arrangement::odd_pairs: piece.q.first = 6; break;
        case Arrangement::slice_of_heads: piece.q.first = Dq; break;
        case Arrangement::gathered: v.group_stride += Dv; break;
        case Arrangement::broadcast: k = strided(k, S * Dk, Dk, 0); break;
        default: break;
    }
    const auto behind = [&](const Placed& placed, std::uint64_t odd_offset, std::uint64_t odd_pair,
                            std::uint64_t slice) {
        const std::uint64_t start = (placed.first + span_of(placed.rows) + 64) / 16 * 16;
        return start + (arrangement == Arrangement::odd_offsets      ? odd_offset
                        : arrangement == Arrangement::odd_pairs      ? odd_pair
                        : arrangement == Arrangement::slice_of_heads ? slice
                                                                     : 0);
    };
    if (one_after_the_other) piece.k.first = behind(piece.q, 1, 2, Dk);
    if (arrangement == Arrangement::packed_kv)
        piece.v.first = piece.k.first + G * Dk;
    else if (has_v && v_after_k)
        piece.v.first = behind(piece.k, 5, 4, Dv);
    // Adds unused space at the end: the planes of an absent V, the heads after a slice.
    piece.elements = std::max(piece.q.first + span_of(q), piece.k.first + span_of(k)) +
                     3 * std::max({Dq, Dk, Dv}) + G * Dk;
    if (has_v) piece.elements = std::max(piece.elements, piece.v.first + span_of(v) + 3 * Dv);
    return piece;
}

Placed arrange_pages(const Shape& shape, std::uint64_t heads, std::uint64_t head_dim,
                     std::uint32_t page_size, bool by_head, bool gaps) {
    const std::uint64_t gap = gaps && page_size > 1 ? 1 : 0;
    Placed placed = {
        .rows = {
            .batch = shape.batch, .tokens = shape.tokens, .heads = heads, .head_dim = head_dim}};
    placed.first = 3 * gap;
    placed.strides_by_rule = !by_head && gap == 0;
    oracle::Cache cache = {.pages = 1 + 4 * std::uint64_t{shape.rows()} / page_size,
                           .page_size = page_size};
    if (by_head) {
        cache.row_stride = head_dim + gap;
        placed.rows.head_stride = page_size * cache.row_stride + gap;
        cache.page_stride = heads * placed.rows.head_stride + gap;
    } else {
        placed.rows.head_stride = head_dim + gap;
        cache.row_stride = heads * placed.rows.head_stride + gap;
        cache.page_stride = page_size * cache.row_stride + gap;
    }
    placed.rows.cache = cache;
    return placed;
}

}  // namespace vkrope::verify
