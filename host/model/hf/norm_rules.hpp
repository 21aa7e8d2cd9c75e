// SPDX-License-Identifier: MIT
// The norms of Q and K in each class of the table of model types: which, none, or not known. Source
// of every row: the attention class of the model's modeling_*.py (kind, span, place, weight) and
// its configuration_*.py (defaults), in Hugging Face transformers or beside the weights; for some
// of the latter, the same class in mlx-lm or chatllm.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "model/sorted_table.hpp"
#include "vkrope/types.hpp"

namespace vkrope {

/// What it means that the key is missing which asks for norms.
enum class Unsaid {
    none,       ///< no norms
    norms,      ///< norms
    not_known,  ///< either: versions of the class disagree
};

/// The norms of Q and K in a class of models. A row says what differs from Qwen 3.
struct NormRule {
    const char* name = nullptr;  ///< model_type
    NormKind kind = VKROPE_NORM_RMS;
    NormSpan span = VKROPE_NORM_SPAN_HEAD;
    NormPlace place = VKROPE_NORM_PLACE_BEFORE;
    ParameterShape weight = VKROPE_PARAMETER_CHANNEL;
    std::uint32_t weight_offset = 0;
    ParameterShape bias = VKROPE_PARAMETER_NONE;
    const char* eps_key = "rms_norm_eps";  ///< null: the class fixes it
    double eps = 1e-6;                     ///< of the class, if the key is missing
    const char* asked_by = nullptr;        ///< only if this key is true; null: always
    const char* or_by = nullptr;           ///< with asked_by: another key that asks for norms
    Unsaid unsaid = Unsaid::none;          ///< with asked_by: what a missing key means
    bool not_known = false;                ///< the class has norms, which a Norm cannot say
    bool q_without_weight = false;         ///< the weight is K's alone
    bool of_v_too = false;                 ///< V has the norm too, without a weight
    bool with_rope_only = false;           ///< layers without RoPE have none
    bool crossing_only = false;            ///< only layers that attend to an image have them
};

constexpr NormRule rms_norm(const char* name, double eps = 1e-6) {
    return {.name = name, .eps = eps};
}

constexpr NormRule over_token(const char* name, double eps = 1e-5) {
    return {
        .name = name, .span = VKROPE_NORM_SPAN_TOKEN, .weight = VKROPE_PARAMETER_HEAD_CHANNEL, .eps = eps};
}

constexpr NormRule after_rotation(const char* name) {
    return {.name = name, .place = VKROPE_NORM_PLACE_AFTER, .eps = 1e-5};
}

/// Layer norms that layer_norm_eps belongs to.
constexpr NormRule layer_norm(const char* name, ParameterShape weight, ParameterShape bias,
                              const char* asked_by, Unsaid unsaid = Unsaid::none) {
    return {.name = name,
            .kind = VKROPE_NORM_LAYER,
            .weight = weight,
            .bias = bias,
            .eps_key = "layer_norm_eps",
            .eps = 1e-5,
            .asked_by = asked_by,
            .unsaid = unsaid};
}

/// Norms that are not read: whatever the file says, or only if this key is true.
constexpr NormRule not_known(const char* name, const char* asked_by = nullptr) {
    return {.name = name, .asked_by = asked_by, .not_known = true};
}

// Sorted by name.
inline constexpr NormRule norm_rules[] = {
    rms_norm("afmoe", 1e-5),
    rms_norm("apertus", 1e-5),
    {.name = "bailing_moe", .eps = 1e-5, .asked_by = "use_qk_norm"},
    {.name = "bailing_moe_v2", .asked_by = "use_qk_norm", .unsaid = Unsaid::not_known},
    {.name = "chameleon",
     .kind = VKROPE_NORM_LAYER,
     .weight = VKROPE_PARAMETER_HEAD_CHANNEL,
     .bias = VKROPE_PARAMETER_HEAD_CHANNEL,
     .eps_key = nullptr,
     .eps = 1e-5},
    layer_norm("cohere", VKROPE_PARAMETER_HEAD_CHANNEL, VKROPE_PARAMETER_NONE, "use_qk_norm"),
    {.name = "deepseek_v4", .q_without_weight = true},
    rms_norm("doge"),
    rms_norm("dots1"),
    rms_norm("exaone4", 1e-5),
    rms_norm("exaone_moe", 1e-5),
    over_token("flex_olmo", 1e-6),
    {.name = "gemma3_text", .weight_offset = 1},
    {.name = "gemma3n_text", .of_v_too = true},
    {.name = "gemma4_text", .of_v_too = true},
    {.name = "glm4_moe", .eps = 1e-5, .asked_by = "use_qk_norm"},
    not_known("hf_olmo", "attention_layer_norm"),  // of one of three kinds, over the token
    {.name = "hunyuan", .place = VKROPE_NORM_PLACE_AFTER, .eps = 1e-5, .asked_by = "use_qk_norm"},
    {.name = "hunyuan_image_3_moe",
     .place = VKROPE_NORM_PLACE_AFTER,
     .eps = 1e-5,
     .asked_by = "use_qk_norm"},
    after_rotation("hunyuan_v1_dense"),
    after_rotation("hunyuan_v1_moe"),
    after_rotation("hunyuan_vl"),
    rms_norm("hy_v3", 1e-5),
    rms_norm("laguna"),
    {.name = "lfm2", .eps_key = "norm_eps", .eps = 1e-5},
    {.name = "lfm2_moe", .eps_key = "norm_eps", .eps = 1e-5},
    {.name = "llama4_text",
     .place = VKROPE_NORM_PLACE_AFTER,
     .weight = VKROPE_PARAMETER_NONE,
     .eps = 1e-5,
     .asked_by = "use_qk_norm",
     .unsaid = Unsaid::norms,
     .with_rope_only = true},
    rms_norm("mellum"),
    not_known("minicpmv"),  // its versions have language models of several classes
    {.name = "minimax_m2",
     .span = VKROPE_NORM_SPAN_TOKEN,
     .weight = VKROPE_PARAMETER_HEAD_CHANNEL,
     .asked_by = "use_qk_norm",
     .unsaid = Unsaid::norms},
    {.name = "minimax_m3_vl_text", .weight_offset = 1},
    {.name = "mllama_text_model", .eps = 1e-5, .crossing_only = true},
    {.name = "mpt",  // over the token, or over groups, in its own code; transformers has none
     .asked_by = "qk_ln",
     .or_by = "qk_gn",
     .not_known = true},
    over_token("olmo2"),
    over_token("olmo3"),
    over_token("olmo_hybrid", 1e-6),
    over_token("olmoe"),
    {.name = "openelm",
     .eps_key = nullptr,
     .asked_by = "normalize_qk_projections",
     .unsaid = Unsaid::not_known},
    layer_norm("persimmon", VKROPE_PARAMETER_CHANNEL, VKROPE_PARAMETER_CHANNEL, "qk_layernorm",
               Unsaid::norms),
    layer_norm("phi", VKROPE_PARAMETER_CHANNEL, VKROPE_PARAMETER_CHANNEL, "qk_layernorm"),
    {.name = "plamo2", .weight = VKROPE_PARAMETER_HEAD_CHANNEL, .eps_key = nullptr},
    rms_norm("qwen3"),
    {.name = "qwen3_5", .weight_offset = 1},
    rms_norm("qwen3_moe"),
    {.name = "qwen3_next", .weight_offset = 1},
    rms_norm("qwen3_omni_moe_text"),
    rms_norm("qwen3_vl"),
    rms_norm("qwen3_vl_moe"),
    layer_norm("stablelm", VKROPE_PARAMETER_HEAD_CHANNEL, VKROPE_PARAMETER_NONE, "qk_layernorm"),
    {.name = "step3p5", .weight_offset = 1, .eps = 1e-5},
};

/// Classes without norms of Q and K. Those of latent attention normalise the latent channels, which
/// belong to the projections. Sorted.
inline constexpr const char* without_norms[] = {"aquila",
                                                "arcee",
                                                "arctic",
                                                "aria_text",
                                                "baichuan",
                                                "bamba",
                                                "bitnet",
                                                "chatglm",
                                                "codegen",
                                                "cohere2",
                                                "csm",
                                                "cwm",
                                                "dbrx",
                                                "deci",
                                                "deepseek",
                                                "deepseek_v2",
                                                "deepseek_v3",
                                                "deepseek_v32",
                                                "diffllama",
                                                "emu3_text_model",
                                                "ernie4_5",
                                                "ernie4_5_moe",
                                                "ernie4_5_vl_moe_text",
                                                "esm",
                                                "eurobert",
                                                "exaone",
                                                "falcon",
                                                "falcon_h1",
                                                "gemma",
                                                "gemma2",
                                                "glm",
                                                "glm4",
                                                "glm4_moe_lite",
                                                "glm4v",
                                                "glm4v_moe",
                                                "glm_moe_dsa",
                                                "gpt_neox",
                                                "gpt_neox_japanese",
                                                "gpt_oss",
                                                "gptj",
                                                "granite",
                                                "granite_swa",
                                                "granitemoe",
                                                "granitemoehybrid",
                                                "granitemoeshared",
                                                "grok-1",
                                                "helium",
                                                "hyperclovax",
                                                "idefics",
                                                "internlm",
                                                "internlm2",
                                                "internlm3",
                                                "jais2",
                                                "jetmoe",
                                                "kimi_k2",
                                                "llama",
                                                "longcat_flash",
                                                "mimi",
                                                "mimo",
                                                "mimo_v2_flash",
                                                "minicpm",
                                                "minicpm3",
                                                "minimax",
                                                "minimax_m1",
                                                "minimax_text_01",
                                                "ministral",
                                                "ministral3",
                                                "mistral",
                                                "mistral4",
                                                "mixtral",
                                                "modernbert",
                                                "modernbert-decoder",
                                                "moonshine",
                                                "moshi",
                                                "nemotron",
                                                "nemotron-nas",
                                                "neobert",
                                                "new",
                                                "nomic_bert",
                                                "olmo",
                                                "open-llama",
                                                "orion",
                                                "phi-msft",
                                                "phi3",
                                                "phi3small",
                                                "phi4_multimodal",
                                                "phimoe",
                                                "plamo",
                                                "qwen",
                                                "qwen2",
                                                "qwen2_5_vl",
                                                "qwen2_moe",
                                                "qwen2_vl",
                                                "recurrent_gemma",
                                                "roformer",
                                                "seed_oss",
                                                "smollm3",
                                                "solar_open",
                                                "starcoder2",
                                                "t5_gemma_module",
                                                "telechat",
                                                "vaultgemma",
                                                "xlm-roberta",
                                                "xlm-roberta-flash",
                                                "xverse",
                                                "youtu",
                                                "zamba2"};

/// Whether a class has no norms of Q and K.
constexpr bool has_no_norms(std::string_view model_type) {
    for (const char* name : without_norms) {
        if (model_type == name) {
            return true;
        }
    }
    return false;
}

/// Whether each row of a table of model types has its norms stated, in one of the two lists, and
/// no other name has; for a static_assert beside the table.
template <class Row, std::size_t count>
constexpr bool norms_are_stated(const Row (&rows)[count]) {
    for (const Row& row : rows) {
        bool ruled = false;
        for (const NormRule& rule : norm_rules) {
            ruled = ruled || std::string_view(rule.name) == row.name;
        }
        if (ruled == has_no_norms(row.name)) {
            return false;
        }
    }
    return count == std::size(norm_rules) + std::size(without_norms);
}

}  // namespace vkrope
