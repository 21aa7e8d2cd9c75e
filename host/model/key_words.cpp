// SPDX-License-Identifier: MIT
#include "model/key_words.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "model/names.hpp"

namespace vkrope {
namespace {

/// Parts of keys with one meaning.
struct Letters {
    Says says;
    bool begins_a_word;
    std::initializer_list<std::string_view> parts;
};

// The first matching row applies.
const Letters letters[] = {
    {Says::scaled_layers, false, {"_only_types"}},
    {Says::nothing, false, {"nope_head", "qk_nope"}},
    {Says::layers,
     false,
     {"no_rope", "rope_layout", "rope_layers", "rope_pattern", "no_pos_emb", "irope"}},
    {Says::layers, true, {"nope"}},
    {Says::yarn,
     false,
     {"condense_ratio", "yarn", "ntk", "longrope", "scaled_rope", "rope_scaling", "rotary_scaling",
      "llama_4_scal", "llama4_scal"}},
    {Says::rotation, false, {"rope", "rotary"}},
    {Says::norm,
     false,
     {"qk_norm", "qknorm", "qk_layernorm", "qk_layer_norm", "qk_rms", "qk_l2", "qk_ln", "qk_gn",
      "ln_qk", "gn_qk", "qkv_norm", "normalize_q", "normalise_q", "norm_qk"}},
    {Says::norm,
     true,
     {"q_ln", "k_ln", "query_norm", "key_norm", "q_norm", "k_norm", "q_layernorm", "k_layernorm",
      "q_layer_norm", "k_layer_norm", "query_layernorm", "key_layernorm", "query_layer_norm",
      "key_layer_norm"}},
    {Says::layers,
     false,
     {"layer_group", "attention_types", "attention_layers", "attn_layer", "sliding_layers",
      "swa_layers", "window_layers", "window_layout", "window_pattern", "layer_pattern",
      "layers_pattern", "attn_pattern", "attention_pattern", "override_pattern", "global_attn",
      "full_attn", "full_attention", "linear_attn"}},
    {Says::layers, true, {"local_layer", "global_layer", "full_layer"}},
    {Says::scaling,
     false,
     {"temperature_", "beta_fast", "beta_slow", "low_freq_factor", "high_freq_factor",
      "long_factor", "short_factor", "scaling"}},
    {Says::scaling, true, {"logn", "mscale"}},
};

/// Parts of keys that scale something else, and Qwen 2's windows, which do not affect RoPE.
constexpr auto others = names("embed", "expert", "layer_scaling", "logits", "lora", "loss", "moe",
                              "max_window_layers", "quant", "residual", "rout", "weight");

}  // namespace

bool in_key(const std::string& key, std::string_view part, bool begins_a_word) {
    for (std::size_t at = key.find(part); at != key.npos; at = key.find(part, at + 1)) {
        if (!begins_a_word || at == 0 || key[at - 1] == '_' || key[at - 1] == '.') return true;
    }
    return false;
}

Says what_says(const std::string& name) {
    std::string key = name;  // names in mixed case: YaRN, QKNorm
    for (char& letter : key) {
        if (letter >= 'A' && letter <= 'Z') letter = char(letter - 'A' + 'a');
    }
    const auto row = std::find_if(std::begin(letters), std::end(letters), [&](const Letters& each) {
        return std::any_of(each.parts.begin(), each.parts.end(), [&](std::string_view part) {
            return in_key(key, part, each.begins_a_word);
        });
    });
    if (row == std::end(letters)) {
        return Says::nothing;
    }
    const bool may_be_other = row->says == Says::scaling || row->says == Says::layers;
    const bool other = may_be_other && std::any_of(std::begin(others), std::end(others),
                                                   [&](std::string_view part) {
                                                       return key.find(part) != key.npos;
                                                   });
    return other ? Says::nothing : row->says;
}

}  // namespace vkrope
