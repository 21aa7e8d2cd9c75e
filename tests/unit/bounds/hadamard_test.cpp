// SPDX-License-Identifier: MIT
// Checks the Hadamard transform of the shader against the oracle. Rows that hill climbing makes as
// bad as possible stay within the error that the oracle allows.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "search.hpp"
#include "verify/oracle/quantise.hpp"
#include "verify/shader_source/shader.hpp"

using namespace vkrope::bounds;
namespace shader = vkrope::shader;
using vkrope::oracle::Approximate;

namespace {

// Returns a row of blocks of 2^levels channels, transformed by a kernel with units of n elements.
std::vector<float> transformed(const std::vector<float>& row, shader::uint n, shader::uint levels) {
    std::vector<shader::Unit> units;
    for (std::size_t first = 0; first < row.size(); first += n) {
        float at[8] = {};
        std::copy_n(row.begin() + std::ptrdiff_t(first),
                    std::min<std::size_t>(n, row.size() - first), at);
        units.push_back(shader::vkrope_butterflies(
            n, levels, {{at[0], at[1], at[2], at[3]}, {at[4], at[5], at[6], at[7]}}));
    }
    for (shader::uint level = 0; level < levels; ++level) {
        const std::size_t apart = (std::size_t{1} << level) / n;  // 0 inside a unit
        const std::vector<shader::Unit> before = units;
        for (std::size_t i = 0; apart > 0 && i < units.size(); ++i)
            units[i] = shader::vkrope_butterfly((i & apart) != 0, before[i], before[i ^ apart]);
    }
    std::vector<float> out;
    for (const shader::Unit& unit : units) {
        const auto [a, b] = shader::vkrope_scale(unit, shader::vkrope_hadamard_factor(levels));
        const float at[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
        out.insert(out.end(), at, at + n);
    }
    return out;
}

// Returns the largest share of its allowed error that a channel uses.
double share_of(const std::vector<float>& row, shader::uint levels) {
    std::vector<Approximate> exact;
    for (const float x : row) exact.push_back({x, 0});
    vkrope::oracle::hadamard(exact, std::uint64_t{1} << levels, 0);
    const std::vector<float> got = transformed(row, 4, levels);
    double worst = 0;
    for (std::size_t i = 0; i < row.size(); ++i)
        worst = std::max(worst, double(std::fabs(got[i] - exact[i].value) / exact[i].error));
    return worst;
}

}  // namespace

TEST_CASE("hadamard: the factor is the float nearest to the root") {
    for (shader::uint levels = 1; levels <= 9; ++levels)
        CHECK(shader::vkrope_hadamard_factor(levels) ==
              float(std::sqrt(std::ldexp(1.0, -int(levels)))));
}

TEST_CASE("hadamard: the oracle's error grows with the levels, and covers the error of the input") {
    const auto first_of = [](std::vector<Approximate> row, double absolute_allowance) {
        vkrope::oracle::hadamard(row, row.size(), absolute_allowance);
        return row[0];
    };
    constexpr long double infinity = std::numeric_limits<long double>::infinity();
    CHECK(first_of({{1, 0}, {1, 0}}, 0).error ==
          doctest::Approx(1.001 * 3 * 0x1p-24 * std::sqrt(2.0)));
    CHECK(first_of(std::vector<Approximate>(4, {1, 0}), 0).error ==
          doctest::Approx(1.001 * 3 * 0x1p-24 * 2));
    CHECK(first_of(std::vector<Approximate>(4, {0, 0.25L}), 0).error == doctest::Approx(0.5));
    CHECK(first_of(std::vector<Approximate>(4, {0, 0}), 1).error == doctest::Approx(1.5 + 1));
    const Approximate of_infinity = first_of({{infinity, 0.5L}, {-infinity, 0.5L}}, 1);
    CHECK(std::isnan(of_infinity.value));
    CHECK(of_infinity.error == 0);
}

TEST_CASE("hadamard: within the oracle's error, in the worst rows that a search finds") {
    for (const shader::uint levels : {1u, 2u, 3u, 5u, 6u, 7u, 9u}) {
        const std::size_t n = std::size_t{1} << levels;
        double most = 0;
        Random random(levels);
        for (int start = 0; start < (all ? 40 : 4); ++start) {
            std::vector<float> row(n);
            for (float& x : row) x = float(uniform(random) * 2 - 1);
            double share = share_of(row, levels);
            for (int step = 0; step < (all ? 4000 : 400); ++step) {
                std::vector<float> next = row;
                for (std::uint64_t i = 0, changes = 1 + random() % n; i < changes; ++i) {
                    float& x = next[random() % n];
                    x = varied(random, x);
                }
                const double found = share_of(next, levels);
                if (found < share) continue;
                share = found;
                row = next;
            }
            most = std::max(most, share);
        }
        std::printf("Hadamard of %zu channels: %.2f of the allowed error\n", n, most);
        CHECK(most <= 1);
        CHECK(most > 0.02);  // the search finds at least some error
    }
}
