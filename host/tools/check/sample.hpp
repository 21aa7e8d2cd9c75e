// SPDX-License-Identifier: MIT
// An evenly spread part of a tensor: mistakes are tried on it first.
#pragma once

#include <cstdint>

#include "check/mistakes.hpp"

namespace vkrope::tools {

/// Every `step`-th of `count`, including the last: a first token, at position 0, shows no mistake.
struct Every {
    std::uint64_t step = 1, first = 0, count = 0;
};

/// At most `most` of `count`.
Every at_most(std::uint64_t most, std::uint64_t count);

/// Returns an evenly spread part of the rows: selected heads of selected tokens of selected
/// sequences.
Trial sampled(Trial trial, std::uint64_t elements);

}  // namespace vkrope::tools
