// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace vkrope {

inline constexpr std::uint32_t max_rotary_dim = 65534;  // the widest head row that the kernel takes

}  // namespace vkrope
