// SPDX-License-Identifier: MIT
// Provides checks for the tests of all scalings.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr long double two_pi = 6.283185307179586476925286766559005768L;

inline bool close(double a, long double b) {
    return std::fabs(a - b) <= 1e-12L * std::fabs(b);
}

inline std::vector<double> plain(double base, std::uint32_t rotary_dim) {
    std::vector<double> inv_freq(rotary_dim / 2);
    REQUIRE(default_inv_freq(base, rotary_dim, inv_freq.data()));
    return inv_freq;
}

// The frequencies that are given to a scaling that refuses its numbers.
inline std::vector<double> unscaled = {1, 0.1};

// Checks that a scaling of `unscaled` failed, names `words`, and changed no frequency.
inline void refused(const Status& status, const std::string& words) {
    check_invalid(status, words);
    CHECK(unscaled == std::vector<double>{1, 0.1});
}

inline constexpr double not_positive[] = {0.0, -2.0, infinity, not_a_number};

// YaRN's range ends at the pairs whose number of turns within the original length is beta_fast and
// beta_slow, and the index of a pair is linear in the logarithm of its turns. Hence the blend of a
// range that is not truncated follows from the turns alone.
inline long double yarn_share_divided(double inv_freq, double original, double beta_fast,
                                      double beta_slow) {
    const long double turns = original * inv_freq / two_pi;
    return std::clamp(std::log(beta_fast / turns) / std::log((long double)beta_fast / beta_slow),
                      0.0L, 1.0L);
}

}  // namespace vkrope::test
