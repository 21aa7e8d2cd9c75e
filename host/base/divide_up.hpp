// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace vkrope {

// Returns value / by, rounded up.
constexpr std::uint64_t divide_up(std::uint64_t value, std::uint64_t by) noexcept {
    return (value + by - 1) / by;
}

}  // namespace vkrope
