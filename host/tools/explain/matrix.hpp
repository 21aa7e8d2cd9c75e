// SPDX-License-Identifier: MIT
// The rotary matrix of a model: the sines and cosines of consecutive positions, written to a file.
#pragma once

#include <cstdint>
#include <string>

#include "vkrope/vkrope.hpp"

namespace vkrope::tools {

/// Positions from `first` up to but not including `end`.
struct PositionRange {
    std::int64_t first = 0, end = 0;
};

/// Parses "A:B", two integers with A < B; every position must fit in int32. Throws BadValue.
PositionRange parse_range(const std::string& text);

/// Writes float32 [end - first, rotary_dim]: each row has the sines of all pairs, then their
/// cosines, each multiplied by the attention factor and rounded once. Throws Failure.
void write_matrix(const Rotation& rotation, const PositionRange& range, const std::string& path,
                  const std::string& model_path);

}  // namespace vkrope::tools
