// SPDX-License-Identifier: MIT
#include "model/hf/nesting.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "model/hf/model_types.hpp"
#include "model/key_words.hpp"
#include "model/names.hpp"

namespace vkrope {
namespace {

// An object that may contain the language model's configuration.
struct Nested {
    const char* name;
    bool wraps = false;  // contains another such object
    bool half = false;   // one half of an encoder-decoder model; other meanings in a flat
                         // configuration
};

// Names of objects that may contain the configuration, most likely first.
constexpr Nested nested_configs[] = {
    {"text_config"},
    {"llm_config"},
    {"language_config"},
    {.name = "thinker_config", .wraps = true},  // in an omni model
    {.name = "vlm_config", .wraps = true},      // in a retriever such as ColPali
    {.name = "decoder", .wraps = true, .half = true},
    {.name = "encoder", .wraps = true, .half = true},
};

// Keys that affect the rotation although their names do not suggest it.
constexpr auto widths = names("attention_head_dim", "global_head_dim", "head_dim",
                              "hidden_size_per_head", "kv_channels", "layer_types",
                              "qk_nope_head_dim", "swa_head_dim");

// Keys that affect the rotation if the keys in `widths` are missing.
constexpr auto sizes = names("hidden_size", "max_position_embeddings", "model_type",
                             "num_attention_heads", "num_hidden_layers");

bool shapes_rotation(const std::string& key) {
    return classify_key(key, false) != KeyClass::nothing || contains(widths, key);
}

Field nested(const Scope& scope, const char* name) {
    const Field field = find_first({scope}, {name});
    return field && field.value->is_object() && !field.value->empty() ? field : Field();
}

const std::initializer_list<const char*> hidden_size_names = {"hidden_size", "n_embd"};
const std::initializer_list<const char*> head_count_names = {"num_attention_heads", "n_head",
                                                             "n_heads", "num_heads"};

bool has_sizes(const Scope& scope) {
    return find_first({scope}, hidden_size_names) && find_first({scope}, head_count_names);
}

// Parts of names, from the start of a word, of objects that do not describe this attention.
constexpr auto other_parts = names("adapter", "audio", "compress", "id2label", "image", "img",
                                   "label2id", "lora", "quant", "speech", "vae", "video", "vision",
                                   "visual", "vit");

bool names_other_part(const std::string& key) {
    return std::any_of(
        std::begin(other_parts), std::end(other_parts),
        [&](std::string_view part) { return in_key(key, part, true); });
}

bool is_nested(const std::string& key) {
    return std::any_of(
        std::begin(nested_configs), std::end(nested_configs),
        [&](const Nested& kind) { return key == kind.name; });
}

bool has_key_of_rope(const json& object) {
    bool rope = false;
    for (const auto& [key, value] : object.items())
        rope = rope || classify_key(key, false) == KeyClass::angles;
    return rope;
}

// Returns whether an object states the heads and the RoPE of a language model.
bool holds_attention(const Field& field) {
    return field.value->is_object() && !names_other_part(field.name) &&
           has_key_of_rope(*field.value) && find_first({{field.value, ""}}, head_count_names);
}

// Returns the only object of a configuration that holds a language model under any name; empty if
// there is none, or if the configuration itself states sizes and either RoPE or a known class.
Field holder(const Scope& config) {
    const Field type = find_first({config}, {"model_type"});
    const bool known = type && type.value->is_string() && find_model_type(text(type)) != nullptr;
    if (has_sizes(config) && (known || has_key_of_rope(*config.object))) return {};
    Field found;
    for (const auto& [key, value] : config.object->items()) {
        const Field field = {shown_key(key), &value};
        if (!holds_attention(field) || (found && *found.value == value)) continue;
        if (found) {
            invalid_data(
                "{}{} and {}{} both hold heads and a key of RoPE: it is unknown which of them is "
                "the language model; ignore one: query.ignore, --ignore NAME",
                config.prefix, found.name, config.prefix, field.name);
        }
        found = field;
    }
    if (found) found.name = config.prefix + found.name;
    return found;
}

void enter(LanguageModel& model, const Field& object) {
    model.around.push_back(model.config);
    model.config = inside(model.config, object);
}

void descend(LanguageModel& model) {
    for (const Nested& kind : nested_configs) {
        const Field field = nested(model.config, kind.name);
        if (!field) continue;
        if (has_sizes(model.config) &&
            (kind.half ||
             (!kind.wraps && !find_first({inside(model.config, field)}, hidden_size_names))))
            continue;  // an older flat file with an object that only names a class
        enter(model, field);
        if (kind.wraps) descend(model);
        return;
    }
    if (const Field field = holder(model.config)) enter(model, field);
}

// The values that determine the rotation of a language model, in the order of keys.
using Numbers = std::vector<std::pair<std::string, const json*>>;

Numbers numbers_of(const Scope& config) {
    Numbers numbers;
    for (const auto& [key, value] : config.object->items())
        if ((shapes_rotation(key) || contains(sizes, key)) && is_set(value))
            numbers.emplace_back(key, &value);
    return numbers;
}

bool alike(const Numbers& one, const Numbers& other) {
    return std::equal(
        one.begin(), one.end(), other.begin(), other.end(),
        [](const auto& a, const auto& b) { return a.first == b.first && *a.second == *b.second; });
}

std::string without_dot(const Scope& scope) {
    return scope.prefix.substr(0, scope.prefix.size() - 1);
}

// Returns the warning for a key outside the language model's object.
std::string ignored(const Scope& outside, const std::string& key, const json& value,
                    const LanguageModel& model) {
    const auto inner = model.config.object->find(key);
    const std::string name = "ignored key " + outside.prefix + shown_key(key);
    if (inner == model.config.object->end() || inner->is_null())
        return name + ": " + without_dot(model.config) + " is read, which does not have it";
    return name + ", which is " + shown(value) + ": " + model.config.prefix + shown_key(key) +
           " is read, which is " + shown(*inner);
}

// Returns whether an object is a separate model, such as a tower or a draft model.
bool is_model(const json& object) {
    const auto has = [&](std::initializer_list<const char*> keys) {
        return std::any_of(keys.begin(), keys.end(),
                           [&](const char* key) { return object.contains(key); });
    };
    return has({"model_type", "_class_name", "architectures"}) ||
           (has({"hidden_size", "n_embd", "d_model", "embed_dim", "dim", "width"}) &&
            has({"num_hidden_layers", "num_layers", "n_layers", "n_layer", "layers", "depth"}));
}

void judge_value(const json& value, const Scope& scope, UnreadKeys& keys, bool in_rope);

// Judges the keys of an object, at any depth.
void judge_object(const Scope& scope, UnreadKeys& keys, bool in_rope) {
    for (const auto& [key, value] : scope.object->items()) {
        if (is_other_part(key, value)) continue;
        const std::string name = scope.prefix + key;
        const bool read = scope.reads->count(name) != 0;
        const Field field = {scope.prefix + shown_key(key), &value};
        if (!read && keys.judge(field, key, in_rope)) continue;
        const bool of_rope = in_rope || (read && classify_key(key, false) == KeyClass::angles);
        judge_value(value, inside(scope, field), keys, of_rope);
    }
}

void judge_value(const json& value, const Scope& scope, UnreadKeys& keys, bool in_rope) {
    if (value.is_object()) return judge_object(scope, keys, in_rope);
    if (!value.is_array()) return;
    for (const json& entry : value) {
        if (entry.is_object() && is_model(entry)) continue;
        const std::string name = scope.prefix.substr(0, scope.prefix.size() - 1) + "[].";
        judge_value(entry, {&entry, name, scope.reads}, keys, in_rope);
    }
}

}  // namespace

bool is_other_part(const std::string& key, const json& value) {
    return value.is_structured() &&
           ((value.is_object() && is_model(value)) || names_other_part(key) || is_nested(key));
}

LanguageModel language_model(const Scope& document) {
    LanguageModel model = {document, {}};
    descend(model);
    return model;
}

std::vector<std::string> ignored_around(const LanguageModel& model) {
    std::vector<std::string> warnings;
    const Numbers read = numbers_of(
        model.config);  // computed once, because a hostile file can nest it deeply
    Scopes all = model.around;
    all.push_back(model.config);
    for (std::size_t depth = 0; depth < all.size(); ++depth) {
        const json* chosen = depth + 1 < all.size() ? all[depth + 1].object : nullptr;
        for (const Nested& kind : nested_configs) {
            const Field other = nested(all[depth], kind.name);
            if (!other || other.value == chosen ||
                (chosen != nullptr &&
                 alike(numbers_of(language_model({other.value, ""}).config), read)))
                continue;
            const std::string instead = chosen != nullptr
                                            ? without_dot(all[depth + 1]) + " is read, and differs"
                                        : kind.half ? "the keys around it are read"
                                                    : "it has no sizes";
            warn(warnings, "ignored key {}: {}", other.name, instead);
        }
    }
    for (const Scope& outside : model.around) {
        for (const auto& [key, value] : outside.object->items()) {
            const auto inner = model.config.object->find(key);
            const bool agrees = inner != model.config.object->end() && *inner == value;
            const Field field = {outside.prefix + shown_key(key), &value};
            const bool other = !agrees && &value != model.config.object &&
                               value != *model.config.object && !is_nested(key) &&
                               holds_attention(field);
            if (other) {
                warn(warnings, "ignored key {}: {} is read, and differs", field.name,
                     without_dot(model.config));
            } else if (shapes_rotation(key) && is_set(value) && !agrees) {
                warnings.push_back(ignored(outside, key, value, model));
            }
        }
    }
    return warnings;
}

void judge_unread(const Scope& scope, UnreadKeys& keys) {
    judge_object(scope, keys, false);
}

// Returns whether ignored_around() reports a key, which is then not an error.
bool is_warning(const std::string& key, const json& value) {
    const KeyClass key_class = classify_key(key, value.is_number());
    return key_class == KeyClass::norm || key_class == KeyClass::layers ||
           key_class == KeyClass::scores || key_class == KeyClass::scaling ||
           key_class == KeyClass::scaled_layers;
}

void judge_unread_around(const LanguageModel& model, UnreadKeys& keys) {
    for (const Scope& scope : model.around) {
        for (const auto& [key, value] : scope.object->items()) {
            const bool read_inside = scope.reads->count(model.config.prefix + key) != 0;
            if (read_inside || is_other_part(key, value) || &value == model.config.object) continue;
            const Field field = {scope.prefix + shown_key(key), &value};
            if (!value.is_structured()) {
                if (!is_warning(key, value)) keys.judge(field, key);
                continue;
            }
            if (!keys.judge(field, key)) judge_value(value, inside(scope, field), keys, false);
        }
    }
}

bool warn_of_unread(const Scope& scope, const std::string& model, Warnings& warnings) {
    UnreadKeys keys({.name = model}, warnings);
    judge_unread(scope, keys);
    return keys.says_norms();
}

}  // namespace vkrope
