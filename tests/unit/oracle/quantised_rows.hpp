// SPDX-License-Identifier: MIT
// Rows and bytes of the tests of quantised stores.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace vkrope::test {

using Bytes = std::vector<std::uint8_t>;
using Row = std::vector<float>;

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

inline float float_at(int exponent) {
    return std::ldexp(1.f, exponent);
}

}  // namespace vkrope::test
