// SPDX-License-Identifier: MIT
// What plan_angles and fill_angles refuse, and the reasons in their errors.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope;
using vkrope::test::check_error;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

RopeParams two_pairs() {
    RopeParams rotation;
    rotation.head_dim = rotation.rotary_dim = 4;
    rotation.inv_freq = {1.0, 0.01};
    return rotation;
}

void check_plan_refused(const RopeParams& rotation, const std::string& words) {
    const Result<AngleTableLayout> plan = plan_angles(rotation, VKROPE_ANGLES_DIRECT_TEXTURE, 8,
                                                      4096);
    check_error(plan.status, VKROPE_ERROR_INVALID_ARGUMENT, words);
    CHECK(plan.value.bytes == 0);
    float memory[64] = {};
    check_error(fill_angles(rotation, {}, memory, sizeof memory), VKROPE_ERROR_INVALID_ARGUMENT,
                words);
}

}  // namespace

TEST_CASE("a rotation that has no table is refused") {
    RopeParams rotation = two_pairs();
    SUBCASE("no RoPE") {
        rotation.no_rope = true;
        check_plan_refused(rotation, "rotation.no_rope");
    }
    SUBCASE("no width") {
        rotation.rotary_dim = 0;
        rotation.inv_freq.clear();
        check_plan_refused(rotation, "rotation.rotary_dim 0 2 65534");
    }
    SUBCASE("odd width") {
        rotation.rotary_dim = 5;
        check_plan_refused(rotation, "rotation.rotary_dim 5");
    }
    SUBCASE("too wide") {
        rotation.rotary_dim = 65536;
        rotation.inv_freq.assign(32768, 1.0);
        check_plan_refused(rotation, "rotation.rotary_dim 65536");
    }
    SUBCASE("frequencies missing") {
        rotation.inv_freq.pop_back();
        check_plan_refused(rotation, "rotation.inv_freq_count 1 2");
    }
    SUBCASE("frequencies out of range") {
        for (const double bad :
             {2048.0, -2048.0, infinity, -infinity, std::numeric_limits<double>::quiet_NaN()}) {
            rotation.inv_freq[1] = bad;
            check_plan_refused(rotation, "rotation.inv_freq[1] 2048");
        }
    }
    SUBCASE("attention factor out of range") {
        for (const double bad :
             {-1.0, infinity, 0x1p65, 0x1p-65, std::numeric_limits<double>::quiet_NaN()}) {
            rotation.attention_factor = bad;
            check_plan_refused(rotation, "rotation.attention_factor 2^-64 2^64");
        }
    }
}

TEST_CASE("max_position is 1 to 2^31") {
    for (const std::uint64_t bad : {std::uint64_t{0}, max_positions + 1, ~std::uint64_t{0}}) {
        const auto plan = plan_angles(two_pairs(), VKROPE_ANGLES_DIRECT_BUFFER, bad, 4096);
        check_error(plan.status, VKROPE_ERROR_INVALID_ARGUMENT,
                    "max_position " + std::to_string(bad) + " 2147483648");
    }
}

TEST_CASE("computed angles reach to -2^31 as well, and a factored table to 2^22") {
    for (const AngleSource source : {VKROPE_ANGLES_COMPUTED, VKROPE_ANGLES_AUTOMATIC}) {
        CHECK(plan_angles(two_pairs(), source, max_positions + 1, 4096));
        for (const std::uint64_t bad : {std::uint64_t{0}, max_positions + 2, ~std::uint64_t{0}}) {
            const auto plan = plan_angles(two_pairs(), source, bad, 4096);
            const char* most = bad == 0 && source == VKROPE_ANGLES_AUTOMATIC ? " 2147483648"
                                                                             : " 2147483649";
            check_error(plan.status, VKROPE_ERROR_INVALID_ARGUMENT,
                        "max_position " + std::to_string(bad) + most);
        }
    }
    CHECK(plan_angles(two_pairs(), VKROPE_ANGLES_FACTORED_TEXTURE, 1u << 22, 4096));
    check_error(
        plan_angles(two_pairs(), VKROPE_ANGLES_FACTORED_TEXTURE, (1u << 22) + 1, 4096).status,
        VKROPE_ERROR_LIMIT_EXCEEDED, "max_position 4194305 4194304");
    check_error(
        plan_angles(two_pairs(), VKROPE_ANGLES_FACTORED_TEXTURE, max_positions, 4096).status,
        VKROPE_ERROR_LIMIT_EXCEEDED, "max_position 2147483648 4194304");
    check_error(
        plan_angles(two_pairs(), VKROPE_ANGLES_FACTORED_TEXTURE, max_positions + 1, 4096).status,
        VKROPE_ERROR_INVALID_ARGUMENT, "max_position 2147483649");
}

