// SPDX-License-Identifier: MIT
// Checks where a plan of an angle table says that its texels and rows are.
#include <doctest/doctest.h>

#include "angle_tables.hpp"
#include "base/meaning.hpp"

using namespace vkrope::test;
using namespace vkrope;

TEST_CASE("a texture is folded into columns of a power of two where it does not fit one") {
    struct Case {
        std::uint32_t rows, side, width, height, fold_log2;
    };
    const Case cases[] = {{100, 4096, 32, 100, 7},
                          {1, 1u << 15, 32, 1, 0},
                          {131072, 16384, 32 * 8, 16384, 14},
                          {131073, 16384, 32 * 9, 16384, 14},
                          {131072, 16384 + 16383, 32 * 8, 16384, 14}};
    for (const Case& c : cases) {
        CAPTURE(c.rows);
        const AngleTableLayout plan = planned(rotation_with(64), VKROPE_ANGLES_DIRECT_TEXTURE,
                                              c.rows, c.side);
        CHECK(plan.source == VKROPE_ANGLES_DIRECT_TEXTURE);
        CHECK(plan.format == VK_FORMAT_R32G32B32A32_SFLOAT);
        CHECK(plan.usage == VkFlags(VK_IMAGE_USAGE_SAMPLED_BIT));
        CHECK(plan.extent.width == c.width);
        CHECK(plan.extent.height == c.height);
        CHECK(plan.fold_log2 == c.fold_log2);
        CHECK(plan.row_texels == 32);
        CHECK(plan.pairs == 64);
        CHECK(plan.rows == c.rows);
        CHECK(plan.bytes == std::size_t{c.width} * c.height * 16);
    }
}

TEST_CASE("texels are where the plan says") {
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
        const RopeParams rotation = rotation_with(c.pairs, c.attention_factor);
        check_texture(rotation, planned(rotation, VKROPE_ANGLES_DIRECT_TEXTURE, c.max_position,
                                        c.max_image_side));
    }
}

TEST_CASE("a buffer has one row per position") {
    for (const std::uint32_t pairs : {1u, 3u, 64u}) {
        const RopeParams rotation = rotation_with(pairs, 0.75);
        const AngleTableLayout plan = planned(rotation, VKROPE_ANGLES_DIRECT_BUFFER, 9, 0);
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
    "documents") {
    const RopeParams rotation = rotation_with(64);
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
        // Every device supports a side of 4096, in which each table fits, in one column.
        const AngleTableLayout plan = planned(rotation, VKROPE_ANGLES_FACTORED_TEXTURE,
                                              c.max_position, 4096);
        CHECK(plan.source == VKROPE_ANGLES_FACTORED_TEXTURE);
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
        return double(planned(rotation, VKROPE_ANGLES_FACTORED_TEXTURE, max_position, 4096).bytes) /
               (1 << 20);
    };
    CHECK(mebibytes(131072) == doctest::Approx(1.03).epsilon(0.005));
    CHECK(mebibytes(max_factored_positions) == 2.0);
    CHECK(max_factored_positions == 1u << 22);
}

TEST_CASE(
    "texels of a factored texture are where the plan says; the factor is in the fine rows alone") {
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
        const RopeParams rotation = rotation_with(c.pairs, c.attention_factor);
        const AngleTableLayout plan = planned(rotation, VKROPE_ANGLES_FACTORED_TEXTURE,
                                              c.max_position, c.max_image_side);
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
            const RopeParams rotation = rotation_with(pairs, factor);
            const AngleTableLayout plan = planned(rotation, VKROPE_ANGLES_COMPUTED, 7, 0);
            CHECK(plan.source == VKROPE_ANGLES_COMPUTED);
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
                CHECK((high << 32 | low) == vkrope_turn_fraction(rotation.inv_freq[j]));
            }
            for (std::size_t i = 8 + 2 * std::size_t{pairs}; i < numbers.size(); ++i)
                CHECK(numbers[i] == 0.0f);
        }
    }
    CHECK(planned(rotation_with(64), VKROPE_ANGLES_COMPUTED, max_positions + 1, 0).bytes == 544);
}
