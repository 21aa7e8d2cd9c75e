// SPDX-License-Identifier: MIT
// Model families: the meaning of the RoPE fields of each published configuration. Bases, widths and
// pairings are facts of the models; frequencies are computed from them here.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "vkrope/model.hpp"

using namespace vkrope;

namespace {

constexpr Pairing half = Pairing::half_split;
constexpr Pairing interleaved = Pairing::interleaved;

bool close(double a, double b) {
    return std::fabs(a - b) <= 1e-12 * std::fabs(b);
}

Rotation imported(const std::string& json, const ModelQuery& query = {}) {
    const Result<Rotation> result = from_hf_config(json, query);
    REQUIRE_MESSAGE(result, result.status.what, " in ", json.substr(0, 300));
    return result.value;
}

bool warns(const Rotation& rotation, const std::string& text) {
    for (const std::string& warning : rotation.warnings) {
        if (warning.find(text) != std::string::npos) {
            return true;
        }
    }
    return false;
}

std::vector<std::uint32_t> sections_of(const Rotation& rotation) {
    return {rotation.sections.pairs, rotation.sections.pairs + rotation.sections.axes};
}

/// Checks that all frequencies are those of `base`, divided by `factor`.
void check_plain(const Rotation& rotation, double base, double factor = 1) {
    REQUIRE(rotation.inv_freq.size() == rotation.rotary_dim / 2);
    for (std::size_t j = 0; j < rotation.inv_freq.size(); ++j) {
        CAPTURE(j);
        CHECK(close(rotation.inv_freq[j],
                    std::pow(base, -2.0 * double(j) / rotation.rotary_dim) / factor));
    }
}

struct Family {
    std::string json;  // without its braces
    std::uint32_t head_dim, rotary_dim;
    Pairing pairing;
    double base;
    std::size_t warnings = 0;
};

}  // namespace

