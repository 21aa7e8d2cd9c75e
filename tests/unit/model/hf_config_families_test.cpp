// SPDX-License-Identifier: MIT
// One table of families, so longer than other files. Model families: the meaning of the RoPE fields
// of each published configuration. Bases, widths and pairings are facts of the models; frequencies
// are computed from them here.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "hf_config_reading.hpp"
#include "hf_config_refusals.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

TEST_CASE("families whose layers are all alike and unscaled") {
    const std::string small = R"("hidden_size": 2048, "num_attention_heads": 16, )";
    const Family families[] = {
        {"llama", 128, 128, half, 5e5,
         R"("hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 500000.0)"},
        {"llama", 128, 128, half, 1e4, "", 3},
        {"mistral", 128, 128, half, 1e6,
         R"("head_dim": 128, "hidden_size": 5120, "num_attention_heads": 32, "rope_theta": 1e6)"},
        {"mistral3", 128, 128, half, 1e9,
         R"("text_config": {"model_type": "mistral", "head_dim": 128, "rope_theta": 1e9})"},
        {"mixtral", 128, 128, half, 1e6, R"("hidden_size": 4096, "num_attention_heads": 32)", 1},
        {"qwen", 128, 128, half, 1e4,
         R"("kv_channels": 128, "rotary_emb_base": 10000, "rotary_pct": 1.0,
            "use_dynamic_ntk": false)"},
        {"qwen2", 64, 64, half, 1e6,
         R"("hidden_size": 896, "num_attention_heads": 14, "rope_theta": 1e6)"},
        {"qwen2_moe", 128, 128, half, 1e6,
         R"("hidden_size": 2048, "num_attention_heads": 16, "rope_theta": 1e6)"},
        {"qwen3", 128, 128, half, 1e6,
         R"("hidden_size": 1024, "num_attention_heads": 16, "head_dim": 128, "rope_theta": 1e6)"},
        {"qwen3_moe", 128, 128, half, 1e7,
         R"("hidden_size": 2048, "num_attention_heads": 32, "head_dim": 128, "rope_theta": 1e7)"},
        {"gemma", 256, 256, half, 1e4,
         R"("hidden_size": 3072, "num_attention_heads": 16, "head_dim": 256, "rope_theta": 1e4)"},
        {"gemma2", 256, 256, half, 1e4, R"("hidden_size": 2304, "num_attention_heads": 8)", 2},
        {"paligemma", 256, 256, half, 1e4,
         R"("text_config": {"model_type": "gemma", "head_dim": 256, "rope_theta": 1e4})"},
        {"phi", 80, 32, half, 1e4,
         R"("hidden_size": 2560, "num_attention_heads": 32, "partial_rotary_factor": 0.4,
            "rope_theta": 1e4)"},
        {"phi-msft", 80, 32, half, 1e4, R"("n_embd": 2560, "n_head": 32, "rotary_dim": 32)", 1},
        {"gpt_neox", 80, 20, half, 1e4,
         R"("hidden_size": 2560, "num_attention_heads": 32, "rotary_pct": 0.25,
            "rotary_emb_base": 10000)"},
        {"gpt_neox_japanese", 80, 80, half, 1e4,
         R"("hidden_size": 2560, "num_attention_heads": 32, "rotary_pct": 1.0)", 1},
        {"gptj", 256, 64, interleaved, 1e4, R"("n_embd": 4096, "n_head": 16, "rotary_dim": 64)", 1},
        {"codegen", 64, 32, interleaved, 1e4, R"("n_embd": 1024, "n_head": 16, "rotary_dim": 32)",
         1},
        {"falcon", 64, 64, half, 1e4,
         R"("hidden_size": 4544, "num_attention_heads": 71, "alibi": false)", 1},
        {"RefinedWebModel", 64, 64, half, 1e4,
         R"("hidden_size": 4544, "n_head": 71, "rope_theta": 1e4)"},
        {"falcon_h1", 64, 64, half, 1e11, R"("head_dim": 64, "rope_theta": 100000000000.0)"},
        {"stablelm", 64, 16, half, 1e4,
         R"("hidden_size": 2048, "num_attention_heads": 32, "partial_rotary_factor": 0.25,
            "rope_theta": 1e4)"},
        {"stablelm_epoch", 80, 20, half, 1e4,
         R"("hidden_size": 2560, "num_attention_heads": 32, "rope_pct": 0.25, "rope_theta": 1e4)"},
        {"olmo", 128, 128, half, 1e4, small + R"("rope_theta": 10000.0)"},
        {"hf_olmo", 128, 128, half, 1e4,
         R"("d_model": 2048, "n_heads": 16, "rope": true, "alibi": false, "rope_theta": 1e4)"},
        {"olmo2", 128, 128, half, 5e5,
         R"("hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 500000)"},
        {"olmoe", 128, 128, half, 1e4, small + R"("rope_theta": 10000.0)"},
        {"chatglm", 128, 64, interleaved, 1e4,
         R"("hidden_size": 4096, "num_attention_heads": 32, "kv_channels": 128,
            "rope_theta": 1e4)",
         1},
        {"chatglm", 128, 64, interleaved, 5e6, R"("kv_channels": 128, "rope_ratio": 500)", 2},
        {"glm4", 128, 64, interleaved, 1e4,
         R"("head_dim": 128, "partial_rotary_factor": 0.5, "rope_theta": 1e4)"},
        {"glm4_moe", 128, 64, half, 1e6,
         R"("head_dim": 128, "partial_rotary_factor": 0.5, "rope_theta": 1e6)"},
        {"cohere", 128, 128, interleaved, 8e6,
         R"("hidden_size": 8192, "num_attention_heads": 64, "rope_theta": 8e6)"},
        {"granite", 128, 128, half, 5e6, small + R"("rope_theta": 5000000)"},
        {"granitemoehybrid", 128, 128, half, 1e4,
         small + R"("rope_theta": 1e4, "position_embedding_type": "rope")"},
        {"exaone", 128, 128, half, 1e6, R"("head_dim": 128, "rope_theta": 1e6)"},
        {"internlm2", 128, 128, half, 1e6,
         R"("hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 1e6)"},
        {"baichuan", 128, 128, half, 1e4, R"("hidden_size": 4096, "num_attention_heads": 32)", 1},
        {"starcoder2", 128, 128, half, 999999.4420358813,
         R"("hidden_size": 3072, "num_attention_heads": 24, "rope_theta": 999999.4420358813)"},
        {"persimmon", 64, 32, half, 25000, R"("hidden_size": 4096, "num_attention_heads": 64)", 2},
        {"fuyu", 64, 32, half, 25000,
         R"("text_config": {"model_type": "persimmon", "hidden_size": 4096,
            "num_attention_heads": 64, "partial_rotary_factor": 0.5, "rope_theta": 25000})"},
        {"nemotron", 128, 64, half, 1e4,
         R"("hidden_size": 3072, "num_attention_heads": 24, "head_dim": 128,
            "partial_rotary_factor": 0.5, "rope_theta": 1e4)"},
        {"minicpm", 64, 64, half, 1e4, R"("hidden_size": 2304, "num_attention_heads": 36)", 1},
        {"dbrx", 128, 128, half, 5e5,
         R"("d_model": 6144, "n_heads": 48, "attn_config": {"rope_theta": 500000})"},
        {"arctic", 128, 128, half, 1e4,
         R"("hidden_size": 7168, "num_attention_heads": 56, "rope_theta": 1e4)"},
        {"ernie4_5", 128, 128, interleaved, 5e5, R"("head_dim": 128, "rope_theta": 500000.0)"},
        {"ernie4_5_moe", 128, 128, interleaved, 5e5,
         R"("hidden_size": 2560, "num_attention_heads": 20, "rope_theta": 500000.0)"},
        {"minimax_m2", 128, 64, half, 5e6,
         R"("head_dim": 128, "rotary_dim": 64, "rope_theta": 5000000)"},
        {"minimax_text_01", 128, 64, half, 1e7,
         R"("head_dim": 128, "rotary_dim": 64, "rope_theta": 10000000, "num_hidden_layers": 2,
            "attn_type_list": [0, 1])",
         1},
        {"seed_oss", 128, 128, half, 1e7, R"("head_dim": 128, "rope_theta": 10000000.0)"},
        {"bamba", 128, 64, half, 1e4,
         R"("hidden_size": 4096, "num_attention_heads": 32, "attn_rotary_emb": 64,
            "rope_theta": 1e4, "num_hidden_layers": 4, "attn_layer_indices": [1, 3])",
         1},
        {"helium", 128, 128, interleaved, 1e5, R"("head_dim": 128, "rope_theta": 100000.0)"},
        {"moonshine", 36, 32, interleaved, 1e4,
         R"("hidden_size": 288, "decoder_num_attention_heads": 8, "encoder_num_attention_heads": 8,
            "partial_rotary_factor": 0.9, "rope_theta": 1e4)"},
        {"esm", 16, 16, half, 1e4,
         R"("hidden_size": 320, "num_attention_heads": 20,
            "position_embedding_type": "rotary")",
         1},
        {"roformer", 64, 64, interleaved, 1e4,
         R"("hidden_size": 768, "num_attention_heads": 12, "rotary_value": false)", 1},
        {"nomic_bert", 64, 64, half, 1e3,
         R"("n_embd": 768, "n_head": 12, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0,
            "rotary_emb_interleaved": false)"},
        {"bitnet", 128, 128, half, 5e5,
         R"("hidden_size": 2560, "num_attention_heads": 20, "rope_theta": 500000.0)"},
        {"jetmoe", 128, 128, half, 1e4,
         R"("kv_channels": 128, "hidden_size": 2048, "num_attention_heads": 32,
            "rope_theta": 1e4)"},
        {"openelm", 64, 64, half, 1e4,
         R"("head_dim": 64, "rope_freq_constant": 10000, "normalize_qk_projections": true)"},
        {"dots1", 128, 128, half, 1e7, R"("head_dim": 128, "rope_theta": 10000000)"},
        {"recurrent_gemma", 256, 128, half, 1e4,
         R"("hidden_size": 2560, "num_attention_heads": 10, "partial_rotary_factor": 0.5,
            "rope_theta": 1e4, "block_types": ["recurrent", "recurrent", "attention"])",
         1},
        {"qwen3_next", 256, 64, half, 1e7,
         R"("head_dim": 256, "partial_rotary_factor": 0.25, "rope_theta": 1e7,
            "full_attention_interval": 4)",
         1},
        {"llava", 128, 128, half, 1e4,
         R"("text_config": {"model_type": "llama", "max_position_embeddings": 4096})", 3},
        {"internvl_chat", 64, 64, half, 1e6,
         R"("llm_config": {"model_type": "qwen2", "hidden_size": 896, "num_attention_heads": 14,
            "rope_theta": 1e6})"},
        {"solar_open", 128, 128, half, 1e6,
         R"("head_dim": 128, "rope_theta": 1000000, "partial_rotary_factor": 1.0)"},
        {"hy_v3", 128, 128, half, 11158840, R"("rope_parameters": {"rope_type": "default"})", 2},
        {"hyperclovax", 128, 128, half, 1e8,
         R"("hidden_size": 6144, "num_attention_heads": 48, "rope_theta": 1e8)"},
        {"jais2", 128, 128, half, 5e5, R"("hidden_size": 3328, "num_attention_heads": 26)", 1},
        {"youtu", 64, 64, interleaved, 1.6e6,
         R"("qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "kv_lora_rank": 512,
            "rope_theta": 1600000)"},
        {"minimax_m3_vl", 128, 64, half, 5e6,
         R"("text_config": {"model_type": "minimax_m3_vl_text", "head_dim": 128, "rotary_dim": 64,
            "rope_theta": 5000000, "layer_types": ["full_attention", "minimax_m3_sparse"]})"},
        {"falcon_h1", 128, 128, half, 1e11,
         R"("head_dim": 128, "rope_theta": 1e11, "layers_block_type": ["hybrid", "hybrid"])"},
        {"lfm2_vl", 64, 64, half, 1e6,
         R"("text_config": {"model_type": "lfm2", "hidden_size": 2048, "num_attention_heads": 32,
            "rope_theta": 1e6, "layer_types": ["conv", "full_attention"]})",
         1},
        {"deepseek_v32", 64, 64, interleaved, 1e4,
         R"("qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "head_dim": 64, "kv_lora_rank": 512,
            "rope_parameters": {"rope_theta": 10000.0},
            "layer_types": ["deepseek_sparse_attention"])"},
        {"deepseek_vl_v2", 128, 128, half, 1e4,
         R"("language_config": {"model_type": "deepseek_v2", "use_mla": false, "hidden_size": 1280,
            "num_attention_heads": 10, "qk_rope_head_dim": 0, "qk_nope_head_dim": 0,
            "rope_theta": 1e4})"},
        {"hunyuan_v1_moe", 128, 128, half, 1e4,
         R"("attention_head_dim": 128, "hidden_size": 4096, "num_attention_heads": 32,
            "use_mla": false, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "kv_lora_rank": 512,
            "rope_theta": 10000.0)",
         1},
        {"deepseek_v2", 128, 128, half, 1e4,
         R"("use_mla": false, "hidden_size": 1280, "num_attention_heads": 10,
            "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rope_theta": 1e4)",
         1},
        {"brand_new", 128, 128, half, 1e4,
         R"("use_mla": false, "head_dim": 128, "qk_rope_head_dim": 64, "rope_theta": 1e4)", 2},
        {"internlm", 128, 128, half, 1e6,
         R"("hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 2048,
            "rotary": {"base": 1000000, "type": "origin"})"},
        {"xlm-roberta", 64, 64, half, 2e4,
         R"("hidden_size": 1024, "num_attention_heads": 16, "position_embedding_type": "rotary",
            "rotary_emb_base": 20000.0)"},
        {"falcon_h1", 128, 128, half, 1e11,
         R"("head_dim": 128, "rope_theta": 1e11, "time_step_limit": [0.0, Infinity])"},
        {"new", 64, 64, half, 5e5,
         R"("hidden_size": 768, "num_attention_heads": 12, "position_embedding_type": "rope",
            "rope_theta": 500000, "rope_scaling": null)"},
        {"t5gemma", 256, 256, half, 1e4,
         R"("encoder": {"model_type": "t5_gemma_module", "is_decoder": false, "head_dim": 256,
            "hidden_size": 2304, "num_attention_heads": 8, "rope_theta": 1e4},
            "decoder": {"model_type": "t5_gemma_module", "is_decoder": true, "head_dim": 256,
            "hidden_size": 2304, "num_attention_heads": 8, "rope_theta": 1e4})"},
        {"t5gemma", 256, 256, half, 1e4,
         R"("encoder": {"model_type": "t5_gemma_module", "head_dim": 256, "rope_theta": 1e4})"},
        {"colpali", 256, 256, half, 1e4,
         R"("embedding_dim": 128, "vlm_config": {"model_type": "paligemma",
            "text_config": {"model_type": "gemma", "head_dim": 256, "rope_theta": 1e4}})"},
        {"colpali", 256, 256, half, 1e4,
         R"("text_config": {"model_type": "gemma", "head_dim": 256, "rope_theta": 1e4},
            "vlm_config": {"model_type": "paligemma", "text_config": {"model_type": "gemma",
            "head_dim": 256, "rope_theta": 1e4}})"},
        {"zamba2", 160, 160, half, 1e4,
         R"("hidden_size": 2560, "attention_head_dim": 160, "num_attention_heads": 32,
            "kv_channels": 80, "use_mem_rope": true, "use_long_context": false,
            "rope_theta": 10000)",
         1},
        {"zamba2", 128, 128, half, 1e4,
         R"("hidden_size": 2048, "num_attention_heads": 32, "use_mem_rope": true,
            "rope_theta": 10000)"},
        {"mpt", 128, 128, half, 5e4,
         R"("d_model": 2048, "n_heads": 16, "attn_config": {"alibi": false, "rope": true,
            "rope_theta": 50000, "rope_impl": "dail", "rope_dail_config": {"type": "original"},
            "rope_hf_config": {"type": "no_scaling", "factor": 1.0}})"},
        {"aria_text", 128, 128, half, 1e4, R"("hidden_size": 2560, "num_attention_heads": 20)", 1},
        {"cohere", 128, 128, interleaved, 1e4, R"("hidden_size": 8192, "num_attention_heads": 64)",
         1},
        {"glm4_moe_lite", 64, 64, interleaved, 1e4,
         R"("qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "kv_lora_rank": 512)", 1},
        {"idefics", 128, 128, half, 1e4, R"("hidden_size": 8192, "num_attention_heads": 64)", 1},
        {"plamo", 128, 128, half, 1e4, R"("hidden_size": 5120, "num_attention_heads": 40)", 1},
        {"grok-1", 128, 128, half, 1e4, "", 3},
        {"open-llama", 100, 100, half, 1e4, R"("hidden_size": 3200, "num_attention_heads": 32)", 1},
    };
    for (const Family& family : families) {
        CAPTURE(family.type);
        CAPTURE(family.json);
        const RopeParams rotation = imported(R"({"model_type": ")" + family.type + '"' +
                                             (family.json.empty() ? "" : ", ") + family.json + "}");
        CHECK(rotation.head_dim == family.head_dim);
        CHECK(rotation.rotary_dim == family.rotary_dim);
        CHECK(rotation.pairing == family.pairing);
        CHECK(rotation.rope_type == "default");
        CHECK(!rotation.no_rope);
        CHECK(rotation.sections.axes == 0);
        CHECK(rotation.attention_factor == 1);
        CHECK(rotation.softmax_scale == 1);
        check_plain(rotation, family.base);
        std::string all;
        for (const std::string& warning : rotation.warnings) {
            all += warning + "; ";
        }
        CHECK_MESSAGE(rotation.warnings.size() == family.warnings, all);
    }
}

