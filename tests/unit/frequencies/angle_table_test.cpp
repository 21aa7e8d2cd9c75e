// SPDX-License-Identifier: MIT
// The entries of angle tables against cosl and sinl, and the place of each entry in memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "frequencies/table_entry.hpp"
#include "vkrope/frequencies.hpp"

using namespace vkrope;

namespace {

Rotation rotation_with(std::uint32_t pairs, double attention_factor = 1.0) {
    Rotation rotation;
    rotation.head_dim = rotation.rotary_dim = 2 * pairs;
    for (std::uint32_t j = 0; j < pairs; ++j) {
        rotation.inv_freq.push_back(std::pow(500000.0, -double(j) / pairs));
    }
    rotation.attention_factor = attention_factor;
    return rotation;
}

/// Whether `got` is within half an ulp of `exact` as a float, plus `slack`.
bool rounded_once(float got, long double exact, long double slack) {
    int exponent = 0;
    std::frexp(exact, &exponent);
    return std::fabs(got - exact) <= std::ldexp(0.5L, exponent - 24) + slack;
}

void check_entry(CosSin got, const Rotation& rotation, std::size_t pair, long double position,
                 long double gain) {
    const long double angle = position * rotation.inv_freq[pair];
    // Truncating the fraction of a turn to 64 bits moves an angle by less than position * 2^-64
    // turn.
    const long double slack = gain * (6.3L * std::fabs(position) * 0x1p-64L + 0x1p-50L);
    CHECK(rounded_once(got.cos, gain * std::cos(angle), slack));
    CHECK(rounded_once(got.sin, gain * std::sin(angle), slack));
}

void check_entry(CosSin got, const Rotation& rotation, std::size_t pair, long double position) {
    check_entry(got, rotation, pair, position, rotation.attention_factor);
}

constexpr unsigned char guard = 0xa5;

/// The table of `plan`. Checks that all of its bytes were written, and no others.
std::vector<float> filled(const Rotation& rotation, const AnglePlan& plan) {
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
    for (const float value : content) {
        REQUIRE(std::bit_cast<std::uint32_t>(value) != 0xa5a5a5a5);
    }
    return content;
}

/// The meaning of a row of a table.
struct Row {
    std::uint64_t position;
    double factor;
};

/// The rows in the order that AnglePlan documents.
std::vector<Row> documented_rows(const Rotation& rotation, const AnglePlan& plan) {
    std::vector<Row> rows;
    if (plan.source == AngleSource::direct_texture) {
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

/// Checks every texel of a texture at the place that AnglePlan documents; all other texels must be
/// 0.
void check_texture(const Rotation& rotation, const AnglePlan& plan) {
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
    for (std::size_t i = 0; i < texels.size(); ++i) {
        if (!seen[i]) {
            CHECK(texels[i] == 0.0f);
        }
    }
}

AnglePlan planned(const Rotation& rotation, AngleSource source, std::uint64_t max_position,
                  std::uint32_t side) {
    const Result<AnglePlan> plan = plan_angles(rotation, source, max_position, side);
    REQUIRE_MESSAGE(plan, plan.status.what);
    return plan.value;
}

}  // namespace

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

TEST_CASE("entries hold on both sides of every eighth of a turn") {
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
    Rotation rotation = rotation_with(64, 1.1902380714238083);
    rotation.inv_freq[1] = 2047.9;  // many turns per position
    rotation.inv_freq[2] = -0.7;
    for (std::size_t j = 0; j < rotation.inv_freq.size(); ++j) {
        const std::uint64_t fraction = turn_fraction(rotation.inv_freq[j]);
        for (int k = 0; k <= 31; ++k) {
            for (const std::int64_t step : {-1, 0, 1}) {
                const std::int64_t position = (std::int64_t{1} << k) + step;
                if (position >= (std::int64_t{1} << 31)) {
                    continue;
                }
                CAPTURE(j);
                CAPTURE(position);
                // The argument of cosl is rounded to 64 bits: at 2047.9 * 2^31 that is an error of
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

TEST_CASE("a texture that fits is one column") {
    const AnglePlan plan = planned(rotation_with(64), AngleSource::direct_texture, 100, 4096);
    CHECK(plan.source == AngleSource::direct_texture);
    CHECK(plan.format == VK_FORMAT_R32G32B32A32_SFLOAT);
    CHECK(plan.usage == VkFlags(VK_IMAGE_USAGE_SAMPLED_BIT));
    CHECK(plan.extent.width == 32);
    CHECK(plan.extent.height == 100);
    CHECK(plan.fold_log2 == 7);
    CHECK(plan.row_texels == 32);
    CHECK(plan.pairs == 64);
    CHECK(plan.rows == 100);
    CHECK(plan.bytes == 32 * 100 * 16);
}

TEST_CASE("a long texture is folded into columns of a power of two") {
    const Rotation rotation = rotation_with(64);
    const AnglePlan plan = planned(rotation, AngleSource::direct_texture, 131072, 16384);
    CHECK(plan.fold_log2 == 14);
    CHECK(plan.extent.width == 32 * 8);
    CHECK(plan.extent.height == 16384);
    CHECK(plan.bytes == std::size_t{64} << 20);
    CHECK(planned(rotation, AngleSource::direct_texture, 131073, 16384).extent.width == 32 * 9);
    CHECK(planned(rotation, AngleSource::direct_texture, 131072, 16384 + 16383).fold_log2 == 14);
    CHECK(planned(rotation, AngleSource::direct_texture, 1, 1u << 15).extent.height == 1);
}

TEST_CASE("texels lie where the plan says") {
    struct Case {
        const char* name;
        std::uint32_t pairs, max_position, max_image_side;
        double attention_factor = 1;
    };
    const Case cases[] = {
        {"one column", 4, 11, 16},
        {"one column, full", 4, 16, 16},
        {"folded, with a tail", 4, 37, 16},
        {"side of no power of two", 2, 37, 15},
        {"odd number of pairs", 3, 37, 16},
        {"one pair, side 1", 1, 1, 1},
        {"more pairs than are cached", 300, 5, 1024},
        {"attention factor", 3, 20, 16, 1.34},
    };
    for (const Case& c : cases) {
        CAPTURE(std::string(c.name));
        const Rotation rotation = rotation_with(c.pairs, c.attention_factor);
        check_texture(rotation, planned(rotation, AngleSource::direct_texture, c.max_position,
                                        c.max_image_side));
    }
}

TEST_CASE("a buffer is one row a position") {
    for (const std::uint32_t pairs : {1u, 3u, 64u}) {
        const Rotation rotation = rotation_with(pairs, 0.75);
        const AnglePlan plan = planned(rotation, AngleSource::direct_buffer, 9, 0);
        CHECK(plan.usage == VkFlags(VK_BUFFER_USAGE_STORAGE_BUFFER_BIT));
        CHECK(plan.format == VK_FORMAT_UNDEFINED);
        CHECK(plan.extent.width == 0);
        CHECK(plan.rows == 9);
        REQUIRE(plan.bytes == std::size_t{9} * pairs * 8);
        const std::vector<float> table = filled(rotation, plan);
        for (std::size_t r = 0; r < 9; ++r) {
            for (std::size_t j = 0; j < pairs; ++j) {
                const std::size_t at = (r * pairs + j) * 2;
                check_entry({table[at], table[at + 1]}, rotation, j, static_cast<long double>(r));
            }
        }
    }
}

TEST_CASE(
    "a factored texture has a row for each digit of a position, and the bytes that the header "
    "says") {
    const Rotation rotation = rotation_with(64);
    struct Case {
        std::uint64_t max_position;
        std::uint32_t coarse, fine;
    };
    const Case cases[] = {{1, 1, 1},
                          {2047, 1, 2047},
                          {2048, 1, 2048},
                          {2049, 2, 2048},
                          {4096, 2, 2048},
                          {4097, 3, 2048},
                          {131072, 64, 2048},
                          {131073, 65, 2048},
                          {1u << 21, 1024, 2048},
                          {(1u << 22) - 1, 2048, 2048},
                          {1u << 22, 2048, 2048}};
    for (const Case& c : cases) {
        CAPTURE(c.max_position);
        // Every device has at least side 4096: no table needs more, nor a second column.
        const AnglePlan plan = planned(rotation, AngleSource::factored_texture, c.max_position,
                                       4096);
        CHECK(plan.source == AngleSource::factored_texture);
        CHECK(plan.format == VK_FORMAT_R32G32B32A32_SFLOAT);
        CHECK(plan.usage == VkFlags(VK_IMAGE_USAGE_SAMPLED_BIT));
        CHECK(plan.pairs == 64);
        CHECK(plan.rows == c.max_position);
        CHECK(plan.row_texels == 32);
        CHECK(plan.extent.width == 32);
        CHECK(plan.extent.height == c.coarse + c.fine);
        CHECK(plan.bytes == std::size_t{c.coarse + c.fine} * 32 * 16);
        CHECK(angle_lines(plan).count == plan.extent.height);
        CHECK(angle_lines(plan).bytes == 32 * 16);
    }
    const auto mebibytes = [&](std::uint64_t max_position) {
        return double(planned(rotation, AngleSource::factored_texture, max_position, 4096).bytes) /
               (1 << 20);
    };
    CHECK(mebibytes(131072) == doctest::Approx(1.03).epsilon(0.005));
    CHECK(mebibytes(max_factored_positions) == 2.0);
    CHECK(max_factored_positions == 1u << 22);
}

TEST_CASE(
    "texels of a factored texture lie where the plan says; the factor is in the fine rows alone") {
    struct Case {
        const char* name;
        std::uint32_t pairs, max_position, max_image_side, columns;
        double attention_factor = 1;
    };
    const Case cases[] = {
        {"one position", 1, 1, 4096, 1, 1.34},
        {"one position, side 1: two columns", 2, 1, 2, 1, 1.34},
        {"one coarse row, not all fine ones", 2, 2047, 4096, 1, 1.34},
        {"one coarse row, all fine ones", 2, 2048, 4096, 1, 1.34},
        {"two coarse rows", 2, 2049, 4096, 1, 1.34},
        {"odd number of pairs", 3, 5000, 4096, 1, 0.75},
        {"folded where coarse rows end", 2, 131072, 64, 33, 1.34},
        {"folded, side of no power of two", 3, 131072, 1500, 3, 1.34},
        {"folded into the last column", 1, 2049, 2048, 2, 1.34},
        {"more pairs than are cached", 300, 2050, 4096, 1},
        {"all positions", 1, 1u << 22, 4096, 1, 1.1902380714238083},
    };
    for (const Case& c : cases) {
        CAPTURE(std::string(c.name));
        const Rotation rotation = rotation_with(c.pairs, c.attention_factor);
        const AnglePlan plan = planned(rotation, AngleSource::factored_texture, c.max_position,
                                       c.max_image_side);
        CHECK(plan.extent.width == plan.row_texels * c.columns);
        check_texture(rotation, plan);
    }
}

TEST_CASE(
    "computed angles are the numbers that shaders/turns.glsl reads, in the order of "
    "VKROPE_TURN_WORDS") {
    for (const std::uint32_t pairs : {1u, 2u, 5u, 64u}) {
        for (const double factor : {1.0, 0.75, 1.34, 1.1902380714238083, 0x1p-64, 0x1p64}) {
            CAPTURE(pairs);
            CAPTURE(factor);
            const Rotation rotation = rotation_with(pairs, factor);
            const AnglePlan plan = planned(rotation, AngleSource::computed, 7, 0);
            CHECK(plan.source == AngleSource::computed);
            CHECK(plan.usage == VkFlags(VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT));
            CHECK(plan.format == VK_FORMAT_UNDEFINED);
            CHECK(plan.extent.width == 0);
            CHECK(plan.pairs == pairs);
            CHECK(plan.rows == 0x80000001u);  // |position| up to 2^31, whatever was requested
            REQUIRE(plan.bytes == 16 * (2 + (pairs + 1) / 2));
            CHECK(angle_lines(plan).count == 1);
            CHECK(angle_lines(plan).bytes == plan.bytes);

            // Two uvec4: radians_high, radians_low, radians of VkropeTurnFactor; then a.high,
            // a.low.
            const std::vector<float> numbers = filled(rotation, plan);
            const long double units = static_cast<long double>(factor) *
                                      6.283185307179586476925286766559005768L / 0x1p20L;
            const float radians_high = numbers[0], radians_low = numbers[1], radians = numbers[2];
            CHECK((std::bit_cast<std::uint32_t>(radians_high) & 0x1ffff) ==
                  0);  // 7 significant bits
            CHECK(radians_high <= units);
            CHECK(rounded_once(radians_low, units - radians_high, units * 0x1p-50L));
            CHECK(rounded_once(radians, units / 4096, units * 0x1p-60L));
            CHECK(numbers[4] == float(factor));
            CHECK(numbers[5] == float(factor - double(float(factor))));
            for (const std::size_t unused : {3, 6, 7})
                CHECK(std::bit_cast<std::uint32_t>(numbers[unused]) == 0);
            // One uvec4 for two pairs: low, high, low, high.
            for (std::size_t j = 0; j < pairs; ++j) {
                const std::uint64_t low = std::bit_cast<std::uint32_t>(numbers[8 + 2 * j]);
                const std::uint64_t high = std::bit_cast<std::uint32_t>(numbers[8 + 2 * j + 1]);
                CHECK((high << 32 | low) == turn_fraction(rotation.inv_freq[j]));
            }
            for (std::size_t i = 8 + 2 * std::size_t{pairs}; i < numbers.size(); ++i)
                CHECK(numbers[i] == 0.0f);
        }
    }
    CHECK(planned(rotation_with(64), AngleSource::computed, max_positions + 1, 0).bytes == 544);
}

TEST_CASE(
    "by default the table is factored, beyond its reach angles are computed, and a float32 product "
    "takes rows of its own") {
    Rotation rotation = rotation_with(64);
    const auto taken = [&](std::uint64_t max_position) {
        return planned(rotation, AngleSource::by_default, max_position, 4096).source;
    };
    CHECK(taken(1) == AngleSource::factored_texture);
    CHECK(taken(1u << 22) == AngleSource::factored_texture);
    CHECK(taken((1u << 22) + 1) == AngleSource::computed);
    CHECK(taken(max_positions + 1) == AngleSource::computed);
    rotation.precision = AnglePrecision::float32;
    CHECK(taken(4096) == AngleSource::direct_texture);
    static_assert(default_angles(AnglePrecision::exact, max_factored_positions) ==
                  AngleSource::factored_texture);
    static_assert(default_angles(AnglePrecision::exact, max_factored_positions + 1) ==
                  AngleSource::computed);
    static_assert(default_angles(AnglePrecision::float32, max_positions) ==
                  AngleSource::direct_texture);
    static_assert(AngleSource{} == AngleSource::by_default);  // 0 means the default, also in C
}

TEST_CASE("the bound of each source") {
    for (const double factor : {1.0, 1.34}) {
        CHECK(error_bound(AngleSource::factored_texture, factor) == 6);
        CHECK(error_bound(AngleSource::computed, factor) == 4.5);
        CHECK(error_bound(AngleSource::direct_texture, factor) == (factor == 1 ? 2.5 : 3));
        CHECK(error_bound(AngleSource::direct_buffer, factor) == (factor == 1 ? 2.5 : 3));
    }
}

TEST_CASE("the float32 product is the one of float32 arithmetic, bit for bit") {
    Rotation rotation = rotation_with(3, 1.1902380714238083);
    rotation.inv_freq[1] = -0.7;
    rotation.precision = AnglePrecision::float32;
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
            const CosSin exact = table_entry(position * turn_fraction(rotation.inv_freq[j]),
                                             rotation.attention_factor);
            others += !same_bits(row[2 * j], exact.cos) || !same_bits(row[2 * j + 1], exact.sin);
        }
    };
    for (const AngleSource source : {AngleSource::direct_buffer, AngleSource::direct_texture}) {
        const AnglePlan plan = planned(rotation, source, 3000, 4096);
        const std::vector<float> table = filled(rotation, plan);
        const std::size_t row_floats = source == AngleSource::direct_buffer ? 6 : 8;
        for (std::uint64_t r = 0; r < plan.rows; ++r) check_row(&table[r * row_floats], r);
    }
    // Positions that a float cannot represent: 2^24 + 1 becomes 2^24.
    const AnglePlan far = planned(rotation, AngleSource::direct_buffer, (1u << 24) + 64, 0);
    std::vector<float> rows(6 * 128);
    REQUIRE(fill_angles(rotation, far, (1u << 24) - 64, 128, rows.data(), rows.size() * 4));
    for (std::uint32_t i = 0; i < 128; ++i) check_row(&rows[6 * i], (1u << 24) - 64 + i);
    CHECK(std::memcmp(&rows[6 * 64], &rows[6 * 65], 24) == 0);
    CHECK(others > 10000);
}
