// SPDX-License-Identifier: MIT
#include "layouts.hpp"

#include <algorithm>

namespace vkrope::test {

const char* name(Arrangement arrangement) {
    constexpr const char* names[] = {"bshd",
                                     "[batch, seq, heads*head_dim]",
                                     "bhsd",
                                     "sbhd",
                                     "thd",
                                     "heads first",
                                     "grouped QKV",
                                     "groups first",
                                     "gaps",
                                     "QKV planes",
                                     "KV planes",
                                     "odd offset and strides",
                                     "slice of heads",
                                     "broadcast K",
                                     "cache (K alone)"};
    return names[std::size_t(arrangement)];
}

std::uint64_t span_of(const reference::Tensor& rows) {
    std::uint64_t end = 0;
    if (rows.cache) {
        const reference::Cache& cache = *rows.cache;
        return (cache.pages - 1) * cache.page_stride + (cache.page_size - 1) * cache.row_stride +
               (rows.heads - 1) * rows.head_stride + rows.head_dim;
    }
    reference::each_row(rows, [&](std::uint64_t, std::uint64_t first) {
        end = std::max(end, first + rows.head_dim);
    });
    return end;
}

Tensor tensor_of(const Placed& placed, const VkDescriptorBufferInfo& buffer, std::uint64_t byte) {
    const reference::Tensor& rows = placed.rows;
    const std::uint64_t size = rows.type == reference::Type::f32 ? 4 : 2;
    Tensor tensor{.where = {buffer.buffer, byte + placed.first * size, span_of(rows) * size},
                  .heads = std::uint32_t(rows.heads),
                  .heads_per_group = std::uint32_t(rows.heads_per_group),
                  .buffer_size = buffer.range};
    if (placed.strides_by_rule) return tensor;
    tensor.head_stride = rows.head_stride == 0 ? broadcast : std::int64_t(rows.head_stride);
    tensor.token_stride = std::int64_t(rows.token_stride);
    tensor.batch_stride = std::int64_t(rows.batch_stride);
    tensor.group_stride = std::int64_t(rows.group_stride);
    return tensor;
}

namespace {

// [batch, tokens, heads, head_dim] with gaps of these many elements after each row, token and
// sequence.
reference::Tensor packed(const Shape& shape, std::uint64_t heads, std::uint64_t head_dim,
                         std::uint64_t after_row = 0, std::uint64_t after_token = 0,
                         std::uint64_t after_sequence = 0) {
    reference::Tensor rows{
        .batch = shape.batch, .tokens = shape.tokens, .heads = heads, .head_dim = head_dim};
    rows.head_stride = head_dim + after_row;
    rows.token_stride = heads * rows.head_stride + after_token;
    rows.batch_stride = shape.tokens * rows.token_stride + after_sequence;
    return rows;
}

reference::Tensor odd(const Shape& shape, std::uint64_t heads, std::uint64_t head_dim) {
    reference::Tensor rows = packed(shape, heads, head_dim, 1 + head_dim % 2);
    rows.token_stride = (rows.token_stride + 2) | 1;
    rows.batch_stride = (shape.tokens * rows.token_stride + 2) | 1;
    return rows;
}

reference::Tensor strided(reference::Tensor rows, std::uint64_t batch, std::uint64_t token,
                          std::uint64_t head) {
    rows.batch_stride = batch;
    rows.token_stride = token;
    rows.head_stride = head;
    return rows;
}

// One tensor, for arrangements in which K looks like Q.
reference::Tensor alike(Arrangement arrangement, const Shape& shape, std::uint64_t heads,
                        std::uint64_t D) {
    const std::uint64_t B = shape.batch, S = shape.tokens;
    const reference::Tensor plain = packed(shape, heads, D);
    switch (arrangement) {
        case Arrangement::bhsd: return strided(plain, heads * S * D, D, S * D);
        case Arrangement::sbhd: return strided(plain, heads * D, B * heads * D, D);
        case Arrangement::heads_first: return strided(plain, D, B * D, S * B * D);
        case Arrangement::gaps: return packed(shape, heads, D, 16, 32, 48);
        case Arrangement::odd: return odd(shape, heads, D);
        case Arrangement::head_slice:
            return strided(plain, S * (heads + 3) * D, (heads + 3) * D, D);
        default: return plain;
    }
}

}  // namespace

Placed arrange_cache(const Shape& shape, std::uint64_t head_dim, std::uint32_t page_size,
                     bool by_head, bool odd_strides) {
    const std::uint64_t heads = shape.groups,
                        more = odd_strides && page_size > 1 ? 1 : 0;  // single rows are packed
    Placed placed{
        .rows = {
            .batch = shape.batch, .tokens = shape.tokens, .heads = heads, .head_dim = head_dim}};
    placed.first = 3 * more;
    placed.strides_by_rule = !by_head && more == 0;
    reference::Cache cache{.page_size = page_size};
    cache.pages = 1 + 4 * shape.rows() / page_size;
    if (by_head) {
        cache.row_stride = head_dim + more;
        placed.rows.head_stride = page_size * cache.row_stride + more;
        cache.page_stride = heads * placed.rows.head_stride + more;
    } else {
        placed.rows.head_stride = head_dim + more;
        cache.row_stride = heads * placed.rows.head_stride + more;
        cache.page_stride = page_size * cache.row_stride + more;
    }
    placed.rows.cache = cache;
    return placed;
}

Piece arrange(Arrangement arrangement, const Shape& shape, std::uint64_t q_head_dim,
              std::uint64_t k_head_dim) {
    const std::uint64_t S = shape.tokens, G = shape.groups, P = shape.q_per_group, Q = q_head_dim,
                        K = k_head_dim;
    Piece piece;
    reference::Tensor &q = piece.q.rows, &k = piece.k.rows;
    q = alike(arrangement, shape, shape.q_heads(), Q);
    k = alike(arrangement, shape, G, K);
    bool one_after_the_other = true;
    switch (arrangement) {
        case Arrangement::bshd:
        case Arrangement::thd: piece.q.strides_by_rule = piece.k.strides_by_rule = true; break;
        case Arrangement::grouped_qkv: {
            const std::uint64_t group = P * Q + 2 * K;
            q = strided(q, S * G * group, G * group, Q);
            q.heads_per_group = P;
            q.group_stride = group;
            k = strided(k, S * G * group, G * group, group);
            piece.k.first = P * Q;
            one_after_the_other = false;
            break;
        }
        case Arrangement::groups_first:
            q = strided(q, G * S * P * Q, P * Q, Q);
            q.heads_per_group = P;
            q.group_stride = S * P * Q;
            k = strided(k, G * S * K, K, K);
            k.heads_per_group = 1;
            k.group_stride = S * K;
            break;
        case Arrangement::qkv_planes: {
            const std::uint64_t token = G * P * Q + 2 * G * K;
            q = strided(q, S * token, token, Q);
            k = strided(k, S * token, token, K);
            piece.k.first = G * P * Q;
            one_after_the_other = false;
            break;
        }
        case Arrangement::kv_planes: k = strided(k, S * 2 * G * K, 2 * G * K, K); break;
        case Arrangement::odd: piece.q.first = 3; break;
        case Arrangement::head_slice: piece.q.first = Q; break;
        case Arrangement::broadcast_k: k = strided(k, S * K, K, 0); break;
        default: break;
    }
    if (one_after_the_other) {
        const std::uint64_t start = (piece.q.first + span_of(q) + 64) / 16 * 16;
        piece.k.first = start + (arrangement == Arrangement::odd          ? 1
                                 : arrangement == Arrangement::head_slice ? K
                                                                          : 0);
    }
    // Unused elements at the end: the planes of V, the heads after a slice.
    piece.elements = std::max(piece.q.first + span_of(q), piece.k.first + span_of(k)) +
                     3 * std::max(Q, K) + G * K;
    return piece;
}

}  // namespace vkrope::test