TEST_CASE(
    "use_mla false: no window but the one at the beginning of the head, whatever the file says of "
    "latent attention") {
    for (const char* type : {"hunyuan_v1_moe", "deepseek_v2", "deepseek_v3", "brand_new"}) {
        CAPTURE(std::string(type));
        const RopeParams rotation = imported(
            R"({"use_mla": false, "hidden_size": 4096, "num_attention_heads": 32,
            "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "kv_lora_rank": 512, "rope_theta": 1e4,
            "model_type": ")" +
            std::string(type) + "\"}");
        CHECK(rotation.head_dim == 128);
        CHECK(rotation.rotary_dim == 128);
        CHECK(rotation.q_rotary_offset == 0);
        CHECK(rotation.k_rotary_offset == 0);
        CHECK(rotation.pairing == half);
        CHECK(warns(rotation, "qk_rope_head_dim 64 use_mla false"));
    }
    CHECK(imported(
              R"({"use_mla": true, "model_type": "brand_new", "qk_nope_head_dim": 128,
               "qk_rope_head_dim": 64,
        "kv_lora_rank": 512, "rope_theta": 1e4})",
              {.pairing = interleaved})
              .q_rotary_offset == 128);
}

TEST_CASE("InternLM, the first: its object called rotary") {
    const auto internlm = [](const std::string& rotary, std::uint64_t seq_len) {
        return imported(
            R"({"model_type": "internlm", "hidden_size": 4096, "num_attention_heads": 32,
            "max_position_embeddings": 2048, "rotary": )" +
                rotary + "}",
            {.seq_len = seq_len});
    };
    const std::string dynamic = R"({"base": 10000, "type": "dynamic", "scaling_factor": 2.0})";
    const RopeParams longer = internlm(dynamic, 4096);
    CHECK(longer.rope_type == "dynamic");
    CHECK(longer.warnings.empty());
    check_plain(longer, 1e4 * std::pow(3.0, 128.0 / 126));
    check_plain(internlm(dynamic, 2048), 1e4);
    check_plain(internlm(R"({"base": 10000, "type": "dynamic"})", 4096),
                1e4 * std::pow(2.0, 128.0 / 126));  // factor 1
    CHECK(warns(internlm(R"({"base": 1e6, "type": "origin", "scaling_factor": 2, "x": 1})", 0),
                "rotary.x"));
    CHECK(warns(
        imported(R"({"model_type": "internlm", "head_dim": 64, "rotary": 5, "rope_theta": 1e4})"),
        "rotary"));
    // It is not read in other model types.
    CHECK(warns(
        imported(
            R"({"model_type": "llama", "head_dim": 64, "rope_theta": 1e4, "rotary": {"base": 3}})"),
        "rotary"));
}

