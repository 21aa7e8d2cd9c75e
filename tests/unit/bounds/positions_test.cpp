// SPDX-License-Identifier: MIT
// Checks the contract at positions and frequencies of models, for each source, from the fraction of
// a turn to the rotated pair.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/meaning.hpp"
#include "search.hpp"
#include "sources.hpp"

using namespace vkrope::bounds;
using vkrope::AngleSource;

namespace {

std::vector<std::int64_t> positions() {
    std::vector<std::int64_t> result = {0, 1, -1, -(std::int64_t{1} << 31)};
    for (int k = 1; k <= 31; ++k) {
        const std::int64_t power = std::int64_t{1} << k;
        for (const std::int64_t p : {power - 1, power, power + 1})
            if (p < std::int64_t{1} << 31) result.insert(result.end(), {p, -p});
    }
    Random random(11);
    const int count = all ? 4000 : 200;
    for (int i = 0; i < count; ++i) result.push_back(std::int64_t(random() >> 33) >> random() % 20);
    for (int i = 0; i < count; ++i)
        result.push_back(-std::int64_t(random() >> 33) >> random() % 20);
    return result;
}

std::array<float, 8> elements(const vkrope::shader::Unit& unit) {
    return {unit.a.x, unit.a.y, unit.a.z, unit.a.w, unit.b.x, unit.b.y, unit.b.z, unit.b.w};
}

vkrope::shader::Unit unit_of(const std::array<float, 8>& e) {
    return {{e[0], e[1], e[2], e[3]}, {e[4], e[5], e[6], e[7]}};
}

// Returns the largest error of eight pairs, rotated at once: see error_of.
double largest_error(const vkrope::shader::Unit& c, const vkrope::shader::Unit& s,
                     const std::array<float, 8>& x0, const std::array<float, 8>& x1,
                     const std::array<Exact, 8>& angles, double attention_factor) {
    vkrope::shader::Unit y0, y1;
    vkrope::shader::vkrope_rotate(unit_of(x0), unit_of(x1), c, s, y0, y1);
    const auto e0 = elements(y0), e1 = elements(y1);
    double largest = 0;
    for (std::size_t j = 0; j < 8; ++j) {
        largest = std::max(largest,
                           error_of({e0[j], e1[j]}, x0[j], x1[j], angles[j], attention_factor));
    }
    return largest;
}

}  // namespace

TEST_CASE("every source keeps its bound at the positions of models") {
    std::array<double, sources.size()> largest = {};
    std::size_t rotated = 0;
    Random random(12);
    const auto all_positions = positions();
    for (const std::vector<double>& inv_freq : models()) {
        std::vector<Angles> of_factors;
        for (const double factor : attention_factors) of_factors.emplace_back(inv_freq, factor);
        for (const double end : {0x1p-64, 0x1p64})
            of_factors.emplace_back(inv_freq, end);  // ends of the range of the contract
        for (const std::int64_t position : all_positions) {
            for (std::size_t pair = 0; pair < inv_freq.size(); pair += 8) {
                std::array<Exact, 8> angles;
                std::array<float, 8> x0, x1;
                for (std::size_t j = 0; j < 8; ++j) {
                    angles[j] = exact(position, inv_freq[pair + j]);
                    x0[j] = float(uniform(random) - 0.5) * 8;
                    x1[j] = std::ldexp(float(uniform(random) - 0.5), int(random() % 8));
                }
                for (std::size_t source = 0; source < sources.size(); ++source) {
                    if (std::uint64_t(std::abs(position)) >= covered(sources[source])) continue;
                    for (const Angles& of : of_factors) {
                        vkrope::shader::Unit c, s;
                        of.at(sources[source], position, pair, c.a, s.a);
                        of.at(sources[source], position, pair + 4, c.b, s.b);
                        const double a = of.attention_factor(),
                                     bound = vkrope::error_bound(sources[source], a);
                        const double share = largest_error(c, s, x0, x1, angles, a) / bound;
                        largest[source] = std::max(largest[source], share);
                        rotated += 8;
                        // Other gains round a float and a product in addition.
                        if (!std::count(attention_factors.begin() + 1, attention_factors.end(), a))
                            continue;
                        for (const double gain : {1 / a, 1 / (a * a)}) {
                            const vkrope::shader::Unit gc = vkrope::shader::vkrope_scale(
                                c, float(gain));
                            const vkrope::shader::Unit gs = vkrope::shader::vkrope_scale(
                                s, float(gain));
                            const double gain_share =
                                largest_error(gc, gs, x0, x1, angles, a * gain) / (bound + 2);
                            largest[source] = std::max(largest[source], gain_share);
                            rotated += 8;
                        }
                    }
                }
            }
        }
    }
    std::printf(
        "positions of models: %zu rotations; share of the bound: direct %.2f, factored %.2f, "
        "computed %.2f\n",
        rotated, largest[0], largest[1], largest[2]);
    for (const double share : largest) {
        CHECK(share <= 1);
        CHECK(share > 0.4);
    }
}

TEST_CASE("subnormal products are within 2^-148") {
    Random random(16);
    const std::vector<double> inv_freq = models()[0];
    const Angles angles(inv_freq, 1.19);
    std::size_t outside = 0, absolute = 0;
    for (int i = 0; i < (all ? 10000000 : 100000); ++i) {
        const AngleSource source = sources[random() % sources.size()];
        const auto position = std::int64_t(random() % vkrope::max_factored_positions);
        const std::size_t pair = random() % 64;
        const int exponent = -int(random() % 30) - 119;
        const float x0 = std::ldexp(1 + float(uniform(random)), exponent),
                    x1 = std::ldexp(float(uniform(random) - 0.5), exponent);
        const Exact angle = exact(position, inv_freq[pair]);
        const double error = error_of(rotate(x0, x1, angles.at(source, position, pair)), x0, x1,
                                      angle, 1.19);
        const double scale = double(u) * 1.19 * (std::fabs(double(x0)) + std::fabs(double(x1)));
        const double bound = vkrope::error_bound(source, 1.19);
        if (!(error * scale <= bound * scale + 0x1p-148)) ++outside;
        if (error > bound) ++absolute;
    }
    CHECK(outside == 0);
    CHECK(absolute > 100);  // too large for the relative term alone
}
