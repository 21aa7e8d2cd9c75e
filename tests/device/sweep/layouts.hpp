// SPDX-License-Identifier: MIT
// Small instances of every common arrangement of rows of Q and K.
#pragma once

#include "support/test_device.hpp"

namespace vkrope::test {

/// Arrangement of Q and K in one piece of memory. The axes are listed slowest first; G is the
/// number of groups, P the Q heads of a group.
enum class Arrangement : std::uint32_t {
    bshd,  ///< no strides given
    rows,  ///< [batch, tokens, heads * head_dim], strides given
    bhsd,
    sbhd,
    thd,           ///< one batch of all tokens
    heads_first,   ///< [heads, tokens, batch, head_dim]
    grouped_qkv,   ///< [batch, tokens, G, P + 2, head_dim]
    groups_first,  ///< [batch, G, tokens, P, head_dim]
    gaps,          ///< gaps of multiples of 16 bytes after rows, tokens and sequences
    qkv_planes,    ///< [batch, tokens, Q heads + 2 K heads, head_dim]
    kv_planes,     ///< K as [batch, tokens, 2, K heads, head_dim]
    odd,           ///< offset and strides are odd numbers of elements
    head_slice,    ///< heads [1, 1 + heads) of a larger tensor
    broadcast_k,   ///< inputs: all heads of K are one row
    cache,         ///< outputs: K only, in the rows that slots name
};
inline constexpr std::uint32_t packable_arrangements =
    13;  // all before broadcast_k: for inputs, outputs and in place
const char* name(Arrangement arrangement);

/// Shape of one call: Q has groups * q_per_group heads, K one per group.
struct Shape {
    std::uint32_t batch = 2, tokens = 2, groups = 2, q_per_group = 2;

    std::uint32_t q_heads() const { return groups * q_per_group; }
    std::uint32_t rows() const { return batch * tokens; }
};

/// The rows of one tensor in a piece of memory.
struct Placed {
    reference::Tensor rows;
    std::uint64_t first = 0;       // first element in the piece
    bool strides_by_rule = false;  // the strides are what 0 means to the library
};

/// Elements from the first row of a tensor to the end of its last one; for a cache, of all its
/// pages.
std::uint64_t span_of(const reference::Tensor& rows);

/// A tensor for record(), in a piece that starts at byte `byte` of `buffer`.
Tensor tensor_of(const Placed& placed, const VkDescriptorBufferInfo& buffer, std::uint64_t byte);

/// Rows for K in more pages than the tokens need; the caller fills the slots.
///
/// by_head  [pages, heads, page_size, head_dim] instead of [pages, page_size, heads, head_dim]
Placed arrange_cache(const Shape& shape, std::uint64_t head_dim, std::uint32_t page_size,
                     bool by_head, bool odd_strides);

struct Piece {
    Placed q, k;
    std::uint64_t elements = 0;
};

/// Q and K with elements of one size. The caller sets the types of their rows.
Piece arrange(Arrangement arrangement, const Shape& shape, std::uint64_t q_head_dim,
              std::uint64_t k_head_dim);

}  // namespace vkrope::test
