// SPDX-License-Identifier: MIT
// Where rows of Q, K and V can be: the arrangements that people keep them in.
#pragma once

#include "reference/oracle.hpp"
#include "vkrope/kernel.hpp"

namespace vkrope::conformance {

/// How Q, K and V stand in one piece of memory. Axes are named slowest first; G is groups, P the Q
/// heads of a group.
enum class Arrangement {
    bshd,          ///< strides left to the library
    bshd_strides,  ///< the same, strides given
    bhsd,          ///< [batch, heads, tokens, head_dim]
    sbhd,          ///< [tokens, batch, heads, head_dim]
    thd,           ///< one sequence of all tokens, strides left to the library
    heads_first,   ///< [heads, tokens, batch, head_dim]
    grouped_qkv,   ///< [batch, tokens, G, P + 2, head_dim]
    groups_first,  ///< [batch, G, tokens, P, head_dim]
    packed_qkv,    ///< [batch, tokens, Q heads + 2 K heads, head_dim]
    packed_kv,     ///< K and V as [batch, tokens, 2, K heads, head_dim]
    gaps,          ///< gaps after rows, tokens and sequences, of whole 16 bytes
    odd_offsets,   ///< offset and strides are odd numbers of elements
    odd_pairs,  ///< offset and strides are odd numbers of pairs of elements: words, where those are
                ///< halves
    slice_of_heads,  ///< heads [1, 1 + heads) of more
    broadcast,       ///< inputs: all heads of K are one row
};
struct NamedArrangement {
    const char* name;
    Arrangement value;
};
/// All; those before the last serve as outputs, and in place.
inline constexpr NamedArrangement arrangements[] = {
    {"bshd", Arrangement::bshd},
    {"bshd_with_strides", Arrangement::bshd_strides},
    {"bhsd", Arrangement::bhsd},
    {"sbhd", Arrangement::sbhd},
    {"thd", Arrangement::thd},
    {"heads_first", Arrangement::heads_first},
    {"grouped_qkv", Arrangement::grouped_qkv},
    {"groups_first", Arrangement::groups_first},
    {"packed_qkv", Arrangement::packed_qkv},
    {"packed_kv", Arrangement::packed_kv},
    {"gaps", Arrangement::gaps},
    {"odd_offsets", Arrangement::odd_offsets},
    {"odd_pairs", Arrangement::odd_pairs},
    {"slice_of_heads", Arrangement::slice_of_heads},
    {"broadcast", Arrangement::broadcast},
};

/// Q has groups * q_per_group heads, K one a group.
struct Shape {
    std::uint32_t batch = 1, tokens = 1, groups = 1, q_per_group = 1;
    std::uint32_t own_v_heads = 0;  // 0: as many as K

    std::uint32_t q_heads() const { return groups * q_per_group; }
    std::uint32_t v_heads() const { return own_v_heads == 0 ? groups : own_v_heads; }
    std::uint32_t rows() const { return batch * tokens; }
};

/// The rows of one tensor in a piece of memory.
struct Placed {
    reference::Tensor rows = {};
    std::uint64_t first = 0;       // element of the piece
    bool strides_by_rule = false;  // what the library takes a stride of 0 for
};

struct Piece {
    Placed q, k, v;
    std::uint64_t elements = 0;
};

/// Q, K and V as elements of one size; the types of their rows are left to the caller. V lies as K
/// does where it has as many heads and channels, unless all heads of K are one row.
///
/// v_head_dim  0: V is absent, and where it would stand beside K its place is left free
Piece arrange(Arrangement arrangement, const Shape& shape, std::uint64_t q_head_dim,
              std::uint64_t k_head_dim, std::uint64_t v_head_dim = 0);

/// Rows for K, or for V, in pages, more than there are tokens; the slots are left to the caller.
///
/// by_head  [pages, heads, page_size, head_dim] in place of [pages, page_size, heads, head_dim]
Placed arrange_pages(const Shape& shape, std::uint64_t heads, std::uint64_t head_dim,
                     std::uint32_t page_size, bool by_head);

/// Elements from the first row of a tensor to behind its last one; of pages, all of them.
std::uint64_t span_of(const reference::Tensor& rows);

/// A tensor for record(), in a piece that starts at `byte` of `buffer`.
Tensor tensor_of(const Placed& placed, const VkDescriptorBufferInfo& buffer, std::uint64_t byte);

}  // namespace vkrope::conformance
