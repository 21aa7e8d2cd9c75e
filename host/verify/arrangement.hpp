// SPDX-License-Identifier: MIT
// Memory arrangements of the rows of Q, K and V that are common in practice.
#pragma once

#include "verify/oracle/oracle.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::verify {

// Arrangement of Q, K and V in one piece of memory. Axes are listed slowest first; G is the number
// of groups, P the number of Q heads in a group.
enum class Arrangement {
    bshd,               // default strides of the library
    bshd_with_strides,  // the same with explicit strides
    bhsd,               // [batch, heads, tokens, head_dim]
    sbhd,               // [tokens, batch, heads, head_dim]
    thd,                // one sequence of all tokens, default strides
    heads_first,        // [heads, tokens, batch, head_dim]
    grouped_qkv,        // [batch, tokens, G, P + 2, head_dim]
    groups_first,       // [batch, G, tokens, P, head_dim]
    packed_qkv,         // [batch, tokens, Q heads + 2 K heads, head_dim]
    packed_kv,          // K and V as [batch, tokens, 2, K heads, head_dim]
    gaps,               // gaps after rows, tokens and sequences, in multiples of 16 bytes
    odd_offsets,        // offset and strides are odd numbers of elements
    odd_pairs,  // offset and strides are odd numbers of element pairs (words of 16-bit elements)
    slice_of_heads,  // heads [1, 1 + heads) of a larger tensor
    gathered,   // [parts, batch, tokens, heads / parts, head_dim]; parts of V lie further apart
    broadcast,  // inputs only: all heads of K share one row
};
struct NamedArrangement {
    const char* name;
    Arrangement value;
};
// All arrangements. All but the last can hold outputs and be used in place.
inline constexpr NamedArrangement arrangements[] = {
    {"bshd", Arrangement::bshd},
    {"bshd_with_strides", Arrangement::bshd_with_strides},
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
    {"gathered", Arrangement::gathered},
    {"broadcast", Arrangement::broadcast},
};

// Q has groups * q_per_group heads; K and V have one head per group.
struct Shape {
    std::uint32_t batch = 1, tokens = 1, groups = 1, q_per_group = 1;
    std::uint32_t own_q_heads = 0, own_v_heads = 0;  // 0: the number that follows from the groups

    std::uint32_t q_heads() const { return own_q_heads == 0 ? groups * q_per_group : own_q_heads; }
    std::uint32_t v_heads() const { return own_v_heads == 0 ? groups : own_v_heads; }
    std::uint32_t rows() const { return batch * tokens; }
};

// The rows of one tensor in a piece of memory.
struct Placed {
    oracle::Tensor rows = {};
    std::uint64_t first = 0;       // first element, relative to the piece
    bool strides_by_rule = false;  // the strides equal those that the library derives from 0
};

struct Piece {
    Placed q, k, v;
    std::uint64_t elements = 0;
};

// Places Q, K and V as elements of one size; the caller sets the types of the rows. V has the
// layout of K if it has the same number of heads and channels, unless all heads of K share one
// row, or `arrangement` is gathered.
//
// v_head_dim  0: V is absent; the space that it would have next to K stays unused
Piece arrange(Arrangement arrangement, const Shape& shape, std::uint64_t q_head_dim,
              std::uint64_t k_head_dim, std::uint64_t v_head_dim = 0);

// Places the rows of K or V in pages, with more rows than tokens; the caller sets the slots.
//
// by_head  [pages, heads, page_size, head_dim] instead of [pages, page_size, heads, head_dim]
// gaps     one element after each row, each row of heads and each page, and 3 before the first
//          row; pages of single rows have no gaps
Placed arrange_pages(const Shape& shape, std::uint64_t heads, std::uint64_t head_dim,
                     std::uint32_t page_size, bool by_head, bool gaps = false);

// Returns the number of elements from the first row to the end of the last row, or of all pages.
std::uint64_t span_of(const oracle::Tensor& rows);

// Returns a tensor for record() in a piece of memory that starts at `byte` of `buffer`.
Tensor tensor_of(const Placed& placed, const VkDescriptorBufferInfo& buffer, std::uint64_t byte);

}  // namespace vkrope::verify
