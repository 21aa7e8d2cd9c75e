// SPDX-License-Identifier: MIT
// Checks tables of rotations whose angle is more than position times one frequency, and what no
// source can have. tests/unit/bounds/phases_test.cpp reads their rows as the shader does.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/meaning.hpp"
#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

namespace {

RopeParams phased_rotation() {
    RopeParams rotation;
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = 6;
    rotation.rotary_dim = 6;
    rotation.inv_freq = {1, 0.1, -0.01};
    rotation.phase = {0.5, -3, 100};
    rotation.attention_factor = 1.5;
    return rotation;
}

std::vector<float> table_of(const RopeParams& rotation, const AngleTableLayout& plan) {
    std::vector<float> table(plan.bytes / 4);
    const Status status = fill_angles(rotation, plan, table.data(), plan.bytes);
    INFO(status.what);
    REQUIRE(bool(status));
    return table;
}

void refused(const RopeParams& rotation, AngleSource source, const char* words) {
    test::check_invalid(plan_angles(rotation, source, 100, 16384).status, words);
}

}  // namespace

TEST_CASE("phases: every pair of a row with more than 256 has its own frequency and phase") {
    constexpr std::uint32_t pairs = 260;
    RopeParams rotation;
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = 2 * pairs;
    rotation.rotary_dim = 2 * pairs;
    for (std::uint32_t j = 0; j < pairs; ++j) {
        rotation.inv_freq.push_back(1 / (1 + double(j)));
        rotation.phase.push_back(double(j) / 100);
    }
    const AngleTableLayout plan = plan_angles(rotation, VKROPE_ANGLES_DIRECT_BUFFER, 2, 0).value;
    const std::vector<float> table = table_of(rotation, plan);
    for (std::size_t j = 0; j < pairs; ++j) {
        const long double angle = static_cast<long double>(rotation.inv_freq[j]) +
                                  rotation.phase[j];
        const float* entry = &table[2 * (pairs + j)];  // position 1
        CAPTURE(j);
        CHECK(std::fabs(entry[0] - std::cos(angle)) <= 0x1p-24L);
        CHECK(std::fabs(entry[1] - std::sin(angle)) <= 0x1p-24L);
    }
}

TEST_CASE("computed angles: fractions of head groups, of axes, and of phases") {
    RopeParams rotation = phased_rotation();
    rotation.sections = {.order = VKROPE_SECTIONS_SUM, .axes = 2};
    rotation.head_groups = 2;
    rotation.inv_freq = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    rotation.phase = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
    const AngleTableLayout plan = plan_angles(rotation, VKROPE_ANGLES_AUTOMATIC, 100, 0).value;
    CHECK(plan.source == VKROPE_ANGLES_COMPUTED);
    CHECK(plan.head_groups == 2);
    CHECK(plan.sections == rotation.sections);
    // Three pairs take two vec4s; a group has two axes and the phases.
    REQUIRE(plan.bytes == 16 * (2 + 2 * 3 * 2));
    std::vector<std::uint64_t> words(plan.bytes / 8);
    REQUIRE(bool(fill_angles(rotation, plan, words.data(), plan.bytes)));
    const std::vector<double> expected = {1, 2, 3, 0, 4,  5,  6,  0, 0.1, 0.2, 0.3, 0,
                                          7, 8, 9, 0, 10, 11, 12, 0, 0.4, 0.5, 0.6, 0};
    for (std::size_t i = 0; i < expected.size(); ++i)
        CHECK(words[4 + i] == vkrope_turn_fraction(expected[i]));
    const Result<KernelInfo> info = kernel_info(rotation, plan, VKROPE_F32, VKROPE_F32);
    REQUIRE(bool(info));
    CHECK(info->phase);
    CHECK(info->head_groups == 2);
    CHECK(info->sections == rotation.sections);
}

TEST_CASE("phases, sums and head groups: errors name what is refused") {
    RopeParams rotation = phased_rotation();
    rotation.phase.pop_back();
    refused(rotation, VKROPE_ANGLES_COMPUTED, "rotation.phase_count 2 3");
    rotation.phase = {0, 0, std::numeric_limits<double>::quiet_NaN()};
    refused(rotation, VKROPE_ANGLES_COMPUTED, "rotation.phase[2] nan 2048");
    rotation.phase = {0, 2048, 0};
    refused(rotation, VKROPE_ANGLES_COMPUTED, "rotation.phase[1] 2048");
    rotation = phased_rotation();
    rotation.precision = VKROPE_ANGLE_PRECISION_FLOAT32;
    refused(rotation, VKROPE_ANGLES_DIRECT_BUFFER, "rotation.precision float32");
    rotation = phased_rotation();
    rotation.head_groups = 65536;
    refused(rotation, VKROPE_ANGLES_COMPUTED, "rotation.head_groups 65536 1 65535");
    rotation.head_groups = 2;
    refused(rotation, VKROPE_ANGLES_COMPUTED, "rotation.inv_freq_count 3 6");
    rotation.inv_freq.resize(6);
    refused(rotation, VKROPE_ANGLES_COMPUTED, "rotation.phase_count 3 6");
    rotation.phase = {};
    refused(rotation, VKROPE_ANGLES_FACTORED_TEXTURE, "rotation.head_groups 2");
    rotation = phased_rotation();
    rotation.sections = {.order = VKROPE_SECTIONS_SUM, .axes = 1};
    refused(rotation, VKROPE_ANGLES_COMPUTED, "rotation.sections.axes 1 2 8");
    rotation.sections.axes = 2;
    refused(rotation, VKROPE_ANGLES_COMPUTED, "rotation.inv_freq_count 3 6");
    rotation.inv_freq.resize(6);
    refused(rotation, VKROPE_ANGLES_DIRECT_TEXTURE, "rotation.sections.order sum 3");
    rotation.sections.pairs[1] = 3;
    refused(rotation, VKROPE_ANGLES_COMPUTED, "rotation.sections.pairs[1] 3");
}

TEST_CASE("a table is filled only with the rotation that it was planned for") {
    const RopeParams phased = phased_rotation();
    RopeParams plain = phased;
    plain.phase = {};
    const AngleTableLayout plan = plan_angles(phased, VKROPE_ANGLES_DIRECT_BUFFER, 5, 0).value;
    std::vector<float> memory(plan.bytes / 4);
    test::check_invalid(fill_angles(plain, plan, memory.data(), plan.bytes), "layout");
    test::check_invalid(kernel_info(plain, plan, VKROPE_F32, {}).status, "layout");
}

TEST_CASE("angles of channels: a row of a cos_sin_cache has two for each pair") {
    const Result<AngleTableLayout> plan = plan_cos_sin_cache(10, 7, 20, VKROPE_F16, true);
    REQUIRE(bool(plan));
    CHECK(plan->channel_angles);
    CHECK(plan->bytes == 7 * 20 * 2);
    test::check_invalid(plan_cos_sin_cache(10, 7, 19, VKROPE_F16, true).status, "row_stride 19 20");
}

}  // namespace vkrope
