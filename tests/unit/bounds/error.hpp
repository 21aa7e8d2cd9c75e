// SPDX-License-Identifier: MIT
// Runs the shader's functions on phases, and computes their distance from the exact values.
#pragma once

#include <cmath>
#include <cstdint>

#include "verify/shader_source/angles.hpp"

namespace vkrope::bounds {

// The unit of errors: half the spacing of f32 in [1, 2).
inline constexpr long double u = 0x1p-24L;
inline constexpr long double two_pi = 0x1.921fb54442d18469898cc517p+2L;

// Whether tests try everything, which --all asks for.
extern bool all;

using shader_source::turn_factor;

// These return cos and sin of each source; phases are in units of 2^-64 turn.

inline CosSin computed(std::uint64_t phase, const shader::VkropeTurnFactor& factor) {
    glsl::vec4 c, s;
    shader::vkrope_turn(glsl::uvec4(std::uint32_t(phase)), glsl::uvec4(std::uint32_t(phase >> 32)),
                        glsl::uvec4(1), factor, c, s);
    return {c.x, s.x};
}

inline CosSin factored(std::uint64_t coarse_phase, std::uint64_t fine_phase,
                       double attention_factor) {
    const CosSin coarse = table_entry(coarse_phase, 1),
                 fine = table_entry(fine_phase, attention_factor);
    glsl::vec4 c, s;
    shader::vkrope_add_angles(glsl::vec4(coarse.cos), glsl::vec4(coarse.sin), glsl::vec4(fine.cos),
                              glsl::vec4(fine.sin), c, s);
    return {c.x, s.x};
}

struct Rotated {
    float y0 = 0, y1 = 0;
};

inline Rotated rotate(float x0, float x1, CosSin angle) {
    using glsl::vec4;
    shader::Unit y0, y1;
    shader::vkrope_rotate({vec4(x0), vec4(0)}, {vec4(x1), vec4(0)}, {vec4(angle.cos), vec4(0)},
                          {vec4(angle.sin), vec4(0)}, y0, y1);
    return {y0.a.x, y1.a.x};
}

// cos and sin in 80 bits.
struct Exact {
    long double cos = 1, sin = 0;
};

inline Exact exact(std::uint64_t phase) {
    const std::uint64_t quadrant = (phase + (std::uint64_t{1} << 61)) >> 62;
    const long double angle = static_cast<long double>(std::int64_t(phase - (quadrant << 62))) *
                              (two_pi * 0x1p-64L);
    const long double c = std::cos(angle), s = std::sin(angle);
    switch (quadrant) {
        case 0: return {c, s};
        case 1: return {-s, c};
        case 2: return {-c, -s};
        default: return {s, -c};
    }
}

// Returns the larger error of the two, in units of u a (|x0| + |x1|).
inline double error_of(Rotated y, float x0, float x1, const Exact& angle, double attention_factor) {
    const long double a = attention_factor, c = a * angle.cos, s = a * angle.sin;
    const long double e0 = std::fabs(y.y0 - (x0 * c - x1 * s)),
                      e1 = std::fabs(y.y1 - (x0 * s + x1 * c));
    return double(std::fmax(e0, e1) / (u * a *
                                       (std::fabs(static_cast<long double>(x0)) +
                                        std::fabs(static_cast<long double>(x1)))));
}

}  // namespace vkrope::bounds
