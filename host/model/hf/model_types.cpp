// SPDX-License-Identifier: MIT
// Contains the table of model types, which makes this file longer than others. Source of every row:
// the model's modeling_*.py (pairing, layers) and configuration_*.py (defaults) in Hugging Face
// transformers or next to the model's weights.
#include "model/hf/model_types.hpp"

#include <initializer_list>
#include <string_view>

#include "model/names.hpp"

namespace vkrope {
namespace {

constexpr Pairing interleaved = VKROPE_INTERLEAVED;

constexpr const char* gpt_oss_yarn =
    R"({"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
    "truncate": false, "original_max_position_embeddings": 4096})";
constexpr const char* apertus_llama3 =
    R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192})";

constexpr const char* laguna_types = R"({
    "full_attention": {"rope_type": "default", "rope_theta": 500000.0,
    "partial_rotary_factor": 0.5},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0,
    "partial_rotary_factor": 1.0}})";
constexpr const char* mellum_types =
    R"({"full_attention": {"rope_type": "default", "rope_theta": 500000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}})";
constexpr const char* mistral4_yarn =
    R"({"rope_type": "yarn", "rope_theta": 10000.0, "factor": 128.0, "beta_fast": 32.0,
    "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 8192})";

constexpr const char* by_position_embedding_type = "position_embedding_type";

/// Classes with the rotation of Llama, grouped by the size of their layers.
constexpr auto like_llama = names("aquila", "aria_text", "baichuan", "deepseek", "granite",
                                  "granitemoe", "granitemoeshared", "hyperclovax", "idefics",
                                  "internlm2", "internlm3", "llama", "minicpm", "mistral", "moshi",
                                  "open-llama", "orion", "plamo", "qwen2", "xverse");

using enum LayerRule;

