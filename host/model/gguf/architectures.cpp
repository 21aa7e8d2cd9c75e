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

namespace vkrope {
namespace {

constexpr Pairing half_split = VKROPE_HALF_SPLIT;
constexpr GgufSections if_given = GgufSections::if_given, required = GgufSections::required;

using enum LayerRule;

const GgufArchitecture architectures[] = {
    {.names = {"apertus",        "bailingmoe2",    "bitnet",     "codeshell",    "cogvlm",
               "deepseek2-ocr",  "dots1",          "dream",      "eurobert",     "exaone",
               "falcon",         "falcon-h1",      "gemma",      "gptneox",      "grovemoe",
               "hrm_text",       "hy_v3",          "jais2",      "jina-bert-v3", "lfm2",
               "lfm2moe",        "llada-moe",      "minimax-m2", "minimax-m3",   "nemotron",
               "nomic-bert",     "nomic-bert-moe", "olmoe",      "openelm",      "orion",
               "pangu-embedded", "phi2",           "phi3",       "phimoe",       "plamo",
               "plamo2",         "qwen",           "qwen2",      "qwen2moe",     "qwen3",
               "qwen3moe",       "rnd1",           "seed_oss",   "starcoder2"},
     .pairing = half_split},
    {.names = {"arcee", "arctic", "bailingmoe", "chatglm", "deci", "deepseek", "ernie4_5",
               "ernie4_5-moe", "internlm2", "llada", "llama", "llama-embed", "minicpm", "neo-bert",
               "xverse"}},
    {.names = {"afmoe", "exaone-moe"},
     .pairing = half_split,
     .layers = {none_on_full, 4},
     .window_decides = true},
    {.names = {"axk2", "deepseek32", "glm-dsa"},
     .latent = true,
     .yarn_log_unit = 0.1,
     .yarn_in_softmax = true},
    {.names = {"baichuan"}, .alibi_layer_count = 40},
    {.names = {"bailingmoe3", "hy_v4", "plm"}, .latent = true},
    {.names = {"chameleon", "command-r"}, .norms = {.kind = VKROPE_NORM_LAYER}},
    {.names = {"clef", "qwen35", "qwen35moe", "qwen4exp"},
     .pairing = half_split,
     .sections = required,
     .sections_interleaved = true,
     .linear_period = 4},
    {.names = {"cohere2"}, .layers = {none_on_full, 4}},
    {.names = {"dbrx"}, .pairing = half_split, .clips = true},
    {.names = {"deepseek2"},
     .latent = true,
     .yarn_log_unit = 0.1,
     .yarn_in_softmax = true,
     .query_scale = VKROPE_QUERY_SCALING_MINISTRAL3},
    {.names = {"deepseek4"}, .layers = {compressed}, .norms = {.unread = true}},
    {.names = {"exaone4"},
     .pairing = half_split,
     .layers = {none_on_full, 4},
     .window_decides = true,
     .sliding_layer_count = 64},
    {.names = {"gemma-embedding"}, .pairing = half_split, .layers = {local_base, 6}},
    {.names = {"gemma2"}, .pairing = half_split, .layers = {.period = 2}},
    {.names = {"gemma3"}, .pairing = half_split, .layers = {local_base, 6}, .window_decides = true},
    {.names = {"gemma3n"},
     .pairing = half_split,
     .layers = {local_base, 5},
     .norms = {.of_v_too = true}},
    {.names = {"gemma4"},
     .pairing = half_split,
     .layers = {local_base},
     .norms = {.of_v_too = true}},
    {.names = {"glm4"}, .sections = if_given},
    {.names = {"glm4moe"}, .pairing = half_split, .sections = if_given},
    {.names = {"gpt-oss"}, .pairing = half_split, .rounds_yarn = true, .layers = {.period = 2}},
    {.names = {"granite", "granitehybrid", "granitemoe", "graniteswitch"},
     .finetuned_is_rope = true},
    {.names = {"granite_swa"}, .rope_pattern = true},
    {.names = {"grok"}, .pairing = half_split, .yarn_beta_fast = 8},
    {.names = {"hunyuan-dense", "hunyuan-moe"},
     .pairing = half_split,
     .norms = {.place = VKROPE_NORM_PLACE_AFTER}},
    {.names = {"hunyuan_vl"},
     .pairing = half_split,
     .sections = if_given,
     .norms = {.place = VKROPE_NORM_PLACE_AFTER}},
    {.names = {"llama4"},
     .layers = {none_on_full, 4},
     .window_decides = true,
     .window_by_default = true,
     .sliding = "chunked_attention",
     .norms = {.without_weight = true},
     .query_scale = VKROPE_QUERY_SCALING_LLAMA4},
    {.names = {"maincoder"}, .norms = {.place = VKROPE_NORM_PLACE_AFTER}},
    {.names = {"mimo2"}, .pairing = half_split, .layers = {local_base}},
    {.names = {"minicpm3"}, .pairing = half_split, .latent = true},
    {.names = {"mistral3"}, .query_scale = VKROPE_QUERY_SCALING_MINISTRAL3},
    {.names = {"mistral4"},
     .latent = true,
     .yarn_log_unit = 0.1,
     .yarn_in_softmax = true,
     .softmax_differs = true,
     .query_scale = VKROPE_QUERY_SCALING_MINISTRAL3},
    {.names = {"modern-bert"},
     .pairing = half_split,
     .layers = {local_base, 3, true},
     .window_decides = true},
    {.names = {"olmo"}, .clips = true},
    {.names = {"olmo2"},
     .pairing = half_split,
     .layers = {scaled_on_full, 4},
     .window_decides = true},
    {.names = {"paddleocr", "qwen2vl"}, .pairing = half_split, .sections = required},
    {.names = {"qwen3next"}, .pairing = half_split, .linear_period = 4},
    {.names = {"qwen3vl", "qwen3vlmoe"},
     .pairing = half_split,
     .sections = required,
     .sections_interleaved = true},
    {.names = {"smallthinker"},
     .pairing = half_split,
     .layers = {none_on_full, 4, true},
     .window_decides = true},
    {.names = {"smollm3"}, .no_rope_interval = 4},
    {.names = {"stablelm"}, .pairing = half_split, .norms = {.kind = VKROPE_NORM_LAYER}},
    {.names = {"step35"}, .pairing = half_split, .layers = {local_base}, .half_on_full = true},
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

constexpr auto without_rope = names(
    "arwkv7", "bert", "bloom", "glm5-next", "glm5next", "gpt2", "jais", "jamba", "jina-bert-v2",
    "kimi-k3", "kimi-linear", "mamba", "mamba2", "mpt", "nemotron_h", "nemotron_h_moe", "refact",
    "rwkv6", "rwkv6qwen2", "rwkv7", "starcoder", "t5", "t5encoder");

}  // namespace

const GgufArchitecture* find_gguf_architecture(const std::string& name) {
    return find_row(architectures, name);
}

const char* unsupported_gguf_architecture(const std::string& name) {
    return contains(without_rope, name) ? no_rotary_embedding : reason_of(unsupported, name);
}

}  // namespace vkrope
