// SPDX-License-Identifier: MIT
// No RoPE field of a configuration is silently dropped: contradictions are errors, and fields that
// are not used, and assumed values, are warnings that name them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "hf_config_reading.hpp"
#include "hf_config_warned.hpp"

using namespace vkrope;
using namespace vkrope::test;

namespace {

/// DeepSeek's latent attention: query rows of 128 + 64 channels.
std::string latent_with(const std::string& fields) {
    return R"({"model_type": "deepseek_v3", "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
              "kv_lora_rank": 512, "rope_theta": 1e4,
               "max_position_embeddings": 163840, )" +
           fields + "}";
}

void refused(const std::string& json, const std::string& words) {
    CAPTURE(json);
    check_error(from_hf_config(json).status, VKROPE_ERROR_INVALID_DATA, words);
}

}  // namespace

TEST_CASE("widths beside latent attention") {
    for (const char* agrees :
         {R"("partial_rotary_factor": 1.0)", R"("rotary_dim": 64)", R"("rotary_pct": 1)"}) {
        CHECK(warned(latent_with(agrees), {}).rotary_dim == 64);
    }
    const std::string third = R"("partial_rotary_factor": 0.333333)";  // 64 of 192
    CHECK(warned(latent_with(third), {"partial_rotary_factor 192"}).rotary_dim == 64);
    refused(latent_with(R"("partial_rotary_factor": 0.5)"),
            "partial_rotary_factor 0.5 qk_rope_head_dim 64");
    refused(latent_with(R"("partial_rotary_factor": 1.5)"), "partial_rotary_factor 1.5 1");
    refused(latent_with(R"("rotary_dim": 32)"), "rotary_dim 32 qk_rope_head_dim 64");
    refused(latent_with(R"("rotary_pct": 0.25)"), "rotary_pct 0.25");
}

TEST_CASE("widths beside a proportional rotation") {
    const auto proportional = [](const std::string& fields) {
        return R"({"model_type": "llama", "head_dim": 64,
                  "rope_parameters": {"rope_type": "proportional", "rope_theta": 1e4}, )" +
               fields + "}";
    };
    const auto turning = [](const RopeParams& rotation) {
        std::size_t pairs = 0;
        for (const double frequency : rotation.inv_freq) pairs += frequency != 0;
        return pairs;
    };
    for (const char* name : {"partial_rotary_factor", "rotary_pct", "rope_pct"}) {
        const RopeParams quarter = warned(proportional("\"" + std::string(name) + "\": 0.25"), {});
        CHECK(quarter.rotary_dim == 64);
        CHECK(turning(quarter) == 8);
    }
    CHECK(turning(warned(proportional(R"("partial_rotary_factor": 0.25, "rotary_dim": 16)"),
                         {"rotary_dim"})) == 8);
    CHECK(turning(warned(proportional(R"("partial_rotary_factor": 0.25, "rotary_dim": 64)"),
                         {"rotary_dim"})) == 8);
    CHECK(turning(warned(proportional(R"("rotary_dim": 64)"), {"rotary_dim"})) == 32);
    refused(proportional(R"("partial_rotary_factor": 0.25, "rotary_dim": 32)"),
            "rotary_dim 32 rope_type 16 64");
    refused(proportional(R"("rotary_dim": 16)"), "rotary_dim 16 64");
    refused(proportional(R"("partial_rotary_factor": 0.01)"),
            "partial_rotary_factor 0.01 head_dim 64");
}