TEST_CASE("families whose layers are all alike and unscaled") {
    const std::string small = R"("hidden_size": 2048, "num_attention_heads": 16, )";
    const Family families[] = {
        {R"("model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
            "rope_theta": 500000.0)",
         128, 128, half, 5e5},
        {R"("model_type": "llama")", 128, 128, half, 1e4, 3},
        {R"("model_type": "mistral", "head_dim": 128, "hidden_size": 5120,
            "num_attention_heads": 32, "rope_theta": 1e6)",
         128, 128, half, 1e6},
        {R"("model_type": "mistral3", "text_config": {"model_type": "mistral", "head_dim": 128,
            "rope_theta": 1e9})",
         128, 128, half, 1e9},
        {R"("model_type": "mixtral", "hidden_size": 4096, "num_attention_heads": 32)", 128, 128,
         half, 1e6, 1},
        {R"("model_type": "qwen", "kv_channels": 128, "rotary_emb_base": 10000, "rotary_pct": 1.0,
            "use_dynamic_ntk": false)",
         128, 128, half, 1e4},
        {R"("model_type": "qwen2", "hidden_size": 896, "num_attention_heads": 14,
            "rope_theta": 1e6)",
         64, 64, half, 1e6},
        {R"("model_type": "qwen2_moe", "hidden_size": 2048, "num_attention_heads": 16,
            "rope_theta": 1e6)",
         128, 128, half, 1e6},
        {R"("model_type": "qwen3", "hidden_size": 1024, "num_attention_heads": 16, "head_dim": 128,
            "rope_theta": 1e6)",
         128, 128, half, 1e6},
        {R"("model_type": "qwen3_moe", "hidden_size": 2048, "num_attention_heads": 32,
            "head_dim": 128, "rope_theta": 1e7)",
         128, 128, half, 1e7},
        {R"("model_type": "gemma", "hidden_size": 3072, "num_attention_heads": 16, "head_dim": 256,
            "rope_theta": 1e4)",
         256, 256, half, 1e4},
        {R"("model_type": "gemma2", "hidden_size": 2304, "num_attention_heads": 8)", 256, 256, half,
         1e4, 2},
        {R"("model_type": "paligemma", "text_config": {"model_type": "gemma", "head_dim": 256,
            "rope_theta": 1e4})",
         256, 256, half, 1e4},
        {R"("model_type": "phi", "hidden_size": 2560, "num_attention_heads": 32,
            "partial_rotary_factor": 0.4, "rope_theta": 1e4)",
         80, 32, half, 1e4},
        {R"("model_type": "phi-msft", "n_embd": 2560, "n_head": 32, "rotary_dim": 32)", 80, 32,
         half, 1e4, 1},
        {R"("model_type": "gpt_neox", "hidden_size": 2560, "num_attention_heads": 32,
            "rotary_pct": 0.25, "rotary_emb_base": 10000)",
         80, 20, half, 1e4},
        {R"("model_type": "gpt_neox_japanese", "hidden_size": 2560, "num_attention_heads": 32,
            "rotary_pct": 1.0)",
         80, 80, half, 1e4, 1},
        {R"("model_type": "gptj", "n_embd": 4096, "n_head": 16, "rotary_dim": 64)", 256, 64,
         interleaved, 1e4, 1},
        {R"("model_type": "codegen", "n_embd": 1024, "n_head": 16, "rotary_dim": 32)", 64, 32,
         interleaved, 1e4, 1},
        {R"("model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71,
            "alibi": false)",
         64, 64, half, 1e4, 1},
        {R"("model_type": "RefinedWebModel", "hidden_size": 4544, "n_head": 71, "rope_theta": 1e4)",
         64, 64, half, 1e4},
        {R"("model_type": "falcon_h1", "head_dim": 64, "rope_theta": 100000000000.0)", 64, 64, half,
         1e11},
        {R"("model_type": "stablelm", "hidden_size": 2048, "num_attention_heads": 32,
            "partial_rotary_factor": 0.25, "rope_theta": 1e4)",
         64, 16, half, 1e4},
        {R"("model_type": "stablelm_epoch", "hidden_size": 2560, "num_attention_heads": 32,
            "rope_pct": 0.25, "rope_theta": 1e4)",
         80, 20, half, 1e4},
        {R"("model_type": "olmo", )" + small + R"("rope_theta": 10000.0)", 128, 128, half, 1e4},
        {R"("model_type": "hf_olmo", "d_model": 2048, "n_heads": 16, "rope": true, "alibi": false,
            "rope_theta": 1e4)",
         128, 128, half, 1e4},
        {R"("model_type": "olmo2", "hidden_size": 4096, "num_attention_heads": 32,
            "rope_theta": 500000)",
         128, 128, half, 5e5},
        {R"("model_type": "olmoe", )" + small + R"("rope_theta": 10000.0)", 128, 128, half, 1e4},
        {R"("model_type": "chatglm", "hidden_size": 4096, "num_attention_heads": 32,
            "kv_channels": 128, "rope_theta": 1e4)",
         128, 64, interleaved, 1e4, 1},
        {R"("model_type": "chatglm", "kv_channels": 128, "rope_ratio": 500)", 128, 64, interleaved,
         5e6, 2},
        {R"("model_type": "glm4", "head_dim": 128, "partial_rotary_factor": 0.5,
            "rope_theta": 1e4)",
         128, 64, interleaved, 1e4},
        {R"("model_type": "glm4_moe", "head_dim": 128, "partial_rotary_factor": 0.5,
            "rope_theta": 1e6)",
         128, 64, half, 1e6},
        {R"("model_type": "cohere", "hidden_size": 8192, "num_attention_heads": 64,
            "rope_theta": 8e6)",
         128, 128, interleaved, 8e6},
        {R"("model_type": "granite", )" + small + R"("rope_theta": 5000000)", 128, 128, half, 5e6},
        {R"("model_type": "granitemoehybrid", )" + small +
             R"("rope_theta": 1e4, "position_embedding_type": "rope")",
         128, 128, half, 1e4},
        {R"("model_type": "exaone", "head_dim": 128, "rope_theta": 1e6)", 128, 128, half, 1e6},
        {R"("model_type": "internlm2", "hidden_size": 4096, "num_attention_heads": 32,
            "rope_theta": 1e6)",
         128, 128, half, 1e6},
        {R"("model_type": "baichuan", "hidden_size": 4096, "num_attention_heads": 32)", 128, 128,
         half, 1e4, 1},
        {R"("model_type": "starcoder2", "hidden_size": 3072, "num_attention_heads": 24,
            "rope_theta": 999999.4420358813)",
         128, 128, half, 999999.4420358813},
        {R"("model_type": "persimmon", "hidden_size": 4096, "num_attention_heads": 64)", 64, 32,
         half, 25000, 2},
        {R"("model_type": "fuyu", "text_config": {"model_type": "persimmon", "hidden_size": 4096,
            "num_attention_heads": 64,
            "partial_rotary_factor": 0.5, "rope_theta": 25000})",
         64, 32, half, 25000},
        {R"("model_type": "nemotron", "hidden_size": 3072, "num_attention_heads": 24,
            "head_dim": 128, "partial_rotary_factor": 0.5,
            "rope_theta": 1e4)",
         128, 64, half, 1e4},
        {R"("model_type": "minicpm", "hidden_size": 2304, "num_attention_heads": 36)", 64, 64, half,
         1e4, 1},
        {R"("model_type": "dbrx", "d_model": 6144, "n_heads": 48,
            "attn_config": {"rope_theta": 500000})",
         128, 128, half, 5e5},
        {R"("model_type": "arctic", "hidden_size": 7168, "num_attention_heads": 56,
            "rope_theta": 1e4)",
         128, 128, half, 1e4},
        {R"("model_type": "ernie4_5", "head_dim": 128, "rope_theta": 500000.0)", 128, 128,
         interleaved, 5e5},
        {R"("model_type": "ernie4_5_moe", "hidden_size": 2560, "num_attention_heads": 20,
            "rope_theta": 500000.0)",
         128, 128, interleaved, 5e5},
        {R"("model_type": "minimax_m2", "head_dim": 128, "rotary_dim": 64, "rope_theta": 5000000)",
         128, 64, half, 5e6},
        {R"("model_type": "minimax_text_01", "head_dim": 128, "rotary_dim": 64,
            "rope_theta": 10000000, "num_hidden_layers": 2,
            "attn_type_list": [0, 1])",
         128, 64, half, 1e7, 1},
        {R"("model_type": "seed_oss", "head_dim": 128, "rope_theta": 10000000.0)", 128, 128, half,
         1e7},
        {R"("model_type": "bamba", "hidden_size": 4096, "num_attention_heads": 32,
            "attn_rotary_emb": 64, "rope_theta": 1e4,
            "num_hidden_layers": 4, "attn_layer_indices": [1, 3])",
         128, 64, half, 1e4, 1},
        {R"("model_type": "helium", "head_dim": 128, "rope_theta": 100000.0)", 128, 128,
         interleaved, 1e5},
        {R"("model_type": "moonshine", "hidden_size": 288, "decoder_num_attention_heads": 8,
            "encoder_num_attention_heads": 8,
            "partial_rotary_factor": 0.9, "rope_theta": 1e4)",
         36, 32, interleaved, 1e4},
        {R"("model_type": "esm", "hidden_size": 320, "num_attention_heads": 20,
            "position_embedding_type": "rotary")",
         16, 16, half, 1e4, 1},
        {R"("model_type": "roformer", "hidden_size": 768, "num_attention_heads": 12,
            "rotary_value": false)",
         64, 64, interleaved, 1e4, 1},
        {R"("model_type": "nomic_bert", "n_embd": 768, "n_head": 12, "rotary_emb_base": 1000,
            "rotary_emb_fraction": 1.0,
            "rotary_emb_interleaved": false)",
         64, 64, half, 1e3},
        {R"("model_type": "bitnet", "hidden_size": 2560, "num_attention_heads": 20,
            "rope_theta": 500000.0)",
         128, 128, half, 5e5},
        {R"("model_type": "jetmoe", "kv_channels": 128, "hidden_size": 2048,
            "num_attention_heads": 32, "rope_theta": 1e4)",
         128, 128, half, 1e4},
        {R"("model_type": "openelm", "head_dim": 64, "rope_freq_constant": 10000)", 64, 64, half,
         1e4},
        {R"("model_type": "dots1", "head_dim": 128, "rope_theta": 10000000)", 128, 128, half, 1e7},
        {R"("model_type": "recurrent_gemma", "hidden_size": 2560, "num_attention_heads": 10,
            "partial_rotary_factor": 0.5,
            "rope_theta": 1e4, "block_types": ["recurrent", "recurrent", "attention"])",
         256, 128, half, 1e4, 1},
        {R"("model_type": "qwen3_next", "head_dim": 256, "partial_rotary_factor": 0.25,
            "rope_theta": 1e7, "full_attention_interval": 4)",
         256, 64, half, 1e7, 1},
        {R"("model_type": "llava", "text_config": {"model_type": "llama",
            "max_position_embeddings": 4096})",
         128, 128, half, 1e4, 3},
        {R"("model_type": "internvl_chat", "llm_config": {"model_type": "qwen2", "hidden_size": 896,
            "num_attention_heads": 14,
            "rope_theta": 1e6})",
         64, 64, half, 1e6},
        {R"("model_type": "solar_open", "head_dim": 128, "rope_theta": 1000000,
            "partial_rotary_factor": 1.0)",
         128, 128, half, 1e6},
        {R"("model_type": "hy_v3", "rope_parameters": {"rope_type": "default"})", 128, 128, half,
         11158840, 2},
        {R"("model_type": "hyperclovax", "hidden_size": 6144, "num_attention_heads": 48,
            "rope_theta": 1e8)",
         128, 128, half, 1e8},
        {R"("model_type": "jais2", "hidden_size": 3328, "num_attention_heads": 26)", 128, 128, half,
         5e5, 1},
        {R"("model_type": "youtu", "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
            "kv_lora_rank": 512, "rope_theta": 1600000)",
         64, 64, interleaved, 1.6e6},
        {R"("model_type": "minimax_m3_vl", "text_config": {"model_type": "minimax_m3_vl_text",
            "head_dim": 128, "rotary_dim": 64,
            "rope_theta": 5000000, "layer_types": ["full_attention", "minimax_m3_sparse"]})",
         128, 64, half, 5e6},
        {R"("model_type": "falcon_h1", "head_dim": 128, "rope_theta": 1e11,
            "layers_block_type": ["hybrid", "hybrid"])",
         128, 128, half, 1e11},
        {R"("model_type": "lfm2_vl", "text_config": {"model_type": "lfm2", "hidden_size": 2048,
            "num_attention_heads": 32,
            "rope_theta": 1e6, "layer_types": ["conv", "full_attention"]})",
         64, 64, half, 1e6, 1},
        {R"("model_type": "deepseek_v32", "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
            "head_dim": 64, "kv_lora_rank": 512,
            "rope_parameters": {"rope_theta": 10000.0},
            "layer_types": ["deepseek_sparse_attention"])",
         64, 64, interleaved, 1e4},
        {R"("model_type": "deepseek_vl_v2", "language_config": {"model_type": "deepseek_v2",
            "use_mla": false, "hidden_size": 1280,
            "num_attention_heads": 10, "qk_rope_head_dim": 0, "qk_nope_head_dim": 0,
            "rope_theta": 1e4})",
         128, 128, half, 1e4},
        {R"("model_type": "hunyuan_v1_moe", "attention_head_dim": 128, "hidden_size": 4096,
            "num_attention_heads": 32,
            "use_mla": false, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "kv_lora_rank": 512,
            "rope_theta": 10000.0)",
         128, 128, half, 1e4, 1},
        {R"("model_type": "deepseek_v2", "use_mla": false, "hidden_size": 1280,
            "num_attention_heads": 10, "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64, "rope_theta": 1e4)",
         128, 128, half, 1e4, 1},
        {R"("model_type": "brand_new", "use_mla": false, "head_dim": 128, "qk_rope_head_dim": 64,
            "rope_theta": 1e4)",
         128, 128, half, 1e4, 2},
        {R"("model_type": "internlm", "hidden_size": 4096, "num_attention_heads": 32,
            "max_position_embeddings": 2048,
            "rotary": {"base": 1000000, "type": "origin"})",
         128, 128, half, 1e6},
        {R"("model_type": "xlm-roberta", "hidden_size": 1024, "num_attention_heads": 16,
            "position_embedding_type": "rotary",
            "rotary_emb_base": 20000.0)",
         64, 64, half, 2e4},
        {R"("model_type": "falcon_h1", "head_dim": 128, "rope_theta": 1e11, "time_step_limit": [0.0,
            Infinity])",
         128, 128, half, 1e11},
        {R"("model_type": "new", "hidden_size": 768, "num_attention_heads": 12,
            "position_embedding_type": "rope",
            "rope_theta": 500000, "rope_scaling": null)",
         64, 64, half, 5e5},
        {R"("model_type": "t5gemma", "encoder": {"model_type": "t5_gemma_module",
            "is_decoder": false, "head_dim": 256,
            "hidden_size": 2304, "num_attention_heads": 8, "rope_theta": 1e4},
            "decoder": {"model_type": "t5_gemma_module",
            "is_decoder": true, "head_dim": 256, "hidden_size": 2304, "num_attention_heads": 8,
            "rope_theta": 1e4})",
         256, 256, half, 1e4},
        {R"("model_type": "t5gemma", "encoder": {"model_type": "t5_gemma_module", "head_dim": 256,
            "rope_theta": 1e4})",
         256, 256, half, 1e4},
        {R"("model_type": "colpali", "embedding_dim": 128, "vlm_config": {"model_type": "paligemma",
            "text_config":
            {"model_type": "gemma", "head_dim": 256, "rope_theta": 1e4}})",
         256, 256, half, 1e4},
        {R"("model_type": "colpali", "text_config": {"model_type": "gemma", "head_dim": 256,
            "rope_theta": 1e4},
            "vlm_config": {"model_type": "paligemma", "text_config": {"model_type": "gemma",
            "head_dim": 256, "rope_theta": 1e4}})",
         256, 256, half, 1e4},
        {R"("model_type": "zamba2", "hidden_size": 2560, "attention_head_dim": 160,
            "num_attention_heads": 32, "kv_channels": 80,
            "use_mem_rope": true, "use_long_context": false, "rope_theta": 10000)",
         160, 160, half, 1e4, 1},
        {R"("model_type": "zamba2", "hidden_size": 2048, "num_attention_heads": 32,
            "use_mem_rope": true, "rope_theta": 10000)",
         128, 128, half, 1e4},
        {R"("model_type": "mpt", "d_model": 2048, "n_heads": 16, "attn_config": {"alibi": false,
            "rope": true,
            "rope_theta": 50000, "rope_impl": "dail", "rope_dail_config": {"type": "original"},
            "rope_hf_config": {"type": "no_scaling", "factor": 1.0}})",
         128, 128, half, 5e4},
        {R"("model_type": "aria_text", "hidden_size": 2560, "num_attention_heads": 20)", 128, 128,
         half, 1e4, 1},
        {R"("model_type": "cohere", "hidden_size": 8192, "num_attention_heads": 64)", 128, 128,
         interleaved, 1e4, 1},
        {R"("model_type": "glm4_moe_lite", "qk_nope_head_dim": 192, "qk_rope_head_dim": 64,
            "kv_lora_rank": 512)",
         64, 64, interleaved, 1e4, 1},
        {R"("model_type": "idefics", "hidden_size": 8192, "num_attention_heads": 64)", 128, 128,
         half, 1e4, 1},
        {R"("model_type": "plamo", "hidden_size": 5120, "num_attention_heads": 40)", 128, 128, half,
         1e4, 1},
        {R"("model_type": "grok-1")", 128, 128, half, 1e4, 3},
        {R"("model_type": "open-llama", "hidden_size": 3200, "num_attention_heads": 32)", 100, 100,
         half, 1e4, 1},
    };
    for (const Family& family : families) {
        CAPTURE(family.json);
        const Rotation rotation = imported("{" + family.json + "}");
        CHECK(rotation.head_dim == family.head_dim);
        CHECK(rotation.rotary_dim == family.rotary_dim);
        CHECK(rotation.pairing == family.pairing);
        CHECK(rotation.rope_type == "default");
        CHECK(rotation.rotates);
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
        const Rotation rotation = imported(
            R"({"use_mla": false, "hidden_size": 4096, "num_attention_heads": 32,
            "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "kv_lora_rank": 512, "rope_theta": 1e4,
            "model_type": ")" +
            std::string(type) + "\"}");
        CHECK(rotation.head_dim == 128);
        CHECK(rotation.rotary_dim == 128);
        CHECK(rotation.q_rotary_offset == 0);
        CHECK(rotation.k_rotary_offset == 0);
        CHECK(rotation.pairing == half);
        CHECK(warns(rotation, "ignored key qk_rope_head_dim, which is 64: use_mla is false"));
    }
    CHECK(imported(
              R"({"use_mla": true, "model_type": "brand_new", "qk_nope_head_dim": 128,
               "qk_rope_head_dim": 64,
        "kv_lora_rank": 512, "rope_theta": 1e4})")
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
    const Rotation longer = internlm(dynamic, 4096);
    CHECK(longer.rope_type == "dynamic");
    CHECK(longer.warnings.empty());
    check_plain(longer, 1e4 * std::pow(3.0, 128.0 / 126));
    check_plain(internlm(dynamic, 2048), 1e4);
    check_plain(internlm(R"({"base": 10000, "type": "dynamic"})", 4096),
                1e4 * std::pow(2.0, 128.0 / 126));  // factor 1
    CHECK(warns(internlm(R"({"base": 1e6, "type": "origin", "scaling_factor": 2, "x": 1})", 0),
                "ignored key rotary.x"));
    CHECK(warns(
        imported(R"({"model_type": "internlm", "head_dim": 64, "rotary": 5, "rope_theta": 1e4})"),
        "ignored key rotary"));
    // It is not read in other model types.
    CHECK(warns(
        imported(
            R"({"model_type": "llama", "head_dim": 64, "rope_theta": 1e4, "rotary": {"base": 3}})"),
        "ignored key rotary"));
}

