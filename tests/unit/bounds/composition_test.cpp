// SPDX-License-Identifier: MIT
// Properties of combined rotations, whatever the angles: they add up, keep lengths, and are undone
// by their inverse. Allowances follow from the contract: B u a times the sum of magnitudes for each
// rotation, rotated by those after it.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "meaning.hpp"
#include "search.hpp"
#include "sources.hpp"

using namespace vkrope::bounds;
using vkrope::AngleSource;

namespace {

double sum(Rotated y) {
    return std::fabs(double(y.y0)) + std::fabs(double(y.y1));
}

/// The larger difference between y and a z.
double apart(Rotated y, double a, Rotated z) {
    return std::max(std::fabs(double(y.y0) - a * double(z.y0)),
                    std::fabs(double(y.y1) - a * double(z.y1)));
}

struct Shares {
    double adds = 0, length = 0, inverse = 0;  // shares of the allowance
};

Shares shares(AngleSource source, const Angles& angles, std::size_t pair, std::int64_t p,
              std::int64_t q, Rotated x) {
    const auto turn = [&](std::int64_t position, Rotated v) {
        return rotate(v.y0, v.y1, angles.at(source, position, pair));
    };
    const double a = angles.attention_factor(),
                 each = vkrope::error_bound(source, a) * double(u) * a;
    const Rotated qx = turn(q, x), pqx = turn(p, qx), undone = turn(-q, qx);
    // The next rotation turns and scales an error of qx: by at most a sqrt 2 in a component.
    const double twice = each * (sum(qx) + a * std::sqrt(2.0) * sum(x));
    const double length = std::hypot(double(x.y0), double(x.y1)),
                 turned = std::hypot(double(qx.y0), double(qx.y1));
    return {apart(pqx, a, turn(p + q, x)) / (twice + a * each * sum(x)),
            std::fabs(turned - a * length) / (std::sqrt(2.0) * each * sum(x)),
            apart(undone, a * a, x) / twice};
}

}  // namespace

TEST_CASE("rotations add up, keep lengths and are undone by their inverse") {
    Random random(13);
    const int count = all ? 100000 : 5000;
    for (const AngleSource source : sources) {
        Shares largest;
        for (const std::vector<double>& inv_freq : models()) {
            for (const double factor : attention_factors) {
                const Angles angles(inv_freq, factor);
                for (int i = 0; i < count; ++i) {
                    const auto position = [&] {
                        const std::uint64_t reach = std::min<std::uint64_t>(covered(source) / 2,
                                                                            1u << 30);
                        const auto magnitude = std::int64_t((random() % reach) >> random() % 20);
                        return random() % 2 == 0 ? magnitude : -magnitude;
                    };
                    const std::int64_t p = position(), q = position();
                    const Rotated x = {
                        float(uniform(random) - 0.5),
                        std::ldexp(float(uniform(random) - 0.5), int(random() % 8) - 4)};
                    const Shares found = shares(source, angles, random() % inv_freq.size(), p, q,
                                                x);
                    largest = {std::max(largest.adds, found.adds),
                               std::max(largest.length, found.length),
                               std::max(largest.inverse, found.inverse)};
                }
            }
        }
        std::printf(
            "composition, source %u: shares of what is allowed: sum %.2f, length %.2f, inverse "
            "%.2f\n",
            unsigned(source), largest.adds, largest.length, largest.inverse);
        CHECK(largest.adds <= 1);
        CHECK(largest.length <= 1);
        CHECK(largest.inverse <= 1);
    }
}
