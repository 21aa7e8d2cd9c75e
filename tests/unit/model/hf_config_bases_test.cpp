// SPDX-License-Identifier: MIT
// Models whose layers have bases of their own: lists of one base a layer, and DeepSeek V4's two
// bases, against the formulas in long double.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "hf_config_reading.hpp"
#include "hf_config_refusals.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

namespace {

constexpr long double two_pi = 6.283185307179586476925286766559005768L;

std::string with(std::string json, const std::string& from, const std::string& to) {
    const std::size_t at = json.find(from);
    REQUIRE(at != json.npos);
    return json.replace(at, from.size(), to);
}

void check_refused(const std::string& json, const ModelQuery& query, ErrorCode code,
                   const std::string& words) {
    test::check_refused({json, words}, code, query);
}

/// YaRN of 64 channels with truncation: factor 16, 65536 positions, betas 32 and 1, base 160000.
long double compressed(int j) {
    const auto pair = [](long double turns) {
        return 64 * std::log(65536 / (turns * two_pi)) / (2 * std::log(160000.0L));
    };
    const long double low = std::max(std::floor(pair(32)), 0.0L);
    const long double high = std::min(std::ceil(pair(1)), 63.0L);
    const long double divided = std::clamp((j - low) / (high - low), 0.0L, 1.0L);
    const long double frequency = std::pow(160000.0L, -2.0L * j / 64);
    return frequency / 16 * divided + frequency * (1 - divided);
}

}  // namespace

TEST_CASE("DeepSeek V4: plain in sliding layers, another base and YaRN where keys are compressed") {
    const std::string by_ratio = model_file("deepseek-v4-flash");
    std::string by_type = with(by_ratio, R"("compress_ratios": [0, 0, 4, 128, 4, 128, 0])",
                               R"("layer_types": ["sliding_attention", "sliding_attention",
        "compressed_sparse_attention", "heavily_compressed_attention",
        "compressed_sparse_attention", "heavily_compressed_attention"], "partial_rotary_factor":
        0.125)");
    by_type = with(by_type, R"("rope_scaling": {"type": "yarn", "factor": 16,)",
                   R"("rope_parameters": {"main": {"rope_type": "default", "rope_theta": 10000,
        "partial_rotary_factor": 0.125}, "compress": {"rope_type": "yarn", "rope_theta": 160000,
        "attention_factor": 1.0, "partial_rotary_factor": 0.125, "factor": 16,)");
    by_type = with(by_type, R"("beta_slow": 1})", R"("beta_slow": 1}})");
    for (const std::string& json : {by_ratio, by_type}) {
        for (int layer = 0; layer < 6; ++layer) {
            CAPTURE(layer);
            const RopeParams rotation = imported(json,
                                                 {.by_layer = true, .layer = std::uint32_t(layer)});
            CHECK(!rotation.no_rope);
            CHECK(rotation.pairing == interleaved);
            CHECK(rotation.head_dim == 512);
            CHECK(rotation.rotary_dim == 64);
            CHECK(rotation.q_rotary_offset == 448);
            CHECK(rotation.k_rotary_offset == 448);
            CHECK(rotation.attention_factor == 1);
            CHECK(rotation.softmax_scale == 1);
            REQUIRE(rotation.inv_freq.size() == 32);
            for (int j = 0; j < 32; ++j) {
                const long double expected = layer < 2 ? std::pow(1e4L, -2.0L * j / 64)
                                                       : compressed(j);
                CHECK(close(rotation.inv_freq[std::size_t(j)], double(expected)));
            }
        }
        CHECK(imported(json, {.layer_type = "sliding_attention"}).base == 10000);
        CHECK(imported(json, {.layer_type = "heavily_compressed_attention"}).base == 160000);
        CHECK(warns(imported(json), "sliding_attention"));
    }
    CHECK(warns(imported(with(by_ratio, R"("compress_rope_theta": 160000,)", ""),
                         {.by_layer = true, .layer = 2}),
                "compress_rope_theta 160000"));
    check_refused(with(by_ratio, "4, 128, 0]", "4, 64, 0]"), {}, VKROPE_ERROR_INVALID_DATA,
                  "compress_ratios[5] 64 0 4 128");
    check_refused(with(by_ratio, "compress_ratios", "ratios"), {}, VKROPE_ERROR_INVALID_DATA,
                  "compress_ratios");
    check_refused(with(by_ratio, "[0, 0, 4, 128, 4, 128, 0]", "[0, 0, 4]"), {},
                  VKROPE_ERROR_INVALID_DATA, "compress_ratios 3 6");
    check_refused(with(by_type, R"("compress": {)", R"("other": {)"),
                  {.by_layer = true, .layer = 2}, VKROPE_ERROR_INVALID_DATA,
                  "rope_parameters compress");
}

