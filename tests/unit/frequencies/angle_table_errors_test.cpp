// SPDX-License-Identifier: MIT
// Checks what plan_angles and fill_angles refuse, and the reasons in their errors.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope;
using vkrope::test::check_error;
using vkrope::test::check_invalid;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();

RopeParams two_pairs() {
    RopeParams rotation;
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = rotation.rotary_dim = 4;
    rotation.inv_freq = {1.0, 0.01};
    return rotation;
}

}  // namespace

TEST_CASE("a rotation that has no table is refused") {
    const auto check_refused = [](const std::string& words, const auto& change) {
        RopeParams rotation = two_pairs();
        change(rotation);
        const Result<AngleTableLayout> plan = plan_angles(rotation, VKROPE_ANGLES_DIRECT_TEXTURE, 8,
                                                          4096);
        check_invalid(plan.status, words);
        CHECK(plan.value.bytes == 0);
        float memory[64] = {};
        check_invalid(fill_angles(rotation, {}, memory, sizeof memory), words);
    };
    check_refused("rotation.no_rope", [](RopeParams& r) { r.no_rope = true; });
    check_refused(
        "rotation.rotary_dim 0 2 65534",
        [](RopeParams& r) {
            r.rotary_dim = 0;
            r.inv_freq.clear();
        });
    check_refused("rotation.rotary_dim 5", [](RopeParams& r) { r.rotary_dim = 5; });
    check_refused(
        "rotation.rotary_dim 65536",
        [](RopeParams& r) {
            r.rotary_dim = 65536;
            r.inv_freq.assign(32768, 1.0);
        });
    check_refused(
        "rotation.inv_freq_count 1 2", [](RopeParams& r) { r.inv_freq.pop_back(); });
    check_refused(
        "rotation.inv_freq 0",
        [](RopeParams& r) {
            r.inv_freq = {0, 0};
        });
    check_refused(
        "rotation.head_dim 2 4", [](RopeParams& r) { r.head_dim = 2; });
    check_refused("rotation.head_dim 4 6", [](RopeParams& r) { r.windows[0] = {2, 4}; });
    // The axes were forgotten: one position would rotate all pairs.
    check_refused(
        "rotation.sections.pairs[0] 2", [](RopeParams& r) { r.sections.pairs[0] = 2; });
    check_refused(
        "rotation.sections.axes 0", [](RopeParams& r) { r.sections.leftover_axis = 2; });
    check_refused(
        "rotation.sections.axes 0",
        [](RopeParams& r) { r.sections.order = VKROPE_SECTIONS_INTERLEAVED; });
    check_refused("rotation.sections.leftover_axis 1", [](RopeParams& r) {
        r.sections = {.axes = 2, .pairs = {1, 1}, .leftover_axis = 1};
    });
    for (const double bad : {2048.0, -2048.0, infinity, -infinity, not_a_number})
        check_refused("rotation.inv_freq[1] 2048", [=](RopeParams& r) { r.inv_freq[1] = bad; });
    for (const double bad : {-1.0, infinity, 0x1p65, 0x1p-65, not_a_number}) {
        check_refused(
            "rotation.attention_factor 2^-64 2^64",
            [=](RopeParams& r) { r.attention_factor = bad; });
    }
}

TEST_CASE("a rotation may stand still but for its phases, which have a count") {
    RopeParams rotation = two_pairs();
    rotation.inv_freq = {0, 0};
    rotation.phase = {1, 0};
    CHECK(plan_angles(rotation, VKROPE_ANGLES_COMPUTED, 8, 0));
    vkrope_rope_params uncounted = rotation.view();
    uncounted.phase_count = 0;
    AngleTableLayout plan;
    check_invalid(status_of(vkrope_plan_angles, &uncounted, VKROPE_ANGLES_COMPUTED, 8, 0, &plan),
                  "rotation.phase_count 0");
}

