// SPDX-License-Identifier: MIT
// An operation whose memory is not placed yet: shapes, arrangements and values. place.hpp makes an
// Operation of it.
#pragma once

#include <optional>

#include "verify/arrangement.hpp"
#include "verify/elements.hpp"
#include "verify/operation.hpp"

namespace vkrope::verify {

struct Unplaced : Operation {
    Unplaced() {
        info.pairing = VKROPE_HALF_SPLIT;
        info.angles = VKROPE_ANGLES_FACTORED_TEXTURE;  // a tensor with head_dim 0 is absent
        call.positions.batch_stride = broadcast;
    }

    Shape shape = {};
    Arrangement in = Arrangement::bshd, out = Arrangement::bshd;
    bool in_place = false;
    std::uint32_t lead = 0;          // elements, or blocks, before the tensors of bshd
    std::array<Bytes, 3> rows = {};  // [batch, tokens, heads, head_dim]; empty: random
    bool only_v = false;             // the call has neither Q nor K
    std::uint32_t seed = 1;
    // If `inv_freq` is empty: 10000^(-2j / rotary_dim), each set after the first slower than the
    // one before. If `parameters` are: random.
    std::vector<std::int64_t> ids = {};    // [axes, batch, tokens], if info.positions uses ids
    std::vector<std::int64_t> slots = {};  // with info.scatter_kv; empty: random, some outside
    bool pages_by_head = false;
    bool beside = false;       // in a cache, K and V of a head and token side by side in one row
    Bytes cos = {}, sin = {};  // cos_sin_cache: [max_position, row_stride] of info.table
};

/// Number of elements of a tensor.
std::size_t elements_of(const Unplaced& operation, vkrope_tensor_index which);

/// The frequencies that the placed operation has.
std::vector<double> inv_freq_of(const Unplaced& operation);

}  // namespace vkrope::verify