constexpr ModelType other_types[] = {
    {.name = "afmoe", .head_dim = 128, .layers = {none_on_full, 4}, .norms = rms_norm(1e-5)},
    {.name = "apertus",
     .rope_theta = 12000000,
     .size = {4096, 32},
     .scaling = apertus_llama3,
     .norms = rms_norm(1e-5)},
    {.name = "arcee", .size = {2560, 32}},
    {.name = "arctic", .rope_theta = 1000000, .size = {4096, 32}},
    {.name = "bailing_moe", .rope_theta = 0, .norms = rms_norm(1e-5, "use_qk_norm")},
    {.name = "bailing_moe_v2",
     .rope_theta = 0,
     .norms = rms_norm(1e-6, "use_qk_norm", Unsaid::not_known)},
    {.name = "bamba", .partial_rotary_factor = 0.5, .size = {4096, 32}},
    {.name = "bitnet", .rope_theta = 500000, .size = {2560, 20}},
    {.name = "chameleon",
     .size = {4096, 32},
     .norms = {.kind = VKROPE_NORM_LAYER,
               .weight = VKROPE_PARAMETER_HEAD_CHANNEL,
               .bias = VKROPE_PARAMETER_HEAD_CHANNEL,
               .eps_key = nullptr,
               .eps = 1e-5}},
    {.name = "chatglm", .pairing = interleaved, .partial_rotary_factor = 0.5},
    {.name = "codegen", .pairing = interleaved, .rotary_dim = 64, .size = {4096, 16}},
    {.name = "cohere",
     .pairing = interleaved,
     .rope_theta_since_5 = 500000,
     .size = {8192, 64},
     .norms = layer_norm(VKROPE_PARAMETER_HEAD_CHANNEL, VKROPE_PARAMETER_NONE, "use_qk_norm")},
    {.name = "cohere2", .pairing = interleaved, .size = {8192, 64}, .layers = {none_on_full, 4}},
    {.name = "csm", .rope_theta = 500000, .size = {2048, 32}},
    {.name = "cwm", .rope_theta = 1000000, .head_dim = 128},
    {.name = "dbrx", .size = {2048, 16}, .clips = true},
    {.name = "deepseek_v2", .pairing = interleaved, .size = {4096, 32}, .latent = {128, 64}},
    {.name = "deepseek_v3", .pairing = interleaved, .size = {7168, 128}, .latent = {128, 64}},
    {.name = "deepseek_v32",
     .pairing = interleaved,
     .size = {7168, 128},
     .latent = {128, 64},
     .indexer = VKROPE_HALF_SPLIT},
    {.name = "deepseek_v4",
     .pairing = interleaved,
     .rotary_dim = 64,
     .head_dim = 512,
     .layers = {compressed},
     .tail_window = true,
     .norms = {.kind = VKROPE_NORM_RMS, .q_without_weight = true}},
    {.name = "diffllama", .size = {2048, 32}},
    {.name = "doge", .size = {1024, 8}, .norms = rms_norm()},
    {.name = "dots1", .size = {4096, 32}, .norms = rms_norm()},
    {.name = "emu3_text_model", .rope_theta = 1000000, .size = {4096, 32}},
    {.name = "ernie4_5", .pairing = interleaved, .rope_theta = 500000, .head_dim = 128},
    {.name = "ernie4_5_moe", .pairing = interleaved, .rope_theta = 500000, .size = {2560, 20}},
    {.name = "ernie4_5_vl_moe_text",
     .pairing = interleaved,
     .rope_theta = 500000,
     .size = {2560, 20},
     .mrope_section = {22, 22, 20},
     .alternating = Alternating::then_time},
    {.name = "esm", .size = {768, 12}, .rope_asked_by = by_position_embedding_type},
    {.name = "eurobert", .rope_theta = 250000, .size = {768, 12}},
    {.name = "exaone", .size = {2048, 32}},
    {.name = "exaone4",
     .size = {4096, 32},
     .layers = {none_on_full_of_sliding, 4},
     .norms = rms_norm(1e-5)},
    {.name = "exaone_moe", .layers = {none_on_full_of_sliding, 4}, .norms = rms_norm(1e-5)},
    {.name = "falcon", .size = {4544, 71}},
    {.name = "falcon_h1", .rope_theta = 100000, .size = {4096, 32}},
    {.name = "flex_olmo", .rope_theta = 500000, .size = {4096, 32}, .norms = over_token(1e-6)},
    {.name = "gemma", .head_dim = 256},
    {.name = "gemma2", .head_dim = 256, .layers = {.period = 2}},
    {.name = "gemma3_text",
     .rope_theta = 1000000,
     .head_dim = 256,
     .layers = {local_base, 6},
     .norms = one_plus_weight()},
    {.name = "gemma3n_text",
     .rope_theta = 1000000,
     .head_dim = 256,
     .layers = {local_base, 5},
     .fixed_scale = 1,
     .norms = rms_norm_of_v_too()},
    {.name = "gemma4_text",
     .rope_theta = 1000000,
     .head_dim = 256,
     .scaling =
         R"({"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
            "rope_theta": 1000000.0},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}})",
     .layers = {local_base, 6},
     .global_head_dim = 512,
     .fixed_scale = 1,
     .norms = rms_norm_of_v_too()},
    {.name = "glm", .pairing = interleaved, .partial_rotary_factor = 0.5, .head_dim = 128},
    {.name = "glm4", .pairing = interleaved, .partial_rotary_factor = 0.5, .head_dim = 128},
    {.name = "glm4_moe", .partial_rotary_factor = 0.5, .norms = rms_norm(1e-5, "use_qk_norm")},
    {.name = "glm4_moe_lite", .pairing = interleaved, .latent = {192, 64}},
    {.name = "glm4v",
     .pairing = interleaved,
     .partial_rotary_factor = 0.5,
     .mrope_section = {8, 12, 12}},
    {.name = "glm4v_moe", .partial_rotary_factor = 0.5, .mrope_section = {8, 12, 12}},
    {.name = "glm_moe_dsa", .pairing = interleaved, .latent = {192, 64}, .indexer = interleaved},
    {.name = "gpt_neox", .partial_rotary_factor = 0.25, .size = {6144, 64}},
    {.name = "gpt_neox_japanese", .size = {2560, 32}},
    {.name = "gpt_oss",
     .rope_theta = 150000,
     .head_dim = 64,
     .scaling = gpt_oss_yarn,
     .layers = {.period = 2}},
    {.name = "gptj", .pairing = interleaved, .rotary_dim = 64, .size = {4096, 16}},
    {.name = "granite_swa", .size = {2560, 20}, .layers = {.period = 4, .full_first = true}},
    {.name = "granitemoehybrid", .size = {4096, 32}, .rope_asked_by = by_position_embedding_type},
    {.name = "grok-1", .size = {6144, 48}},
    {.name = "helium", .pairing = interleaved, .rope_theta = 100000, .head_dim = 128},
    {.name = "hf_olmo",
     .size = {768, 12},
     // one of three kinds of norm, over the token
     .norms = {.asked_by = "attention_layer_norm", .not_known = true},
     .clips = true},
    {.name = "hunyuan", .size = {4096, 32}, .norms = after_rotation("use_qk_norm")},
    {.name = "hunyuan_image_3_moe",  // build_2d_rope in hunyuan.py next to its weights
     .size = {4096, 32},
     .alternating = Alternating::two,
     .custom_scales_nothing = true,
     .norms = after_rotation("use_qk_norm")},
    {.name = "hunyuan_v1_dense", .size = {4096, 32}, .norms = after_rotation()},
    {.name = "hunyuan_v1_moe", .size = {4096, 32}, .norms = after_rotation()},
    {.name = "hunyuan_vl", .norms = after_rotation()},
    {.name = "hy_v3", .rope_theta = 11158840, .head_dim = 128, .norms = rms_norm(1e-5)},
    {.name = "internlm", .size = {4096, 32}, .rotary_object = true},
    {.name = "jais2", .rope_theta = 500000, .size = {3328, 26}},
    {.name = "jetmoe", .head_dim = 128},
    {.name = "kimi_k2",
     .pairing = interleaved,
     .rope_theta = 50000,
     .size = {7168, 64},
     .latent = {128, 64}},
    {.name = "laguna", .head_dim = 128, .scaling = laguna_types, .norms = rms_norm()},
    {.name = "lfm2",
     .rope_theta = 1000000,
     .size = {2560, 32},
     .norms = {.kind = VKROPE_NORM_RMS, .eps_key = "norm_eps", .eps = 1e-5}},
    {.name = "lfm2_moe",
     .rope_theta = 1000000,
     .size = {2048, 32},
     .norms = {.kind = VKROPE_NORM_RMS, .eps_key = "norm_eps", .eps = 1e-5}},
    {.name = "llama4_text",
     .pairing = interleaved,
     .rope_theta = 500000,
     .head_dim = 128,
     .no_rope_layer_interval = 4,
     .full_without_rope = true,
     .norms = {.kind = VKROPE_NORM_RMS,
               .place = VKROPE_NORM_PLACE_AFTER,
               .weight = VKROPE_PARAMETER_NONE,
               .eps = 1e-5,
               .asked_by = "use_qk_norm",
               .unsaid = Unsaid::norms,
               .with_rope_only = true},
     .query_scale = VKROPE_QUERY_SCALING_LLAMA4},
    {.name = "longcat_flash", .pairing = interleaved, .rope_theta = 10000000, .latent = {128, 64}},
    {.name = "mellum", .head_dim = 128, .scaling = mellum_types, .norms = rms_norm()},
    {.name = "mimi", .size = {512, 8}},
    {.name = "mimo", .rope_theta = 640000},
    {.name = "mimo_v2_flash", .rope_theta = 0, .layers = {local_base}},
    {.name = "minicpm3", .latent = {64, 32, 256}},
    {.name = "minicpmv",
     .rope_theta = 0,
     // its versions have language models of several classes
     .norms = {.not_known = true}},
    {.name = "minimax", .rope_theta = 1000000, .size = {4096, 32}},
    {.name = "minimax_m1", .rope_theta = 10000000},
    {.name = "minimax_m2",
     .rope_theta = 5000000,
     .norms = over_token(1e-6, "use_qk_norm", Unsaid::norms)},
    {.name = "minimax_m3_vl_text",
     .rope_theta = 0,
     .rotary_dim = 64,
     .head_dim = 128,
     .norms = one_plus_weight()},
    {.name = "minimax_text_01", .rope_theta = 10000000},
    {.name = "ministral", .head_dim = 128},
    {.name = "ministral3",
     .rope_theta = 1000000,
     .head_dim = 128,
     .query_scale = VKROPE_QUERY_SCALING_MINISTRAL3},
    {.name = "mistral4",
     .pairing = interleaved,
     .latent = {64, 64, 256},
     .scaling = mistral4_yarn,
     .softmax_differs = true,
     .query_scale = VKROPE_QUERY_SCALING_MINISTRAL3},
    {.name = "mixtral", .rope_theta = 1000000, .size = {4096, 32}},
    {.name = "mllama_text_model",
     .rope_theta = 500000,
     .size = {4096, 32},
     .norms = {.kind = VKROPE_NORM_RMS, .eps = 1e-5, .crossing_only = true}},
    {.name = "modernbert",
     .rope_theta = 160000,
     .size = {768, 12},
     .layers = {local_base, 3, true}},
    {.name = "modernbert-decoder",
     .rope_theta = 160000,
     .size = {768, 12},
     .layers = {local_base, 3, true}},
    {.name = "moonshine", .pairing = interleaved, .partial_rotary_factor = 0.9, .size = {288, 8}},
    {.name = "mpt",
     .size = {2048, 16},
     .rope_asked_by = "rope",
     // norms over the token or over groups in its own code; transformers has no norms
     .norms = {.asked_by = "qk_ln", .or_by = "qk_gn", .not_known = true},
     .clips = true},
    {.name = "nemotron", .partial_rotary_factor = 0.5, .size = {6144, 48}},
    {.name = "neobert", .pairing = interleaved},
    {.name = "new", .size = {768, 12}, .absolute_is_meant = true, .mixed_ntk = true},  // GTE
    {.name = "nanochat",
     .reversed = true,
     .norms = {.kind = VKROPE_NORM_RMS,
               .place = VKROPE_NORM_PLACE_AFTER,
               .weight = VKROPE_PARAMETER_NONE}},
    {.name = "nemotron-nas", .size = {4096, 32}, .pairing_stated = true},
    {.name = "nomic_bert", .dynamic_factor = "rotary_scaling_factor", .pairing_stated = true},
    {.name = "olmo", .size = {4096, 32}, .clips = true},
    {.name = "olmo2", .size = {4096, 32}, .norms = over_token()},
    {.name = "olmo3", .size = {4096, 32}, .layers = {scaled_on_full, 4}, .norms = over_token()},
    {.name = "olmo_hybrid",
     .size = {3840, 30},
     .layers = {.period = 4},
     .rope_asked_by = "rope_theta",
     .norms = over_token(1e-6)},
    {.name = "olmoe", .size = {2048, 16}, .norms = over_token(), .clips = true},
    {.name = "openelm",
     .head_dim = 128,
     .norms = {.kind = VKROPE_NORM_RMS,
               .eps_key = nullptr,
               .asked_by = "normalize_qk_projections",
               .unsaid = Unsaid::not_known}},
    {.name = "persimmon",
     .rope_theta = 25000,
     .partial_rotary_factor = 0.5,
     .size = {4096, 64},
     .norms = layer_norm(VKROPE_PARAMETER_CHANNEL, VKROPE_PARAMETER_CHANNEL, "qk_layernorm",
                         Unsaid::norms)},
    {.name = "phi",
     .partial_rotary_factor = 0.5,
     .size = {2048, 32},
     .norms = layer_norm(VKROPE_PARAMETER_CHANNEL, VKROPE_PARAMETER_CHANNEL, "qk_layernorm")},
    {.name = "phi-msft", .rotary_dim = 32},
    {.name = "phi3", .size = {3072, 32}},
    {.name = "phi3small", .rope_theta = 1000000, .size = {4096, 32}},
    {.name = "phi4_multimodal", .size = {3072, 32}},
    {.name = "phimoe", .rope_theta = 1000000, .size = {4096, 32}},
    {.name = "plamo2",
     .size = {4096, 32},
     .norms = {.kind = VKROPE_NORM_RMS,
               .weight = VKROPE_PARAMETER_HEAD_CHANNEL,
               .eps_key = nullptr}},
    {.name = "qwen",
     .size = {4096, 32},
     .grows_by_doubling = true,
     .query_scale = VKROPE_QUERY_SCALING_LOGN},
    {.name = "qwen2_5_vl", .rope_theta = 1000000, .size = {8192, 64}},
    {.name = "qwen2_moe", .size = {2048, 16}},
    {.name = "qwen2_vl", .rope_theta = 1000000, .size = {8192, 64}},
    {.name = "qwen3", .head_dim = 128, .norms = rms_norm()},
    {.name = "qwen3_5",
     .partial_rotary_factor = 0.25,
     .head_dim = 256,
     .mrope_section = {11, 11, 10},
     .mrope_interleaved = true,
     .norms = one_plus_weight()},
    {.name = "qwen3_moe", .size = {2048, 32}, .norms = rms_norm()},
    {.name = "qwen3_next",
     .partial_rotary_factor = 0.25,
     .head_dim = 256,
     .norms = one_plus_weight()},
    {.name = "qwen3_omni_moe_text",
     .rope_theta = 1000000,
     .mrope_section = {24, 20, 20},
     .mrope_interleaved = true,
     .norms = rms_norm()},
    {.name = "qwen3_vl",
     .rope_theta = 5000000,
     .head_dim = 128,
     .mrope_section = {24, 20, 20},
     .mrope_interleaved = true,
     .norms = rms_norm()},
    {.name = "qwen3_vl_moe",
     .rope_theta = 5000000,
     .mrope_section = {24, 20, 20},
     .mrope_interleaved = true,
     .norms = rms_norm()},
    {.name = "recurrent_gemma", .partial_rotary_factor = 0.5, .size = {2560, 10}},
    {.name = "roformer", .pairing = interleaved, .size = {768, 12}},
    {.name = "seed_oss", .rope_theta = 0, .head_dim = 128},
    {.name = "smollm3", .rope_theta = 2000000, .size = {2048, 16}, .no_rope_layer_interval = 4},
    {.name = "solar_open", .rope_theta = 1000000, .head_dim = 128},
    {.name = "stablelm",
     .partial_rotary_factor = 0.25,
     .size = {2560, 32},
     .norms = layer_norm(VKROPE_PARAMETER_HEAD_CHANNEL, VKROPE_PARAMETER_NONE, "qk_layernorm")},
    {.name = "starcoder2", .size = {3072, 24}},
    {.name = "step3p5",
     .rope_theta = 0,
     .head_dim = 128,
     .layers = {scaled_on_listed},
     .norms = one_plus_weight(1e-5)},
    {.name = "t5_gemma_module", .head_dim = 256, .layers = {.period = 2}},
    {.name = "telechat"},
    {.name = "vaultgemma", .head_dim = 256, .layers = {.period = 2}},
    {.name = "xlm-roberta",
     .rope_asked_by = by_position_embedding_type},  // Jina's models, with rotary embeddings
    {.name = "xlm-roberta-flash", .size = {1024, 16}, .rope_asked_by = by_position_embedding_type},
    {.name = "youtu", .pairing = interleaved, .rope_theta = 0, .latent = {128, 64}},
    {.name = "zamba2", .doubled_heads = true, .size = {2560, 32}, .rope_asked_by = "use_mem_rope"},
};

