// SPDX-License-Identifier: MIT
// Model families whose layers differ: which layers have which RoPE.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "hf_config_reading.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

TEST_CASE("Gemma 3 in both generations' words") {
    const auto gemma = [](const std::string& factor) {
        return R"({"model_type": "gemma3_text", "head_dim": 256, "num_hidden_layers": 6,
            "rope_scaling": {"rope_type": "linear", "factor": )" +
               factor +
               R"(}, "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0,
                  "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}})";
    };
    check_plain(imported(gemma("8.0"), {.by_layer = true, .layer = 5}), 1e6, 8);
    check_plain(imported(gemma("8.0"), {.by_layer = true, .layer = 0}), 1e4);
    CHECK(imported(gemma("8.0"), {.by_layer = true, .layer = 0}).warnings.empty());
    CHECK(names(from_hf_config(gemma("4.0")).status.what, "rope_parameters rope_scaling factor"));
}

TEST_CASE("Gemma 3: sliding layers have a base of their own and no scaling") {
    const std::string v4 =
        R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
           "hidden_size": 2560,
        "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
        "rope_theta": 1e6,
        "rope_local_base_freq": 10000.0, "head_dim": 256, "sliding_window": 1024}})";
    const std::string v5 =
        R"({"model_type": "gemma3_text", "head_dim": 256, "num_hidden_layers": 6, "layer_types":
        ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
        "sliding_attention", "full_attention"],
        "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0,
        "rope_theta": 1e6},
                            "sliding_attention": {"rope_type": "default",
                            "rope_theta": 10000.0}}})";
    for (const std::string& json : {v4, v5}) {
        CAPTURE(json);
        for (const ModelQuery& query : {ModelQuery{.layer_type = "full_attention"},
                                        ModelQuery{.by_layer = true, .layer = 5}, ModelQuery{}}) {
            const RopeParams rotation = imported(json, query);
            CHECK(rotation.rope_type == "linear");
            check_plain(rotation, 1e6, 8);
            CHECK(rotation.warnings.size() == (!query.by_layer && !query.layer_type ? 1 : 0));
        }
        for (const ModelQuery& query :
             {ModelQuery{.layer_type = "sliding_attention"},
              ModelQuery{.by_layer = true, .layer = 0}, ModelQuery{.by_layer = true, .layer = 4}}) {
            const RopeParams rotation = imported(json, query);
            CHECK(rotation.rope_type == "default");
            check_plain(rotation, 1e4);
            CHECK(rotation.warnings.empty());
        }
    }
    check_plain(imported(v4, {.by_layer = true, .layer = 11}), 1e6, 8);
    check_plain(imported(v4, {.by_layer = true, .layer = 33}), 1e4);
    const RopeParams bare = imported(
        R"({"model_type": "gemma3n", "text_config": {"model_type": "gemma3n_text"}})",
        {.by_layer = true, .layer = 4});
    check_plain(bare, 1e6);
    CHECK(warns(bare, "head_dim 256"));
}

TEST_CASE("Gemma 4: full attention is wider, and rotates a part of its pairs") {
    const std::string json =
        R"({"model_type": "gemma4", "text_config": {"model_type": "gemma4_text", "head_dim": 256,
        "global_head_dim": 512, "num_hidden_layers": 6, "rope_parameters": {
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
            "rope_theta": 1000000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}}})";
    const RopeParams full = imported(json, {.layer_type = "full_attention"});
    CHECK(full.head_dim == 512);
    CHECK(full.rotary_dim == 512);
    CHECK(full.rope_type == "proportional");
    REQUIRE(full.inv_freq.size() == 256);
    for (std::size_t j = 0; j < 256; ++j) {
        CHECK(close(full.inv_freq[j], j < 64 ? std::pow(1e6, -2.0 * double(j) / 512) : 0));
    }
    const RopeParams sliding = imported(json, {.by_layer = true, .layer = 0});
    CHECK(sliding.head_dim == 256);
    check_plain(sliding, 1e4);
    CHECK(imported(R"({"model_type": "gemma4"})").head_dim == 512);
}

