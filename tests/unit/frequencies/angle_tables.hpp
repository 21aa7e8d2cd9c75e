// SPDX-License-Identifier: MIT
// Plans and fills angle tables for the tests.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "frequencies/table_entry.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

inline RopeParams rotation_with(std::uint32_t pairs, double attention_factor = 1.0) {
    RopeParams rotation;
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = rotation.rotary_dim = 2 * pairs;
    for (std::uint32_t j = 0; j < pairs; ++j)
        rotation.inv_freq.push_back(std::pow(500000.0, -double(j) / pairs));
    rotation.attention_factor = attention_factor;
    return rotation;
}

// Returns whether `got` is within half an ulp of `exact` as a float, plus `slack`.
inline bool rounded_once(float got, long double exact, long double slack) {
    int exponent = 0;
    std::frexp(exact, &exponent);
    return std::fabs(got - exact) <= std::ldexp(0.5L, exponent - 24) + slack;
}

inline void check_entry(CosSin got, const RopeParams& rotation, std::size_t pair,
                        long double position, long double gain) {
    const long double angle = position * rotation.inv_freq[pair];
    // Truncating the fraction of a turn to 64 bits moves an angle by less than position * 2^-64
    // turn.
    const long double slack = gain * (6.3L * std::fabs(position) * 0x1p-64L + 0x1p-50L);
    CHECK(rounded_once(got.cos, gain * std::cos(angle), slack));
    CHECK(rounded_once(got.sin, gain * std::sin(angle), slack));
}

inline void check_entry(CosSin got, const RopeParams& rotation, std::size_t pair,
                        long double position) {
    check_entry(got, rotation, pair, position, rotation.attention_factor);
}

inline constexpr unsigned char guard = 0xa5;

// Returns the table of `plan`. Checks that all of its bytes were written, and no other bytes.
inline std::vector<float> filled(const RopeParams& rotation, const AngleTableLayout& plan) {
    std::vector<float> memory(plan.bytes / 4 + 8);
    std::memset(memory.data(), guard, memory.size() * 4);
    float* table = memory.data() + 4;
    REQUIRE(fill_angles(rotation, plan, table, plan.bytes));
    const auto* bytes = reinterpret_cast<const unsigned char*>(memory.data());
    for (std::size_t i = 0; i < 16; ++i) {
        REQUIRE(bytes[i] == guard);
        REQUIRE(bytes[16 + plan.bytes + i] == guard);
    }
    std::vector<float> content(table, table + plan.bytes / 4);
    for (const float value : content) REQUIRE(std::bit_cast<std::uint32_t>(value) != 0xa5a5a5a5);
    return content;
}

// The meaning of a row of a table.
struct Row {
    std::uint64_t position;
    double factor;
};

// Returns the rows in the order that AngleTableLayout documents.
inline std::vector<Row> documented_rows(const RopeParams& rotation, const AngleTableLayout& plan) {
    std::vector<Row> rows;
    if (plan.source == VKROPE_ANGLES_DIRECT_TEXTURE) {
        for (std::uint64_t r = 0; r < plan.rows; ++r)
            rows.push_back({r, rotation.attention_factor});
        return rows;
    }
    for (std::uint64_t coarse = 0; coarse < plan.rows; coarse += 2048)
        rows.push_back({coarse, 1.0});
    for (std::uint64_t fine = 0; fine < std::min(plan.rows, 2048u); ++fine)
        rows.push_back({fine, rotation.attention_factor});
    return rows;
}

// Checks every texel of a texture where AngleTableLayout documents it. All other texels must be 0.
inline void check_texture(const RopeParams& rotation, const AngleTableLayout& plan) {
    const std::vector<float> texels = filled(rotation, plan);
    std::vector<bool> seen(texels.size(), false);
    const std::vector<Row> rows = documented_rows(rotation, plan);
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const std::size_t x = std::size_t{plan.row_texels} * (r >> plan.fold_log2);
        const std::size_t y = r & ((1u << plan.fold_log2) - 1);
        REQUIRE(x + plan.row_texels <= plan.extent.width);
        REQUIRE(y < plan.extent.height);
        const std::size_t first = (y * plan.extent.width + x) * 4;
        for (std::size_t j = 0; j < plan.pairs; ++j) {
            check_entry({texels[first + 2 * j], texels[first + 2 * j + 1]}, rotation, j,
                        static_cast<long double>(rows[r].position), rows[r].factor);
            REQUIRE(!seen[first + 2 * j]);
            seen[first + 2 * j] = seen[first + 2 * j + 1] = true;
        }
    }
    for (std::size_t i = 0; i < texels.size(); ++i)
        if (!seen[i]) CHECK(texels[i] == 0.0f);
}

inline AngleTableLayout planned(const RopeParams& rotation, AngleSource source,
                                std::uint64_t max_position, std::uint32_t side) {
    const Result<AngleTableLayout> plan = plan_angles(rotation, source, max_position, side);
    REQUIRE_MESSAGE(plan, plan.status.what);
    return plan.value;
}

}  // namespace vkrope::test
