// SPDX-License-Identifier: MIT
// Bit operations that C++17 lacks.
#pragma once

#include <cstdint>
#include <cstring>

namespace vkrope {

// Returns the bits of a float.
inline std::uint32_t bits_of(float number) noexcept {
    std::uint32_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits;
}

// Returns the float with these bits.
inline float float_of(std::uint32_t bits) noexcept {
    float number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
}

// Returns the exponent of the largest power of two that is at most `number`, which is not 0.
constexpr std::uint32_t floor_log2(std::uint64_t number) noexcept {
    std::uint32_t exponent = 0;
    while (number >>= 1) ++exponent;
    return exponent;
}

// Returns the smallest power of two that is at least `number`, which is at most 2^63.
constexpr std::uint64_t power_at_least(std::uint64_t number) noexcept {
    return number <= 1 ? 1 : std::uint64_t{2} << floor_log2(number - 1);
}

}  // namespace vkrope
