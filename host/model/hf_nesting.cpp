// SPDX-License-Identifier: MIT
#include "model/hf_nesting.hpp"

#include <algorithm>
#include <iterator>

#include "model/json_document.hpp"

namespace vkrope {
namespace {

using nlohmann::json;

constexpr const char* thinker = "thinker_config";  // of an omni model, with its own text_config

/// Objects that hold the language model's configuration, the likeliest first.
constexpr const char* nested_configs[] = {"text_config", "llm_config", "language_config", thinker};

/// Keys that shape the rotation and do not say so in their name.
constexpr const char* widths[] = {"attention_head_dim", "global_head_dim",  "head_dim",    "kv_channels",
                                  "layer_types",        "qk_nope_head_dim", "swa_head_dim"};

template <std::size_t count>
bool contains(const char* const (&names)[count], const std::string& name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool shapes_rotation(const std::string& key) {
    return key.find("rope") != std::string::npos || key.find("rotary") != std::string::npos || contains(widths, key);
}

Field nested(const Scope& scope, const char* name) {
    const Field field = find_first({scope}, {name});
    return field && field.value->is_object() && !field.value->empty() ? field : Field();
}

bool has_sizes(const Scope& scope) {
    return find_first({scope}, {"hidden_size", "n_embd"}) && find_first({scope}, {"num_attention_heads", "n_head"});
}

void descend(LanguageModel& model) {
    for (const char* name : nested_configs) {
        const Field field = nested(model.config, name);
        if (!field) {
            continue;
        }
        const Scope inner = {field.value, field.name + "."};
        if (name != thinker && has_sizes(model.config) && !find_first({inner}, {"hidden_size", "n_embd"})) {
            continue;  // an older file, flat, with an object that only names a class
        }
        model.around.push_back(model.config);
        model.config = inner;
        if (name == thinker) {
            descend(model);
        }
        return;
    }
}

std::string without_dot(const Scope& scope) {
    return scope.prefix.substr(0, scope.prefix.size() - 1);
}

/// The sentence of a key that stands outside.
std::string ignored(const Scope& outside, const std::string& key, const json& value, const LanguageModel& model) {
    const auto inner = model.config.object->find(key);
    const std::string name = "ignored key " + outside.prefix + shown_key(key);
    if (inner == model.config.object->end() || inner->is_null()) {
        return name + ": " + without_dot(model.config) + " is read, which does not have it";
    }
    return name + ", which is " + shown(value) + ": " + model.config.prefix + shown_key(key) + " is read, which is " +
           shown(*inner);
}

}  // namespace

LanguageModel language_model(const json& document) {
    LanguageModel model = {{&document, ""}, {}};
    descend(model);
    return model;
}

std::vector<std::string> ignored_around(const LanguageModel& model) {
    std::vector<std::string> warnings;
    Scopes all = model.around;
    all.push_back(model.config);
    for (std::size_t depth = 0; depth < all.size(); ++depth) {
        const json* chosen = depth + 1 < all.size() ? all[depth + 1].object : nullptr;
        for (const char* name : nested_configs) {
            const Field other = nested(all[depth], name);
            if (!other || other.value == chosen || (chosen != nullptr && *other.value == *chosen)) {
                continue;
            }
            const std::string read = chosen != nullptr ? without_dot(all[depth + 1]) + " is read, and differs" : "it has no sizes";
            warnings.push_back("ignored key " + other.name + ": " + read);
        }
    }
    for (const Scope& outside : model.around) {
        for (const auto& [key, value] : outside.object->items()) {
            const auto inner = model.config.object->find(key);
            const bool agrees = inner != model.config.object->end() && *inner == value;
            if (shapes_rotation(key) && is_set(value) && !agrees) {
                warnings.push_back(ignored(outside, key, value, model));
            }
        }
    }
    return warnings;
}

}  // namespace vkrope
