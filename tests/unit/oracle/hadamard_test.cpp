// SPDX-License-Identifier: MIT
// The error of the oracle's Hadamard transform. tests/unit/bounds/hadamard_test.cpp has its values,
// against the shader's.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "verify/oracle/quantise.hpp"

using namespace vkrope::oracle;

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
