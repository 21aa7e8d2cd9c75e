// SPDX-License-Identifier: MIT
// Checks the entries of angle tables against cosl and sinl, and the place of each in memory.
#include <doctest/doctest.h>

#include "angle_tables.hpp"
#include "base/meaning.hpp"

using namespace vkrope::test;
using namespace vkrope;

TEST_CASE("quarter turns are exact") {
    const auto is = [](CosSin got, float cos, float sin) {
        return got.cos == cos && got.sin == sin;
    };
    constexpr std::uint64_t quarter = std::uint64_t{1} << 62;
    CHECK(is(table_entry(0, 1.25), 1.25f, 0));
    CHECK(is(table_entry(quarter, 1.25), 0, 1.25f));
    CHECK(is(table_entry(2 * quarter, 1.25), -1.25f, 0));
    CHECK(is(table_entry(3 * quarter, 1.25), 0, -1.25f));
}

TEST_CASE("entries are right on both sides of every eighth of a turn") {
    constexpr long double two_pi = 6.283185307179586476925286766559005768L;
    for (std::uint64_t eighth = 0; eighth < 8; ++eighth) {
        for (const std::int64_t step : {-0x100000, -1, 0, 1, 0x100000}) {
            const std::uint64_t phase = (eighth << 61) + std::uint64_t(step);
            const long double angle = std::ldexp(static_cast<long double>(phase), -64) * two_pi;
            const CosSin got = table_entry(phase, 1);
            CAPTURE(eighth);
            CAPTURE(step);
            CHECK(rounded_once(got.cos, std::cos(angle), 0x1p-50L));
            CHECK(rounded_once(got.sin, std::sin(angle), 0x1p-50L));
        }
    }
}

TEST_CASE("entries are as exact at 2^31 - 1 as at 1") {
    RopeParams rotation = rotation_with(64, 1.1902380714238083);
    rotation.inv_freq[1] = 2047.9;  // many turns per position
    rotation.inv_freq[2] = -0.7;
    for (std::size_t j = 0; j < rotation.inv_freq.size(); ++j) {
        const std::uint64_t fraction = vkrope_turn_fraction(rotation.inv_freq[j]);
        for (int k = 0; k <= 31; ++k) {
            for (const std::int64_t step : {-1, 0, 1}) {
                const std::int64_t position = (std::int64_t{1} << k) + step;
                if (position >= (std::int64_t{1} << 31)) continue;
                CAPTURE(j);
                CAPTURE(position);
                // The argument of cosl is rounded to 64 bits, which at 2047.9 * 2^31 is an error of
                // 2^-22.
                if (std::fabs(rotation.inv_freq[j]) < 1.5 || position < 4096) {
                    check_entry(
                        table_entry(std::uint64_t(position) * fraction, rotation.attention_factor),
                        rotation, j, static_cast<long double>(position));
                }
            }
        }
    }
}

TEST_CASE(
    "by default the table is factored, beyond its range angles are computed, and a float32 product "
    "needs direct rows") {
    RopeParams rotation = rotation_with(64);
    const auto taken = [&](std::uint64_t max_position) {
        return planned(rotation, VKROPE_ANGLES_AUTOMATIC, max_position, 4096).source;
    };
    CHECK(taken(1) == VKROPE_ANGLES_FACTORED_TEXTURE);
    CHECK(taken(1u << 22) == VKROPE_ANGLES_FACTORED_TEXTURE);
    CHECK(taken((1u << 22) + 1) == VKROPE_ANGLES_COMPUTED);
    CHECK(taken(max_positions + 1) == VKROPE_ANGLES_COMPUTED);
    rotation.precision = VKROPE_ANGLE_PRECISION_FLOAT32;
    CHECK(taken(4096) == VKROPE_ANGLES_DIRECT_TEXTURE);
    static_assert(default_angles(VKROPE_ANGLE_PRECISION_EXACT, max_factored_positions) ==
                  VKROPE_ANGLES_FACTORED_TEXTURE);
    static_assert(default_angles(VKROPE_ANGLE_PRECISION_EXACT, max_factored_positions + 1) ==
                  VKROPE_ANGLES_COMPUTED);
    static_assert(default_angles(VKROPE_ANGLE_PRECISION_FLOAT32, max_positions) ==
                  VKROPE_ANGLES_DIRECT_TEXTURE);
    static_assert(AngleSource{} == VKROPE_ANGLES_AUTOMATIC);  // 0 means the default, also in C
}

TEST_CASE("the float32 product is the one of float32 arithmetic, bit for bit") {
    RopeParams rotation = rotation_with(3, 1.1902380714238083);
    rotation.inv_freq[1] = -0.7;
    rotation.precision = VKROPE_ANGLE_PRECISION_FLOAT32;
    const float factor = float(rotation.attention_factor);
    std::size_t others = 0;  // entries that the exact product would have changed
    const auto same_bits = [](float a, float b) {
        return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
    };
    const auto check_row = [&](const float* row, std::uint64_t position) {
        CAPTURE(position);
        for (std::size_t j = 0; j < 3; ++j) {
            const volatile float angle = float(position) * float(rotation.inv_freq[j]);
            const volatile float cos = float(std::cos(static_cast<long double>(angle)));
            const volatile float sin = float(std::sin(static_cast<long double>(angle)));
            CHECK(same_bits(row[2 * j], cos * factor));
            CHECK(same_bits(row[2 * j + 1], sin * factor));
            const CosSin exact = table_entry(position * vkrope_turn_fraction(rotation.inv_freq[j]),
                                             rotation.attention_factor);
            others += !same_bits(row[2 * j], exact.cos) || !same_bits(row[2 * j + 1], exact.sin);
        }
    };
    for (const AngleSource source : {VKROPE_ANGLES_DIRECT_BUFFER, VKROPE_ANGLES_DIRECT_TEXTURE}) {
        const AngleTableLayout plan = planned(rotation, source, 3000, 4096);
        const std::vector<float> table = filled(rotation, plan);
        const std::size_t row_floats = source == VKROPE_ANGLES_DIRECT_BUFFER ? 6 : 8;
        for (std::uint64_t r = 0; r < plan.rows; ++r) check_row(&table[r * row_floats], r);
    }
    // A float cannot represent these positions: 2^24 + 1 becomes 2^24.
    const AngleTableLayout far = planned(rotation, VKROPE_ANGLES_DIRECT_BUFFER, (1u << 24) + 64, 0);
    std::vector<float> rows(6 * 128);
    const vkrope_rope_params params = rotation.view();
    REQUIRE(status_of(vkrope_fill_angle_lines, &params, &far, (1u << 24) - 64, 128, rows.data(),
                      rows.size() * 4));
    for (std::uint32_t i = 0; i < 128; ++i) check_row(&rows[6 * i], (1u << 24) - 64 + i);
    CHECK(std::memcmp(&rows[6 * 64], &rows[6 * 65], 24) == 0);
    CHECK(others > 10000);
}
