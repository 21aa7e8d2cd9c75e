// SPDX-License-Identifier: MIT
// The width of a head row, where its rotated channels begin, and which of their pairs have a
// frequency.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/hf/source.hpp"

namespace vkrope {

struct Head {
    std::uint32_t head_dim = 0;  ///< channels; with latent attention, the rotated ones
    std::uint32_t q_rotary_offset = 0;
    std::uint32_t k_rotary_offset = 0;
    bool latent = false;  ///< multi-head latent attention
};

Head read_head(const Source& source, Warnings& warnings);

struct RotaryDim {
    std::uint32_t rotary_dim = 0;
    std::uint32_t turning_pairs = 0;  ///< the other pairs of the window do not rotate
    double share = 1;                 ///< rotated share of the head, in a proportional rotation
};

RotaryDim read_rotary_dim(const Source& source, const Head& head, const std::string& rope_type,
                          Warnings& warnings);

}  // namespace vkrope