TEST_CASE("one of YaRN's two magnitudes counts only beside the other") {
    const auto yarn = [](const std::string& fields) {
        return R"("rope_scaling": {"type": "yarn", "factor": 4,
                  "original_max_position_embeddings": 2048, )" +
               fields + "}";
    };
    const double of_yarn = 0.1 * std::log(4.0) + 1;
    CHECK(close(warned(small_llama_with(yarn(R"("mscale": 0.5)")), {"rope_scaling.mscale 0.5"})
                    .attention_factor,
                of_yarn));
    CHECK(close(warned(small_llama_with(yarn(R"("mscale_all_dim": 0.5, "mscale": 0)")),
                       {"rope_scaling.mscale_all_dim"})
                    .attention_factor,
                of_yarn));
    CHECK(close(
        warned(small_llama_with(yarn(R"("mscale_all_dim": 0, "mscale": 0)")), {}).attention_factor,
        of_yarn));
    CHECK(warned(small_llama_with(yarn(R"("mscale_all_dim": 0.5, "mscale": 0.5)")), {})
              .attention_factor == 1);
    CHECK(warned(small_llama_with(
                     yarn(R"("mscale_all_dim": 0.5, "mscale": 1, "attention_factor": 1.25)")),
                 {"rope_scaling.mscale 1 attention_factor", "rope_scaling.mscale_all_dim"})
              .attention_factor == 1.25);

    // DeepSeek's code has defaults for both, 1 and 0, and a softmax scale that depends on only one
    // of them.
    const auto deepseek = [](const std::string& fields) {
        return latent_with(
            R"("rope_scaling": {"type": "yarn", "factor": 40,
               "original_max_position_embeddings": 4096, )" +
            fields + "}");
    };
    const auto m = [](double mscale) { return 0.1 * mscale * std::log(40.0) + 1; };
    const RopeParams first = warned(deepseek(R"("mscale": 0.5)"),
                                    {"rope_scaling.mscale_all_dim 0"});
    CHECK(close(first.attention_factor, m(0.5)));
    CHECK(first.softmax_scale == 1);
    const RopeParams second = warned(deepseek(R"("mscale_all_dim": 0.5)"),
                                     {"rope_scaling.mscale 1"});
    CHECK(close(second.attention_factor, m(1) / m(0.5)));
    CHECK(close(second.softmax_scale, m(0.5) * m(0.5)));
    const RopeParams given = warned(
        deepseek(R"("mscale": 1, "mscale_all_dim": 1, "attention_factor": 1.5)"),
        {"rope_scaling.attention_factor 1.5"});
    CHECK(given.attention_factor == 1.5);
    CHECK(close(given.softmax_scale, m(1) * m(1)));
}

TEST_CASE("a factor that the lengths contradict") {
    const std::string yarn =
        R"("rope_scaling": {"type": "yarn", "factor": 2, "original_max_position_embeddings": )";
    warned(small_llama_with(yarn + "4096}"), {});
    const RopeParams rotation = warned(small_llama_with(yarn + "2048}"),
                                       {"rope_scaling.factor 2 max_position_embeddings 8192 4"});
    CHECK(close(rotation.inv_freq.back(), std::pow(1e4, -62.0 / 64) / 2));
}

TEST_CASE("alpha beside what dynamic scaling needs without it") {
    const auto dynamic = [](const std::string& fields) {
        return small_llama_with(R"("rope_scaling": {"type": "dynamic", )" + fields + "}");
    };
    const RopeParams alone = warned(dynamic(R"("alpha": 1000)"), {});
    // HunYuan's files have a factor of 1.
    CHECK(warned(dynamic(R"("alpha": 1000, "factor": 1.0)"), {"rope_scaling.factor"}).inv_freq ==
          alone.inv_freq);
    CHECK(warned(dynamic(R"("alpha": 1000, "original_max_position_embeddings": 4096)"),
                 {"rope_scaling.original_max_position_embeddings"})
              .inv_freq == alone.inv_freq);
    refused(dynamic(R"("alpha": 1000, "factor": 2.0)"),
            "rope_scaling.alpha 1000 rope_scaling.factor 2.0");
    warned(dynamic(R"("factor": 2.0, "original_max_position_embeddings": 4096)"),
           {"rope_scaling.original_max_position_embeddings 4096 max_position_embeddings 8192"},
           {.seq_len = 8192});
}

TEST_CASE(
    "dynamic scaling begins at max_position_embeddings, as in transformers' code, whatever else "
    "the file has") {
    const auto dynamic = [](const std::string& original) {
        return R"({"model_type": "llama", "head_dim": 64, "rope_theta": 1e4,
                  "max_position_embeddings": 8192,
            "rope_scaling": {"type": "dynamic", "factor": 2.0)" +
               original + "}}";
    };
    const std::string original = R"(, "original_max_position_embeddings": 4096)";
    const Texts said = {
        "rope_scaling.original_max_position_embeddings 4096 max_position_embeddings 8192"};
    for (const std::uint64_t seq_len : {4096, 8192, 16384}) {
        const RopeParams rotation = warned(dynamic(original), said, {.seq_len = seq_len});
        CHECK(rotation.inv_freq == warned(dynamic(""), {}, {.seq_len = seq_len}).inv_freq);
        CHECK(rotation.longest_seq_len == std::max<std::uint64_t>(seq_len, 8192));
        const double alpha = seq_len == 16384 ? 3 : 1;  // 2 * 16384 / 8192 - 1
        CHECK(close(rotation.inv_freq.back(), std::pow(1e4, -62.0 / 64) / alpha));
    }
    warned(
        R"({"model_type": "llama", "head_dim": 64, "rope_theta": 1e4,
           "rope_scaling": {"type": "dynamic", "factor": 2.0,
        "original_max_position_embeddings": 4096}})",
        {}, {.seq_len = 8192});
}

TEST_CASE("defaults that the two generations of a class have differently") {
    warned(R"({"model_type": "cohere", "head_dim": 64})", {"rope_theta 10000 5 500000"});
}

