// SPDX-License-Identifier: MIT
#include "permute/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace vkrope::tools {
namespace {

enum class Holds { q, k, q_norm, k_norm, kv, qkv, something };

struct Module {
    std::string_view name;
    Holds holds;
};
constexpr Module modules[] = {
    {"q_proj", Holds::q},
    {"q_b_proj", Holds::q},  // latent attention
    {"wq", Holds::q},
    {"k_proj", Holds::k},
    {"kv_a_proj_with_mqa", Holds::k},  // latent attention: its last rows are the rotated ones
    {"wk", Holds::k},
    {"q_norm", Holds::q_norm},
    {"q_layernorm", Holds::q_norm},
    {"query_norm", Holds::q_norm},
    {"query_layernorm", Holds::q_norm},
    {"k_norm", Holds::k_norm},
    {"k_layernorm", Holds::k_norm},
    {"key_norm", Holds::k_norm},
    {"key_layernorm", Holds::k_norm},
    {"kv_proj", Holds::kv},
    {"wkv", Holds::kv},
    {"qkv_proj", Holds::qkv},
    {"query_key_value", Holds::qkv},
    {"qkv", Holds::qkv},
    {"Wqkv", Holds::qkv},
    {"wqkv", Holds::qkv},
    {"W_pack", Holds::qkv},
    {"c_attn", Holds::qkv},
    {"query", Holds::something},
    {"key", Holds::something},
    {"to_q", Holds::something},
    {"to_k", Holds::something},
    {"to_qkv", Holds::something},
    {"wq_b", Holds::something},
    {"in_proj_weight", Holds::something},
};

/// What may stand before the layers of a language model: other parts of a model have names of
/// their own there.
constexpr std::string_view roots[] = {"model",      "language_model", "text_model", "transformer",
                                      "base_model", "gpt_neox",       "thinker",    "llm"};
constexpr std::string_view layer_lists[] = {"layers", "h", "blocks"};
constexpr std::string_view attentions[] = {"self_attn", "attention", "attn", "self_attention"};

/// Parameters of a projection with a row for each channel, and those without.
constexpr std::string_view with_rows[] = {"weight", "bias", "lora_B.weight",
                                          "lora_B.default.weight"};
constexpr std::string_view without_rows[] = {"input_scale", "q_scale", "k_scale", "lora_A.weight",
                                             "lora_A.default.weight"};

template <std::size_t count>
bool among(const std::string_view (&words)[count], std::string_view word) {
    return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

const Module* find_module(std::string_view word) {
    const auto* found = std::find_if(std::begin(modules), std::end(modules),
                                     [word](const Module& row) { return row.name == word; });
    return found == std::end(modules) ? nullptr : found;
}

std::vector<std::string_view> words_of(std::string_view name) {
    std::vector<std::string_view> words;
    for (;;) {
        const std::size_t point = name.find('.');
        words.push_back(name.substr(0, point));
        if (point == name.npos) {
            return words;
        }
        name.remove_prefix(point + 1);
    }
}

std::optional<std::uint32_t> layer_number(std::string_view word) {
    std::uint32_t number = 0;
    const auto [stop, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
    return problem == std::errc() && stop == word.data() + word.size() && number < 65536
               ? std::optional(number)
               : std::nullopt;
}

/// The number of the layer, if the words before a module name its attention.
std::optional<std::uint32_t> layer_before(const std::vector<std::string_view>& words,
                                          std::size_t module) {
    if (module < 3 || !among(attentions, words[module - 1]) ||
        !among(layer_lists, words[module - 3]) ||
        !std::all_of(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(module) - 3,
                     [](std::string_view word) { return among(roots, word); })) {
        return std::nullopt;
    }
    return layer_number(words[module - 2]);
}

/// A parameter of a module that is known: what follows its name.
void read_parameter_name(std::string_view parameter, const Module& module, TensorName& result) {
    const bool norm = module.holds == Holds::q_norm || module.holds == Holds::k_norm;
    result.key = module.holds == Holds::k || module.holds == Holds::k_norm;
    result.norm = norm;
    result.of_meta = module.name == "wq" || module.name == "wk";
    result.scale = !norm && parameter == "weight_scale";
    if (module.holds == Holds::kv || module.holds == Holds::qkv) {
        result.kind = NameKind::unsupported;
        result.reason = module.holds == Holds::kv ? "holds K and V in one tensor"
                                                  : "holds Q, K and V in one tensor";
    } else if (norm ? parameter == "weight" || parameter == "bias"
                    : among(with_rows, parameter) || result.scale) {
        result.kind = NameKind::follows;
    } else if (!norm && among(without_rows, parameter)) {
        result.kind = NameKind::shared;
    } else {
        result.kind = NameKind::unsupported;
        result.reason = fmt::format(
            "is a parameter of {} that is not known: only weight, bias, "
            "weight_scale and lora_B are permuted",
            result.key ? "K" : "Q");
    }
}

}  // namespace

TensorName tensor_name(std::string_view name) {
    const std::vector<std::string_view> words = words_of(name);
    TensorName result;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const Module* module = find_module(words[i]);
        if (module == nullptr) {
            continue;
        }
        result.kind = NameKind::elsewhere;
        result.layer = layer_before(words, i);
        if (result.layer && module->holds != Holds::something) {
            const auto rest = static_cast<std::size_t>(words[i].data() - name.data()) +
                              words[i].size();
            read_parameter_name(rest < name.size() ? name.substr(rest + 1) : std::string_view(),
                                *module, result);
            return result;
        }
    }
    if (result.kind == NameKind::elsewhere) {
        result.reason = "its name is not one of a layer of the language model";
    }
    return result;
}

std::optional<std::uint32_t> layer_in(std::string_view name) {
    for (const std::string_view word : words_of(name)) {
        if (const std::optional<std::uint32_t> number = layer_number(word)) {
            return number;
        }
    }
    return std::nullopt;
}

bool matches(std::string_view pattern, std::string_view name) noexcept {
    // The last * and where its characters end so far: a mismatch gives it one more.
    std::size_t p = 0, n = 0, star = pattern.npos, taken = 0;
    while (n < name.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            taken = n;
        } else if (p < pattern.size() && pattern[p] == name[n]) {
            ++p;
            ++n;
        } else if (star != pattern.npos) {
            p = star + 1;
            n = ++taken;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', p) == pattern.npos;
}

}  // namespace vkrope::tools