TEST_CASE("GTE: the NTK scaling of kexue.fm/archives/9706, fixed and mixed") {
    const auto gte = [](const std::string& scaling) {
        return imported(
            R"({"model_type": "new", "hidden_size": 1024, "num_attention_heads": 16,
               "position_embedding_type": "rope",
            "rope_theta": 160000, "max_position_embeddings": 8192, "rope_scaling": )" +
            scaling + "}");
    };
    const Rotation fixed = gte(R"({"type": "ntk", "factor": 2.0})");
    const Rotation mixed = gte(R"({"type": "ntk", "factor": 2.0, "mixed_b": 0.625})");
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
    const Rotation colqwen = imported(
        R"({"model_type": "colqwen2", "vlm_config": {"model_type": "qwen2_vl", "text_config":
        {"model_type": "qwen2_vl_text", "head_dim": 128, "rope_theta": 1e6,
         "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}}}})");
    CHECK(sections_of(colqwen) == std::vector<std::uint32_t>{16, 24, 24});
    CHECK(colqwen.warnings.empty());
    const Rotation halves = imported(R"({"model_type": "t5gemma",
        "encoder": {"model_type": "t5_gemma_module", "head_dim": 256, "rope_theta": 2e4},
        "decoder": {"model_type": "t5_gemma_module", "head_dim": 256, "rope_theta": 1e4}})");
    check_plain(halves, 1e4);
    CHECK(warns(halves, "ignored key encoder: decoder is read, and differs"));
    // T5Gemma 2: its encoder reads images, and has one more level of nesting.
    const std::string gemma = R"("head_dim": 256, "num_hidden_layers": 6, "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}})";
    const std::string encoder =
        R"("encoder": {"model_type": "t5gemma2_encoder",
           "text_config": {"model_type": "t5gemma2_text", )" +
        gemma;
    const std::string decoder = R"("decoder": {"model_type": "t5gemma2_decoder", )" + gemma + "}";
    check_plain(
        imported(R"({"model_type": "t5gemma2", )" + encoder + "}}, " + decoder + "}", {.layer = 0}),
        1e4);
    check_plain(imported(R"({"model_type": "t5gemma2", )" + encoder + "}}}", {.layer = 5}), 1e6);
    // Next to sizes in the outer object such an object means something else.
    const Rotation flat = imported(
        R"({"model_type": "llama", "head_dim": 64, "hidden_size": 512, "num_attention_heads": 8,
        "rope_theta": 1e4, "decoder": {"hidden_size": 8, "num_attention_heads": 2}})");
    CHECK(flat.head_dim == 64);
    CHECK(warns(flat, "ignored key decoder: the keys around it are read"));
}