/// Other names of a row: a model_type with the same RoPE, or one that contains the model.
struct Aliases {
    const char* row;
    std::initializer_list<std::string_view> names;
};

const Aliases aliases[] = {
    {"aria_text", {"aria"}},
    {"cohere2", {"aya_vision", "cohere2_vision"}},
    {"deepseek_v2", {"deepseek_ocr", "deepseek_vl_v2"}},
    {"deepseek_v3", {"kimi_vl"}},
    {"emu3_text_model", {"emu3"}},
    {"ernie4_5_vl_moe_text", {"ernie4_5_moe_vl", "ernie4_5_vl", "ernie4_5_vl_moe"}},
    {"exaone4", {"exaone4_5", "exaone4_5_text"}},
    {"falcon", {"RefinedWeb", "RefinedWebModel"}},
    {"gemma", {"paligemma"}},
    {"gemma3_text",
     {"gemma3", "t5gemma2", "t5gemma2_decoder", "t5gemma2_encoder", "t5gemma2_text"}},
    {"gemma3n_text", {"gemma3n"}},
    {"gemma4_text", {"gemma4", "gemma4_unified", "gemma4_unified_text"}},
    {"glm4v", {"glm46v", "glm4v_text", "glm_ocr", "glm_ocr_text"}},
    {"glm4v_moe", {"glm4v_moe_text"}},
    {"hunyuan_vl", {"hunyuan_vl_text"}},
    {"kimi_k2", {"kimi_k25"}},
    {"lfm2", {"lfm2_vl"}},
    {"llama",
     {"Yi", "idefics3", "llada", "llava", "llava_next", "llava_next_video", "smolvlm", "solar",
      "video_llava", "vipllava"}},
    {"llama4_text", {"llama4"}},
    {"longcat_flash", {"longcat_flash_ngram"}},
    {"minimax_m3_vl_text", {"minimax_m3_vl"}},
    {"mistral", {"idefics2", "mistral3"}},
    {"mllama_text_model", {"mllama"}},
    {"nemotron-nas", {"deci"}},
    {"persimmon", {"fuyu"}},
    {"phi3", {"phi3_v"}},
    {"phi4_multimodal", {"phi4mm"}},
    {"qwen2", {"got_ocr2", "internvl", "llava_onevision", "qwen2_audio"}},
    {"qwen2_5_vl",
     {"qwen2_5_omni", "qwen2_5_omni_text", "qwen2_5_omni_thinker", "qwen2_5_vl_text"}},
    {"qwen2_vl", {"qwen2_vl_text"}},
    {"qwen3_5", {"qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5_text"}},
    {"qwen3_omni_moe_text", {"qwen3_omni_moe", "qwen3_omni_moe_thinker"}},
    {"qwen3_vl", {"qwen3_vl_text"}},
    {"qwen3_vl_moe", {"qwen3_vl_moe_text"}},
    {"stablelm", {"stablelm_epoch"}},
    {"t5_gemma_module", {"t5gemma"}},
    {"telechat", {"telechat2", "telechat3"}},
};

