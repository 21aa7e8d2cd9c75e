// SPDX-License-Identifier: MIT
// One call of Q, K and V in any layout of K and V.
#pragma once

#include "support/recording.hpp"

namespace vkrope::test {

inline constexpr std::uint32_t tokens = 21, pages = 5, page_size = 6;  // 30 slots for 21 tokens

/// Layout of the rows of K and V.
enum class Place { apart, packed, packed_in_place, heads_first, paged };

struct Shape {
    std::uint32_t head_dim = 64, rotary_dim = 64, v_dim = 64, q_heads = 4, k_heads = 2, v_heads = 2;
    bool heads_known = false;
};

/// Three tensors in host memory, in the order [tokens, heads, head_dim].
struct Rows {
    Bytes q, k, v;
};

struct Outcome {
    Rows rows;
    Bytes k_memory, v_memory;  // the whole buffers of their outputs
    std::uint64_t dispatches = 0;
    std::uint32_t outside = 0;
};

struct Trial {
    Shape shape;
    Element in = VKROPE_F32, v_in = VKROPE_F32, out = VKROPE_F32, v_out = VKROPE_F32;
    Place place = Place::apart;
    Mapping mapping = VKROPE_MAPPING_AUTOMATIC;
    ReportedLimits limits = {};
    bool with_v = true;
    bool q_called = true, k_called = true, v_called = true;  // in the call: the kernel has them
    std::uint32_t k_pages = pages, v_pages = pages;          // of the caches
};

inline std::int32_t slot_of(std::uint32_t token) {
    return std::int32_t(token * 7 % (pages * page_size));
}

/// Copies `bytes` bytes that lie inside both.
void move(Bytes& to, std::size_t to_at, const Bytes& from, std::size_t from_at, std::size_t bytes);

/// The kernel of a trial, and of all trials with the same shape, elements, mapping and limits, if
/// both or neither write to a cache.
Owned<Kernel> kernel_for(Device& on, const Trial& trial);

/// Rotates `given` as the trial says.
Outcome tried(Device& on, const Owned<Kernel>& kernel, const Trial& trial, const AngleTable& table,
              const Rows& given);

}  // namespace vkrope::test