TEST_CASE("Gemma 3 in both generations' words") {
    const auto gemma = [](const std::string& factor) {
        return R"({"model_type": "gemma3_text", "head_dim": 256, "num_hidden_layers": 6,
            "rope_scaling": {"rope_type": "linear", "factor": )" +
               factor +
               R"(}, "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0,
                  "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}})";
    };
    check_plain(imported(gemma("8.0"), {.layer = 5}), 1e6, 8);
    check_plain(imported(gemma("8.0"), {.layer = 0}), 1e4);
    CHECK(imported(gemma("8.0"), {.layer = 0}).warnings.empty());
    CHECK(std::string(from_hf_config(gemma("4.0")).status.what).find("differ in factor") !=
          std::string::npos);
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
        for (const ModelQuery& query :
             {ModelQuery{.layer_type = "full_attention"}, ModelQuery{.layer = 5}, ModelQuery{}}) {
            const Rotation rotation = imported(json, query);
            CHECK(rotation.rope_type == "linear");
            check_plain(rotation, 1e6, 8);
            CHECK(rotation.warnings.size() ==
                  (query.layer < 0 && query.layer_type.empty() ? 1 : 0));
        }
        for (const ModelQuery& query : {ModelQuery{.layer_type = "sliding_attention"},
                                        ModelQuery{.layer = 0}, ModelQuery{.layer = 4}}) {
            const Rotation rotation = imported(json, query);
            CHECK(rotation.rope_type == "default");
            check_plain(rotation, 1e4);
            CHECK(rotation.warnings.empty());
        }
    }
    check_plain(imported(v4, {.layer = 11}), 1e6, 8);
    check_plain(imported(v4, {.layer = 33}), 1e4);
    const Rotation bare = imported(
        R"({"model_type": "gemma3n", "text_config": {"model_type": "gemma3n_text"}})",
        {.layer = 4});
    check_plain(bare, 1e6);
    CHECK(warns(bare, "head_dim is missing: assuming 256"));
}