TEST_CASE("max_position, the largest side of an image and the source have their ranges") {
    constexpr ErrorCode invalid = VKROPE_ERROR_INVALID_ARGUMENT,
                        exceeded = VKROPE_ERROR_LIMIT_EXCEEDED;
    constexpr std::uint64_t most = max_positions, endless = ~std::uint64_t{0};
    struct Row {
        AngleSource source;
        std::uint64_t max_position;
        std::uint32_t side;
        const char* words;
        ErrorCode code = invalid;
    };
    // Computed angles reach to -2^31 as well, and a factored table to 2^22.
    const Row rows[] = {
        {VKROPE_ANGLES_DIRECT_BUFFER, 0, 4096, "max_position 0 2147483648"},
        {VKROPE_ANGLES_DIRECT_BUFFER, most + 1, 4096, "max_position 2147483649 2147483648"},
        {VKROPE_ANGLES_DIRECT_BUFFER, endless, 4096, "max_position 18446744073709551615"},
        {VKROPE_ANGLES_COMPUTED, 0, 4096, "max_position 0 2147483649"},
        {VKROPE_ANGLES_COMPUTED, most + 2, 4096, "max_position 2147483650 2147483649"},
        {VKROPE_ANGLES_COMPUTED, endless, 4096, "max_position 18446744073709551615"},
        {VKROPE_ANGLES_AUTOMATIC, 0, 4096, "max_position 0 2147483648"},
        {VKROPE_ANGLES_AUTOMATIC, most + 2, 4096, "max_position 2147483650 2147483649"},
        {VKROPE_ANGLES_AUTOMATIC, endless, 4096, "max_position 18446744073709551615"},
        {VKROPE_ANGLES_FACTORED_TEXTURE, (1u << 22) + 1, 4096, "max_position 4194305 4194304",
         exceeded},
        {VKROPE_ANGLES_FACTORED_TEXTURE, most, 4096, "max_position 2147483648 4194304", exceeded},
        {VKROPE_ANGLES_FACTORED_TEXTURE, most + 1, 4096, "max_position 2147483649"},
        {VKROPE_ANGLES_DIRECT_TEXTURE, 8, 0, "max_image_side 0"},
        {VKROPE_ANGLES_FACTORED_TEXTURE, 8, 0, "max_image_side 0"},
        {VKROPE_ANGLES_AUTOMATIC, 8, 0, "max_image_side 0"},
        {AngleSource(99), 8, 4096, "source 99"},
        {VKROPE_ANGLES_COS_SIN_CACHE, 8, 4096,
         "source VKROPE_ANGLES_COS_SIN_CACHE vkrope_plan_cos_sin_cache"}};
    for (const Row& row : rows) {
        check_error(plan_angles(two_pairs(), row.source, row.max_position, row.side).status,
                    row.code, row.words);
    }
    CHECK(plan_angles(two_pairs(), VKROPE_ANGLES_COMPUTED, most + 1, 4096));
    CHECK(plan_angles(two_pairs(), VKROPE_ANGLES_AUTOMATIC, most + 1, 4096));
    CHECK(plan_angles(two_pairs(), VKROPE_ANGLES_FACTORED_TEXTURE, 1u << 22, 4096));
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
        check_invalid(plan_angles(rotation, source, 37, 4096).status, says);
        const AngleTableLayout of_exact = plan_angles(two_pairs(), source, 37, 4096).value;
        REQUIRE(of_exact.bytes != 0);
        check_invalid(fill_angles(rotation, of_exact, memory.data(), memory.size() * 4), says);
    }
    // The default is a direct texture, which has a different limit.
    check_error(plan_angles(rotation, VKROPE_ANGLES_AUTOMATIC, max_positions, 4096).status,
                VKROPE_ERROR_LIMIT_EXCEEDED, "texels");
    check_invalid(plan_angles(rotation, VKROPE_ANGLES_AUTOMATIC, max_positions + 1, 4096).status,
                  "max_position 2147483649");
    rotation.precision = vkrope_angle_precision(7);
    for (const AngleSource source :
         {VKROPE_ANGLES_AUTOMATIC, VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED,
          VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_ANGLES_DIRECT_BUFFER})
        check_invalid(plan_angles(rotation, source, 37, 4096).status, "rotation.precision 7");
    check_invalid(
        fill_angles(rotation, plan_angles(two_pairs(), VKROPE_ANGLES_DIRECT_BUFFER, 37, 0).value,
                    memory.data(), memory.size() * 4),
        "rotation.precision 7");
    CHECK(memory == std::vector<float>(2100 * 4, 7.0f));
}