/// Classes without a rotary embedding.
constexpr auto without_rope = names(
    "albert", "align", "altclip", "audio-spectrogram-transformer", "autoformer", "bart", "beit",
    "bert", "bert-generation", "big_bird", "bigbird_pegasus", "biogpt", "blenderbot",
    "blenderbot-small", "bloom", "camembert", "canine", "clip", "clip_text_model",
    "clip_vision_model", "convbert", "convnext", "cpmant", "ctrl", "data2vec-audio",
    "data2vec-text", "data2vec-vision", "deberta", "deberta-v2", "decision_transformer", "deit",
    "detr", "dinov2", "dinov2_with_registers", "distilbert", "electra", "encodec", "ernie",
    "ernie_m", "falcon_mamba", "flaubert", "fnet", "fsmt", "funnel", "gpt2", "gpt_bigcode",
    "gpt_neo", "hubert", "ibert", "imagegpt", "informer", "jais", "jamba", "kimi_linear",
    "layoutlm", "layoutlmv2", "layoutlmv3", "led", "lilt", "longformer", "longt5", "luke",
    "m2m_100", "mamba", "mamba2", "marian", "markuplm", "mbart", "megatron-bert", "mobilebert",
    "mpnet", "mt5", "musicgen_decoder", "mvp", "nemotron_h", "nezha", "nllb-moe", "nystromformer",
    "openai-gpt", "opt", "pegasus", "pegasus_x", "plbart", "prophetnet", "reformer", "rembert",
    "resnet", "roberta", "roberta-prelayernorm", "roc_bert", "rwkv", "rwkv5", "rwkv6", "rwkv7",
    "seamless_m4t", "seamless_m4t_v2", "sew", "sew-d", "siglip", "siglip2", "siglip2_vision_model",
    "siglip_text_model", "siglip_vision_model", "speech_to_text", "speecht5", "splinter",
    "squeezebert", "swin", "swinv2", "switch_transformers", "t5", "tapas",
    "time_series_transformer", "transfo-xl", "umt5", "unispeech", "unispeech-sat", "vit", "vit_mae",
    "vits", "wav2vec2", "wavlm", "whisper", "xglm", "xlm", "xlm-roberta-xl", "xlnet", "xmod",
    "yoso", "zamba");

