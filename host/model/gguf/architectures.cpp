// SPDX-License-Identifier: MIT
// Source: llama.cpp. The names are from LLM_ARCH_NAMES in src/llama-arch.cpp; pairing and sections
// are from llama_model_rope_type() in src/llama-model.cpp, where NORM is interleaved and NEOX,
// MROPE and IMROPE are half_split; differences between layers are from load_arch_hparams() and the
// graphs in src/models/*.cpp.
//
// The converters of some architectures permute the Q and K weights, so the pairing may differ from
// that of the config.json from which a file was converted: Llama has half_split there and
// interleaved here.
#include "model/gguf/architectures.hpp"

#include "model/names.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

constexpr GgufSections if_given = GgufSections::if_given, required = GgufSections::required;

using enum LayerRule;

constexpr const char* of_rounded_yarn =
    "llama.cpp rounds the range of YaRN, which is read here; gpt-oss's config.json has truncate "
    "false, and its own code does not round";

// Architectures by pairing.
constexpr auto interleaved = names(
    "arcee", "arctic", "axk2", "baichuan", "bailingmoe", "bailingmoe3", "chameleon", "chatglm",
    "cohere2", "command-r", "deci", "deepseek", "deepseek2", "deepseek32", "deepseek4", "ernie4_5",
    "ernie4_5-moe", "glm-dsa", "glm4", "granite", "granite_swa", "granitehybrid", "granitemoe",
    "graniteswitch", "hy_v4", "internlm2", "kimi-linear", "llada", "llama", "llama-embed", "llama4",
    "maincoder", "minicpm", "mistral3", "mistral4", "neo-bert", "olmo", "plm", "smollm3", "xverse");
constexpr auto half_split = names(
    "afmoe", "apertus", "bailingmoe2", "bitnet", "clef", "codeshell", "cogvlm", "dbrx",
    "deepseek2-ocr", "dots1", "dream", "eurobert", "exaone", "exaone-moe", "exaone4", "falcon",
    "falcon-h1", "gemma", "gemma-embedding", "gemma2", "gemma3", "gemma3n", "gemma4", "glm4moe",
    "gpt-oss", "gptneox", "grok", "grovemoe", "hrm_text", "hunyuan-dense", "hunyuan-moe",
    "hunyuan_vl", "hy_v3", "jais2", "jina-bert-v3", "lfm2", "lfm2moe", "llada-moe", "mimo2",
    "minicpm3", "minimax-m2", "minimax-m3", "modern-bert", "nemotron", "nomic-bert",
    "nomic-bert-moe", "olmo2", "olmoe", "openelm", "orion", "paddleocr", "pangu-embedded", "phi2",
    "phi3", "phimoe", "plamo", "plamo2", "qwen", "qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen35",
    "qwen35moe", "qwen3moe", "qwen3next", "qwen3vl", "qwen3vlmoe", "qwen4exp", "rnd1", "seed_oss",
    "smallthinker", "stablelm", "starcoder2", "step35");