TEST_CASE("a table beyond the device's limits says both numbers") {
    RopeParams rotation = two_pairs();
    rotation.rotary_dim = rotation.head_dim = 8;
    rotation.inv_freq = {1, 0.1, 0.01, 0.001};
    // Eight columns of 2 texels fit into 16 texels; a ninth column does not.
    CHECK(plan_angles(rotation, VKROPE_ANGLES_DIRECT_TEXTURE, 128, 16));
    check_error(plan_angles(rotation, VKROPE_ANGLES_DIRECT_TEXTURE, 129, 16).status,
                VKROPE_ERROR_LIMIT_EXCEEDED, "max_position 129 18 16");
    check_error(plan_angles(rotation, VKROPE_ANGLES_DIRECT_TEXTURE, max_positions, 16384).status,
                VKROPE_ERROR_LIMIT_EXCEEDED, "max_position 2147483648 262144 16384");
    // A single row is wider than the largest image of the device.
    check_error(plan_angles(rotation, VKROPE_ANGLES_DIRECT_TEXTURE, 1, 1).status,
                VKROPE_ERROR_LIMIT_EXCEEDED, "max_position 1 2");

    // 2048 fine and 32 coarse rows take 130 columns of 16 rows, which are 260 texels.
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

TEST_CASE("fill_angles refuses a plan of another rotation, and then writes nothing") {
    const RopeParams rotation = two_pairs();
    std::vector<float> memory(4096, 7.0f);
    const std::size_t bytes = memory.size() * 4;
    const auto textures = [](AngleSource source) {
        return source == VKROPE_ANGLES_DIRECT_TEXTURE || source == VKROPE_ANGLES_FACTORED_TEXTURE;
    };
    const auto factored = [](AngleSource source) {
        return source == VKROPE_ANGLES_FACTORED_TEXTURE;
    };
    const auto every = [](AngleSource) { return true; };
    using Plan = AngleTableLayout;
    const struct {
        bool (*concerns)(AngleSource source);
        const char* words;
        void (*change)(Plan& plan);
    } rows[] = {
        {every, "layout.pairs 3", [](Plan& p) { p.pairs = 3; }},
        {every, "layout.phase 2", [](Plan& p) { p.phase = 2; }},  // true, as 1 is
        {every, "layout.bytes", [](Plan& p) { p.bytes -= 4; }},
        {every, "layout.source 7", [](Plan& p) { p.source = AngleSource(7); }},
        {every, "layout.source 0", [](Plan& p) { p.source = VKROPE_ANGLES_AUTOMATIC; }},
        {every, "layout.source 5", [](Plan& p) { p.source = VKROPE_ANGLES_COS_SIN_CACHE; }},
        {every, "layout.", [](Plan& p) { p.rows = 4000; }},
        {every, "layout.rows 0", [](Plan& p) { p.rows = 0; }},
        {factored, "layout.rows 4194305", [](Plan& p) { p.rows = (1u << 22) + 1; }},
        {textures, "layout.extent.width", [](Plan& p) { p.fold_log2 = 3; }},
        {textures, "layout.fold_log2", [](Plan& p) { p.fold_log2 += 64; }},  // an undefined shift
        {every, "layout.row_texels 2", [](Plan& p) { p.row_texels = 2; }},
        {textures, "layout.extent.width",
         [](Plan& p) { std::swap(p.extent.width, p.extent.height); }},
        {every, "layout.usage 2", [](Plan& p) { p.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT; }},
        {every, "layout.attention_factor 2", [](Plan& p) { p.attention_factor = 2; }},
        {every, "layout.element 1", [](Plan& p) { p.element = VKROPE_F16; }},
        {every, "layout.row_stride 2", [](Plan& p) { p.row_stride = 2; }},
        {every, "layout.channel_angles 1", [](Plan& p) { p.channel_angles = true; }},
    };
    for (const AngleSource source : {VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_ANGLES_DIRECT_BUFFER,
                                     VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED}) {
        CAPTURE(int(source));
        const Plan good = plan_angles(rotation, source, 37, 16).value;
        REQUIRE(good.bytes > 0);
        for (const auto& row : rows) {
            if (!row.concerns(source)) continue;
            Plan plan = good;
            row.change(plan);
            check_invalid(fill_angles(rotation, plan, memory.data(), bytes), row.words);
        }
        check_invalid(fill_angles(rotation, good, memory.data(), good.bytes - 1), "bytes");
        check_invalid(fill_angles(rotation, good, nullptr, bytes), "memory");
        check_invalid(
            fill_angles(rotation, good, reinterpret_cast<char*>(memory.data()) + 2, bytes - 4),
            "memory 4");
        CHECK(memory == std::vector<float>(4096, 7.0f));
    }
}

TEST_CASE("a cos_sin_cache: each broken rule is named, even if the bytes would not fit 64 bits") {
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
