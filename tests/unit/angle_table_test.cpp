// SPDX-License-Identifier: MIT
// The entries of angle tables against cosl and sinl, and where each of them lies in memory.
#include <doctest/doctest.h>

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

/// Half an ulp of `exact` as a float, and `slack`.
bool rounded_once(float got, long double exact, long double slack) {
    int exponent = 0;
    std::frexp(exact, &exponent);
    return std::fabs(got - exact) <= std::ldexp(0.5L, exponent - 24) + slack;
}

void check_entry(CosSin got, const Rotation& rotation, std::size_t pair, long double position) {
    const long double angle = position * rotation.inv_freq[pair];
    const long double gain = rotation.attention_factor;
    // Truncating the fraction of a turn to 64 bits moves an angle by less than position * 2^-64 turn.
    const long double slack = gain * (6.3L * std::fabs(position) * 0x1p-64L + 0x1p-50L);
    CHECK(rounded_once(got.cos, gain * std::cos(angle), slack));
    CHECK(rounded_once(got.sin, gain * std::sin(angle), slack));
}

constexpr unsigned char guard = 0xa5;

/// The table of `plan`, after checking that its bytes were written, all of them and no others.
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

/// Every texel of a texture, at the place that AnglePlan documents; everything else is 0.
void check_texture(const Rotation& rotation, const AnglePlan& plan) {
    const std::vector<float> texels = filled(rotation, plan);
    std::vector<bool> seen(texels.size(), false);
    for (std::uint32_t r = 0; r < plan.rows; ++r) {
        const std::size_t x = std::size_t{plan.row_texels} * (r >> plan.fold_log2);
        const std::size_t y = r & ((1u << plan.fold_log2) - 1);
        REQUIRE(x + plan.row_texels <= plan.extent.width);
        REQUIRE(y < plan.extent.height);
        const std::size_t first = (y * plan.extent.width + x) * 4;
        for (std::size_t j = 0; j < plan.pairs; ++j) {
            check_entry({texels[first + 2 * j], texels[first + 2 * j + 1]}, rotation, j, r);
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

AnglePlan planned(const Rotation& rotation, AngleSource source, std::uint64_t max_position, std::uint32_t side) {
    const Result<AnglePlan> plan = plan_angles(rotation, source, max_position, side);
    REQUIRE_MESSAGE(plan, plan.status.what);
    return plan.value;
}

}  // namespace

TEST_CASE("quarter turns are exact") {
    const auto is = [](CosSin got, float cos, float sin) { return got.cos == cos && got.sin == sin; };
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
    rotation.inv_freq[1] = 2047.9;  // many turns a position
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
                // cosl's own argument is rounded to 64 bits: at 2047.9 * 2^31 that is worth 2^-22.
                if (std::fabs(rotation.inv_freq[j]) < 1.5 || position < 4096) {
                    check_entry(table_entry(std::uint64_t(position) * fraction, rotation.attention_factor), rotation, j,
                                static_cast<long double>(position));
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
        check_texture(rotation, planned(rotation, AngleSource::direct_texture, c.max_position, c.max_image_side));
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
