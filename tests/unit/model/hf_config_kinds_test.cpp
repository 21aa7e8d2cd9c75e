// SPDX-License-Identifier: MIT
// A value that contradicts what is read is accepted where another kind of layer of the same file
// explains it, and a list of one number a layer stands for the number.
#include <doctest/doctest.h>

#include <string>

#include "hf_config_reading.hpp"
#include "hf_config_warned.hpp"

using namespace vkrope;
using namespace vkrope::test;

namespace {

void refused(const std::string& json, const std::string& words, const ModelQuery& query = {}) {
    CAPTURE(json);
    const Result<RopeParams> result = from_hf_config(json, query);
    CHECK(!result);
    check_names(result.status.what, words);
}

std::string latent_with(const std::string& fields) {
    return R"({"model_type": "deepseek_v3", "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
              "kv_lora_rank": 512, "rope_theta": 1e4, "max_position_embeddings": 8192, )" +
           fields + "}";
}

}  // namespace

TEST_CASE("a share beside latent attention may be of other heads of the file") {
    for (const char* other : {"head_dim", "v_head_dim", "linear_key_head_dim"}) {
        const std::string fields = '"' + std::string(other) +
                                   R"(": 128, "partial_rotary_factor": )";
        const RopeParams rotation = imported(latent_with(fields + "0.5"));
        CHECK(rotation.rotary_dim == 64);
        CHECK(warns(rotation, "partial_rotary_factor 0.5"));
        refused(latent_with(fields + "0.25"), "partial_rotary_factor 0.25 qk_rope_head_dim 64");
    }
    // Layers of another kind may have any share, and any width.
    for (const char* mixed :
         {R"("layer_group_size": 8)",
          R"("num_hidden_layers": 2, "layer_types": ["full_attention", "linear_attention"])"}) {
        const RopeParams rotation = imported(latent_with(
            std::string(mixed) + R"(, "partial_rotary_factor": 0.25, "rotary_dim": 32)"));
        CHECK(rotation.rotary_dim == 64);
        CHECK(warns(rotation, "partial_rotary_factor 0.25"));
        CHECK(warns(rotation, "rotary_dim 32"));
    }
}

TEST_CASE("a width may be that of another kind of layer") {
    const std::string both =
        R"({"model_type": "gemma4_text", "head_dim": 256, "global_head_dim": 512, "rope_theta": 1e4,
            "num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"],
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
            "partial_rotary_factor": 0.25, "rotary_dim": )";
    for (const char* width : {"64", "128"}) {  // of a head of 256, and of 512
        CHECK(imported(both + width + "}", {.by_layer = true, .layer = 0}).rotary_dim == 128);
        CHECK(imported(both + width + "}", {.by_layer = true, .layer = 1}).rotary_dim == 64);
    }
    refused(both + "96}", "rotary_dim 96 partial_rotary_factor", {.by_layer = true, .layer = 0});
}

TEST_CASE("a rope_scaling without layer types may be that of any type") {
    const auto with = [](const std::string& scaling) {
        return R"({"model_type": "brand_new", "head_dim": 64, "rope_theta": 1e4,
                  "layer_types": ["full_attention", "sliding_attention"], "rope_parameters": {
                  "full_attention": {"rope_type": "default", "rope_theta": 1e4},
                  "sliding_attention": {"rope_type": "linear", "factor": 2, "rope_theta": 1e4}},
                  "rope_scaling": {"type": )" +
               scaling + "}}";
    };
    for (const char* scaling : {R"("default")", R"("linear", "factor": 2)"}) {
        CHECK(imported(with(scaling), {.layer_type = "full_attention"}).rope_type == "default");
        CHECK(imported(with(scaling), {.layer_type = "sliding_attention"}).rope_type == "linear");
    }
    refused(with(R"("linear", "factor": 3)"), "rope_parameters rope_scaling");
}

