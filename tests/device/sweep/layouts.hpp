// SPDX-License-Identifier: MIT
// Small instances of every common arrangement of rows of Q and K, as the conformance checks have
// them.
#pragma once

#include <iterator>

#include "support/test_device.hpp"
#include "verify/arrangement.hpp"

namespace vkrope::test {

using verify::arrange, verify::arrange_pages, verify::span_of, verify::tensor_of;
using verify::Arrangement, verify::Piece, verify::Placed, verify::Shape;

/// Arrangements for inputs, outputs and in place: all before broadcast.
inline constexpr std::uint32_t packable_arrangements = std::size(verify::arrangements) - 1;

/// Arrangement of outputs: K only, in the rows that slots name.
inline constexpr auto cache_of_k = Arrangement(std::size(verify::arrangements));

}  // namespace vkrope::test
