// SPDX-License-Identifier: MIT
// Source of every row: the model's modeling_*.py (pairing, layers) and configuration_*.py (defaults), in Hugging Face transformers
// or beside the model's weights.
#include "model/hf_model_types.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace vkrope {
namespace {

constexpr Pairing interleaved = Pairing::interleaved;

constexpr const char* gpt_oss_yarn = R"({"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
    "truncate": false, "original_max_position_embeddings": 4096})";
constexpr const char* apertus_llama3 = R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192})";

// Sorted by name.
constexpr ModelType model_types[] = {
    {.name = "afmoe", .head_dim = 128, .layers = LayerRule::none_on_full, .period = 4},
    {.name = "apertus", .rope_theta = 12000000, .hidden_size = 4096, .num_attention_heads = 32, .scaling = apertus_llama3},
    {.name = "aquila", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "arcee", .hidden_size = 2560, .num_attention_heads = 32},
    {.name = "arctic", .rope_theta = 0},
    {.name = "aria_text", .rope_theta = 0},
    {.name = "baichuan", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "bailing_moe", .rope_theta = 0},
    {.name = "bailing_moe_v2", .rope_theta = 0},
    {.name = "bamba", .partial_rotary_factor = 0.5, .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "bitnet", .rope_theta = 500000, .hidden_size = 2560, .num_attention_heads = 20},
    {.name = "chameleon", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "chatglm", .pairing = interleaved, .partial_rotary_factor = 0.5},
    {.name = "codegen", .pairing = interleaved, .rotary_dim = 64, .hidden_size = 4096, .num_attention_heads = 16},
    {.name = "cohere", .pairing = interleaved, .rope_theta = 0, .hidden_size = 8192, .num_attention_heads = 64},
    {.name = "cohere2",
     .pairing = interleaved,
     .hidden_size = 8192,
     .num_attention_heads = 64,
     .layers = LayerRule::none_on_full,
     .period = 4},
    {.name = "csm", .rope_theta = 500000, .hidden_size = 2048, .num_attention_heads = 32},
    {.name = "cwm", .rope_theta = 1000000, .head_dim = 128},
    {.name = "dbrx", .hidden_size = 2048, .num_attention_heads = 16},
    {.name = "deci", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "deepseek", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "deepseek_v2",
     .pairing = interleaved,
     .hidden_size = 4096,
     .num_attention_heads = 32,
     .qk_nope_head_dim = 128,
     .qk_rope_head_dim = 64},
    {.name = "deepseek_v3",
     .pairing = interleaved,
     .hidden_size = 7168,
     .num_attention_heads = 128,
     .qk_nope_head_dim = 128,
     .qk_rope_head_dim = 64},
    {.name = "diffllama", .hidden_size = 2048, .num_attention_heads = 32},
    {.name = "doge", .hidden_size = 1024, .num_attention_heads = 8},
    {.name = "dots1", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "emu3_text_model", .rope_theta = 1000000, .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "ernie4_5", .pairing = interleaved, .rope_theta = 500000, .head_dim = 128},
    {.name = "ernie4_5_moe", .pairing = interleaved, .rope_theta = 500000, .hidden_size = 2560, .num_attention_heads = 20},
    {.name = "esm", .hidden_size = 768, .num_attention_heads = 12, .rope_if_asked = true},
    {.name = "eurobert", .rope_theta = 250000, .hidden_size = 768, .num_attention_heads = 12},
    {.name = "exaone", .hidden_size = 2048, .num_attention_heads = 32},
    {.name = "exaone4", .hidden_size = 4096, .num_attention_heads = 32, .layers = LayerRule::none_on_full_of_sliding, .period = 4},
    {.name = "exaone_moe", .layers = LayerRule::none_on_full_of_sliding, .period = 4},
    {.name = "falcon", .hidden_size = 4544, .num_attention_heads = 71},
    {.name = "falcon_h1", .rope_theta = 100000, .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "flex_olmo", .rope_theta = 500000, .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "gemma", .head_dim = 256},
    {.name = "gemma2", .head_dim = 256, .period = 2},
    {.name = "gemma3_text", .rope_theta = 1000000, .head_dim = 256, .layers = LayerRule::local_base, .period = 6},
    {.name = "gemma3n_text", .rope_theta = 1000000, .head_dim = 256, .layers = LayerRule::local_base, .period = 5},
    {.name = "gemma4_text",
     .rope_theta = 1000000,
     .head_dim = 256,
     .scaling = R"({"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}})",
     .layers = LayerRule::local_base,
     .global_head_dim = 512,
     .period = 6},
    {.name = "glm", .pairing = interleaved, .partial_rotary_factor = 0.5, .head_dim = 128},
    {.name = "glm4", .pairing = interleaved, .partial_rotary_factor = 0.5, .head_dim = 128},
    {.name = "glm4_moe", .partial_rotary_factor = 0.5},
    {.name = "glm4_moe_lite", .pairing = interleaved, .rope_theta = 0, .qk_nope_head_dim = 192, .qk_rope_head_dim = 64},
    {.name = "glm4v", .pairing = interleaved, .partial_rotary_factor = 0.5, .mrope_section = {8, 12, 12}},
    {.name = "glm4v_moe", .partial_rotary_factor = 0.5, .mrope_section = {8, 12, 12}},
    {.name = "glm_moe_dsa", .pairing = interleaved, .rope_theta = 0, .qk_nope_head_dim = 192, .qk_rope_head_dim = 64},
    {.name = "gpt_neox", .partial_rotary_factor = 0.25, .hidden_size = 6144, .num_attention_heads = 64},
    {.name = "gpt_neox_japanese", .hidden_size = 2560, .num_attention_heads = 32},
    {.name = "gpt_oss", .rope_theta = 150000, .head_dim = 64, .scaling = gpt_oss_yarn, .period = 2},
    {.name = "gptj", .pairing = interleaved, .rotary_dim = 64, .hidden_size = 4096, .num_attention_heads = 16},
    {.name = "granite", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "granitemoe", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "granitemoehybrid", .hidden_size = 4096, .num_attention_heads = 32, .rope_if_asked = true},
    {.name = "granitemoeshared", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "helium", .pairing = interleaved, .rope_theta = 100000, .head_dim = 128},
    {.name = "hf_olmo", .hidden_size = 768, .num_attention_heads = 12},
    {.name = "hunyuan", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "hunyuan_v1_dense", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "hunyuan_v1_moe", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "hunyuan_vl"},
    {.name = "internlm", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "internlm2", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "internlm3", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "jetmoe", .head_dim = 128},
    {.name = "kimi_k2",
     .pairing = interleaved,
     .rope_theta = 50000,
     .hidden_size = 7168,
     .num_attention_heads = 64,
     .qk_nope_head_dim = 128,
     .qk_rope_head_dim = 64},
    {.name = "lfm2", .rope_theta = 1000000, .hidden_size = 2560, .num_attention_heads = 32},
    {.name = "lfm2_moe", .rope_theta = 1000000, .hidden_size = 2048, .num_attention_heads = 32},
    {.name = "llama", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "llama4_text",
     .pairing = interleaved,
     .rope_theta = 500000,
     .head_dim = 128,
     .no_rope_layer_interval = 4,
     .full_without_rope = true},
    {.name = "longcat_flash", .pairing = interleaved, .rope_theta = 10000000, .qk_nope_head_dim = 128, .qk_rope_head_dim = 64},
    {.name = "mimi", .hidden_size = 512, .num_attention_heads = 8},
    {.name = "mimo", .rope_theta = 640000},
    {.name = "mimo_v2_flash", .rope_theta = 0, .layers = LayerRule::local_base},
    {.name = "minicpm", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "minicpm3", .qk_nope_head_dim = 64, .qk_rope_head_dim = 32, .kv_lora_rank = 256},
    {.name = "minicpmv", .rope_theta = 0},
    {.name = "minimax", .rope_theta = 1000000, .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "minimax_m1", .rope_theta = 10000000},
    {.name = "minimax_m2", .rope_theta = 5000000},
    {.name = "minimax_text_01", .rope_theta = 10000000},
    {.name = "ministral", .head_dim = 128},
    {.name = "ministral3", .rope_theta = 1000000, .head_dim = 128},
    {.name = "mistral", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "mixtral", .rope_theta = 1000000, .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "mllama_text_model", .rope_theta = 500000, .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "modernbert",
     .rope_theta = 160000,
     .hidden_size = 768,
     .num_attention_heads = 12,
     .layers = LayerRule::local_base,
     .period = 3,
     .full_layers = FullLayers::first_of_period},
    {.name = "modernbert-decoder",
     .rope_theta = 160000,
     .hidden_size = 768,
     .num_attention_heads = 12,
     .layers = LayerRule::local_base,
     .period = 3,
     .full_layers = FullLayers::first_of_period},
    {.name = "moonshine", .pairing = interleaved, .partial_rotary_factor = 0.9, .hidden_size = 288, .num_attention_heads = 8},
    {.name = "moshi", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "nemotron", .partial_rotary_factor = 0.5, .hidden_size = 6144, .num_attention_heads = 48},
    {.name = "nemotron-nas", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "neobert", .pairing = interleaved},
    {.name = "nomic_bert"},
    {.name = "olmo", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "olmo2", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "olmo3", .hidden_size = 4096, .num_attention_heads = 32, .layers = LayerRule::scaled_on_full, .period = 4},
    {.name = "olmoe", .hidden_size = 2048, .num_attention_heads = 16},
    {.name = "openelm", .head_dim = 128},
    {.name = "orion", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "persimmon", .rope_theta = 25000, .partial_rotary_factor = 0.5, .hidden_size = 4096, .num_attention_heads = 64},
    {.name = "phi", .partial_rotary_factor = 0.5, .hidden_size = 2048, .num_attention_heads = 32},
    {.name = "phi-msft", .rotary_dim = 32},
    {.name = "phi3", .hidden_size = 3072, .num_attention_heads = 32},
    {.name = "phi3small", .rope_theta = 1000000, .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "phi4_multimodal", .hidden_size = 3072, .num_attention_heads = 32},
    {.name = "phimoe", .rope_theta = 1000000, .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "qwen", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "qwen2", .hidden_size = 4096, .num_attention_heads = 32},
    {.name = "qwen2_5_vl", .rope_theta = 1000000, .hidden_size = 8192, .num_attention_heads = 64},
    {.name = "qwen2_moe", .hidden_size = 2048, .num_attention_heads = 16},
    {.name = "qwen2_vl", .rope_theta = 1000000, .hidden_size = 8192, .num_attention_heads = 64},
    {.name = "qwen3", .head_dim = 128},
    {.name = "qwen3_5", .partial_rotary_factor = 0.25, .head_dim = 256, .mrope_section = {11, 11, 10}, .mrope_interleaved = true},
    {.name = "qwen3_moe", .hidden_size = 2048, .num_attention_heads = 32},
    {.name = "qwen3_next", .partial_rotary_factor = 0.25, .head_dim = 256},
    {.name = "qwen3_omni_moe_text", .rope_theta = 1000000, .mrope_section = {24, 20, 20}, .mrope_interleaved = true},
    {.name = "qwen3_vl", .rope_theta = 5000000, .head_dim = 128, .mrope_section = {24, 20, 20}, .mrope_interleaved = true},
    {.name = "qwen3_vl_moe", .rope_theta = 5000000, .mrope_section = {24, 20, 20}, .mrope_interleaved = true},
    {.name = "recurrent_gemma", .partial_rotary_factor = 0.5, .hidden_size = 2560, .num_attention_heads = 10},
    {.name = "roformer", .pairing = interleaved, .hidden_size = 768, .num_attention_heads = 12},
    {.name = "seed_oss", .rope_theta = 0, .head_dim = 128},
    {.name = "smollm3", .rope_theta = 2000000, .hidden_size = 2048, .num_attention_heads = 16, .no_rope_layer_interval = 4},
    {.name = "stablelm", .partial_rotary_factor = 0.25, .hidden_size = 2560, .num_attention_heads = 32},
    {.name = "starcoder2", .hidden_size = 3072, .num_attention_heads = 24},
    {.name = "telechat"},
    {.name = "vaultgemma", .head_dim = 256, .period = 2},
    {.name = "xlm-roberta-flash", .hidden_size = 1024, .num_attention_heads = 16, .rope_if_asked = true},
    {.name = "xverse", .hidden_size = 4096, .num_attention_heads = 32},
};

