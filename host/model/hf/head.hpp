// SPDX-License-Identifier: MIT
// The width of a head row, and where its rotated channels begin.
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

Head read_head(const Source& source, std::vector<std::string>& warnings);

}  // namespace vkrope
