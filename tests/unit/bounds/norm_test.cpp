// SPDX-License-Identifier: MIT
// Checks norms, with the shader's own source compiled as C++: the reciprocal root for every float
// in [1, 4), sums that overflow, and an eps that has no effect. norm_search_test.cpp looks for the
// worst rows.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "norm_rows.hpp"
#include "search.hpp"

using namespace vkrope::bounds;
namespace shader = vkrope::shader;

namespace {

constexpr double unit = 0x1p-24;

// Returns the largest relative error of a normalised channel, in units of u.
double error_of(const std::vector<float>& row, shader::uint unit_elements, float eps, float w) {
    long double squares = 0;
    for (const float x : row) squares += static_cast<long double>(x) * x;
    const long double root = std::sqrt(squares / static_cast<long double>(row.size()) + eps);
    const std::vector<float> got = normed({.eps = eps}, row, unit_elements, w);
    double worst = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
        const long double exact = row[i] / root * (1 + static_cast<long double>(w));
        if (exact == 0) continue;
        worst = std::max(worst, double(std::fabs(got[i] / exact - 1)) / unit);
    }
    return worst;
}

}  // namespace

TEST_CASE("norm: the reciprocal root is within 1.8 u, for every mantissa and both exponents") {
    double worst = 0;
    for (std::uint32_t bits = 0x3f800000u; bits < 0x40800000u; ++bits) {
        const float m = std::bit_cast<float>(bits);
        const double relative = double(shader::vkrope_inverse_root(m)) * std::sqrt(double(m)) - 1;
        worst = std::max(worst, std::fabs(relative) / unit);
    }
    std::printf("reciprocal root: %.3f u\n", worst);
    CHECK(worst <= 1.8);
    CHECK(worst > 1);
    // The exponent only scales the result, exactly.
    for (int e = -49; e <= 63; ++e) {
        for (const float m : {1.0f, 1.7f, 2.0f, 3.9999998f}) {
            CHECK(shader::vkrope_inverse_root(std::ldexp(m, 2 * e)) ==
                  std::ldexp(shader::vkrope_inverse_root(m), -e));
        }
    }
    CHECK(shader::vkrope_inverse_root(std::numeric_limits<float>::infinity()) == 0);
    CHECK(std::isnan(shader::vkrope_inverse_root(std::nanf(""))));
}

TEST_CASE("norm: the sum of a row does not depend on the unit") {
    Random random(7);
    for (const std::size_t n : {8u, 24u, 80u, 112u, 256u}) {
        std::vector<float> row(n);
        for (float& x : row) x = float(uniform(random) * 2 - 1);
        for (const bool squares : {false, true}) {
            const float sum = row_sum(row, 1, 1, squares);
            for (const shader::uint unit_elements : {2u, 4u, 8u})
                CHECK(row_sum(row, unit_elements, 1, squares) == sum);
        }
    }
}

TEST_CASE("norm: sums that overflow are formed of scaled values, which costs no accuracy") {
    for (const float huge : {1e20f, 3e38f}) {
        std::vector<float> row(64);
        for (std::size_t i = 0; i < row.size(); ++i)
            row[i] = huge * (1 - float(i) / 128) * (i % 3 == 0 ? -1.f : 1.f);
        CHECK(std::isinf(row_sum(row, 4, 1, true)));
        CHECK(error_of(row, 4, 1e-6f, 0) <= levels_of(64) / 2.0 + 7);
    }
}

TEST_CASE("norm: eps has no effect where squares overflow, nor where the sum of values does") {
    // The squares of 64 channels overflow. Times 2^-80 they are far below eps. The mean is 0.
    for (const float huge : {1.2e19f, 1e20f, 3e38f}) {
        std::vector<float> row(64);
        for (std::size_t i = 0; i < row.size(); ++i) row[i] = i % 2 == 0 ? huge : -huge;
        for (const bool layer : {false, true}) {
            CAPTURE(huge);
            CAPTURE(layer);
            const std::vector<float> got = normed({.layer = layer, .eps = 1}, row, 4, 0);
            for (std::size_t i = 0; i < row.size(); ++i)
                CHECK(std::fabs(got[i] - (i % 2 == 0 ? 1 : -1)) <= 10 * unit);
        }
    }
    // The sum of 2^20 channels about 2^108 overflows. Times 2^-80 the channels are 32 from their
    // mean, exactly, and their squares do not overflow, but eps would change the result.
    std::vector<float> token(std::size_t{1} << 20);
    for (std::size_t i = 0; i < token.size(); ++i)
        token[i] = 0x1p108f + (i % 2 == 0 ? 0x1p86f : 0.f);
    const std::vector<float> got = normed({.layer = true, .heads = 256, .eps = 1}, token, 8, 0);
    CHECK(std::fabs(got[0] - 1) <= 10 * unit);
    CHECK(std::fabs(got[1] + 1) <= 10 * unit);
}
