// SPDX-License-Identifier: MIT
// Trials with steps around the rotation.
#pragma once

#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {

/// Rows of this length also start in the middle of 16 bytes, and are written to a cache.
inline constexpr std::uint32_t usual_head_dim = 128;

/// Q, K and V with rows of one shape, two sequences, and head counts that the kernel knows.
Trial three_alike(Element in, Element out, std::uint32_t head_dim, std::uint32_t rotary_dim,
                  std::uint32_t rotary_offset = 0, Pairing pairing = VKROPE_HALF_SPLIT);

/// Runs the trial in every way that must give the same bits. The codes of a quantised output are
/// compared with the definition of their type, for the rows of f32 that the device itself stores.
void run_every_way(Test& test, Trial trial);

/// The checks of calls of unusual sizes: ops_shapes.cpp.
void add_ops_shapes(Checks& checks);

}  // namespace vkrope::conformance
