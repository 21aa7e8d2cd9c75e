// SPDX-License-Identifier: MIT
// Trials with ops around the rotation.
#pragma once

#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {

// Rows of this length are also tested at offsets between multiples of 16 bytes, and in a cache.
inline constexpr std::uint32_t usual_head_dim = 128;

// Returns Q, K and V with rows of the same shape, two sequences, and fixed head counts.
Trial three_alike(Element in, Element out, std::uint32_t head_dim, std::uint32_t rotary_dim,
                  std::uint32_t rotary_offset = 0, Pairing pairing = VKROPE_HALF_SPLIT);

// Runs the trial in all forms that must give the same bits. Compares the codes of a quantised
// output with the definition of their type, applied to the f32 rows that the device stores.
void run_every_way(Test& test, Trial trial);

// Adds the checks of calls of unusual sizes: ops_shapes.cpp.
void add_ops_shapes(Checks& checks);

}  // namespace vkrope::conformance
