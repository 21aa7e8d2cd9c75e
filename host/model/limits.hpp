// SPDX-License-Identifier: MIT
// Limits for the numbers in a model file. A file that exceeds them is damaged, or made to harm.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vkrope/vkrope.hpp"

namespace vkrope {

inline constexpr std::uint64_t max_heads = 65536;
inline constexpr std::uint64_t max_hidden_size = max_head_dim * max_heads;
inline constexpr std::size_t max_layer_types = 64;
inline constexpr std::uint64_t max_whole = std::uint64_t{1}
                                           << 53;  // a double holds whole numbers up to this

}  // namespace vkrope