/// A model_type whose RoPE is that of another, or of the language model inside it.
struct Alias {
    const char* name;
    const char* row;
};

// Sorted by name.
constexpr Alias aliases[] = {
    {"RefinedWeb", "falcon"},
    {"RefinedWebModel", "falcon"},
    {"Yi", "llama"},
    {"aria", "aria_text"},
    {"aya_vision", "cohere2"},
    {"cohere2_vision", "cohere2"},
    {"deepseek_ocr", "deepseek_v2"},
    {"deepseek_v32", "deepseek_v3"},
    {"deepseek_vl_v2", "deepseek_v2"},
    {"emu3", "emu3_text_model"},
    {"fuyu", "persimmon"},
    {"gemma3", "gemma3_text"},
    {"gemma3n", "gemma3n_text"},
    {"gemma4", "gemma4_text"},
    {"glm4v_moe_text", "glm4v_moe"},
    {"glm4v_text", "glm4v"},
    {"got_ocr2", "qwen2"},
    {"idefics2", "mistral"},
    {"idefics3", "llama"},
    {"internvl", "qwen2"},
    {"kimi_vl", "deepseek_v3"},
    {"llada", "llama"},
    {"llama4", "llama4_text"},
    {"llava", "llama"},
    {"llava_next", "llama"},
    {"llava_next_video", "llama"},
    {"llava_onevision", "qwen2"},
    {"mistral3", "mistral"},
    {"mllama", "mllama_text_model"},
    {"paligemma", "gemma"},
    {"phi3_v", "phi3"},
    {"phi4mm", "phi4_multimodal"},
    {"qwen2_5_omni", "qwen2_5_vl"},
    {"qwen2_5_omni_text", "qwen2_5_vl"},
    {"qwen2_5_omni_thinker", "qwen2_5_vl"},
    {"qwen2_5_vl_text", "qwen2_5_vl"},
    {"qwen2_audio", "qwen2"},
    {"qwen2_vl_text", "qwen2_vl"},
    {"qwen3_5_moe", "qwen3_5"},
    {"qwen3_5_moe_text", "qwen3_5"},
    {"qwen3_5_text", "qwen3_5"},
    {"qwen3_omni_moe", "qwen3_omni_moe_text"},
    {"qwen3_omni_moe_thinker", "qwen3_omni_moe_text"},
    {"qwen3_vl_moe_text", "qwen3_vl_moe"},
    {"qwen3_vl_text", "qwen3_vl"},
    {"smolvlm", "llama"},
    {"solar", "llama"},
    {"stablelm_epoch", "stablelm"},
    {"telechat2", "telechat"},
    {"video_llava", "llama"},
    {"vipllava", "llama"},
};

