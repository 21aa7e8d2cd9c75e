// SPDX-License-Identifier: MIT
// The rotary matrix of a model: the sines and cosines of consecutive positions, as a file.
#pragma once

#include <cstdint>
#include <string>

#include "vkrope/frequencies.hpp"

namespace vkrope::tools {

/// Positions from `first` up to, and without, `end`.
struct PositionRange {
    std::int64_t first = 0, end = 0;
};

/// "A:B", A below B, both whole; every position an int32. Throws BadValue.
PositionRange parse_range(const std::string& text);

/// Writes float32 [end - first, rotary_dim]: in each row the sines of all pairs, then their
/// cosines, times the attention factor, each rounded once. Throws Failure.
void write_matrix(const Rotation& rotation, const PositionRange& range, const std::string& path,
                  const std::string& model_path);

}  // namespace vkrope::tools
