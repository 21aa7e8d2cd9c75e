// SPDX-License-Identifier: MIT
// Makes rows that are hard to quantise, and lists the types that a row is stored as.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "search.hpp"
#include "verify/oracle/oracle.hpp"
#include "verify/oracle/quantise.hpp"
#include "verify/shader_source/shader.hpp"

namespace vkrope::bounds {

using Row = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;
using oracle::Store;

inline constexpr std::array<Store, 10> stores = {
    Store::e4m3fn, Store::e5m2, Store::int8, Store::q8_0,   Store::q4_0,
    Store::q4_1,   Store::q5_0, Store::q5_1, Store::iq4_nl, Store::int4};

inline shader::uint type_of(Store store) {
    return shader::element_e4m3fn +
           shader::uint(std::find(stores.begin(), stores.end(), store) - stores.begin());
}

inline float random_float(Random& random) {
    return std::bit_cast<float>(std::uint32_t(random()));
}

// Returns a finite number with an exponent in [low, high].
inline float scattered(Random& random, int low, int high) {
    const int exponent = low + int(random() % std::uint64_t(high - low + 1));
    return float(std::ldexp((1 + uniform(random)) * (random() % 2 == 0 ? 1 : -1), exponent));
}

inline constexpr int kinds = 16;

// Returns a row that is hard in one of several ways.
inline Row hard_row(Random& random, int kind, std::size_t channels) {
    using oracle::narrow;
    using oracle::Type;
    using oracle::widen;
    Row row(channels);
    const float scale = float(std::ldexp(1.0, int(random() % 20) - 10));
    const float step = scattered(random, -145, 110);
    const float constant = scattered(random, -149, 127);
    const int low = -149 + int(random() % 30);
    for (float& x : row) {
        const auto plain = float((uniform(random) + uniform(random) + uniform(random) - 1.5) * 4);
        switch (kind) {
            case 1: x = widen(Type::bf16, narrow(Type::bf16, plain)); break;
            case 2: x = widen(Type::f16, narrow(Type::f16, plain * scale)); break;
            case 3: x = float(int(random() % 511) - 255) / 2 * scale; break;  // ties
            case 4: x = random() % 16 == 0 ? plain * 1000 : plain / 10; break;
            case 5: x = scattered(random, -149, -120); break;
            case 6: x = scattered(random, 120, 127); break;
            case 7: x = constant; break;
            case 8: x = random() % 2 == 0 ? 0.f : -0.f; break;
            case 9: x = random() % 8 == 0 ? random_float(random) : plain; break;
            case 10: x = random_float(random); break;
            case 11: x = random() % 2 == 0 ? constant : -constant; break;
            case 12: x = float(int(random() % 33) - 16) * step; break;  // ties of any size
            case 13: x = scattered(random, low, low + 5); break;        // near the smallest 1/d
            case 14: x = scattered(random, -44, -38); break;            // near 2^-40: vkrope_lift
            case 15: x = plain + float(random() % 2) * scale; break;
            default: x = plain * scale;
        }
    }
    if (random() % 64 == 0) row.assign(channels, random() % 2 == 0 ? HUGE_VALF : -HUGE_VALF);
    // Some rows have a NaN, an infinity, or a zero.
    const float spice[] = {std::numeric_limits<float>::quiet_NaN(),
                           -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::infinity(),
                           0.f,
                           -0.f,
                           std::bit_cast<float>(0xffc00001u)};
    for (std::uint64_t i = random() % 8; i >= 6; --i)
        row[random() % channels] = spice[random() % std::size(spice)];
    return row;
}

}  // namespace vkrope::bounds