TEST_CASE("Gemma 4: full attention is wider, and rotates a part of its pairs") {
    const std::string json =
        R"({"model_type": "gemma4", "text_config": {"model_type": "gemma4_text", "head_dim": 256,
        "global_head_dim": 512, "num_hidden_layers": 6, "rope_parameters": {
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
            "rope_theta": 1000000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}}})";
    const Rotation full = imported(json, {.layer_type = "full_attention"});
    CHECK(full.head_dim == 512);
    CHECK(full.rotary_dim == 512);
    CHECK(full.rope_type == "proportional");
    REQUIRE(full.inv_freq.size() == 256);
    for (std::size_t j = 0; j < 256; ++j) {
        CHECK(close(full.inv_freq[j], j < 64 ? std::pow(1e6, -2.0 * double(j) / 512) : 0));
    }
    const Rotation sliding = imported(json, {.layer = 0});
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
        const Rotation rotation = imported(json, {.layer = layer});
        check_plain(rotation, layer % 3 == 0 ? 160000 : 10000);
        CHECK(rotation.warnings.empty());
    }
    // null means the base of the global layers; a missing key does not.
    const std::string bare =
        R"({"model_type": "modernbert", "hidden_size": 768, "num_attention_heads": 12,
        "global_rope_theta": 50000.0)";
    check_plain(imported(bare + R"(, "local_rope_theta": null})", {.layer = 1}), 50000);
    check_plain(imported(bare + R"(, "local_rope_theta": null})", {.layer = 0}), 50000);
    check_plain(imported(bare + R"(, "local_rope_theta": null, "rope_local_base_freq": 20000})",
                         {.layer = 1}),
                20000);
    check_plain(imported(bare + "}", {.layer = 1}), 10000);
    CHECK(warns(imported(bare + "}", {.layer = 1}),
                "rope_local_base_freq is missing: assuming 10000"));
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
    const Rotation sliding = imported(json, {.layer = 0});
    check_plain(sliding, 5e5);
    CHECK(sliding.rope_type == "default");
    CHECK(sliding.attention_factor == 1);
    const Rotation full = imported(json, {.layer = 3});
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
    const Rotation sliding = imported(json, {.layer = 0});
    check_plain(sliding, 5e5);
    CHECK(sliding.rope_type == "default");
    CHECK(sliding.warnings.empty());
    CHECK(imported(json, {.layer = 3}).rope_type == "yarn");
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
    const Rotation full = imported(laguna, {.layer = 0}), sliding = imported(laguna, {.layer = 1});
    CHECK(full.rotary_dim == 64);
    check_plain(full, 5e5);
    CHECK(sliding.rotary_dim == 128);
    check_plain(sliding, 1e4);
    CHECK(full.warnings.empty());
    CHECK(sliding.warnings.empty());
    const std::string bare =
        R"("num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"]})";
    CHECK(imported(R"({"model_type": "laguna", )" + bare, {.layer = 0}).rotary_dim == 64);
    check_plain(imported(R"({"model_type": "mellum", )" + bare, {.layer = 1}), 1e4);
    check_plain(imported(R"({"model_type": "mellum", )" + bare, {.layer = 0}), 5e5);
}

