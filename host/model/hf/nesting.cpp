// SPDX-License-Identifier: MIT
#include "model/hf/nesting.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "model/hf/scaling_section.hpp"
#include "model/names.hpp"

namespace vkrope {
namespace {

/// An object that may contain the language model's configuration.
struct Nested {
    const char* name;
    bool wraps = false;  ///< contains another such object
    bool half = false;   ///< one half of an encoder-decoder model; other meanings in a flat
                         ///< configuration
};

/// Names of objects that may contain the configuration, most likely first.
constexpr Nested nested_configs[] = {
    {"text_config"},
    {"llm_config"},
    {"language_config"},
    {.name = "thinker_config", .wraps = true},  // in an omni model
    {.name = "vlm_config", .wraps = true},      // in a retriever such as ColPali
    {.name = "decoder", .wraps = true, .half = true},
    {.name = "encoder", .wraps = true, .half = true},
};

/// Keys that affect the rotation although their names do not suggest it.
constexpr auto widths = names("attention_head_dim", "global_head_dim", "head_dim",
                              "hidden_size_per_head", "kv_channels", "layer_types",
                              "qk_nope_head_dim", "swa_head_dim");

/// Keys that affect the rotation if the keys in `widths` are missing.
constexpr auto sizes = names("hidden_size", "max_position_embeddings", "model_type",
                             "num_attention_heads", "num_hidden_layers");

bool shapes_rotation(const std::string& key) {
    return what_says(key) != Says::nothing || contains(widths, key);
}

Field nested(const Scope& scope, const char* name) {
    const Field field = find_first({scope}, {name});
    return field && field.value->is_object() && !field.value->empty() ? field : Field();
}

bool has_sizes(const Scope& scope) {
    return find_first({scope}, {"hidden_size", "n_embd"}) &&
           find_first({scope}, {"num_attention_heads", "n_head"});
}

void descend(LanguageModel& model) {
    for (const Nested& kind : nested_configs) {
        const Field field = nested(model.config, kind.name);
        if (!field) {
            continue;
        }
        const Scope inner = {field.value, field.name + "."};
        if (has_sizes(model.config) &&
            (kind.half || (!kind.wraps && !find_first({inner}, {"hidden_size", "n_embd"})))) {
            continue;  // an older flat file with an object that only names a class
        }
        model.around.push_back(model.config);
        model.config = inner;
        if (kind.wraps) {
            descend(model);
        }
        return;
    }
}

/// The values that determine the rotation of a language model, in the order of keys.
using Numbers = std::vector<std::pair<std::string, const json*>>;

Numbers numbers_of(const Scope& config) {
    Numbers numbers;
    for (const auto& [key, value] : config.object->items()) {
        if ((shapes_rotation(key) || contains(sizes, key)) && is_set(value)) {
            numbers.emplace_back(key, &value);
        }
    }
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

/// Returns the warning for a key outside the language model's object.
std::string ignored(const Scope& outside, const std::string& key, const json& value,
                    const LanguageModel& model) {
    const auto inner = model.config.object->find(key);
    const std::string name = "ignored key " + outside.prefix + shown_key(key);
    if (inner == model.config.object->end() || inner->is_null()) {
        return name + ": " + without_dot(model.config) + " is read, which does not have it";
    }
    return name + ", which is " + shown(value) + ": " + model.config.prefix + shown_key(key) +
           " is read, which is " + shown(*inner);
}

/// Parts of names, from the start of a word, of objects that do not describe this attention.
constexpr auto other_parts = names("adapter", "audio", "compress", "id2label", "image", "img",
                                   "label2id", "lora", "quant", "speech", "vae", "video", "vision",
                                   "visual", "vit");

/// Returns whether an object is a separate model, such as a tower or a draft model.
bool is_model(const json& object) {
    const auto has = [&](std::initializer_list<const char*> keys) {
        return std::any_of(keys.begin(), keys.end(),
                           [&](const char* key) { return object.contains(key); });
    };
    return has({"model_type", "_class_name", "architectures"}) ||
           (has({"hidden_size", "n_embd", "d_model", "embed_dim", "dim", "width"}) &&
            has({"num_hidden_layers", "num_layers", "n_layers", "n_layer", "layers", "depth"}));
}

bool is_other_part(const std::string& key, const json& value) {
    return (value.is_object() && is_model(value)) ||
           std::any_of(std::begin(other_parts), std::end(other_parts),
                       [&](std::string_view part) { return in_key(key, part, true); });
}

/// Returns whether a section states that it does not scale.
bool is_plain(const json& section) {
    const auto says_so = [&](const char* key) {
        const auto type = section.find(key);
        return type != section.end() && (*type == "default" || *type == "mrope");
    };
    return section.is_object() && (says_so("rope_type") || says_so("type"));
}

void visit_value(const json& value, const std::string& name, const VisitKey& visit) {
    if (value.is_array()) {
        for (const json& entry : value) {
            if (entry.is_structured() && !(entry.is_object() && is_model(entry))) {
                visit_value(entry, name + "[]", visit);
            }
        }
    }
    if (!value.is_object()) return;
    const Scope scope = {&value, name + "."};
    for (const auto& [key, inner] : value.items()) {
        visit(scope, key, inner);
        if (inner.is_structured() && !is_other_part(key, inner)) {
            visit_value(inner, scope.prefix + shown_key(key), visit);
        }
    }
}

}  // namespace

LanguageModel language_model(const json& document) {
    LanguageModel model = {{&document, ""}, {}};
    descend(model);
    return model;
}

bool is_nested_config(const std::string& key) {
    return std::any_of(std::begin(nested_configs), std::end(nested_configs),
                       [&](const Nested& kind) { return key == kind.name; });
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
                 alike(numbers_of(language_model(*other.value).config), read))) {
                continue;
            }
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
            if (shapes_rotation(key) && is_set(value) && !agrees) {
                warnings.push_back(ignored(outside, key, value, model));
            }
        }
    }
    return warnings;
}