TEST_CASE("GTE: the NTK scaling of kexue.fm/archives/9706, fixed and mixed") {
    const auto gte = [](const std::string& scaling) {
        return imported(
            R"({"model_type": "new", "hidden_size": 1024, "num_attention_heads": 16,
               "position_embedding_type": "rope",
            "rope_theta": 160000, "max_position_embeddings": 8192, "rope_scaling": )" +
            scaling + "}");
    };
    const RopeParams fixed = gte(R"({"type": "ntk", "factor": 2.0})");
    const RopeParams mixed = gte(R"({"type": "ntk", "factor": 2.0, "mixed_b": 0.625})");
    CHECK(fixed.rope_type == "ntk");
    CHECK(fixed.warnings.empty());
    CHECK(mixed.warnings.empty());
    REQUIRE(fixed.inv_freq.size() == 32);
    const double a = std::log(2.0) / std::pow(32.0, 0.625);
    for (std::size_t j = 0; j < 32; ++j) {
        CAPTURE(j);
        // As in the model's code: inv_freq of base * factor, divided by factor^(2 / d); lambda_m of
        // exp(a m^b).
        CHECK(close(fixed.inv_freq[j],
                    std::pow(320000.0, -2.0 * double(j) / 64) / std::pow(2.0, 2.0 / 64)));
        CHECK(close(mixed.inv_freq[j], std::pow(160000.0, -2.0 * double(j) / 64) /
                                           std::exp(a * std::pow(double(j + 1), 0.625))));
    }
}

