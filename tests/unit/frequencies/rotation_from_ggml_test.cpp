// SPDX-License-Identifier: MIT
// Checks rotations from ggml's arguments: each mode against the loops of ggml_mrope_cache_init and
// ggml_rope_cache_init, as ggml-cpu/ops.cpp describes them, in long double.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <limits>

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

void check_refused(const Result<RopeParams>& result, const std::string& words) {
    check_invalid(result.status, words);
    CHECK(result.value.inv_freq.empty());
}

void check_refused(const GgmlRope& rope, const std::string& words) {
    check_refused(rope_params_from_ggml(rope), words);
}

// The op_params of a node, as ggml writes them.
struct Node {
    std::int32_t words[16];

    explicit Node(const GgmlRope& rope, std::int32_t n_offs = 0)
        : words{0, std::int32_t(rope.n_dims), std::int32_t(rope.mode), 0,
                std::int32_t(rope.n_ctx_orig)} {
        set(5, rope.freq_base), set(6, rope.freq_scale), set(7, rope.ext_factor);
        set(8, rope.attn_factor), set(9, rope.beta_fast), set(10, rope.beta_slow);
        for (int axis = 0; axis < 4; ++axis) words[11 + axis] = std::int32_t(rope.sections[axis]);
        words[15] = n_offs;
    }
    void set(int word, double number) {
        const float narrow = float(number);
        std::memcpy(words + word, &narrow, sizeof narrow);
    }
    Node with(int word, std::int32_t value) const {
        Node changed = *this;
        changed.words[word] = value;
        return changed;
    }
    Node with_number(int word, double number) const {
        Node changed = *this;
        changed.set(word, number);
        return changed;
    }
};

