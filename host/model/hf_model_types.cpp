// SPDX-License-Identifier: MIT
// Source of every row: the model's modeling_*.py (pairing) and configuration_*.py (defaults) in Hugging Face transformers.
#include "model/hf_model_types.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace vkrope {
namespace {

constexpr Pairing half = Pairing::half_split;
constexpr Pairing interleaved = Pairing::interleaved;

// Sorted by name. Columns: name, pairing, rope_theta, partial_rotary_factor, rotary_dim, head_dim.
constexpr ModelType model_types[] = {
    {"arcee", half},
    {"chatglm", interleaved, 10000, 0.5},
    {"codegen", interleaved, 10000, 1, 64},
    {"cohere", interleaved, 0},
    {"ernie4_5", interleaved, 500000, 1, 0, 128},
    {"ernie4_5_moe", interleaved, 500000},
    {"falcon", half},
    {"gemma", half, 10000, 1, 0, 256},
    {"gemma2", half, 10000, 1, 0, 256},
    {"glm", interleaved, 10000, 0.5, 0, 128},
    {"glm4", interleaved, 10000, 0.5, 0, 128},
    {"glm4_moe", half, 10000, 0.5},
    {"gpt_neox", half, 10000, 0.25},
    {"gptj", interleaved, 10000, 1, 64},
    {"granite", half},
    {"granitemoe", half},
    {"helium", interleaved, 100000, 1, 0, 128},
    {"internlm2", half},
    {"llama", half},
    {"mistral", half},
    {"mixtral", half, 1000000},
    {"nemotron", half, 10000, 0.5},
    {"olmo", half},
    {"olmo2", half},
    {"olmoe", half},
    {"persimmon", half, 25000, 0.5},
    {"phi", half, 10000, 0.5},
    {"phi3", half},
    {"phimoe", half, 1000000},
    {"qwen2", half},
    {"qwen2_moe", half},
    {"qwen3", half, 10000, 1, 0, 128},
    {"qwen3_moe", half},
    {"seed_oss", half, 0, 1, 0, 128},
    {"stablelm", half, 10000, 0.25},
    {"starcoder2", half},
};

struct Unsupported {
    const char* name;
    const char* reason;
};

constexpr const char* no_rope = "the model has no rotary embedding";
constexpr const char* by_layer = "RoPE that differs between layers is not supported yet";
constexpr const char* latent = "multi-head latent attention is not supported yet";
constexpr const char* many_axes = "M-RoPE is not supported yet";

// Sorted by name.
constexpr Unsupported unsupported[] = {
    {"bert", no_rope},
    {"bloom", no_rope},
    {"cohere2", by_layer},
    {"deepseek_v2", latent},
    {"deepseek_v3", latent},
    {"deepseek_v32", latent},
    {"exaone4", by_layer},
    {"gemma3", by_layer},
    {"gemma3_text", by_layer},
    {"gemma3n", by_layer},
    {"gemma3n_text", by_layer},
    {"gemma4", by_layer},
    {"gemma4_text", by_layer},
    {"glm4_moe_lite", latent},
    {"glm4v", many_axes},
    {"glm4v_moe", many_axes},
    {"glm4v_moe_text", many_axes},
    {"glm4v_text", many_axes},
    {"gpt2", no_rope},
    {"gpt_bigcode", no_rope},
    {"gpt_neo", no_rope},
    {"gpt_oss", "YaRN, the default of its configuration class, is not supported yet"},
    {"jamba", no_rope},
    {"kimi_k2", latent},
    {"llama4", by_layer},
    {"llama4_text", by_layer},
    {"longcat_flash", latent},
    {"mamba", no_rope},
    {"mamba2", no_rope},
    {"minicpm3", latent},
    {"modernbert", by_layer},
    {"mpt", no_rope},
    {"olmo3", by_layer},
    {"opt", no_rope},
    {"qwen2_5_omni", many_axes},
    {"qwen2_5_vl", many_axes},
    {"qwen2_5_vl_text", many_axes},
    {"qwen2_vl", many_axes},
    {"qwen2_vl_text", many_axes},
    {"qwen3_omni_moe", many_axes},
    {"qwen3_vl", many_axes},
    {"qwen3_vl_moe", many_axes},
    {"qwen3_vl_moe_text", many_axes},
    {"qwen3_vl_text", many_axes},
    {"roberta", no_rope},
    {"rwkv", no_rope},
    {"smollm3", by_layer},
    {"t5", no_rope},
    {"whisper", no_rope},
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

static_assert(sorted(model_types) && sorted(unsupported), "the tables are searched by bisection");

template <class Row, std::size_t count>
const Row* find_row(const Row (&rows)[count], std::string_view name) {
    const Row* row = std::lower_bound(std::begin(rows), std::end(rows), name, before<Row>);
    return row != std::end(rows) && row->name == name ? row : nullptr;
}

}  // namespace

const ModelType* find_model_type(const std::string& name) {
    return find_row(model_types, name);
}

const char* unsupported_model_type(const std::string& name) {
    const Unsupported* row = find_row(unsupported, name);
    return row == nullptr ? nullptr : row->reason;
}

}  // namespace vkrope
