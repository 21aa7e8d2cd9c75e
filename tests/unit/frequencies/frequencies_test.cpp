// SPDX-License-Identifier: MIT
// Inverse frequencies against closed forms, turn fractions against constants of higher precision.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope;
using vkrope::test::check_error;

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
        check_error(status, VKROPE_ERROR_INVALID_ARGUMENT, "base");
    }
    for (const std::uint32_t rotary_dim : {0u, 1u, 7u, 65536u, 0xfffffffeu}) {
        const Status status = default_inv_freq(10000, rotary_dim, untouched.data());
        check_error(status, VKROPE_ERROR_INVALID_ARGUMENT,
                    "rotary_dim " + std::to_string(rotary_dim));
    }
    CHECK(untouched == std::vector<double>(4, -7.0));
    check_error(default_inv_freq(10000, 8, nullptr), VKROPE_ERROR_INVALID_ARGUMENT,
                "inv_freq null");
    std::vector<double> widest(32767);
    CHECK(default_inv_freq(10000, 65534, widest.data()));
}

TEST_CASE("linear scaling divides") {
    std::vector<double> inv_freq = {1.0, 0.3, 0x1p-20};
    REQUIRE(scale_linear(inv_freq, 2));
    CHECK(inv_freq == std::vector<double>{0.5, 0.15, 0x1p-21});
    for (const double factor : {0.0, -2.0, infinity, not_a_number}) {
        const Status status = scale_linear(inv_freq, factor);
        check_error(status, VKROPE_ERROR_INVALID_ARGUMENT, "factor");
    }
    CHECK(inv_freq == std::vector<double>{0.5, 0.15, 0x1p-21});
}

TEST_CASE("llama3 scaling keeps high frequencies, divides low ones and blends between") {
    constexpr double two_pi = 6.283185307179586;
    const Llama3Scaling scaling = {8, 1, 4, 8192};
    const auto scaled = [&](double wavelength) {
        std::vector<double> inv_freq = {two_pi / wavelength};
        REQUIRE(scale_llama3(inv_freq, scaling));
        return inv_freq[0];
    };
    CHECK(scaled(2047.99) == two_pi / 2047.99);
    CHECK(scaled(8192.01) == two_pi / 8192.01 / 8);
    CHECK(scaled(1e9) == two_pi / 1e9 / 8);
    CHECK(scaled(0.5) == two_pi / 0.5);
    // Continuous at both ends of the blend.
    CHECK(scaled(2048.01) == doctest::Approx(two_pi / 2048.01).epsilon(1e-4));
    CHECK(scaled(8191.99) == doctest::Approx(two_pi / 8191.99 / 8).epsilon(1e-4));
    // 8192 / 3276.8 = 2.5 is halfway between the factors 1 and 4.
    CHECK(scaled(3276.8) == doctest::Approx(two_pi / 3276.8 * (0.5 + 0.5 / 8)).epsilon(1e-14));
    // 8192 / 4681.142857 = 1.75: a quarter of the way.
    CHECK(scaled(8192 / 1.75) ==
          doctest::Approx(two_pi / (8192 / 1.75) * (0.25 + 0.75 / 8)).epsilon(1e-14));
}

TEST_CASE("llama3 scaling names the number that breaks its rule") {
    std::vector<double> inv_freq = {1e-3};
    const auto refused = [&](Llama3Scaling scaling, const char* text) {
        check_error(scale_llama3(inv_freq, scaling), VKROPE_ERROR_INVALID_ARGUMENT, text);
        CHECK(inv_freq[0] == 1e-3);
    };
    refused({0, 1, 4, 8192}, "factor 0");
    refused({not_a_number, 1, 4, 8192}, "factor");
    refused({8, 0, 4, 8192}, "low_freq_factor 0");
    refused({8, 1, infinity, 8192}, "high_freq_factor inf");
    refused({8, 4, 1, 8192}, "low_freq_factor 4 high_freq_factor 1");
    refused({8, 1, 4, 0}, "original_max_position_embeddings 0");
    refused({8, 1, 4, infinity}, "original_max_position_embeddings inf");
}

TEST_CASE("turn fractions are exact") {
    // floor(2^64 * frac(x / (2 pi))) of the double x, computed with 2000 bits.
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

TEST_CASE("turn fractions agree with long double over the range of real models") {
    constexpr long double two_pi = 6.283185307179586476925286766559005768L;
    for (double inv_freq = 2000; inv_freq > 1e-9; inv_freq *= 0.97) {
        const long double turns = inv_freq / two_pi;
        const long double exact = std::ldexp(turns - std::floor(turns), 64);
        CAPTURE(inv_freq);
        CHECK(std::fabs(exact - static_cast<long double>(vkrope_turn_fraction(inv_freq))) <=
              2 + 2 * turns);
    }
}