struct Unsupported {
    const char* name;
    const char* reason;
};

constexpr const char* no_rope = "the model has no rotary embedding";
constexpr const char* alternating = "height and width alternate between the pairs, which sections cannot say";

// Sorted by name.
constexpr Unsupported unsupported[] = {
    {"albert", no_rope},
    {"bart", no_rope},
    {"bert", no_rope},
    {"bloom", no_rope},
    {"clip", no_rope},
    {"deberta-v2", no_rope},
    {"distilbert", no_rope},
    {"electra", no_rope},
    {"ernie4_5_vl", alternating},
    {"ernie4_5_vl_moe", alternating},
    {"ernie4_5_vl_moe_text", alternating},
    {"falcon_mamba", no_rope},
    {"gpt2", no_rope},
    {"gpt_bigcode", no_rope},
    {"gpt_neo", no_rope},
    {"jais", no_rope},
    {"jamba", no_rope},
    {"kimi_linear", no_rope},
    {"mamba", no_rope},
    {"mamba2", no_rope},
    {"mpt", no_rope},
    {"nanochat", "it turns the other way, which no field of a rotation says"},
    {"nemotron_h", no_rope},
    {"opt", no_rope},
    {"roberta", no_rope},
    {"rwkv", no_rope},
    {"rwkv5", no_rope},
    {"rwkv6", no_rope},
    {"rwkv7", no_rope},
    {"siglip", no_rope},
    {"t5", no_rope},
    {"vit", no_rope},
    {"whisper", no_rope},
    {"xlm-roberta", no_rope},
    {"zamba", no_rope},
};

template <class Row>
constexpr bool before(const Row& row, std::string_view name) {
    return std::string_view(row.name) < name;
}

template <class Row, std::size_t count>
constexpr bool sorted(const Row (&rows)[count]) {
    for (std::size_t i = 1; i < count; ++i) {
        if (!before(rows[i - 1], rows[i].name)) {
            return false;
        }
    }
    return true;
}

static_assert(sorted(model_types) && sorted(aliases) && sorted(unsupported), "the tables are searched by bisection");

template <class Row, std::size_t count>
const Row* find_row(const Row (&rows)[count], std::string_view name) {
    const Row* row = std::lower_bound(std::begin(rows), std::end(rows), name, before<Row>);
    return row != std::end(rows) && row->name == name ? row : nullptr;
}

}  // namespace

const ModelType* find_model_type(const std::string& name) {
    const Alias* alias = find_row(aliases, name);
    return find_row(model_types, alias ? alias->row : std::string_view(name));
}

const char* unsupported_model_type(const std::string& name) {
    const Unsupported* row = find_row(unsupported, name);
    return row == nullptr ? nullptr : row->reason;
}

}  // namespace vkrope