// Checks that the node gives the same bits as its arguments.
void check_same(const GgmlRope& rope, std::int32_t n_offs = 0) {
    const std::vector<float> factors(rope.freq_factors, rope.freq_factors + rope.freq_factor_count);
    const Result<RopeParams> node = rope_params_from_ggml_op(
        Node(rope, n_offs).words, rope.head_dim, factors.empty() ? nullptr : factors.data(),
        factors.size());
    REQUIRE_MESSAGE(node, node.status.what);
    const RopeParams arguments = made(rope);
    CHECK(node.value.inv_freq == arguments.inv_freq);
    CHECK(node.value.rope_type == arguments.rope_type);
    CHECK(node.value.pairing == arguments.pairing);
    CHECK(node.value.head_dim == arguments.head_dim);
    CHECK(node.value.rotary_dim == arguments.rotary_dim);
    CHECK(node.value.attention_factor == arguments.attention_factor);
    CHECK(node.value.sections == arguments.sections);
    CHECK(node.value.base == arguments.base);
    CHECK(node.value.q_rotary_offset == std::uint32_t(n_offs));
    CHECK(node.value.k_rotary_offset == std::uint32_t(n_offs));
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
    check_refused(GgmlRope{}, "head_dim 0 2 65534");
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

TEST_CASE("ggml: a node of the graph gives the bits of its arguments") {
    const double base = 500000, scale = 0.25f, tenth = 0.1f;
    const GgmlRope whole = {.head_dim = 128,
                            .n_dims = 128,
                            .freq_base = base,
                            .freq_scale = 1,
                            .attn_factor = 1,
                            .beta_fast = 32,
                            .beta_slow = 1};
    check_same(whole);
    GgmlRope rope = whole;
    rope.mode = 2, rope.n_dims = 64, rope.freq_scale = scale;
    for (const std::int32_t n_offs : {0, 2, 64}) check_same(rope, n_offs);
    rope.ext_factor = 1, rope.n_ctx_orig = 4096, rope.attn_factor = tenth;
    check_same(rope, 64);
    rope.ext_factor = tenth, rope.beta_fast = 8, rope.beta_slow = 2;
    check_same(rope);
    std::vector<double> factors(40);  // more than there are pairs
    for (std::size_t j = 0; j < factors.size(); ++j) factors[j] = float(1 + 0.1 * double(j));
    rope.freq_factors = factors.data(), rope.freq_factor_count = factors.size();
    check_same(rope);
    rope = whole;
    rope.mode = 8;
    const std::uint32_t sections[4] = {16, 24, 24, 0};
    std::copy_n(sections, 4, rope.sections);
    check_same(rope);
    rope.mode = 40;
    check_same(rope);
    rope.mode = 24, rope.n_dims = 64;
    std::fill_n(rope.sections, 4, 32);
    check_same(rope);

    // ggml_rope leaves the betas 0, which have no effect without ext_factor.
    const Node simple = Node(whole).with(9, 0).with(10, 0);
    CHECK(rope_params_from_ggml_op(simple.words, 128).value.inv_freq == made(whole).inv_freq);
}

TEST_CASE("ggml: each word of a node that has no meaning is named") {
    const GgmlRope arguments = {.head_dim = 128,
                                .n_dims = 64,
                                .mode = 2,
                                .n_ctx_orig = 4096,
                                .freq_base = 1e4,
                                .freq_scale = 0.25,
                                .ext_factor = 1,
                                .attn_factor = 1,
                                .beta_fast = 32,
                                .beta_slow = 1};
    const Node good(arguments);
    const auto refused = [](const Node& node, const std::string& words) {
        check_refused(rope_params_from_ggml_op(node.words, 128), words);
    };
    REQUIRE(rope_params_from_ggml_op(good.words, 128));
    // What a word must not be is an error that names it, wherever the value is.
    constexpr const char* names[] = {"n_past",      "n_dims",      "mode",        "n_ctx",
                                     "n_ctx_orig",  "freq_base",   "freq_scale",  "ext_factor",
                                     "attn_factor", "beta_fast",   "beta_slow",   "sections[0]",
                                     "sections[1]", "sections[2]", "sections[3]", "n_offs"};
    for (int word = 0; word < 16; ++word) {
        const std::string name = names[word], place = "op_params[" + std::to_string(word) + "] ";
        if (word >= 5 && word < 11) {
            for (const double number : {NAN, INFINITY, -INFINITY})
                refused(good.with_number(word, number), place + name + " " +
                                                            (number > 0   ? "inf"
                                                             : number < 0 ? "-inf"
                                                                          : "nan"));
            refused(good.with_number(word, -1), place + name + " -1");
        } else {
            refused(good.with(word, -2), place + name + " -2");
            refused(good.with(word, std::numeric_limits<std::int32_t>::min()), place + name);
        }
    }
    for (const int word : {0, 3}) refused(good.with(word, 1), std::string(names[word]) + " 1 0");
    // These would be defaults if they were fields of a GgmlRope.
    for (const int word : {5, 6, 8, 9, 10})
        refused(good.with_number(word, 0),
                "op_params[" + std::to_string(word) + "] " + names[word] + " 0");
    refused(good.with_number(7, 1.5), "ext_factor 1.5");
    for (const int mode : {1, 4, 10, 16, 26, 56, 1 << 30})
        refused(good.with(2, mode), "mode is " + std::to_string(mode));
    refused(good.with(1, 0), "n_dims 0");
    refused(good.with(1, 63), "n_dims 63");
    refused(good.with(1, 130), "n_dims 130");
    for (int section = 11; section < 15; ++section)
        refused(good.with(section, 1), "sections mode 2");
    for (const int n_offs : {1, 65, 66, 1 << 30})
        refused(good.with(15, n_offs), "n_offs " + std::to_string(n_offs));
    refused(good.with(2, 24).with(11, 64).with(15, 2), "n_offs 2 vision");

    const float factors[] = {1, 2, 3};
    check_refused(rope_params_from_ggml_op(good.words, 128, factors, 3), "freq_factors 3 32");
    check_refused(rope_params_from_ggml_op(good.words, 128, factors, 0), "freq_factor_count 0");
    check_refused(rope_params_from_ggml_op(good.words, 128, nullptr, 3),
                  "freq_factor_count 3 null");
    std::array<float, 32> wrong;
    wrong.fill(1);
    for (const float factor : {NAN, 0.0f, -1.0f, INFINITY}) {
        wrong[31] = factor;
        check_refused(rope_params_from_ggml_op(good.words, 128, wrong.data(), 32),
                      "freq_factors[31]");
    }
    check_refused(rope_params_from_ggml_op(good.words, 0), "head_dim 0");
    check_refused(rope_params_from_ggml_op(good.words, 65536), "head_dim 65536");
    check_refused(rope_params_from_ggml_op(good.words, 62), "n_dims 64 62");
}