TEST_CASE("ModernBERT: every third layer is global, the first among them") {
    const std::string json =
        R"({"model_type": "modernbert", "hidden_size": 768, "num_attention_heads": 12,
           "num_hidden_layers": 22,
        "position_embedding_type": "absolute", "global_rope_theta": 160000.0,
        "local_rope_theta": 10000.0, "global_attn_every_n_layers": 3})";
    for (int layer = 0; layer < 22; ++layer) {
        const RopeParams rotation = imported(json,
                                             {.by_layer = true, .layer = std::uint32_t(layer)});
        check_plain(rotation, layer % 3 == 0 ? 160000 : 10000);
        CHECK(rotation.warnings.empty());
    }
    // null means the base of the global layers; a missing key does not.
    const std::string bare =
        R"({"model_type": "modernbert", "hidden_size": 768, "num_attention_heads": 12,
        "global_rope_theta": 50000.0)";
    check_plain(imported(bare + R"(, "local_rope_theta": null})", {.by_layer = true, .layer = 1}),
                50000);
    check_plain(imported(bare + R"(, "local_rope_theta": null})", {.by_layer = true, .layer = 0}),
                50000);
    check_plain(imported(bare + R"(, "local_rope_theta": null, "rope_local_base_freq": 20000})",
                         {.by_layer = true, .layer = 1}),
                20000);
    check_plain(imported(bare + "}", {.by_layer = true, .layer = 1}), 10000);
    CHECK(
        warns(imported(bare + "}", {.by_layer = true, .layer = 1}), "rope_local_base_freq 10000"));
}

TEST_CASE("OLMo 3: YaRN on full attention only") {
    const std::string json =
        R"({"model_type": "olmo3", "hidden_size": 4096, "num_attention_heads": 32,
           "rope_theta": 500000,
        "max_position_embeddings": 65536, "num_hidden_layers": 4,
        "layer_types": ["sliding_attention", "sliding_attention",
        "sliding_attention", "full_attention"], "rope_scaling": {"rope_type": "yarn", "factor": 8.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0, "attention_factor": 1.2079441541679836,
        "original_max_position_embeddings": 8192}})";
    const RopeParams sliding = imported(json, {.by_layer = true, .layer = 0});
    check_plain(sliding, 5e5);
    CHECK(sliding.rope_type == "default");
    CHECK(sliding.attention_factor == 1);
    const RopeParams full = imported(json, {.by_layer = true, .layer = 3});
    CHECK(full.rope_type == "yarn");
    CHECK(full.attention_factor == 1.2079441541679836);
    CHECK(full.inv_freq.front() == 1);
    CHECK(close(full.inv_freq.back(), std::pow(5e5, -126.0 / 128) / 8));
}

TEST_CASE(
    "OLMo 3 as transformers 5 writes it: sliding layers keep the base of the section whose scaling "
    "they do without") {
    const std::string json =
        R"({"model_type": "olmo3", "hidden_size": 4096, "num_attention_heads": 32,
           "num_hidden_layers": 4,
        "max_position_embeddings": 65536, "rope_parameters": {"rope_type": "yarn",
        "rope_theta": 500000, "factor": 8.0,
        "original_max_position_embeddings": 8192}})";
    const RopeParams sliding = imported(json, {.by_layer = true, .layer = 0});
    check_plain(sliding, 5e5);
    CHECK(sliding.rope_type == "default");
    CHECK(sliding.warnings.empty());
    CHECK(imported(json, {.by_layer = true, .layer = 3}).rope_type == "yarn");
}

TEST_CASE("Laguna and Mellum: a base and a width for each layer type") {
    const std::string laguna =
        R"({"model_type": "laguna", "head_dim": 128, "num_hidden_layers": 2,
           "partial_rotary_factor": 0.5,
        "layer_types": ["full_attention", "sliding_attention"], "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 500000.0,
            "partial_rotary_factor": 0.5},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0,
            "partial_rotary_factor": 1.0}}})";
    const RopeParams full = imported(laguna, {.by_layer = true, .layer = 0}),
                     sliding = imported(laguna, {.by_layer = true, .layer = 1});
    CHECK(full.rotary_dim == 64);
    check_plain(full, 5e5);
    CHECK(sliding.rotary_dim == 128);
    check_plain(sliding, 1e4);
    CHECK(full.warnings.empty());
    CHECK(sliding.warnings.empty());
    const std::string bare =
        R"("num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"]})";
    CHECK(imported(R"({"model_type": "laguna", )" + bare, {.by_layer = true, .layer = 0})
              .rotary_dim == 64);
    check_plain(imported(R"({"model_type": "mellum", )" + bare, {.by_layer = true, .layer = 1}),
                1e4);
    check_plain(imported(R"({"model_type": "mellum", )" + bare, {.by_layer = true, .layer = 0}),
                5e5);
}