TEST_CASE("Mistral 4: latent attention with a YaRN that leaves the softmax alone") {
    const std::string json =
        R"({"model_type": "mistral3", "text_config": {"model_type": "mistral4", "kv_lora_rank": 256,
        "qk_rope_head_dim": 64, "qk_nope_head_dim": 64, "max_position_embeddings": 1048576,
        "rope_interleave": true, "rope_parameters":
        {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 128.0,
        "original_max_position_embeddings": 8192, "mscale_all_dim": 1.0,
         "mscale": 1.0, "partial_rotary_factor": 0.5}}})";
    const Rotation rotation = imported(json);
    CHECK(rotation.pairing == interleaved);
    CHECK(rotation.rotary_dim == 64);
    CHECK(rotation.q_rotary_offset == 64);
    CHECK(rotation.k_rotary_offset == 256);
    CHECK(rotation.attention_factor == 1);
    CHECK(rotation.softmax_scale == 1);
    CHECK(rotation.inv_freq ==
          imported(R"({"model_type": "mistral4", "max_position_embeddings": 1048576})").inv_freq);
}

TEST_CASE("layers without RoPE") {
    const auto rotates = [](const std::string& json, const ModelQuery& query) {
        const Rotation rotation = imported(json, query);
        CHECK(rotation.inv_freq.empty() == !rotation.rotates);
        CHECK((rotation.rotary_dim == 0) == !rotation.rotates);
        CHECK(rotation.head_dim == 128);
        return rotation.rotates;
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
            CHECK(rotates(json, {.layer = layer}) == (layer % 4 != 3));
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
        {.layer = 3}));
    const std::string mllama =
        R"({"model_type": "mllama", "text_config": {"model_type": "mllama_text_model",
           "hidden_size": 4096,
        "num_attention_heads": 32, "rope_theta": 500000.0, "num_hidden_layers": 5,
        "cross_attention_layers": [3]}})";
    CHECK(!rotates(mllama, {.layer = 3}));
    CHECK(rotates(mllama, {.layer = 4}));
    CHECK(warns(imported(mllama), "some layers have no RoPE"));
    // Layer types that are not softmax attention.
    const std::string hybrid =
        R"({"model_type": "qwen3_next", "head_dim": 128, "partial_rotary_factor": 0.25,
           "rope_theta": 1e7,
        "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]})";
    CHECK(!rotates(hybrid, {.layer = 0}));
    CHECK(rotates(hybrid, {.layer = 1}));
    CHECK(!rotates(hybrid, {.layer_type = "linear_attention"}));
}

TEST_CASE(
    "multi-head latent attention: the windows of Q and K differ, and the softmax takes its part") {
    const Rotation v3 = imported(
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
    const Rotation kimi = imported(
        R"({"model_type": "kimi_k2", "rope_theta": 50000.0, "qk_nope_head_dim": 128,
           "qk_rope_head_dim": 64,
        "max_position_embeddings": 131072, "rope_scaling": {"beta_fast": 1.0, "beta_slow": 1.0,
        "factor": 32.0, "mscale": 1.0,
        "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096, "type": "yarn"}})");
    for (std::size_t j = 0; j < 32; ++j) {
        CHECK(close(kimi.inv_freq[j], std::pow(50000, -2.0 * double(j) / 64) / (j <= 19 ? 1 : 32)));
    }
    CHECK(close(kimi.softmax_scale, std::pow(0.1 * std::log(32.0) + 1, 2)));

    const Rotation minicpm = imported(
        R"({"model_type": "minicpm3", "qk_nope_head_dim": 64, "qk_rope_head_dim": 32,
           "rope_theta": 1e4})");
    CHECK(minicpm.pairing == half);
    CHECK(minicpm.q_rotary_offset == 64);
    CHECK(minicpm.k_rotary_offset == 256);
    CHECK(warns(minicpm, "kv_lora_rank is missing: assuming 256"));
    CHECK(minicpm.softmax_scale == 1);

    const Rotation lite = imported(
        R"({"model_type": "deepseek_v3", "rope_theta": 1e4, "rope_interleave": false})");
    CHECK(lite.pairing == half);
    CHECK(warns(lite, "qk_rope_head_dim is missing: assuming 64"));
    CHECK(warns(lite, "qk_nope_head_dim is missing: assuming 128"));
}

TEST_CASE("PLaMo 2: attention in the middle of every few layers") {
    const std::string json =
        R"({"model_type": "plamo2", "hidden_size": 4096, "num_attention_heads": 32,
           "hidden_size_per_head": 128,
        "num_hidden_layers": 4)";
    for (int layer = 0; layer < 4; ++layer) {
        CHECK(imported(json + R"(, "mamba_step": 2, "mamba_enabled": true})", {.layer = layer})
                  .rotates == (layer % 2 == 1));
        CHECK(imported(json + R"(, "mamba_step": 8})", {.layer = layer}).rotates ==
              (layer == 3));  // at least the last
        CHECK(imported(json + R"(, "mamba_step": 2, "mamba_enabled": false})", {.layer = layer})
                  .rotates);
    }
    check_plain(imported(json + R"(, "mamba_step": 2})", {.layer = 1}), 1e4);
}

TEST_CASE("the pairing can be overridden") {
    const std::string json = R"({"model_type": "llama", "head_dim": 64, "rope_theta": 1e4})";
    CHECK(imported(json).pairing == half);
    CHECK(imported(json, {.pairing = interleaved}).pairing == interleaved);
    CHECK(imported(R"({"model_type": "gptj", "head_dim": 64, "rotary_dim": 64})", {.pairing = half})
              .pairing == half);
}

