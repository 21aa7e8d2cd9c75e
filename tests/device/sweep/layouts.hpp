// SPDX-License-Identifier: MIT
// Small instances of every common arrangement of rows of Q and K, as the conformance checks have
// them.
#pragma once

#include <iterator>

#include "conformance/builtin/arrangement.hpp"
#include "support/test_device.hpp"

namespace vkrope::test {

using conformance::arrange, conformance::arrange_pages, conformance::span_of,
    conformance::tensor_of;
using conformance::Arrangement, conformance::Piece, conformance::Placed, conformance::Shape;

/// Arrangements for inputs, outputs and in place: all before broadcast.
inline constexpr std::uint32_t packable_arrangements = std::size(conformance::arrangements) - 1;

/// Arrangement of outputs: K only, in the rows that slots name.
inline constexpr auto cache_of_k = Arrangement(std::size(conformance::arrangements));

}  // namespace vkrope::test