TEST_CASE("use_dynamic_ntk is a key of Qwen, the first, alone") {
    const std::string fields =
        R"("seq_length": 2048, "max_position_embeddings": 8192, "head_dim": 64, "rope_theta": 1e4,
           "use_dynamic_ntk": true})";
    const std::vector<double> plain = warned(small_llama_with("\"use_cache\": true"), {}).inv_freq;
    for (const char* type : {"llama", "qwen2", "chatglm"}) {
        const Result<RopeParams> result = from_hf_config(
            R"({"rotary_dim": 64, "model_type": ")" + std::string(type) + "\", " + fields,
            {.seq_len = 8192});
        REQUIRE_MESSAGE(result, result.status.what);
        CHECK(result.value.inv_freq == plain);
        CHECK(result.value.max_position == 8192);
        REQUIRE(result.value.warnings.size() == 1);
        CHECK(warns(result.value, "use_dynamic_ntk model_type qwen"));
    }
    const std::string qwen = R"({"model_type": "qwen", )";
    CHECK(warned(qwen + fields, {}, {.seq_len = 8192}).inv_freq.back() < plain.back());
    refused(qwen + R"("rope_scaling": {"type": "linear", "factor": 2}, )" + fields,
            "use_dynamic_ntk true rope_type linear");
}

TEST_CASE("numbers whose frequencies no double holds well") {
    const auto scaled = [](const std::string& scaling) {
        return small_llama_with(R"("rope_scaling": {)" + scaling + "}");
    };
    CHECK(warned(scaled(R"("type": "linear", "factor": 1e300)"), {}).inv_freq[0] == 1e-300);
    refused(scaled(R"("type": "linear", "factor": 1e305)"), "inv_freq[22] 1.77828e-308 2.23e-308");
    refused(scaled(R"("type": "linear", "factor": 1e-300)"),
            "rope_theta 10000 inv_freq[0] 1e+300 2048");
    refused(scaled(R"("type": "dynamic", "alpha": 1e306)"),
            "rope_theta 10000 dynamic inv_freq[31]");
    refused(scaled(
                R"("type": "llama3", "factor": 1e308, "low_freq_factor": 1, "high_freq_factor": 4,
               "original_max_position_embeddings": 8192)"),
            "rope_theta 10000 llama3");
    refused(scaled(R"("type": "yarn", "factor": 1e308)"), "rope_theta 10000 yarn");
    refused(scaled(R"("type": "proportional", "factor": 1e308, "partial_rotary_factor": 0.5)"),
            "rope_theta 10000 proportional");
    refused(scaled(R"("type": "yarn", "factor": 4, "attention_factor": 1e300)"),
            "yarn attention factor 1e+300 2^-64 2^64");
    refused(scaled(R"("type": "yarn", "factor": 4, "attention_factor": 1e-300)"),
            "yarn attention factor 2^-64 2^64");
    refused(scaled(R"("type": "yarn", "factor": 4, "mscale": 1e300, "mscale_all_dim": 1e-300)"),
            "yarn attention factor 2^-64 2^64");
    refused(latent_with(
                R"("rope_scaling": {"type": "yarn", "factor": 40,
               "original_max_position_embeddings": 4096,
                            "mscale": 1e200, "mscale_all_dim": 1e200})"),
            "softmax scale inf");
    const auto based = [](const std::string& base) {
        return R"({"model_type": "llama", "head_dim": 128, "rope_theta": )" + base + "}";
    };
    CHECK(close(warned(based("1e300"), {}).inv_freq[63], std::pow(1e300, -126.0 / 128)));
    refused(based("1e-300"), "rope_theta 2048");
    check_error(from_hf_config(R"({"model_type": "qwen2_vl", "vision_config": {"embed_dim": 1280,
                    "num_heads": 16, "rope_theta": 1e-300}})",
                               {.tower = "vision"})
                    .status,
                VKROPE_ERROR_INVALID_DATA, "vision_config.rope_theta 1e-300 inv_freq[1]");
    refused(
        R"({"model_type": "chatglm", "kv_channels": 128, "rope_theta": 1e300,
           "rope_ratio": 1e300})",
        "base inf");
}

TEST_CASE("an attention factor beside LongRoPE's lists, which have their own") {
    const std::string json =
        R"({"model_type": "phimoe", "head_dim": 4, "rope_theta": 1e4,
           "max_position_embeddings": 8192,
        "original_max_position_embeddings": 4096, "rope_scaling": {"type": "longrope",
        "short_factor": [1, 2], "long_factor": [3, 4],
        "attention_factor": 1.125, "short_mscale": 1.25, "long_mscale": 1.5}})";
    CHECK(warned(json, {"rope_scaling.attention_factor 1.125"}, {.seq_len = 1}).attention_factor ==
          1.25);
}