// What differs from Llama.
const GgufArchitecture differences[] = {
    {.names = {"afmoe", "exaone-moe"}, .layers = {none_on_full, 4}, .window_decides = true},
    {.names = {"axk2", "deepseek32", "glm-dsa"}, .latent = true, .deepseek_yarn = true},
    {.names = {"baichuan"}, .alibi_layer_count = 40},
    {.names = {"bailingmoe3", "hy_v4", "minicpm3", "plm"}, .latent = true},
    {.names = {"chameleon", "command-r"}, .norms = {.kind = VKROPE_NORM_LAYER}},
    {.names = {"clef", "qwen35", "qwen35moe", "qwen4exp"},
     .sections = required,
     .sections_interleaved = true,
     .linear_period = 4},
    {.names = {"cohere2"}, .layers = {none_on_full, 4}},
    {.names = {"deci", "falcon", "llama", "llama-embed"}, .rotates_whole = true},
    {.names = {"deepseek2"},
     .latent = true,
     .deepseek_yarn = true,
     .query_scale = VKROPE_QUERY_SCALING_MINISTRAL3},
    {.names = {"deepseek4"}, .layers = {compressed}, .norms = {.unread = true}},
    {.names = {"exaone4"},
     .layers = {none_on_full, 4},
     .window_decides = true,
     .sliding_layer_count = 64},
    {.names = {"gemma-embedding"}, .layers = {local_base, 6}},
    {.names = {"gemma2"}, .layers = {.period = 2}, .shared_width_layer_count = 46, .score_cap = 50},
    {.names = {"gemma3"},
     .layers = {local_base, 6},
     .window_decides = true,
     .shared_width_layer_count = 62},
    {.names = {"gemma3n"},
     .layers = {local_base, 5},
     .score_scale = 1,
     .norms = {.of_v_too = true}},
    {.names = {"gemma4"}, .layers = {local_base}, .score_scale = 1, .norms = {.of_v_too = true}},
    {.names = {"glm4", "glm4moe"}, .sections = if_given},
    {.names = {"gpt-oss"}, .yarn_differs = of_rounded_yarn, .layers = {.period = 2}},
    {.names = {"granite", "granitehybrid", "granitemoe", "graniteswitch"},
     .finetuned_is_rope = true,
     .score_key = "attention.scale"},
    {.names = {"granite_swa"}, .score_key = "attention.scale"},
    {.names = {"grok"},
     .yarn_beta_fast = 8,
     .score_key = "attention.output_scale",
     .score_scale = 0.08838834764831845,
     .score_cap = 30},
    {.names = {"hunyuan-dense", "hunyuan-moe", "maincoder"},
     .norms = {.place = VKROPE_NORM_PLACE_AFTER}},
    {.names = {"hunyuan_vl"}, .sections = if_given, .norms = {.place = VKROPE_NORM_PLACE_AFTER}},
    {.names = {"kimi-linear"}, .latent = true, .without_rope = true},
    {.names = {"llama4"},
     .layers = {none_on_full, 4},
     .window_decides = true,
     .window_by_default = true,
     .sliding = "chunked_attention",
     .norms = {.without_weight = true},
     .query_scale = VKROPE_QUERY_SCALING_LLAMA4},
    {.names = {"mimo2"}, .layers = {local_base}},
    {.names = {"mistral3"}, .query_scale = VKROPE_QUERY_SCALING_MINISTRAL3},
    {.names = {"mistral4"},
     .latent = true,
     .deepseek_yarn = true,
     .yarn_differs = of_readers_that_differ,
     .query_scale = VKROPE_QUERY_SCALING_MINISTRAL3},
    {.names = {"modern-bert"}, .layers = {local_base, 3, true}, .window_decides = true},
    {.names = {"olmo2"}, .layers = {scaled_on_full, 4}, .window_decides = true},
    {.names = {"paddleocr", "qwen2vl"}, .sections = required},
    {.names = {"qwen3next"}, .linear_period = 4},
    {.names = {"qwen3vl", "qwen3vlmoe"}, .sections = required, .sections_interleaved = true},
    {.names = {"smallthinker"}, .layers = {none_on_full, 4, true}, .window_decides = true},
    {.names = {"smollm3"}, .no_rope_interval = 4},
    {.names = {"stablelm"}, .norms = {.kind = VKROPE_NORM_LAYER}},
    {.names = {"step35"}, .layers = {local_base}, .half_on_full = true},
};

constexpr const char* no_language_model = "it is not a language model";
constexpr const char* draft = "it is a draft of another model, whose rotation it follows";

constexpr const char* learned =
    "half of its channels rotate by a sum over axes of learned frequencies for each head, which "
    "are weights";

constexpr Refusal unsupported[] = {
    {"clip", no_language_model},
    {"cohere2moe",
     "its first dense layers rotate whatever their type, which no layer type selects"},
    {"deepseek41", "llama.cpp does not run it yet, so that the base of each layer is not known"},
    {"dflash", draft},
    {"dots3note", "its sliding layers have latent rows of another width, which are not read"},
    {"eagle3", draft},
    {"falcon-ocr", learned},
    {"falcon_ocr", learned},
    {"gemma4-assistant", draft},
    {"gigachat35", "the pairing is not known"},
    {"wavtokenizer-dec", no_language_model},
};

constexpr auto without_rope = names("arwkv7", "bert", "bloom", "glm5-next", "glm5next", "gpt2",
                                    "jais", "jamba", "jina-bert-v2", "kimi-k3", "mamba", "mamba2",
                                    "mpt", "nemotron_h", "nemotron_h_moe", "refact", "rwkv6",
                                    "rwkv6qwen2", "rwkv7", "starcoder", "t5", "t5encoder");

}  // namespace

GgufArchitecture find_gguf_architecture(const std::string& name) {
    const GgufArchitecture* row = find_row(differences, name);
    GgufArchitecture found = row ? *row : GgufArchitecture();
    found.pairing = contains(interleaved, name)  ? VKROPE_INTERLEAVED
                    : contains(half_split, name) ? VKROPE_HALF_SPLIT
                                                 : VKROPE_PAIRING_NONE;
    return found;
}

const char* unsupported_gguf_architecture(const std::string& name) {
    return contains(without_rope, name) ? no_rotary_embedding : reason_of(unsupported, name);
}

}  // namespace vkrope
