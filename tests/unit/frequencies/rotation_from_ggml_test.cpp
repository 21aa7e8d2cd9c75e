// SPDX-License-Identifier: MIT
// Checks rotations from ggml's arguments: each mode against the loops of ggml_mrope_cache_init and
// ggml_rope_cache_init, as ggml-cpu/ops.cpp describes them, in long double.
#include <doctest/doctest.h>

#include "base/meaning.hpp"
#include "scaling_checks.hpp"

using namespace vkrope::test;
using namespace vkrope;

namespace {

struct Turn {
    int axis;
    long double frequency;
};

// Returns the axis and the frequency of each pair. Each axis has an angle, which is multiplied by
// theta_scale after every pair. In vision mode the angle starts again where its section begins.
std::vector<Turn> turns_of_ggml(const GgmlRope& rope) {
    const bool vision = rope.mode == 24, imrope = rope.mode == 40;
    const long double step = std::pow((long double)rope.freq_base, -2.0L / rope.n_dims);
    const int pairs = int(vision ? rope.n_dims : rope.n_dims / 2);
    int ends[4] = {}, sum = 0;
    for (int axis = 0; axis < 4; ++axis) ends[axis] = sum += int(rope.sections[axis]);
    long double angle[4] = {1, 1, 1, 1};
    std::vector<Turn> turns;
    for (int j = 0; j < pairs; ++j) {
        int axis = 0;
        if (sum != 0) {
            const int sector = j % sum;
            for (int other = 0; vision && other < 4; ++other)
                if (sector == (other == 0 ? 0 : ends[other - 1])) angle[other] = 1;
            if (imrope) {
                const int wanted = sector % 3;
                axis = sector < 3 * int(rope.sections[wanted]) ? wanted : 3;
            } else {
                while (sector >= ends[axis]) ++axis;
            }
        }
        turns.push_back({axis, angle[axis]});
        for (long double& each : angle) each *= step;
    }
    return turns;
}

RopeParams made(const GgmlRope& rope) {
    const Result<RopeParams> result = rope_params_from_ggml(rope);
    REQUIRE_MESSAGE(result, result.status.what);
    const Result<AngleTableLayout> plan = plan_angles(result.value, VKROPE_ANGLES_COMPUTED, 4096,
                                                      0);
    REQUIRE_MESSAGE(plan, plan.status.what);
    const Result<KernelInfo> info = kernel_info(result.value, plan.value, VKROPE_F32, VKROPE_F32);
    REQUIRE_MESSAGE(info, info.status.what);
    return result.value;
}

void check_turns(const GgmlRope& rope, std::uint32_t axes) {
    const RopeParams rotation = made(rope);
    const std::vector<Turn> turns = turns_of_ggml(rope);
    CHECK(rotation.sections.axes == axes);
    REQUIRE(rotation.inv_freq.size() == turns.size());
    for (std::size_t j = 0; j < turns.size(); ++j) {
        CAPTURE(j);
        CHECK(close(rotation.inv_freq[j], turns[j].frequency));
        CHECK(axis_of(rotation.sections, std::uint32_t(j)) == std::uint32_t(turns[j].axis));
    }
}

void check_refused(const GgmlRope& rope, const std::string& words) {
    const Result<RopeParams> result = rope_params_from_ggml(rope);
    check_invalid(result.status, words);
    CHECK(result.value.inv_freq.empty());
}

}  // namespace

TEST_CASE("ggml's modes: pairs, ids and frequencies") {
    const RopeParams normal = made({.head_dim = 128, .n_dims = 64});
    CHECK(normal.pairing == VKROPE_INTERLEAVED);
    CHECK(normal.rotary_dim == 64);
    CHECK(normal.head_dim == 128);
    CHECK(normal.attention_factor == 1);
    check_turns({.head_dim = 128, .n_dims = 64, .freq_base = 5e5}, 0);
    const RopeParams neox = made({.head_dim = 80, .n_dims = 80, .mode = 2});
    CHECK(neox.pairing == VKROPE_HALF_SPLIT);

    // These are Qwen2-VL, Qwen2-VL with sections that repeat, and one axis that has all pairs.
    for (const GgmlRope& rope : {
             GgmlRope{.head_dim = 128,
            .n_dims = 128,
            .mode = 8,
            .freq_base = 1e6,
            .sections = {16, 24, 24}},
             GgmlRope{.head_dim = 128, .n_dims = 128, .mode = 8, .sections = {4, 6, 6}},
             GgmlRope{.head_dim = 128, .n_dims = 64, .mode = 8, .sections = {8, 12, 12}},
         }) {
        check_turns(rope, 3);
        CHECK(made(rope).pairing == VKROPE_HALF_SPLIT);
    }
    check_turns({.head_dim = 64, .n_dims = 64, .mode = 8, .sections = {32, 4}}, 2);
    check_turns({.head_dim = 64, .n_dims = 64, .mode = 8, .sections = {8, 8, 8, 8}}, 4);
    // Qwen3-VL leaves pairs 61 and 62 to the fourth id; the sections {22, 21, 21} leave it none.
    check_turns({.head_dim = 128, .n_dims = 128, .mode = 40, .sections = {24, 20, 20}}, 4);
    check_turns({.head_dim = 128, .n_dims = 128, .mode = 40, .sections = {22, 21, 21}}, 3);
    check_turns({.head_dim = 128, .n_dims = 128, .mode = 40, .sections = {20, 20, 20, 4}}, 4);
    check_turns({.head_dim = 128, .n_dims = 128, .mode = 40, .sections = {30, 17, 17}}, 4);
    // Vision towers of llama.cpp set four sections of a quarter of the head. Only two are reached.
    const GgmlRope tower = {.head_dim = 80, .n_dims = 40, .mode = 24, .sections = {20, 20, 20, 20}};
    check_turns(tower, 2);
    CHECK(made(tower).rotary_dim == 80);
    CHECK(made(tower).base == 0);
    check_turns({.head_dim = 96, .n_dims = 48, .mode = 24, .sections = {16, 16, 16}}, 3);
}

