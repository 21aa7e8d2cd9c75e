// SPDX-License-Identifier: MIT
// Checks inverse frequencies by closed forms, and turn fractions by constants of higher precision.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope;
using vkrope::test::check_invalid;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

bool close(double a, double b) {
    return std::fabs(a - b) <= 1e-15 * std::fabs(b);
}

}  // namespace

TEST_CASE("default frequencies are powers of the base") {
    std::vector<double> thousands(4), roots(2), constant(1);
    REQUIRE(default_inv_freq(10000, 8, thousands.data()));
    CHECK(thousands[0] == 1.0);
    CHECK(close(thousands[1], 1e-1));
    CHECK(close(thousands[2], 1e-2));
    CHECK(close(thousands[3], 1e-3));

    REQUIRE(default_inv_freq(2, 4, roots.data()));
    CHECK(roots[0] == 1.0);
    CHECK(close(roots[1], std::sqrt(0.5)));

    REQUIRE(default_inv_freq(1, 2, constant.data()));
    CHECK(constant[0] == 1.0);
}

TEST_CASE("default frequencies refuse what they cannot be computed from, and write nothing then") {
    std::vector<double> untouched(4, -7.0);
    for (const double base : {0.0, -1.0, infinity, not_a_number}) {
        const Status status = default_inv_freq(base, 8, untouched.data());
        check_invalid(status, "base");
    }
    for (const std::uint32_t rotary_dim : {0u, 1u, 7u, 65536u, 0xfffffffeu}) {
        const Status status = default_inv_freq(10000, rotary_dim, untouched.data());
        check_invalid(status, "rotary_dim " + std::to_string(rotary_dim));
    }
    CHECK(untouched == std::vector<double>(4, -7.0));
    check_invalid(default_inv_freq(10000, 8, nullptr), "inv_freq null");
    std::vector<double> widest(32767);
    CHECK(default_inv_freq(10000, 65534, widest.data()));
}

TEST_CASE("turn fractions are exact") {
    // The fractions are floor(2^64 * frac(x / (2 pi))) of the double x, computed with 2000 bits.
    struct Known {
        double inv_freq;
        std::uint64_t fraction;
    };
    constexpr Known known[] = {
        {0.0, 0},
        {1.0, 0x28be60db9391054a},
        {0.5, 0x145f306dc9c882a5},
        {0x1.999999999999ap-4, 0x041309af8ec1b3ca},
        {0x1.a36e2eb1c432dp-14, 0x00010b04870e0488},
        {0x1.0d7e8e5a7c4f1p-19, 0x0000055c86044cd2},
        {0x1.a115829457fbep-1, 0x2130c415f3514ecf},
        {0x1.921fb54442d18p+1, 0x7ffffffffffffe98},  // the double below pi
        {0x1.921fb54442d18p+2, 0xfffffffffffffd30},  // the double below 2 pi
        {0x1.921fb54442d19p+2, 0x0000000000000760},  // the double above 2 pi
        {1000.5, 0x3c098a2638452da5},
        {0x1.fffffffffffffp+10, 0xf306dc9c88202460},
        {0x1.b407242a4f6b0p+10,
         0x957fb07b4a48db78},  // the exact value is 2^-21 units below the next one
        {0x1.11291c2528b6cp+10, 0xe64109a07c8721bb},  // and here 2^-21 units above this one
        {5e-19, 1},
        {3e-19, 0},
        {1e-300, 0},
        {0x1p-1074, 0},
    };
    for (const Known& k : known) {
        CAPTURE(k.inv_freq);
        CHECK(vkrope_turn_fraction(k.inv_freq) == k.fraction);
        CHECK(vkrope_turn_fraction(-k.inv_freq) == 0 - k.fraction);
    }
    CHECK(vkrope_turn_fraction(2048.0) == 0);
    CHECK(vkrope_turn_fraction(infinity) == 0);
    CHECK(vkrope_turn_fraction(not_a_number) == 0);
}
