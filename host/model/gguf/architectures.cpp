// SPDX-License-Identifier: MIT
// Source: llama.cpp. The names are from LLM_ARCH_NAMES in src/llama-arch.cpp; pairing and
// sections are llama_model_rope_type() of src/llama-model.cpp, where NORM is interleaved and NEOX,
// MROPE and IMROPE are half_split; what differs between layers is in load_arch_hparams() and the
// graph of src/models/*.cpp.
//
// The converters of some architectures permute the Q and K weights, so the pairing is not always
// the one of the config.json that a file was made from: Llama's is half_split there and interleaved
// here.
#include "model/gguf/architectures.hpp"

#include "model/sorted_table.hpp"

namespace vkrope {
namespace {

constexpr Pairing half_split = VKROPE_HALF_SPLIT;
constexpr GgufSections if_given = GgufSections::if_given, required = GgufSections::required;

// Sorted by name.
constexpr GgufArchitecture architectures[] = {
    {.name = "afmoe",
     .pairing = half_split,
     .layers = GgufLayers::none_on_full,
     .period = 4,
     .window_decides = true},
    {.name = "apertus", .pairing = half_split},
    {.name = "arcee"},
    {.name = "arctic"},
    {.name = "axk2", .latent = true, .yarn_log_unit = 0.1, .yarn_in_softmax = true},
    {.name = "baichuan", .alibi_layer_count = 40},
    {.name = "bailingmoe"},
    {.name = "bailingmoe2", .pairing = half_split},
    {.name = "bailingmoe3", .latent = true},
    {.name = "bitnet", .pairing = half_split},
    {.name = "chameleon"},
    {.name = "chatglm"},
    {.name = "clef",
     .pairing = half_split,
     .sections = required,
     .sections_interleaved = true,
     .linear_period = 4},
    {.name = "codeshell", .pairing = half_split},
    {.name = "cogvlm", .pairing = half_split},
    {.name = "cohere2", .layers = GgufLayers::none_on_full, .period = 4},
    {.name = "command-r"},
    {.name = "dbrx", .pairing = half_split},
    {.name = "deci"},
    {.name = "deepseek"},
    {.name = "deepseek2", .latent = true, .yarn_log_unit = 0.1, .yarn_in_softmax = true},
    {.name = "deepseek2-ocr", .pairing = half_split},
    {.name = "deepseek32", .latent = true, .yarn_log_unit = 0.1, .yarn_in_softmax = true},
    {.name = "deepseek4", .layers = GgufLayers::compressed},
    {.name = "dots1", .pairing = half_split},
    {.name = "dream", .pairing = half_split},
    {.name = "ernie4_5"},
    {.name = "ernie4_5-moe"},
    {.name = "eurobert", .pairing = half_split},
    {.name = "exaone", .pairing = half_split},
    {.name = "exaone-moe",
     .pairing = half_split,
     .layers = GgufLayers::none_on_full,
     .period = 4,
     .window_decides = true},
    {.name = "exaone4",
     .pairing = half_split,
     .layers = GgufLayers::none_on_full,
     .period = 4,
     .window_decides = true,
     .sliding_layer_count = 64},
    {.name = "falcon", .pairing = half_split},
    {.name = "falcon-h1", .pairing = half_split},
    {.name = "gemma", .pairing = half_split},
    {.name = "gemma-embedding",
     .pairing = half_split,
     .layers = GgufLayers::local_base,
     .period = 6},
    {.name = "gemma2", .pairing = half_split, .period = 2},
    {.name = "gemma3",
     .pairing = half_split,
     .layers = GgufLayers::local_base,
     .period = 6,
     .window_decides = true},
    {.name = "gemma3n", .pairing = half_split, .layers = GgufLayers::local_base, .period = 5},
    {.name = "gemma4", .pairing = half_split, .layers = GgufLayers::local_base},
    {.name = "glm-dsa", .latent = true, .yarn_log_unit = 0.1, .yarn_in_softmax = true},
    {.name = "glm4", .sections = if_given},
    {.name = "glm4moe", .pairing = half_split, .sections = if_given},
    {.name = "gpt-oss", .pairing = half_split, .rounds_yarn = true, .period = 2},
    {.name = "gptneox", .pairing = half_split},
    {.name = "granite", .finetuned_is_rope = true},
    {.name = "granite_swa", .rope_pattern = true},
    {.name = "granitehybrid", .finetuned_is_rope = true},
    {.name = "granitemoe", .finetuned_is_rope = true},
    {.name = "graniteswitch", .finetuned_is_rope = true},
    {.name = "grok", .pairing = half_split, .yarn_beta_fast = 8},
    {.name = "grovemoe", .pairing = half_split},
    {.name = "hrm_text", .pairing = half_split},
    {.name = "hunyuan-dense", .pairing = half_split},
    {.name = "hunyuan-moe", .pairing = half_split},
    {.name = "hunyuan_vl", .pairing = half_split, .sections = if_given},
    {.name = "hy_v3", .pairing = half_split},
    {.name = "hy_v4", .latent = true},
    {.name = "internlm2"},
    {.name = "jais2", .pairing = half_split},
    {.name = "jina-bert-v3", .pairing = half_split},
    {.name = "lfm2", .pairing = half_split},
    {.name = "lfm2moe", .pairing = half_split},
    {.name = "llada"},
    {.name = "llada-moe", .pairing = half_split},
    {.name = "llama"},
    {.name = "llama-embed"},
    {.name = "llama4",
     .layers = GgufLayers::none_on_full,
     .period = 4,
     .window_decides = true,
     .window_by_default = true,
     .sliding = "chunked_attention"},
    {.name = "maincoder"},
    {.name = "mimo2", .pairing = half_split, .layers = GgufLayers::local_base},
    {.name = "minicpm"},
    {.name = "minicpm3", .pairing = half_split, .latent = true},
    {.name = "minimax-m2", .pairing = half_split},
    {.name = "minimax-m3", .pairing = half_split},
    {.name = "mistral3"},
    {.name = "mistral4",
     .latent = true,
     .yarn_log_unit = 0.1,
     .yarn_in_softmax = true,
     .softmax_differs = true},
    {.name = "modern-bert",
     .pairing = half_split,
     .layers = GgufLayers::local_base,
     .period = 3,
     .full_first = true,
     .window_decides = true},
    {.name = "nemotron", .pairing = half_split},
    {.name = "neo-bert"},
    {.name = "nomic-bert", .pairing = half_split},
    {.name = "nomic-bert-moe", .pairing = half_split},
    {.name = "olmo"},
    {.name = "olmo2",
     .pairing = half_split,
     .layers = GgufLayers::unscaled_sliding,
     .period = 4,
     .window_decides = true},
    {.name = "olmoe", .pairing = half_split},
    {.name = "openelm", .pairing = half_split},
    {.name = "orion", .pairing = half_split},
    {.name = "paddleocr", .pairing = half_split, .sections = required},
    {.name = "pangu-embedded", .pairing = half_split},
    {.name = "phi2", .pairing = half_split},
    {.name = "phi3", .pairing = half_split},
    {.name = "phimoe", .pairing = half_split},
    {.name = "plamo", .pairing = half_split},
    {.name = "plamo2", .pairing = half_split},
    {.name = "plm", .latent = true},
    {.name = "qwen", .pairing = half_split},
    {.name = "qwen2", .pairing = half_split},
    {.name = "qwen2moe", .pairing = half_split},
    {.name = "qwen2vl", .pairing = half_split, .sections = required},
    {.name = "qwen3", .pairing = half_split},
    {.name = "qwen35",
     .pairing = half_split,
     .sections = required,
     .sections_interleaved = true,
     .linear_period = 4},
    {.name = "qwen35moe",
     .pairing = half_split,
     .sections = required,
     .sections_interleaved = true,
     .linear_period = 4},
    {.name = "qwen3moe", .pairing = half_split},
    {.name = "qwen3next", .pairing = half_split, .linear_period = 4},
    {.name = "qwen3vl", .pairing = half_split, .sections = required, .sections_interleaved = true},
    {.name = "qwen3vlmoe",
     .pairing = half_split,
     .sections = required,
     .sections_interleaved = true},
    {.name = "qwen4exp",
     .pairing = half_split,
     .sections = required,
     .sections_interleaved = true,
     .linear_period = 4},
    {.name = "rnd1", .pairing = half_split},
    {.name = "seed_oss", .pairing = half_split},
    {.name = "smallthinker",
     .pairing = half_split,
     .layers = GgufLayers::none_on_full,
     .period = 4,
     .full_first = true,
     .window_decides = true},
    {.name = "smollm3", .no_rope_interval = 4},
    {.name = "stablelm", .pairing = half_split},
    {.name = "starcoder2", .pairing = half_split},
    {.name = "step35",
     .pairing = half_split,
     .layers = GgufLayers::local_base,
     .half_on_full = true},
    {.name = "xverse"},
};

struct Unsupported {
    const char* name;
    const char* reason;
};

constexpr const char* no_rope = "the model has no rotary embedding";
constexpr const char* no_language_model = "it is not a language model";
constexpr const char* draft = "it is a draft of another model, whose rotation it follows";

constexpr const char* learned =
    "half of its channels turn by a sum over axes of learned frequencies for each head, which are "
    "weights";

// Sorted by name.
constexpr Unsupported unsupported[] = {
    {"arwkv7", no_rope},
    {"bert", no_rope},
    {"bloom", no_rope},
    {"clip", no_language_model},
    {"cohere2moe", "its first dense layers turn whatever their type, which no layer type says"},
    {"deepseek41", "llama.cpp does not run it yet, so which layers have which base is not known"},
    {"dflash", draft},
    {"dots3note", "its sliding layers have latent rows of their own width, which are not read"},
    {"eagle3", draft},
    {"falcon-ocr", learned},
    {"falcon_ocr", learned},
    {"gemma4-assistant", draft},
    {"gigachat35", "which channels form a pair is not known"},
    {"glm5-next", no_rope},
    {"glm5next", no_rope},
    {"gpt2", no_rope},
    {"jais", no_rope},
    {"jamba", no_rope},
    {"jina-bert-v2", no_rope},
    {"kimi-k3", no_rope},
    {"kimi-linear", no_rope},
    {"mamba", no_rope},
    {"mamba2", no_rope},
    {"mpt", no_rope},
    {"nemotron_h", no_rope},
    {"nemotron_h_moe", no_rope},
    {"refact", no_rope},
    {"rwkv6", no_rope},
    {"rwkv6qwen2", no_rope},
    {"rwkv7", no_rope},
    {"starcoder", no_rope},
    {"t5", no_rope},
    {"t5encoder", no_rope},
    {"wavtokenizer-dec", no_language_model},
};

static_assert(sorted(architectures) && sorted(unsupported), "the tables are searched by bisection");

}  // namespace

const GgufArchitecture* find_gguf_architecture(const std::string& name) {
    return find_row(architectures, name);
}

const char* unsupported_gguf_architecture(const std::string& name) {
    const Unsupported* row = find_row(unsupported, name);
    return row == nullptr ? nullptr : row->reason;
}

}  // namespace vkrope
