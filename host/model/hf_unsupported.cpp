// SPDX-License-Identifier: MIT
#include "model/hf_unsupported.hpp"

#include <algorithm>
#include <iterator>

#include "model/import_error.hpp"
#include "model/json_document.hpp"

namespace vkrope {
namespace {

using nlohmann::json;

/// Which values of a key are beyond us.
enum class When { set, is_true, is_false, not_one, not_rope };

struct UnsupportedKey {
    const char* name;
    When when;
    const char* reason;
};

constexpr const char* no_rope = "the model does not use RoPE";
constexpr const char* by_layer = "RoPE that differs between layers is not supported yet";
constexpr const char* many_axes = "multi-axis RoPE is not supported yet";

// Looked up at the top level and beside the scaling's parameters.
constexpr UnsupportedKey unsupported_keys[] = {
    {"alibi", When::is_true, no_rope},
    {"global_rope_theta", When::set, by_layer},                                           // ModernBERT
    {"local_rope_theta", When::set, by_layer},                                            // ModernBERT
    {"mrope_interleaved", When::is_true, many_axes},                                      // Qwen3-VL
    {"mrope_section", When::set, many_axes},                                              // Qwen2-VL
    {"no_rope_layer_interval", When::set, by_layer},                                      // SmolLM3
    {"no_rope_layers", When::set, by_layer},                                              // SmolLM3, Llama 4
    {"position_embedding_type", When::not_rope, no_rope},                                 // Granite 4, BERT
    {"position_encoding_2d", When::is_true, many_axes},                                   // ChatGLM-6B
    {"qk_rope_head_dim", When::set, "multi-head latent attention is not supported yet"},  // DeepSeek
    {"rope_local_base_freq", When::set, by_layer},                                        // Gemma 3
    {"rope_ratio", When::not_one, "a factor on the base is not supported yet"},           // ChatGLM
    {"rotary", When::is_false, no_rope},                                                  // GPT-J
    {"swa_rope_theta", When::set, by_layer},                                              // MiMo
    {"use_dynamic_ntk", When::is_true, "dynamic NTK scaling is not supported yet"},       // Qwen
    {"xdrope_section", When::set, many_axes},                                             // HunYuan
};

/// Objects that hold the language model's configuration inside a multi-modal one.
constexpr const char* nested_configs[] = {"language_config", "llm_config", "text_config", "thinker_config"};

/// Top-level keys that name RoPE and that we read, or that describe no rotation.
constexpr const char* known_keys[] = {"partial_rotary_factor",
                                      "rope_interleave",
                                      "rope_interleaved",
                                      "rope_parameters",
                                      "rope_pct",
                                      "rope_scaling",
                                      "rope_theta",
                                      "rotary",
                                      "rotary_dim",
                                      "rotary_emb_base",
                                      "rotary_pct"};

template <std::size_t count>
bool contains(const char* const (&names)[count], const std::string& name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool looked_at(const std::string& key) {
    return contains(known_keys, key) || std::any_of(std::begin(unsupported_keys), std::end(unsupported_keys),
                                                    [&](const UnsupportedKey& row) { return key == row.name; });
}

/// null, false, 0 and [] are how a configuration says that it does without.
bool is_set(const json& value) {
    return !(value.is_null() || value == false || value == 0 || (value.is_structured() && value.empty()));
}

bool applies(When when, const json& value) {
    switch (when) {
        case When::is_true: return value == true;
        case When::is_false: return value == false;
        case When::not_one: return is_set(value) && value != 1;
        case When::not_rope: return is_set(value) && value != "rope" && value != "rotary";
        default: return is_set(value);
    }
}

void refuse_nested(const json& config) {
    const Scopes top = {{&config, ""}};
    if (find_first(top, {"head_dim", "num_attention_heads", "n_head"})) {
        return;
    }
    for (const char* name : nested_configs) {
        const Field field = find_first(top, {name});
        if (field && field.value->is_object()) {
            fail(Code::not_supported, "%s holds the configuration: nested configurations are not supported yet; import that object",
                 name);
        }
    }
}

}  // namespace

void refuse_unsupported_keys(const json& config, const ScalingSection& section) {
    for (const Scope& scope : Scopes{{&config, ""}, section.scope()}) {
        for (const UnsupportedKey& key : unsupported_keys) {
            const Field field = find_first({scope}, {key.name});
            if (field && applies(key.when, *field.value)) {
                fail(Code::not_supported, "%s is %s: %s", field.name.c_str(), shown(*field.value).c_str(), key.reason);
            }
        }
    }
    refuse_nested(config);
}

std::vector<std::string> ignored_keys(const json& config) {
    std::vector<std::string> ignored;
    for (const auto& [key, value] : config.items()) {
        const bool about_rope = key.find("rope") != std::string::npos || key.find("rotary") != std::string::npos;
        const bool nested = value.is_object() && contains(nested_configs, key);
        if (nested || (about_rope && !looked_at(key) && is_set(value))) {
            ignored.push_back(shown_key(key));
        }
    }
    return ignored;
}

}  // namespace vkrope