bool asks_for_scaling(const json& value) {
    return is_set(value) && value != 1;
}

bool says_a_scaling(const json& value) {
    const auto names_one = [](const json& type) {
        return type.is_string() && is_scaling_name(type.get<std::string>());
    };
    if (!value.is_object()) {
        return names_one(value);
    }
    const auto has = [&](const char* key, auto&& asks) {
        const auto entry = value.find(key);
        return entry != value.end() && asks(*entry);
    };
    return has("rope_type", names_one) || has("type", names_one) ||
           has("factor", [](const json& factor) { return factor.is_number() && factor != 1; });
}

void visit_inside(const Field& field, const VisitKey& visit) {
    const std::string key = field.name.substr(field.name.rfind('.') + 1);
    if (!is_other_part(key, *field.value)) visit_value(*field.value, field.name, visit);
}

bool warn_of_unread(const Scope& scope, std::initializer_list<const char*> read,
                    Warnings& warnings) {
    bool norms = false;
    std::set<std::string> named;
    const VisitKey look = [&](const Scope& where, const std::string& key, const json& value) {
        const Says says = what_says(key);
        if (says == Says::nothing || !is_set(value)) return;
        const std::string name = where.prefix + shown_key(key);
        if (!named.insert(name).second) return;
        const bool yarn = says == Says::yarn && asks_for_scaling(value) && !is_plain(value);
        const bool section = where.object != scope.object && says == Says::scaling &&
                             says_a_scaling(value);
        if (yarn || section) {
            not_supported("{} is {}: it names a scaling and is not read; set it to null", name,
                          shown(value));
        }
        norms = norms || says == Says::norm;
        warn(warnings, "ignored key {}{}", name,
             (says == Says::norm ? ": it names norms of Q and K, which are not read" : ""));
    };
    for (const auto& [key, value] : scope.object->items()) {
        if (std::find(read.begin(), read.end(), key) != read.end()) continue;
        look(scope, key, value);
        visit_inside({scope.prefix + shown_key(key), &value}, look);
    }
    return norms;
}

}  // namespace vkrope