TEST_CASE("positions on several axes") {
    const auto text = [](const std::string& fields) { return imported("{" + fields + "}", {}); };
    const Rotation qwen25 = text(
        R"("model_type": "qwen2_5_vl", "hidden_size": 3584, "num_attention_heads": 28,
           "rope_theta": 1e6,
        "rope_scaling": {"type": "default", "rope_type": "default", "mrope_section": [16, 24,
        24]})");
    CHECK(sections_of(qwen25) == std::vector<std::uint32_t>{16, 24, 24});
    CHECK(qwen25.sections.order == SectionOrder::sequential);
    CHECK(qwen25.rope_type == "default");
    CHECK(qwen25.warnings.empty());
    // Both spellings of no scaling, as in an upgraded file.
    CHECK(text(
              R"("model_type": "qwen2_vl", "head_dim": 128, "rope_theta": 1e6,
               "rope_scaling": {"type": "mrope",
        "rope_type": "default", "mrope_section": [16, 24, 24]})")
              .rope_type == "default");
    const Rotation qwen3 = text(
        R"("model_type": "qwen3_vl", "text_config": {"model_type": "qwen3_vl_text", "head_dim": 128,
        "rope_theta": 5000000, "rope_scaling": {"mrope_interleaved": true, "mrope_section": [24, 20,
        20], "rope_type": "default"}})");
    CHECK(sections_of(qwen3) == std::vector<std::uint32_t>{24, 20, 20});
    CHECK(qwen3.sections.order == SectionOrder::interleaved);
    CHECK(qwen3.sections.leftover_axis == 0);
    check_plain(qwen3, 5e6);
    const Rotation omni = text(
        R"("model_type": "qwen2_5_omni", "thinker_config": {"model_type": "qwen2_5_omni_thinker",
           "text_config":
        {"model_type": "qwen2_5_omni_text", "hidden_size": 3584, "num_attention_heads": 28,
        "rope_theta": 1e6,
         "rope_scaling": {"type": "default", "mrope_section": [16, 24, 24]}}})");
    CHECK(sections_of(omni) == std::vector<std::uint32_t>{16, 24, 24});
    const Rotation glm = text(
        R"("model_type": "glm4v", "text_config": {"model_type": "glm4v_text", "hidden_size": 4096,
        "num_attention_heads": 32, "partial_rotary_factor": 0.5, "rope_theta": 1e4,
        "rope_scaling": {"rope_type": "default", "mrope_section": [8, 12, 12]}})");
    CHECK(glm.pairing == interleaved);
    CHECK(glm.rotary_dim == 64);
    CHECK(sections_of(glm) == std::vector<std::uint32_t>{8, 12, 12});
    const Rotation assumed = text(
        R"("model_type": "qwen3_5_text", "head_dim": 256, "partial_rotary_factor": 0.25,
           "rope_theta": 1e7)");
    CHECK(sections_of(assumed) == std::vector<std::uint32_t>{11, 11, 10});
    CHECK(warns(assumed, "mrope_section is missing: assuming 11, 11, 10"));
    const Rotation yarn = text(
        R"("model_type": "qwen2_5_vl", "head_dim": 128, "rope_theta": 1e6,
           "max_position_embeddings": 32768,
        "rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 32768,
        "mrope_section": [16, 24, 24]})");
    CHECK(yarn.rope_type == "yarn");
    CHECK(sections_of(yarn).size() == 3);
    const Rotation hunyuan = text(
        R"("model_type": "hunyuan_vl", "head_dim": 128, "rope_theta": 1e4,
           "rope_scaling": {"type": "xdrope",
        "alpha": 1000.0, "xdrope_section": [16, 16, 16, 16]})");
    CHECK(sections_of(hunyuan).size() == 4);
    check_plain(hunyuan, 1e4 * std::pow(1000.0, 128.0 / 126));
}

TEST_CASE("vision towers: a row and a column, with frequencies each") {
    const auto tower = [](const std::string& fields) {
        return imported("{" + fields + "}", {.tower = "vision"});
    };
    for (const char* json :
         {R"("model_type": "qwen2_vl", "vision_config": {"embed_dim": 1280, "hidden_size": 1536,
            "num_heads": 16})",
          R"("model_type": "qwen2_5_vl", "vision_config": {"model_type": "qwen2_5_vl",
            "hidden_size": 1280,
                                "num_heads": 16})",
          R"("model_type": "colqwen2", "vlm_config": {"model_type": "qwen2_vl",
            "vision_config": {"model_type": "qwen2_vl",
                                "embed_dim": 1280, "num_heads": 16}})",
          R"("model_type": "qwen2_5_omni", "thinker_config": {"vision_config": {"hidden_size": 1280,
                                "num_heads": 16}})"}) {
        CAPTURE(std::string(json));
        const Rotation rotation = tower(json);
        CHECK(rotation.head_dim == 80);
        CHECK(rotation.rotary_dim == 80);
        CHECK(rotation.pairing == half);
        CHECK(sections_of(rotation) == std::vector<std::uint32_t>{20, 20});
        REQUIRE(rotation.inv_freq.size() == 40);
        for (std::size_t j = 0; j < 20; ++j) {
            CHECK(close(rotation.inv_freq[j], std::pow(1e4, -2.0 * double(j) / 40)));
            CHECK(rotation.inv_freq[j + 20] == rotation.inv_freq[j]);
        }
    }
    CHECK(tower(
              R"("model_type": "qwen3_vl", "vision_config": {"model_type": "qwen3_vl",
               "hidden_size": 1024, "num_heads": 16})")
              .head_dim == 64);
    const Rotation pixtral = tower(
        R"("model_type": "mistral3", "vision_config": {"model_type": "pixtral", "hidden_size": 1024,
        "num_attention_heads": 16, "head_dim": 64, "rope_theta": 10000.0})");
    REQUIRE(pixtral.inv_freq.size() == 32);
    for (std::size_t j = 0; j < 16; ++j) {
        CHECK(close(pixtral.inv_freq[j], std::pow(1e4, -4.0 * double(j) / 64)));
        CHECK(close(pixtral.inv_freq[j + 16], std::pow(1e4, -(4.0 * double(j) + 2) / 64)));
    }
    const Rotation llama4 = tower(
        R"("model_type": "llama4", "vision_config": {"model_type": "llama4_vision_model",
           "hidden_size": 1408,
        "num_attention_heads": 16, "rope_theta": 10000})");
    CHECK(llama4.head_dim == 88);
    CHECK(llama4.pairing == interleaved);
    CHECK(close(llama4.inv_freq[1], std::pow(1e4, -2.0 / 44)));
    CHECK(close(llama4.inv_freq[23], std::pow(1e4, -2.0 / 44)));
    CHECK(warns(llama4, "column + 1, row + 1"));
}