TEST_CASE(
    "retrievers and encoder-decoders: the language model lies deeper, and its other half is named "
    "where it differs") {
    const RopeParams colqwen = imported(
        R"({"model_type": "colqwen2", "vlm_config": {"model_type": "qwen2_vl", "text_config":
        {"model_type": "qwen2_vl_text", "head_dim": 128, "rope_theta": 1e6,
         "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}}}})");
    CHECK(sections_of(colqwen) == std::vector<std::uint32_t>{16, 24, 24});
    CHECK(colqwen.warnings.empty());
    const RopeParams halves = imported(R"({"model_type": "t5gemma",
        "encoder": {"model_type": "t5_gemma_module", "head_dim": 256, "rope_theta": 2e4},
        "decoder": {"model_type": "t5_gemma_module", "head_dim": 256, "rope_theta": 1e4}})");
    check_plain(halves, 1e4);
    CHECK(warns(halves, "encoder decoder"));
    // T5Gemma 2: its encoder reads images, and has one more level of nesting.
    const std::string gemma = R"("head_dim": 256, "num_hidden_layers": 6, "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}})";
    const std::string encoder =
        R"("encoder": {"model_type": "t5gemma2_encoder",
           "text_config": {"model_type": "t5gemma2_text", )" +
        gemma;
    const std::string decoder = R"("decoder": {"model_type": "t5gemma2_decoder", )" + gemma + "}";
    check_plain(imported(R"({"model_type": "t5gemma2", )" + encoder + "}}, " + decoder + "}",
                         {.by_layer = true, .layer = 0}),
                1e4);
    check_plain(imported(R"({"model_type": "t5gemma2", )" + encoder + "}}}",
                         {.by_layer = true, .layer = 5}),
                1e6);
    // Next to sizes in the outer object such an object means something else.
    const RopeParams flat = imported(
        R"({"model_type": "llama", "head_dim": 64, "hidden_size": 512, "num_attention_heads": 8,
        "rope_theta": 1e4, "decoder": {"hidden_size": 8, "num_attention_heads": 2}})");
    CHECK(flat.head_dim == 64);
    CHECK(warns(flat, "decoder"));
}