constexpr Refusal unsupported[] = {
    {"cohere2_moe",
     "its first dense layers rotate whatever their type, which no layer type selects"},
};

}  // namespace

const ModelType* find_model_type(const std::string& name) {
    for (const Aliases& alias : aliases) {
        if (contains(alias.names, name)) {
            return find_row(all_model_types(), alias.row);
        }
    }
    return find_row(all_model_types(), name);
}

std::span<const ModelType> all_model_types() {
    static const std::vector<ModelType> all = [] {
        std::vector<ModelType> types(std::begin(other_types), std::end(other_types));
        for (const std::string_view name : like_llama) {
            types.push_back({.name = name.data(), .size = {4096, 32}});
        }
        return types;
    }();
    return all;
}

std::vector<std::string_view> model_type_names() {
    std::vector<std::string_view> all(std::begin(without_rope), std::end(without_rope));
    for (const ModelType& type : all_model_types()) all.push_back(type.name);
    for (const Aliases& alias : aliases) all.insert(all.end(), alias.names);
    for (const Refusal& refusal : unsupported) all.push_back(refusal.name);
    return all;
}

const char* unsupported_model_type(const std::string& name) {
    return contains(without_rope, name) ? no_rotary_embedding : reason_of(unsupported, name);
}

}  // namespace vkrope
