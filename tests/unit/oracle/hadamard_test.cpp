// SPDX-License-Identifier: MIT
// The oracle of the Hadamard transform, against its definition.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "verify/oracle/quantise.hpp"

using namespace vkrope::oracle;

TEST_CASE("hadamard: by hand, and twice is nothing") {
    const auto transformed = [](std::vector<float> row, std::uint64_t n) {
        std::vector<Approximate> channels;
        for (const float x : row) {
            channels.push_back({x, 0});
        }
        hadamard(channels, n, 0);
        std::vector<double> values;
        for (const Approximate& channel : channels) {
            values.push_back(static_cast<double>(channel.value));
        }
        return values;
    };
    const double root = std::sqrt(2.0);
    CHECK(transformed({1, 2, 5, 3}, 2)[0] == doctest::Approx(3 / root));
    CHECK(transformed({1, 2, 5, 3}, 2)[1] == doctest::Approx(-1 / root));
    CHECK(transformed({1, 2, 5, 3}, 2)[3] == doctest::Approx(2 / root));
    CHECK(transformed({1, 2, 5, 3}, 4) == std::vector<double>{5.5, 0.5, -2.5, -1.5});
    // Channel 5 of 8 has the signs of bits 0 and 2.
    const std::vector<double> signs = transformed({0, 0, 0, 0, 0, 1, 0, 0}, 8);
    for (unsigned i = 0; i < 8; ++i) {
        const double sign = std::popcount(i & 5u) == 1 ? -1 : 1;
        CHECK(signs[i] == doctest::Approx(sign / std::sqrt(8.0)));
    }
    std::vector<Approximate> row;
    for (int i = 0; i < 512; ++i) {
        row.push_back({static_cast<long double>(i * i % 97), 0});
    }
    hadamard(row, 512, 0);
    hadamard(row, 512, 0);
    for (int i = 0; i < 512; ++i) {
        CHECK(std::fabs(row[static_cast<std::size_t>(i)].value - i * i % 97) < 1e-12L);
    }
    CHECK_THROWS(transformed(std::vector<float>(6), 3));
    CHECK_THROWS(transformed(std::vector<float>(6), 4));
}

TEST_CASE("hadamard: the error grows with the levels, and covers what the input may be off") {
    std::vector<Approximate> row(4, {1, 0});
    hadamard(row, 4, 0);
    CHECK(row[1].value == 0);
    CHECK(row[1].error == doctest::Approx(1.001 * 3 * 0x1p-24 * 2));
    row.assign(2, {1, 0});
    hadamard(row, 2, 0);
    CHECK(row[0].error == doctest::Approx(1.001 * 3 * 0x1p-24 * std::sqrt(2.0)));
    row.assign(4, {0, 0.25L});
    hadamard(row, 4, 0);
    CHECK(row[0].error == doctest::Approx(0.5));
    row.assign(4, {0, 0});
    hadamard(row, 4, 1);
    CHECK(row[0].error == doctest::Approx(1.5 + 1));
    row.assign(4, {std::numeric_limits<long double>::infinity(), 0.5L});
    hadamard(row, 4, 1);
    CHECK(std::isnan(row[1].value));
    CHECK(row[1].error == 0);
}
