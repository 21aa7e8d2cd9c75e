// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace vkrope {

inline constexpr std::uint32_t max_rotary_dim = 65534;  // largest head_dim of a kernel

}  // namespace vkrope