TEST_CASE("ggml: freq_scale multiplies, freq_factors divide, and the magnitude grows by itself") {
    const std::vector<double> factors(33, 8.0);  // one more than there are pairs
    const RopeParams scaled = made({.head_dim = 64,
                                    .n_dims = 64,
                                    .freq_scale = 0.5,
                                    .attn_factor = 1.25,
                                    .freq_factors = factors.data(),
                                    .freq_factor_count = factors.size()});
    CHECK(scaled.rope_type == "rope_freqs");
    CHECK(scaled.attention_factor == 1.25);
    for (int j = 0; j < 32; ++j) CHECK(close(scaled.inv_freq[j], std::pow(1e4L, -j / 32.0L) / 16));
    CHECK(made({.head_dim = 64, .n_dims = 64, .freq_scale = 0.5}).rope_type == "linear");

    // The expected numbers are those of rope_yarn in ggml-cpu/ops.cpp, with the whole blend.
    const RopeParams yarn = made({.head_dim = 64,
                                  .n_dims = 64,
                                  .mode = 2,
                                  .n_ctx_orig = 4096,
                                  .freq_scale = 0.25,
                                  .ext_factor = 1});
    CHECK(yarn.rope_type == "yarn");
    CHECK(close(yarn.attention_factor, 1 + 0.1L * std::log(4.0L)));
    const auto bound = [](long double turns) {
        return 64 * std::log(4096 / (turns * two_pi)) / (2 * std::log(1e4L));
    };
    const long double low = std::floor(bound(32)), high = std::ceil(bound(1));
    for (int j = 0; j < 32; ++j) {
        const long double divided = std::min(1.0L, std::max(0.0L, (j - low) / (high - low)));
        const long double frequency = std::pow(1e4L, -j / 32.0L);
        CHECK(close(yarn.inv_freq[j], frequency / 4 * divided + frequency * (1 - divided)));
    }
}

TEST_CASE("ggml: arguments that contradict each other are named") {
    const GgmlRope good = {.head_dim = 64, .n_dims = 64};
    const auto with = [&](auto&& change) {
        GgmlRope rope = good;
        change(rope);
        return rope;
    };
    check_refused({}, "head_dim 0 2 65534");
    check_refused(with([](GgmlRope& r) { r.n_dims = 66; }), "n_dims 66 2 64");
    for (const std::uint32_t mode : {1u, 4u, 10u, 0xffffffffu}) {
        check_refused(with([&](GgmlRope& r) { r.mode = mode; }),
                      "mode is " + std::to_string(mode) + ": it must be 0, 2, 8, 24 or 40");
    }
    check_refused(with([](GgmlRope& r) { r.sections[1] = 3; }), "sections 0");
    check_refused(with([](GgmlRope& r) { r.mode = 8; }), "sections 0");
    check_refused(with([](GgmlRope& r) { r.mode = 40, r.sections[3] = 8; }), "sections 8");
    check_refused(with([](GgmlRope& r) { r.mode = 8, r.sections[0] = 65; }), "sections 65");
    check_refused(with([](GgmlRope& r) { r.mode = 24, r.sections[0] = 16; }),
                  "n_dims 64 head_dim 2 32");
    check_refused(with([](GgmlRope& r) { r.mode = 24, r.n_dims = 32, r.sections[0] = 16; }),
                  "sections 16 0 0 0");
    check_refused(with([](GgmlRope& r) { r.freq_base = -1; }), "freq_base -1");
    check_refused(with([](GgmlRope& r) { r.freq_base = 1, r.ext_factor = 1; }), "freq_base 1");
    check_refused(with([](GgmlRope& r) { r.freq_scale = -1; }), "freq_scale -1");
    check_refused(with([](GgmlRope& r) { r.freq_factor_count = 3; }), "freq_factors 3");
}
