// SPDX-License-Identifier: MIT
// Computes one entry of an angle table. The functions are in a header because fill_angles calls
// them for every pair of every position.
#pragma once

#include <cmath>
#include <cstdint>

namespace vkrope {

struct CosSin {
    float cos = 0;
    float sin = 0;
};

// Returns attention_factor * cos and sin of the angle, each rounded once.
//
// phase  the angle in units of 2^-64 turn
inline CosSin table_entry(std::uint64_t phase, double attention_factor) noexcept {
    constexpr double radians_per_unit = 0x1.921fb54442d18p-62;  // 2 pi / 2^64
    // Removes the nearest multiple of a quarter turn in integers; the remainder is at most an
    // eighth of a turn.
    const std::uint64_t quadrant = (phase + (std::uint64_t{1} << 61)) >> 62;
    const auto remainder = std::int64_t(phase - (quadrant << 62));
    const double angle = double(remainder) * radians_per_unit;
    const double cos = attention_factor * std::cos(angle);
    const double sin = attention_factor * std::sin(angle);
    switch (quadrant) {
        case 0: return {float(cos), float(sin)};
        case 1: return {float(-sin), float(cos)};
        case 2: return {float(-cos), float(-sin)};
        default: return {float(sin), float(-cos)};
    }
}

// Returns the same for the float32 product position * inv_freq: VKROPE_ANGLE_PRECISION_FLOAT32.
inline CosSin float32_entry(std::uint64_t position, double inv_freq,
                            double attention_factor) noexcept {
    const float angle = float(position) * float(inv_freq), factor = float(attention_factor);
    return {float(std::cos(double(angle))) * factor, float(std::sin(double(angle))) * factor};
}

}  // namespace vkrope