TEST_CASE("a list of one number a layer stands for the number") {
    const auto listed = [](const std::string& fields) {
        return R"({"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 3,
                  "rope_theta": 1e4, )" +
               fields + "}";
    };
    const std::string heads =
        R"("num_attention_heads": [8, 8, 4], "num_key_value_heads": [8, 2, 0])";
    CHECK(imported(listed(heads), {.by_layer = true, .layer = 0}).head_dim == 64);
    CHECK(imported(listed(heads), {.by_layer = true, .layer = 2}).head_dim == 128);
    CHECK(imported(listed(heads), {.by_layer = true, .layer = 1}).ops.q_heads == 8);
    CHECK(imported(listed(heads), {.by_layer = true, .layer = 1}).ops.k_heads == 2);
    refused(listed(heads), "num_attention_heads 8 4 single layer");
    CHECK(imported(listed(R"("head_dim": 64, )" + heads)).ops.q_heads == 0);
    const std::string widths =
        R"("head_dim": [64, 64, 128], "partial_rotary_factor": [1, 0.5, 0.5])";
    CHECK(imported(listed(widths), {.by_layer = true, .layer = 0}).rotary_dim == 64);
    CHECK(imported(listed(widths), {.by_layer = true, .layer = 1}).rotary_dim == 32);
    CHECK(imported(listed(widths), {.by_layer = true, .layer = 2}).rotary_dim == 64);
    refused(listed(widths), "head_dim 64 128 single layer");
    refused(listed(R"("head_dim": [64, 64])"), "head_dim 2 3");
    CHECK(imported(listed(R"("head_dim": 64, "rotary_dim": [32, 32, 32])")).rotary_dim == 32);
    // Under other names, and in a section.
    const std::string other =
        R"("attention_head_dim": [64, 64, 128], "rotary_pct": [1, 0.5, 0.5],
           "rotary_emb_base": [1e4, 1e4, 1e6])";
    const std::string neox = R"({"model_type": "gpt_neox", "num_hidden_layers": 3, )" + other + "}";
    CHECK(imported(neox, {.by_layer = true, .layer = 1}).rotary_dim == 32);
    CHECK(imported(neox, {.by_layer = true, .layer = 2}).rotary_dim == 64);
    check_plain(imported(neox, {.by_layer = true, .layer = 2}), 1e6);
    refused(neox, "attention_head_dim 64 128 single layer");
    const std::string section = R"({"model_type": "llama", "head_dim": 64, "num_hidden_layers": 2,
        "layer_types": ["full_attention", "sliding_attention"], "rope_parameters": {
        "rope_type": "default", "rope_theta": [1e6, 1e4], "partial_rotary_factor": [0.5, 1]}})";
    check_plain(imported(section, {.layer_type = "full_attention"}), 1e6);
    CHECK(imported(section, {.layer_type = "full_attention"}).rotary_dim == 32);
    check_plain(imported(section, {.by_layer = true, .layer = 1}), 1e4);
    refused(R"({"model_type": "llama", "head_dim": 64, "num_hidden_layers": 2,
                "rope_parameters": {"rope_type": "default", "rope_theta": [1e6, 1e4]}})",
            "rope_parameters.rope_theta 1000000 10000 single layer");
    refused(R"({"model_type": "llama", "head_dim": 64, "num_hidden_layers": 2,
                "rope_parameters": {"rope_type": "default", "rope_theta": [1e6]}})",
            "rope_parameters.rope_theta 1 2");
    // A single base beside a list of them.
    const std::string bases = R"({"model_type": "granite_swa", "head_dim": 64,
                                 "num_hidden_layers": 2, "layer_rope_theta": [1e4, 2e4],
                                 "rope_theta": )";
    CHECK(!warns(imported(bases + "2e4}", {.by_layer = true, .layer = 0}), "rope_theta"));
    CHECK(warns(imported(bases + "5e4}", {.by_layer = true, .layer = 0}),
                "rope_theta 50000.0 layer_rope_theta"));
    const std::string in_section = R"({"model_type": "brand_new", "head_dim": 64,
        "num_hidden_layers": 2, "rope_theta": [1e4, 2e4], "partial_rotary_factors": [1, 1],
        "rope_parameters": {"rope_type": "default", "rope_theta": 5e4,
        "partial_rotary_factor": 0.5}})";
    const RopeParams told = imported(in_section, {.by_layer = true, .layer = 0});
    CHECK(warns(told, "rope_parameters.rope_theta 50000.0 rope_theta"));
    CHECK(warns(told, "rope_parameters.partial_rotary_factor 0.5 partial_rotary_factors"));
    check_plain(told, 1e4);
}

TEST_CASE("YaRN under other names has DeepSeek's magnitudes") {
    const auto of_type = [](const std::string& type, const std::string& fields) {
        return R"({"model_type": "telechat3", "head_dim": 64, "rope_theta": 1e4,
                  "max_position_embeddings": 8192, "rope_scaling": {"type": ")" +
               type + R"(", "factor": 4, "original_max_position_embeddings": 2048)" + fields + "}}";
    };
    const RopeParams yarn = imported(of_type("yarn", ""));
    const double m = 0.1 * std::log(4.0) + 1;
    for (const char* type : {"telechat3-yarn", "deepseek_yarn"}) {
        const RopeParams plain = imported(of_type(type, ""));
        CHECK(plain.rope_type == "yarn");
        CHECK(plain.inv_freq == yarn.inv_freq);
        CHECK(close(plain.attention_factor, m));
        CHECK(plain.softmax_scale == 1);
        // Alone this one counts, unlike in transformers' YaRN.
        CHECK(close(imported(of_type(type, R"(, "mscale_all_dim": 1)")).attention_factor, 1));
        CHECK(close(imported(of_type(type, R"(, "attention_factor": 1.5)")).attention_factor, 1.5));
    }
    const std::string deepseek = latent_with(
        R"("rope_scaling": {"type": "deepseek_yarn", "factor": 4, "mscale": 1, "mscale_all_dim": 1,
           "original_max_position_embeddings": 2048})");
    CHECK(close(imported(deepseek).softmax_scale, m * m));
}
