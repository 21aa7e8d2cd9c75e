// SPDX-License-Identifier: MIT
// The rotated channels of a head row: rotary_dim, and which of its pairs have a frequency.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/hf/head.hpp"
#include "model/hf/source.hpp"

namespace vkrope {

struct RotaryDim {
    std::uint32_t rotary_dim = 0;
    std::uint32_t turning_pairs = 0;  ///< the other pairs of the window do not rotate
    double share = 1;                 ///< rotated share of the head, in a proportional rotation
};

RotaryDim read_rotary_dim(const Source& source, const Head& head, const std::string& rope_type,
                          std::vector<std::string>& warnings);

}  // namespace vkrope