TEST_CASE("scalings as configurations spell them") {
    const auto llama = [](const std::string& fields, std::uint64_t seq_len = 0) {
        return imported(
            R"({"model_type": "llama", "head_dim": 64, "max_position_embeddings": 2048,
               "rope_theta": 1e4, )" +
                fields + "}",
            {.seq_len = seq_len});
    };
    const std::string dynamic = R"("rope_scaling": {"type": "dynamic", "factor": 2.0})";
    check_plain(llama(dynamic), 1e4);
    CHECK(warns(llama(dynamic), "dynamic scaling depends on the length"));
    check_plain(llama(dynamic, 2048), 1e4);
    check_plain(llama(dynamic, 8192), 1e4 * std::pow(7.0, 64.0 / 62));
    CHECK(llama(dynamic, 8192).warnings.empty());
    check_plain(llama(R"("rope_scaling": {"type": "dynamic", "alpha": 1000.0})"),
                1e4 * std::pow(1000.0, 64.0 / 62));

    const std::string qwen =
        R"({"model_type": "qwen", "kv_channels": 128, "rotary_emb_base": 10000, "seq_length": 2048,
        "max_position_embeddings": 8192, "use_dynamic_ntk": true})";
    check_plain(imported(qwen, {.seq_len = 2048}), 1e4);
    check_plain(imported(qwen, {.seq_len = 4096}), 1e4 * std::pow(3.0, 128.0 / 126));
    check_plain(imported(qwen, {.seq_len = 5000}), 1e4 * std::pow(7.0, 128.0 / 126));
    CHECK(warns(imported(qwen), "use_dynamic_ntk depends on the length"));

    const Rotation yarn = llama(R"("rope_scaling": {"type": "yarn", "factor": 4.0})");
    CHECK(warns(yarn, "original_max_position_embeddings is missing: assuming 2048"));
    CHECK(close(yarn.attention_factor, 0.1 * std::log(4.0) + 1));
    CHECK(
        close(llama(R"("rope_scaling": {"type": "yarn", "original_max_position_embeddings": 512})")
                  .attention_factor,
              0.1 * std::log(4.0) + 1));
    CHECK(close(llama(
                    R"("rope_scaling": {"type": "yarn", "factor": 4.0,
               "original_max_position_embeddings": 512, "mscale": 0.5,
                       "mscale_all_dim": 2})")
                    .attention_factor,
                (0.05 * std::log(4.0) + 1) / (0.2 * std::log(4.0) + 1)));

    const Rotation gpt_oss = imported(
        R"({"model_type": "gpt_oss", "head_dim": 64, "max_position_embeddings": 131072})");
    CHECK(gpt_oss.rope_type == "yarn");
    CHECK(warns(gpt_oss, "rope_scaling is missing: assuming the default of gpt_oss"));
    CHECK(
        imported(R"({"model_type": "gpt_oss", "head_dim": 64, "rope_scaling": null})").rope_type ==
        "default");

    const std::string phimoe =
        R"({"model_type": "phimoe", "head_dim": 4, "rope_theta": 1e4,
           "max_position_embeddings": 131072,
        "original_max_position_embeddings": 4096, "rope_scaling": {"type": "longrope",
        "short_factor": [1, 2], "long_factor": [3, 4],
        "short_mscale": 1.25, "long_mscale": 1.5}})";
    CHECK(imported(phimoe, {.seq_len = 4096}).attention_factor == 1.25);
    CHECK(imported(phimoe, {.seq_len = 4097}).attention_factor == 1.5);
    CHECK(close(imported(phimoe, {.seq_len = 4097}).inv_freq[1], 0.01 / 4));

    CHECK(warns(llama(R"("rope_scaling": {"type": "linear", "factor": 2})", 4096),
                "seq_len is 4096: the model was made for 2048"));
}

TEST_CASE("Llama 4 Scout: the factors of its llama3 scaling are equal") {
    const Rotation scout = imported(
        R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text", "head_dim": 128,
        "rope_theta": 500000.0, "max_position_embeddings": 10485760, "num_hidden_layers": 48,
        "no_rope_layers": [], "rope_scaling":
        {"factor": 16.0, "high_freq_factor": 1.0, "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192,
         "rope_type": "llama3"}}})",
        {.layer = 0});
    CHECK(scout.pairing == interleaved);
    for (std::size_t j = 0; j < 64; ++j) {
        const double frequency = std::pow(5e5, -2.0 * double(j) / 128);
        CHECK(close(scout.inv_freq[j],
                    6.283185307179586 / frequency < 8192 ? frequency : frequency / 16));
    }
}

TEST_CASE("one model inside another: which of them is read is said") {
    const Rotation rotation = imported(
        R"({"model_type": "llava", "rope_theta": 5000, "text_config": {"model_type": "llama",
        "head_dim": 64, "rope_theta": 1e4}})");
    check_plain(rotation, 1e4);
    CHECK(warns(rotation, "ignored key rope_theta"));
    const Result<Rotation> bad = from_hf_config(
        R"({"model_type": "llava", "text_config": {"model_type": "llama", "head_dim": 64,
           "rope_theta": -1}})");
    CHECK(std::string(bad.status.what) ==
          "text_config.rope_theta is -1: it must be a finite number above 0");
}