TEST_CASE("layers without RoPE") {
    const auto rotates = [](const std::string& json, const ModelQuery& query) {
        const RopeParams rotation = imported(json, query);
        CHECK(rotation.inv_freq.empty() == rotation.no_rope);
        CHECK((rotation.rotary_dim == 0) == rotation.no_rope);
        CHECK(rotation.head_dim == 128);
        return !rotation.no_rope;
    };
    const std::string heads =
        R"("hidden_size": 2048, "num_attention_heads": 16, "rope_theta": 2e6,
           "num_hidden_layers": 8)";
    const std::string smollm3 = R"({"model_type": "smollm3", )" + heads + "}";
    const std::string listed = R"({"model_type": "smollm3", )" + heads +
                               R"(, "no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0]})";
    const std::string llama4 =
        R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text", "head_dim": 128,
        "rope_theta": 500000.0, "num_hidden_layers": 8, "no_rope_layers": []}})";
    const std::string cohere2 =
        R"({"model_type": "cohere2", "head_dim": 128, "rope_theta": 50000,
           "sliding_window_pattern": 4,
        "num_hidden_layers": 8, "position_embedding_type": "rope_gptj", "rotary_pct": 1.0})";
    const std::string exaone4 =
        R"({"model_type": "exaone4", "head_dim": 128, "rope_theta": 1e6, "sliding_window": 4096,
        "sliding_window_pattern": "LLLG", "num_hidden_layers": 8})";
    for (int layer = 0; layer < 8; ++layer) {
        for (const std::string& json : {smollm3, listed, llama4, cohere2, exaone4}) {
            CAPTURE(json);
            CHECK(rotates(json, {.by_layer = true, .layer = std::uint32_t(layer)}) ==
                  (layer % 4 != 3));
        }
    }
    for (const std::string& json : {smollm3, listed, llama4, cohere2, exaone4}) {
        CHECK(rotates(json, {}));
        CHECK(!imported(json).warnings.empty());
    }
    CHECK(!rotates(llama4, {.layer_type = "full_attention"}));
    CHECK(rotates(llama4, {.layer_type = "chunked_attention"}));
    CHECK(imported(llama4).pairing == interleaved);
    CHECK(!rotates(cohere2, {.layer_type = "full_attention"}));
    CHECK(rotates(cohere2, {.layer_type = "sliding_attention"}));
    CHECK(imported(cohere2).pairing == interleaved);
    // EXAONE 4.0 1.2B has no window, and rotates everywhere.
    CHECK(rotates(
        R"({"model_type": "exaone4", "head_dim": 128, "rope_theta": 1e6, "sliding_window": null})",
        {.by_layer = true, .layer = 3}));
    const std::string mllama =
        R"({"model_type": "mllama", "text_config": {"model_type": "mllama_text_model",
           "hidden_size": 4096,
        "num_attention_heads": 32, "rope_theta": 500000.0, "num_hidden_layers": 5,
        "cross_attention_layers": [3]}})";
    CHECK(!rotates(mllama, {.by_layer = true, .layer = 3}));
    CHECK(rotates(mllama, {.by_layer = true, .layer = 4}));
    CHECK(warns(imported(mllama), "layers RoPE"));
    // Layer types that are not softmax attention.
    const std::string hybrid =
        R"({"model_type": "qwen3_next", "head_dim": 128, "partial_rotary_factor": 0.25,
           "rope_theta": 1e7,
        "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]})";
    CHECK(!rotates(hybrid, {.by_layer = true, .layer = 0}));
    CHECK(rotates(hybrid, {.by_layer = true, .layer = 1}));
    CHECK(!rotates(hybrid, {.layer_type = "linear_attention"}));
}

TEST_CASE("PLaMo 2: attention in the middle of every few layers") {
    const std::string json =
        R"({"model_type": "plamo2", "hidden_size": 4096, "num_attention_heads": 32,
           "hidden_size_per_head": 128,
        "num_hidden_layers": 4)";
    for (int layer = 0; layer < 4; ++layer) {
        CHECK(imported(json + R"(, "mamba_step": 2, "mamba_enabled": true})",
                       {.by_layer = true, .layer = std::uint32_t(layer)})
                  .no_rope != (layer % 2 == 1));
        CHECK(imported(json + R"(, "mamba_step": 8})",
                       {.by_layer = true, .layer = std::uint32_t(layer)})
                  .no_rope != (layer == 3));  // at least the last
        CHECK_FALSE(imported(json + R"(, "mamba_step": 2, "mamba_enabled": false})",
                             {.by_layer = true, .layer = std::uint32_t(layer)})
                        .no_rope);
    }
    check_plain(imported(json + R"(, "mamba_step": 2})", {.by_layer = true, .layer = 1}), 1e4);
}