TEST_CASE("a float32 product is for direct tables") {
    RopeParams rotation = two_pairs();
    rotation.precision = VKROPE_ANGLE_PRECISION_FLOAT32;
    std::vector<float> memory(2100 * 4, 7.0f);
    for (const AngleSource source : {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED}) {
        const std::string says =
            std::string(
                "rotation.precision VKROPE_ANGLE_PRECISION_FLOAT32 VKROPE_ANGLES_DIRECT_TEXTURE") +
            (source == VKROPE_ANGLES_COMPUTED ? " 2" : " 1");
        check_error(plan_angles(rotation, source, 37, 4096).status, VKROPE_ERROR_INVALID_ARGUMENT,
                    says);
        const AngleTableLayout of_exact = plan_angles(two_pairs(), source, 37, 4096).value;
        REQUIRE(of_exact.bytes != 0);
        check_error(fill_angles(rotation, of_exact, memory.data(), memory.size() * 4),
                    VKROPE_ERROR_INVALID_ARGUMENT, says);
    }
    // The default is a direct texture, which has a different limit.
    check_error(plan_angles(rotation, VKROPE_ANGLES_AUTOMATIC, max_positions, 4096).status,
                VKROPE_ERROR_LIMIT_EXCEEDED, "texels");
    check_error(plan_angles(rotation, VKROPE_ANGLES_AUTOMATIC, max_positions + 1, 4096).status,
                VKROPE_ERROR_INVALID_ARGUMENT, "max_position 2147483649");
    rotation.precision = vkrope_angle_precision(7);
    for (const AngleSource source :
         {VKROPE_ANGLES_AUTOMATIC, VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED,
          VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_ANGLES_DIRECT_BUFFER}) {
        check_error(plan_angles(rotation, source, 37, 4096).status, VKROPE_ERROR_INVALID_ARGUMENT,
                    "rotation.precision 7");
    }
    check_error(
        fill_angles(rotation, plan_angles(two_pairs(), VKROPE_ANGLES_DIRECT_BUFFER, 37, 0).value,
                    memory.data(), memory.size() * 4),
        VKROPE_ERROR_INVALID_ARGUMENT, "rotation.precision 7");
    CHECK(memory == std::vector<float>(2100 * 4, 7.0f));
}

TEST_CASE("other arguments of plan_angles") {
    check_error(plan_angles(two_pairs(), VKROPE_ANGLES_DIRECT_TEXTURE, 8, 0).status,
                VKROPE_ERROR_INVALID_ARGUMENT, "max_image_side 0");
    check_error(plan_angles(two_pairs(), VKROPE_ANGLES_FACTORED_TEXTURE, 8, 0).status,
                VKROPE_ERROR_INVALID_ARGUMENT, "max_image_side 0");
    check_error(plan_angles(two_pairs(), VKROPE_ANGLES_AUTOMATIC, 8, 0).status,
                VKROPE_ERROR_INVALID_ARGUMENT, "max_image_side 0");
    check_error(plan_angles(two_pairs(), AngleSource(99), 8, 4096).status,
                VKROPE_ERROR_INVALID_ARGUMENT, "source 99");
    check_error(plan_angles(two_pairs(), VKROPE_ANGLES_COS_SIN_CACHE, 8, 4096).status,
                VKROPE_ERROR_INVALID_ARGUMENT,
                "source VKROPE_ANGLES_COS_SIN_CACHE vkrope_plan_cos_sin_cache");
}

TEST_CASE("a table beyond the device's limits says both numbers") {
    RopeParams rotation = two_pairs();
    rotation.rotary_dim = rotation.head_dim = 8;
    rotation.inv_freq = {1, 0.1, 0.01, 0.001};
    // 8 columns of 2 texels fit into 16; a ninth does not.
    CHECK(plan_angles(rotation, VKROPE_ANGLES_DIRECT_TEXTURE, 128, 16));
    check_error(plan_angles(rotation, VKROPE_ANGLES_DIRECT_TEXTURE, 129, 16).status,
                VKROPE_ERROR_LIMIT_EXCEEDED, "max_position 129 18 16");
    check_error(plan_angles(rotation, VKROPE_ANGLES_DIRECT_TEXTURE, max_positions, 16384).status,
                VKROPE_ERROR_LIMIT_EXCEEDED, "max_position 2147483648 262144 16384");
    // A single row that is wider than the largest image of the device.
    check_error(plan_angles(rotation, VKROPE_ANGLES_DIRECT_TEXTURE, 1, 1).status,
                VKROPE_ERROR_LIMIT_EXCEEDED, "max_position 1 2");

    // 2048 fine and 32 coarse rows: 130 columns of 16 rows, 260 texels.
    CHECK(plan_angles(rotation, VKROPE_ANGLES_FACTORED_TEXTURE, 32 * 2048, 262));
    check_error(plan_angles(rotation, VKROPE_ANGLES_FACTORED_TEXTURE, 32 * 2048, 16).status,
                VKROPE_ERROR_LIMIT_EXCEEDED, "max_position 65536 260 16");

    CHECK(plan_angles(rotation, VKROPE_ANGLES_DIRECT_BUFFER, (1u << 27) - 1, 0).value.bytes ==
          0xffffffe0);
    check_error(plan_angles(rotation, VKROPE_ANGLES_DIRECT_BUFFER, 1u << 27, 0).status,
                VKROPE_ERROR_LIMIT_EXCEEDED, "max_position 134217728 4294967296 4294967295");
    check_error(plan_angles(rotation, VKROPE_ANGLES_DIRECT_BUFFER, max_positions, 0).status,
                VKROPE_ERROR_LIMIT_EXCEEDED, "max_position 2147483648 68719476736 4294967295");
}

