// SPDX-License-Identifier: MIT
#include "model/key_words.hpp"

#include <algorithm>
#include <iterator>

namespace vkrope {
namespace {

struct Letters {
    std::string_view part;  ///< of a key
    Says says;
    bool begins_a_word = false;
};

// The first row that matches counts.
constexpr Letters letters[] = {
    {"_only_types", Says::scaled_layers},
    {"nope_head", Says::nothing},
    {"qk_nope", Says::nothing},
    {"no_rope", Says::layers},
    {"rope_layout", Says::layers},
    {"rope_layers", Says::layers},
    {"rope_pattern", Says::layers},
    {"nope", Says::layers, true},
    {"no_pos_emb", Says::layers},
    {"irope", Says::layers},
    {"condense_ratio", Says::yarn},
    {"yarn", Says::yarn},
    {"ntk", Says::yarn},
    {"longrope", Says::yarn},
    {"scaled_rope", Says::yarn},
    {"rope_scaling", Says::yarn},
    {"rotary_scaling", Says::yarn},
    {"llama_4_scal", Says::yarn},
    {"llama4_scal", Says::yarn},
    {"rope", Says::rotation},
    {"rotary", Says::rotation},
    {"qk_norm", Says::norm},
    {"qknorm", Says::norm},
    {"qk_layernorm", Says::norm},
    {"qk_layer_norm", Says::norm},
    {"qk_rms", Says::norm},
    {"qk_l2", Says::norm},
    {"qk_ln", Says::norm},
    {"qk_gn", Says::norm},
    {"ln_qk", Says::norm},
    {"gn_qk", Says::norm},
    {"q_ln", Says::norm, true},
    {"k_ln", Says::norm, true},
    {"qkv_norm", Says::norm},
    {"normalize_q", Says::norm},
    {"normalise_q", Says::norm},
    {"norm_qk", Says::norm},
    {"query_norm", Says::norm, true},
    {"key_norm", Says::norm, true},
    {"q_norm", Says::norm, true},
    {"k_norm", Says::norm, true},
    {"q_layernorm", Says::norm, true},
    {"k_layernorm", Says::norm, true},
    {"q_layer_norm", Says::norm, true},
    {"k_layer_norm", Says::norm, true},
    {"query_layernorm", Says::norm, true},
    {"key_layernorm", Says::norm, true},
    {"query_layer_norm", Says::norm, true},
    {"key_layer_norm", Says::norm, true},
    {"layer_group", Says::layers},
    {"attention_types", Says::layers},
    {"attention_layers", Says::layers},
    {"attn_layer", Says::layers},
    {"sliding_layers", Says::layers},
    {"swa_layers", Says::layers},
    {"window_layers", Says::layers},
    {"window_layout", Says::layers},
    {"local_layer", Says::layers, true},
    {"global_layer", Says::layers, true},
    {"full_layer", Says::layers, true},
    {"window_pattern", Says::layers},
    {"layer_pattern", Says::layers},
    {"layers_pattern", Says::layers},
    {"attn_pattern", Says::layers},
    {"attention_pattern", Says::layers},
    {"override_pattern", Says::layers},
    {"global_attn", Says::layers},
    {"full_attn", Says::layers},
    {"full_attention", Says::layers},
    {"linear_attn", Says::layers},
    {"temperature_", Says::scaling},
    {"logn", Says::scaling, true},
    {"mscale", Says::scaling, true},
    {"beta_fast", Says::scaling},
    {"beta_slow", Says::scaling},
    {"low_freq_factor", Says::scaling},
    {"high_freq_factor", Says::scaling},
    {"long_factor", Says::scaling},
    {"short_factor", Says::scaling},
    {"scaling", Says::scaling},
};

/// What else is scaled, and the windows of Qwen 2, whose layers all have the same RoPE.
constexpr std::string_view others[] = {"embed", "expert",   "layer_scaling", "logits",
                                       "lora",  "loss",     "moe",           "max_window_layers",
                                       "quant", "residual", "rout",          "weight"};

}  // namespace

bool in_key(const std::string& key, std::string_view part, bool begins_a_word) {
    for (std::size_t at = key.find(part); at != key.npos; at = key.find(part, at + 1)) {
        if (!begins_a_word || at == 0 || key[at - 1] == '_' || key[at - 1] == '.') return true;
    }
    return false;
}

Says what_says(const std::string& name) {
    std::string key = name;  // YaRN, QKNorm
    for (char& letter : key) {
        if (letter >= 'A' && letter <= 'Z') letter = char(letter - 'A' + 'a');
    }
    const auto row = std::find_if(std::begin(letters), std::end(letters), [&](const Letters& each) {
        return in_key(key, each.part, each.begins_a_word);
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
