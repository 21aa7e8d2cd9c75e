// SPDX-License-Identifier: MIT
// The C interface gives the numbers of the C++ tiers.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "c_rotation.hpp"
#include "support/c_numbers.hpp"
#include "support/gguf_builder.hpp"
#include "vkrope/frequencies.hpp"
#include "vkrope/vkrope.h"

using namespace vkrope::test;

/// What C makes of the frequencies and the attention factor, against what C++ makes of them.
struct Scaled {
    std::vector<double> inv_freq;
    double attention_factor = 7, softmax_scale = 7;
    friend bool operator==(const Scaled&, const Scaled&) = default;
};
template <class C, class Cpp>
void same_scaling(const char* name, const std::vector<double>& from, C&& c, Cpp&& cpp) {
    CAPTURE(name);
    Scaled ours = {from}, theirs = {from};
    REQUIRE(cpp(theirs));
    REQUIRE(c(ours) == VKROPE_SUCCESS);
    CHECK(ours == theirs);
    CHECK(ours.inv_freq != from);
}
/// Every scaling with numbers of its own, and those that C leaves at 0.
void check_scalings(const std::vector<double>& from) {
    std::vector<double> divisors(from.size(), 3), longer(from.size(), 5);
    divisors[0] = 1;
    same_scaling(
        "positions", from,
        [](Scaled& s) {
            return vkrope_scale_positions(s.inv_freq.data(), s.inv_freq.size(), 0.5, nullptr);
        },
        [](Scaled& s) { return vkrope::scale_positions(s.inv_freq, 0.5); });
    same_scaling(
        "divisors", from,
        [&](Scaled& s) {
            return vkrope_scale_divisors(s.inv_freq.data(), s.inv_freq.size(), divisors.data(),
                                         nullptr);
        },
        [&](Scaled& s) {
            return vkrope::scale_divisors(s.inv_freq, divisors.data(), divisors.size());
        });
    same_scaling(
        "ntk", from,
        [](Scaled& s) {
            return vkrope_scale_ntk(s.inv_freq.data(), s.inv_freq.size(), 8, nullptr);
        },
        [](Scaled& s) { return vkrope::scale_ntk(s.inv_freq, 8); });
    same_scaling(
        "dynamic_ntk", from,
        [](Scaled& s) {
            vkrope_dynamic_ntk_scaling c = {};
            c.factor = 2, c.max_position_embeddings = 4096;
            return vkrope_scale_dynamic_ntk(s.inv_freq.data(), s.inv_freq.size(), &c, 16384,
                                            nullptr);
        },
        [](Scaled& s) {
            return vkrope::scale_dynamic_ntk(s.inv_freq, {2, 4096}, 16384);
        });
    for (const bool truncate : {true, false}) {
        same_scaling(
            truncate ? "yarn" : "yarn, not truncated", from,
            [truncate](Scaled& s) {
                vkrope_yarn_scaling c = {};
                c.factor = 4, c.original_max_position_embeddings = 8192;
                if (!truncate) c.no_truncate = VK_TRUE, c.beta_fast = 30, c.mscale = 1.5;
                if (!truncate) c.beta_slow = 2, c.mscale_all_dim = 0.5;
                return vkrope_scale_yarn(s.inv_freq.data(), s.inv_freq.size(), 500000, &c,
                                         &s.attention_factor, nullptr);
            },
            [truncate](Scaled& s) {
                vkrope::YarnScaling numbers = {.factor = 4,
                                               .original_max_position_embeddings = 8192};
                if (!truncate) numbers = {4, 8192, 30, 2, VK_TRUE, 0, 1.5, 0.5};
                return vkrope::scale_yarn(s.inv_freq, 500000, numbers, s.attention_factor);
            });
    }
    same_scaling(
        "deepseek_yarn", from,
        [](Scaled& s) {
            vkrope_deepseek_yarn_scaling c = {};
            c.factor = 40, c.original_max_position_embeddings = 4096;
            c.mscale = 1, c.mscale_all_dim = 0.707;
            return vkrope_scale_deepseek_yarn(s.inv_freq.data(), s.inv_freq.size(), 500000, &c,
                                              &s.attention_factor, &s.softmax_scale, nullptr);
        },
        [](Scaled& s) {
            return vkrope::scale_deepseek_yarn(s.inv_freq, 500000, {40, 4096, 32, 1, 1, 0.707},
                                               s.attention_factor, s.softmax_scale);
        });
    same_scaling(
        "longrope", from,
        [&](Scaled& s) {
            vkrope_longrope_scaling c = {};
            c.short_factor = divisors.data(), c.long_factor = longer.data();
            c.count = divisors.size();
            c.original_max_position_embeddings = 4096, c.factor = 32, c.long_mscale = 1.25;
            return vkrope_scale_longrope(s.inv_freq.data(), s.inv_freq.size(), &c, 8192,
                                         &s.attention_factor, nullptr);
        },
        [&](Scaled& s) {
            return vkrope::scale_longrope(
                s.inv_freq, {divisors.data(), longer.data(), divisors.size(), 4096, 32, 0, 0, 1.25},
                8192, s.attention_factor);
        });
    same_scaling(
        "ggml", from,
        [&](Scaled& s) {
            vkrope_ggml_scaling c = {};
            c.freq_scale = 0.25, c.ext_factor = 1, c.attn_factor = 1.5, c.beta_fast = 32;
            c.beta_slow = 1, c.n_ctx_orig = 8192, c.n_dims = 128;
            c.freq_factors = divisors.data(), c.freq_factor_count = divisors.size();
            return vkrope_scale_ggml(s.inv_freq.data(), s.inv_freq.size(), 500000, &c,
                                     &s.attention_factor, nullptr);
        },
        [&](Scaled& s) {
            return vkrope::scale_ggml(
                s.inv_freq, 500000,
                {0.25, 1, 1.5, 32, 1, 8192, 128, divisors.data(), divisors.size()},
                s.attention_factor);
        });
    // A failure changes neither frequencies nor factors, and names the parameter.
    Scaled kept = {from};
    vkrope_error error;
    vkrope_yarn_scaling yarn = {};
    check_refused(vkrope_scale_yarn(kept.inv_freq.data(), kept.inv_freq.size(), 500000, &yarn,
                                    &kept.attention_factor, &error),
                  error, "factor 0");
    vkrope_longrope_scaling lists = {};
    lists.count = from.size();
    CHECK(vkrope_scale_longrope(kept.inv_freq.data(), kept.inv_freq.size(), &lists, 0,
                                &kept.attention_factor, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    check_refused(
        vkrope_scale_divisors(kept.inv_freq.data(), kept.inv_freq.size(), nullptr, &error), error,
        "divisors null");
    CHECK(kept == Scaled{from});
}
TEST_CASE("C: small functions return what the C++ headers return") {
    std::vector<double> ours(64), theirs(64);
    REQUIRE(vkrope_inclusive_inv_freq(10000, 128, ours.data(), nullptr) == VKROPE_SUCCESS);
    REQUIRE(vkrope::inclusive_inv_freq(10000, 128, theirs.data()));
    CHECK(ours == theirs);
    vkrope_proportional_scaling half = {};
    half.factor = 8;
    half.partial_rotary_factor = 0.5;
    REQUIRE(vkrope_proportional_inv_freq(10000, 128, &half, ours.data(), nullptr) ==
            VKROPE_SUCCESS);
    REQUIRE(vkrope::proportional_inv_freq(10000, 128, {8, 0.5}, theirs.data()));
    CHECK(ours == theirs);
    REQUIRE(vkrope_proportional_inv_freq(10000, 128, nullptr, ours.data(), nullptr) ==
            VKROPE_SUCCESS);
    REQUIRE(vkrope::proportional_inv_freq(10000, 128, {}, theirs.data()));
    CHECK(ours == theirs);

    CHECK(vkrope_turn_fraction(0.3) == vkrope::turn_fraction(0.3));
    CHECK(vkrope_element_bytes(VKROPE_F32) == 4);
    CHECK(vkrope_element_bytes(VKROPE_BF16) == 2);
    CHECK(vkrope_default_angles(VKROPE_ANGLE_PRECISION_EXACT, 4096) ==
          VKROPE_ANGLES_FACTORED_TEXTURE);
    CHECK(vkrope_default_angles(VKROPE_ANGLE_PRECISION_EXACT, 1u << 23) == VKROPE_ANGLES_COMPUTED);
    CHECK(vkrope_default_angles(VKROPE_ANGLE_PRECISION_FLOAT32, 4096) ==
          VKROPE_ANGLES_DIRECT_TEXTURE);
    for (const double factor : {1.0, 1.5}) {
        for (std::uint32_t source = 1; source <= 5; ++source) {
            CHECK(vkrope_error_bound(vkrope_angle_source(source), factor) ==
                  vkrope::error_bound(vkrope::AngleSource(source), factor));
        }
    }
    vkrope_sections sections = {};
    sections.axes = 3;
    sections.pairs[0] = 16, sections.pairs[1] = 24, sections.pairs[2] = 24;
    vkrope::Sections same = {.axes = 3, .pairs = {16, 24, 24}};
    for (std::uint32_t pair = 0; pair < 64; ++pair)
        CHECK(vkrope_axis_of(&sections, pair) == vkrope::axis_of(same, pair));
    CHECK(vkrope_axis_of(nullptr, 63) == 0);
    sections.order = vkrope_section_order(9);
    CHECK(vkrope_axis_of(&sections, 63) == 0);

    auto info = four_channels();
    info.base = 500000;
    info.k_rotary_offset = 512;
    const OwnedRotation rotation = rotation_of(info);
    CHECK(info_of(rotation).base == 500000);
    CHECK(vkrope_row_channels(rotation.get(), 0) == 4);
    CHECK(vkrope_row_channels(rotation.get(), 512) == 516);
    CHECK(vkrope_row_channels(nullptr, 0) == 0);
}

TEST_CASE("C: frequencies equal the C++ tier's") {
    std::vector<double> expected(64), made(64);
    REQUIRE(vkrope::default_inv_freq(500000.0, 128, expected.data()));
    REQUIRE(vkrope_default_inv_freq(500000.0, 128, made.data(), nullptr) == VKROPE_SUCCESS);
    CHECK(made == expected);

    vkrope_llama3_scaling scaling = {};
    scaling.factor = 8;
    scaling.low_freq_factor = 1;
    scaling.high_freq_factor = 4;
    scaling.original_max_position_embeddings = 8192;
    auto scaled = expected;
    REQUIRE(vkrope::scale_llama3(scaled, {8, 1, 4, 8192}));
    REQUIRE(vkrope::scale_linear(scaled, 2));
    REQUIRE(vkrope_scale_llama3(made.data(), made.size(), &scaling, nullptr) == VKROPE_SUCCESS);
    REQUIRE(vkrope_scale_linear(made.data(), made.size(), 2, nullptr) == VKROPE_SUCCESS);
    CHECK(made == scaled);

    check_scalings(expected);

    // A failure changes nothing.
    vkrope_error error;
    scaling.high_freq_factor = scaling.low_freq_factor / 2;
    check_refused(vkrope_scale_llama3(made.data(), made.size(), &scaling, &error), error,
                  "low_freq_factor");
    CHECK(vkrope_scale_linear(made.data(), made.size(), 0, nullptr) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(made == scaled);
}

TEST_CASE("C: what a rotation is recorded between is the kernel tier's") {
    vkrope_boundary boundary = {};
    REQUIRE(vkrope_get_boundary(&boundary, nullptr) == VKROPE_SUCCESS);
    CHECK(boundary.stage == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
    CHECK(boundary.input_access == (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_UNIFORM_READ_BIT));
    CHECK(boundary.output_access == VK_ACCESS_SHADER_WRITE_BIT);
    CHECK(boundary.in_place_access == (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT));
    CHECK(boundary.texture_access == VK_ACCESS_SHADER_READ_BIT);
}

TEST_CASE("C: a rotation's kernel has its channels, offsets and sections") {
    vkrope_sections sections = {};
    sections.axes = 2;
    sections.pairs[0] = sections.pairs[1] = 1;
    auto made = four_channels();
    made.q_rotary_offset = 12;  // latent: the window is beyond head_dim
    made.sections = sections;
    made.windows[0].rotary_dim = made.windows[1].rotary_dim = made.windows[1].offset = 2;
    const OwnedRotation rotation = rotation_of(made);
    vkrope_angle_plan plan = {};
    REQUIRE(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_DIRECT_BUFFER, 4, 0, &plan, nullptr) ==
            VKROPE_SUCCESS);
    CHECK(plan.sections.axes == 2);
    CHECK(plan.sections.pairs[1] == 1);
    const vkrope_element q = VKROPE_BF16;
    vkrope_kernel_info info = {};
    vkrope_error error;
    REQUIRE_MESSAGE(vkrope_rotation_get_kernel_info(rotation.get(), &plan, &q, nullptr, nullptr,
                                                    &info, &error) == VKROPE_SUCCESS,
                    error.what);
    const vkrope_tensor_info& of_q = info.tensor[VKROPE_Q];
    CHECK(info.tensor[VKROPE_K].head_dim == 0);
    CHECK(of_q.in == VKROPE_BF16);
    CHECK(of_q.out == VKROPE_BF16);
    CHECK(of_q.head_dim == 16);
    CHECK(of_q.rotary_offset == 12);
    CHECK(info.rotary_dim == 4);
    CHECK(info.angles == VKROPE_ANGLES_DIRECT_BUFFER);
    CHECK(info.positions == VKROPE_POSITIONS_AXIS_IDS);
    CHECK(info.sections.axes == 2);
    const vkrope_kernel_info& made_info = info;
    const vkrope_rotation_info read = info_of(rotation);
    for (const vkrope_window* windows : {made_info.windows, read.windows}) {
        CHECK(windows[0].offset == 0);
        CHECK(windows[0].rotary_dim == 2);
        CHECK(windows[1].offset == 2);
        CHECK(windows[1].rotary_dim == 2);
        CHECK(windows[2].rotary_dim == 0);
    }

    check_refused(vkrope_rotation_get_kernel_info(rotation.get(), &plan, nullptr, nullptr, nullptr,
                                                  &info, &error),
                  error, "q k");
    plan.sections.axes = 0;
    check_refused(
        vkrope_rotation_get_kernel_info(rotation.get(), &plan, &q, nullptr, nullptr, &info, &error),
        error, "plan.sections 0");
    check_refused(
        vkrope_rotation_get_kernel_info(nullptr, &plan, &q, nullptr, nullptr, &info, &error), error,
        "rotation null");
}