TEST_CASE("sparse attention: the indexer is a layer type with a width and a pairing of its own") {
    const struct {
        const char* fields;
        Pairing pairing;
    } indexers[] = {
        {R"("model_type": "deepseek_v32")", VKROPE_HALF_SPLIT},
        {R"("model_type": "glm_moe_dsa")", VKROPE_INTERLEAVED},
        {R"("model_type": "glm_moe_dsa", "indexer_rope_interleave": false)", VKROPE_HALF_SPLIT}};
    for (const auto& [fields, pairing] : indexers) {
        CAPTURE(fields);
        const std::string json = std::string("{") + fields + R"(, "index_head_dim": 96,
            "index_n_heads": 32, "qk_rope_head_dim": 64, "kv_lora_rank": 512, "rope_theta": 10000,
            "max_position_embeddings": 163840, "rope_scaling": {"type": "yarn", "factor": 40,
            "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096}})";
        const RopeParams main = imported(json), indexer = imported(json, {.layer_type = "indexer"});
        CHECK(main.pairing == interleaved);
        CHECK(indexer.pairing == pairing);
        CHECK(indexer.head_dim == 96);
        CHECK(indexer.rotary_dim == 64);
        CHECK(indexer.q_rotary_offset == 0);
        CHECK(indexer.k_rotary_offset == 0);
        CHECK(indexer.inv_freq == main.inv_freq);
        CHECK(indexer.softmax_scale == 1);
        CHECK(indexer.ops.tensor[Q].norm.kind == VKROPE_NORM_NONE);
        CHECK(indexer.ops.tensor[K].norm.kind == VKROPE_NORM_LAYER);
        CHECK(indexer.ops.tensor[K].norm.bias == VKROPE_PARAMETER_CHANNEL);
        CHECK(indexer.ops.q_heads == 32);
        CHECK(indexer.ops.k_heads == 1);
        CHECK(warns(indexer, "indexer first Hadamard"));
    }
    check_refused(
        Bad{R"({"model_type": "deepseek_v32", "index_head_dim": 32, "rope_theta": 10000})",
            "index_head_dim 32 64"},
        VKROPE_ERROR_INVALID_DATA, {.layer_type = "indexer"});
    check_refused(
        Bad{R"({"model_type": "deepseek_v3", "rope_theta": 10000})", "indexer deepseek_v3"},
        VKROPE_ERROR_INVALID_ARGUMENT, {.layer_type = "indexer"});
    check_refused(Bad{R"({"model_type": "deepseek_v32", "rope_theta": 10000})", "foo indexer"},
                  VKROPE_ERROR_INVALID_ARGUMENT, {.layer_type = "foo"});
}

TEST_CASE("Mistral 4: latent attention, and a softmax that readers do not agree on") {
    const std::string json =
        R"({"model_type": "mistral3", "text_config": {"model_type": "mistral4", "kv_lora_rank": 256,
        "qk_rope_head_dim": 64, "qk_nope_head_dim": 64, "max_position_embeddings": 1048576,
        "rope_interleave": true, "rope_parameters":
        {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 128.0,
        "original_max_position_embeddings": 8192, "mscale_all_dim": 1.0,
         "mscale": 1.0, "partial_rotary_factor": 0.5}}})";
    const RopeParams rotation = imported(json);
    CHECK(rotation.pairing == interleaved);
    CHECK(rotation.rotary_dim == 64);
    CHECK(rotation.q_rotary_offset == 64);
    CHECK(rotation.k_rotary_offset == 256);
    CHECK(rotation.attention_factor == 1);
    CHECK(close(rotation.softmax_scale, std::pow(0.1 * std::log(128.0) + 1, 2)));
    CHECK(warns(rotation, "softmax transformers llama.cpp SGLang apply_scale"));
    CHECK(rotation.inv_freq ==
          imported(R"({"model_type": "mistral4", "max_position_embeddings": 1048576})").inv_freq);
}