TEST_CASE("Granite SWA: a base for each layer, 0 for none") {
    const std::string json = model_file("granite-swa");
    const double bases[] = {0, 1e4, 1e4, 1e4, 0, 1e4, 1e4, 5e5};
    for (int layer = 0; layer < 8; ++layer) {
        CAPTURE(layer);
        const RopeParams rotation = imported(json,
                                             {.by_layer = true, .layer = std::uint32_t(layer)});
        CHECK(!rotation.no_rope == (bases[layer] != 0));
        CHECK(rotation.head_dim == 128);
        if (!rotation.no_rope) check_plain(rotation, bases[layer]);
    }
    CHECK(imported(json, {.layer_type = "full_attention"}).no_rope);
    check_refused(json, {.layer_type = "sliding_attention"}, VKROPE_ERROR_INVALID_ARGUMENT,
                  "layer_rope_theta 10000 500000");
    check_refused(json, {}, VKROPE_ERROR_INVALID_ARGUMENT, "layer_rope_theta");
    check_refused(json, {.by_layer = true, .layer = 8}, VKROPE_ERROR_INVALID_ARGUMENT,
                  "query.layer 8 8");

    const std::string same = with(json, "500000.0", "10000.0");
    check_plain(imported(same, {.layer_type = "sliding_attention"}), 1e4);
    const RopeParams chosen = imported(same);
    check_plain(chosen, 1e4);
    CHECK(warns(chosen, "sliding_attention"));
    // Without a list all layers have the global base.
    const std::size_t list = json.find(R"(  "layer_rope_theta")");
    const std::string none = json.substr(0, list) + json.substr(json.find('\n', list) + 1);
    check_plain(imported(none, {.by_layer = true, .layer = 0}), 1e4);

    check_refused(with(json, R"("layer_rope_theta": [0, )", R"("layer_rope_theta": [)"), {},
                  VKROPE_ERROR_INVALID_DATA, "layer_rope_theta 7");
    check_refused(with(json, R"("layer_rope_theta": [0, )", R"("layer_rope_theta": [-1, )"), {},
                  VKROPE_ERROR_INVALID_DATA, "layer_rope_theta[0] -1");
    check_refused(
        with(json, R"("layer_rope_theta": [)", R"("rope_theta": [1], "layer_rope_theta": [)"), {},
        VKROPE_ERROR_INVALID_DATA, "layer_rope_theta rope_theta");
}

TEST_CASE("Step 3.5: a list of bases and of shares, and a scaling for one type of layers") {
    const std::string json = model_file("step-3.5-flash");
    for (int layer = 0; layer < 5; ++layer) {
        CAPTURE(layer);
        const RopeParams rotation = imported(json,
                                             {.by_layer = true, .layer = std::uint32_t(layer)});
        CHECK(rotation.pairing == half);
        CHECK(rotation.head_dim == 128);
        CHECK(rotation.ops.tensor[Q].norm.weight_offset == 1);
        if (layer % 4 != 0) {
            CHECK(rotation.rotary_dim == 128);
            CHECK(rotation.rope_type == "default");
            check_plain(rotation, 1e4);
            continue;
        }
        CHECK(rotation.rotary_dim == 64);
        CHECK(rotation.rope_type == "llama3");
        for (int j = 0; j < 32; ++j) {
            const long double frequency = std::pow(5e6L, -2.0L * j / 64);
            const long double turns = 131072 * frequency / two_pi;
            const long double kept = std::clamp((turns - 1) / (32 - 1), 0.0L, 1.0L);
            CHECK(close(rotation.inv_freq[std::size_t(j)],
                        double((1 - kept) * frequency / 2 + kept * frequency)));
        }
    }
    CHECK(imported(json).base == 5e6);
    CHECK(imported(json, {.layer_type = "sliding_attention"}).base == 1e4);
    check_refused(with(json, "yarn_only_types", "other_types"), {}, VKROPE_ERROR_INVALID_DATA,
                  "yarn_only_types");
    check_refused(with(json, R"("use_rope_layers": [])", R"("use_rope_layers": [1])"), {},
                  VKROPE_ERROR_NOT_SUPPORTED, "use_rope_layers");
}
