// SPDX-License-Identifier: MIT
// Searches for the largest error by hill climbing, so that tests can compare it with a bound.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>

#include "error.hpp"

namespace vkrope::bounds {

using Random =
    std::mt19937_64;  // the same numbers with every standard library, unlike its distributions

inline double uniform(Random& random) {
    return double(random() >> 11) * 0x1p-53;
}

// A rotation of one pair.
struct Trial {
    std::uint64_t phase = 0, fine_phase = 0;  // fine_phase: of the factored source only
    double attention_factor = 1;
    float x0 = 1, x1 = 1;

    CosSin angle = {};  // from the source
    Exact exact = {};
    double error = 0;
};

// Returns a changed x, with a magnitude far from overflow and underflow. Half of the changes
// affect few bits, so that there are steps of all sizes.
inline float varied(Random& random, float x) {
    const auto step = std::uint32_t((random() & 0x7fffff) >> random() % 23);
    std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    switch (random() % 8) {
        case 0: bits ^= 0x80000000u; break;
        case 1: bits += random() % 2 == 0 ? 0x800000u : 0u - 0x800000u; break;
        case 2: bits ^= std::uint32_t(random()) & 0x7fffffu; break;
        default: bits += random() % 2 == 0 ? step : 0u - step;
    }
    const float result = std::bit_cast<float>(bits);
    const float magnitude = result < 0 ? -result : result;
    return magnitude > 0x1p-30f && magnitude < 0x1p30f ? result : x;
}

// Climbs from many starts and returns the worst result.
//
// attention_factor  0: climbs over factors, too
// source            CosSin of (phase, fine_phase, attention_factor)
// has_fine          whether fine_phase counts
template <class Source>
Trial worst_trial(std::uint64_t seed, int starts, int steps, double attention_factor, bool has_fine,
                  Source source) {
    Random random(seed);
    const auto turn = [&](Trial& r) {
        r.angle = source(r.phase, r.fine_phase, r.attention_factor);
        r.exact = exact(r.phase + r.fine_phase);
    };
    const auto judge = [](Trial& r) {
        r.error = error_of(rotate(r.x0, r.x1, r.angle), r.x0, r.x1, r.exact, r.attention_factor);
    };
    Trial worst;
    for (int start = 0; start < starts; ++start) {
        Trial best;
        best.phase = random();
        best.fine_phase = has_fine ? random() : 0;
        best.attention_factor = attention_factor != 0 ? attention_factor : 1 + uniform(random);
        best.x0 = 1 + float(uniform(random));
        const int smaller = int(random() % 16);
        best.x1 = float(std::ldexp(1 + uniform(random), -smaller));
        turn(best);
        judge(best);
        for (int step = 0; step < steps; ++step) {
            Trial next = best;
            const std::uint64_t move = random() % 8;
            if (move < 2) {
                const std::uint64_t by = random() >> random() % 48,
                                    signed_by = random() % 2 == 0 ? by : 0 - by;
                (has_fine && random() % 2 == 0 ? next.fine_phase : next.phase) += signed_by;
                if (has_fine && random() % 4 == 0)
                    next.phase -= signed_by;  // in the direction that keeps the sum
                if (attention_factor == 0 && random() % 2 == 0) {
                    const int scale = -int(random() % 40);
                    const double factor = next.attention_factor +
                                          std::ldexp(uniform(random) - 0.5, scale);
                    if (factor >= 1 && factor <= 2) next.attention_factor = factor;
                }
                turn(next);
            } else {
                if (move != 2) next.x0 = varied(random, next.x0);
                if (move != 3) next.x1 = varied(random, next.x1);
            }
            judge(next);
            if (next.error >= best.error) best = next;
        }
        if (best.error > worst.error) worst = best;
    }
    return worst;
}

// The largest errors of a source without an attention factor, and with one.
struct Searched {
    double plain = 0, factor = 0;
};

// Climbs at a = 1, close to 1, and over all factors, and prints the largest errors.
template <class Source>
Searched searched(const char* name, std::uint64_t seed, int steps, bool has_fine, Source source) {
    const int starts = all ? 10000 : 1000;
    const Trial plain = worst_trial(seed, starts, steps, 1, has_fine, source);
    const Trial near_one = worst_trial(seed + 1, starts, steps, 1.01, has_fine, source);
    const Trial any = worst_trial(seed + 2, starts, steps, 0, has_fine, source);
    std::printf("%s, found: %.4f at a = 1, %.4f at a = 1.01, %.4f at a = %.6f\n", name, plain.error,
                near_one.error, any.error, any.attention_factor);
    return {plain.error, std::fmax(near_one.error, any.error)};
}

}  // namespace vkrope::bounds