TEST_CASE(
    "multi-head latent attention: the windows of Q and K differ, and the softmax takes its part") {
    const RopeParams v3 = imported(
        R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_attention_heads": 128,
           "rope_theta": 10000,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "kv_lora_rank": 512,
        "max_position_embeddings": 163840, "rope_scaling":
        {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
         "original_max_position_embeddings": 4096, "type": "yarn"}})");
    CHECK(v3.head_dim == 64);
    CHECK(v3.rotary_dim == 64);
    CHECK(v3.q_rotary_offset == 128);
    CHECK(v3.k_rotary_offset == 512);
    CHECK(v3.pairing == interleaved);
    CHECK(v3.attention_factor == 1);
    CHECK(close(v3.softmax_scale, std::pow(0.1 * std::log(40.0) + 1, 2)));
    CHECK(v3.warnings.empty());

    // Equal betas: 64 ln(4096 / (2 pi)) / (2 ln 50000) = 19.16, so pairs up to 19 do not change and
    // those from 20 on are divided.
    const RopeParams kimi = imported(
        R"({"model_type": "kimi_k2", "rope_theta": 50000.0, "qk_nope_head_dim": 128,
           "qk_rope_head_dim": 64,
        "max_position_embeddings": 131072, "rope_scaling": {"beta_fast": 1.0, "beta_slow": 1.0,
        "factor": 32.0, "mscale": 1.0,
        "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096, "type": "yarn"}})");
    for (std::size_t j = 0; j < 32; ++j) {
        CHECK(close(kimi.inv_freq[j], std::pow(50000, -2.0 * double(j) / 64) / (j <= 19 ? 1 : 32)));
    }
    CHECK(close(kimi.softmax_scale, std::pow(0.1 * std::log(32.0) + 1, 2)));

    const RopeParams minicpm = imported(
        R"({"model_type": "minicpm3", "qk_nope_head_dim": 64, "qk_rope_head_dim": 32,
           "rope_theta": 1e4})");
    CHECK(minicpm.pairing == half);
    CHECK(minicpm.q_rotary_offset == 64);
    CHECK(minicpm.k_rotary_offset == 256);
    CHECK(warns(minicpm, "kv_lora_rank 256"));
    CHECK(minicpm.softmax_scale == 1);

    const RopeParams lite = imported(
        R"({"model_type": "deepseek_v3", "rope_theta": 1e4, "rope_interleave": false})");
    CHECK(lite.pairing == half);
    CHECK(warns(lite, "qk_rope_head_dim 64"));
    CHECK(warns(lite, "qk_nope_head_dim 128"));
}

TEST_CASE("the pairing can be overridden") {
    const std::string json = R"({"model_type": "llama", "head_dim": 64, "rope_theta": 1e4})";
    CHECK(imported(json).pairing == half);
    CHECK(imported(json, {.pairing = interleaved}).pairing == interleaved);
    CHECK(imported(R"({"model_type": "gptj", "head_dim": 64, "rotary_dim": 64})", {.pairing = half})
              .pairing == half);
}