TEST_CASE("fill_angles follows no plan that is not the rotation's own") {
    const RopeParams rotation = two_pairs();
    std::vector<float> memory(4096, 7.0f);
    const std::size_t bytes = memory.size() * 4;
    const auto untouched = [&] { return memory == std::vector<float>(4096, 7.0f); };
    for (const AngleSource source : {VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_ANGLES_DIRECT_BUFFER,
                                     VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED}) {
        const AngleTableLayout good = plan_angles(rotation, source, 37, 16).value;
        REQUIRE(good.bytes > 0);
        const auto refused = [&](const AngleTableLayout& plan, const char* words) {
            check_error(fill_angles(rotation, plan, memory.data(), bytes),
                        VKROPE_ERROR_INVALID_ARGUMENT, words);
            CHECK(untouched());
        };
        AngleTableLayout plan = good;
        plan.pairs = 3;
        refused(plan, "layout.pairs 3");
        plan = good;
        plan.phase = 2;  // true, as 1 is
        refused(plan, "layout.phase 2");
        plan = good;
        plan.bytes -= 4;
        refused(plan, "layout.bytes");
        if (source != VKROPE_ANGLES_COMPUTED) {  // its numbers are valid for every position
            plan = good;
            plan.rows = 4000;
            refused(plan, "layout.bytes");
            plan = good;
            plan.rows = 0;
            refused(plan, "layout.bytes");
        }
        plan = good;
        plan.source = AngleSource(7);
        refused(plan, "layout.source 7");
        plan = good;
        plan.source = VKROPE_ANGLES_AUTOMATIC;
        refused(plan, "layout.source 0");
        plan = good;
        plan.source = VKROPE_ANGLES_COS_SIN_CACHE;
        refused(plan, "layout.source 5");
        if (source == VKROPE_ANGLES_FACTORED_TEXTURE) {
            plan = good;
            plan.rows = (1u << 22) + 1;
            refused(plan, "layout.bytes");
        }
        if (source == VKROPE_ANGLES_DIRECT_TEXTURE || source == VKROPE_ANGLES_FACTORED_TEXTURE) {
            plan = good;
            plan.fold_log2 = 3;
            refused(plan, "layout.bytes");
            plan = good;
            plan.fold_log2 += 64;  // a shift by this is undefined
            refused(plan, "layout.bytes");
            plan = good;
            plan.row_texels = 2;
            refused(plan, "layout.bytes");
            plan = good;
            std::swap(plan.extent.width, plan.extent.height);
            refused(plan, "layout.bytes");
        }
        check_error(fill_angles(rotation, good, memory.data(), good.bytes - 1),
                    VKROPE_ERROR_INVALID_ARGUMENT, "bytes");
        check_error(fill_angles(rotation, good, nullptr, bytes), VKROPE_ERROR_INVALID_ARGUMENT,
                    "memory");
        check_error(
            fill_angles(rotation, good, reinterpret_cast<char*>(memory.data()) + 2, bytes - 4),
            VKROPE_ERROR_INVALID_ARGUMENT, "memory 4");
        CHECK(untouched());
    }
}
TEST_CASE("a cos_sin_cache: each broken rule is named, also where bytes would not fit 64 bits") {
    const auto refused = [](std::uint32_t pairs, std::uint32_t rows, std::uint32_t row_stride,
                            Element element, const char* words, ErrorCode code) {
        check_error(plan_cos_sin_cache(pairs, rows, row_stride, element).status, code, words);
    };
    constexpr ErrorCode invalid = VKROPE_ERROR_INVALID_ARGUMENT;
    refused(0, 4, 8, VKROPE_F32, "pairs 0", invalid);
    refused(8, 0, 8, VKROPE_F32, "rows 0", invalid);
    refused(8, 4, 7, VKROPE_F32, "row_stride 7", invalid);
    refused(8, 4, 8, Element(3), "element 3", invalid);
    refused(8, 1u << 20, 4096, VKROPE_F32, "rows 1048576", VKROPE_ERROR_LIMIT_EXCEEDED);
    refused(1, 2147437309, 2147529989, VKROPE_F32, "rows 2147437309", VKROPE_ERROR_LIMIT_EXCEEDED);
    CHECK(plan_cos_sin_cache(5, 3, 0, VKROPE_F16)->row_stride == 5);  // packed
    CHECK(plan_cos_sin_cache(5, 3, 0, VKROPE_F16, true)->row_stride == 10);
    const auto plan = plan_cos_sin_cache(5, 3, 7, VKROPE_F16);
    REQUIRE(plan);
    CHECK(plan->bytes == 40);  // 19 halves, in whole words
}
