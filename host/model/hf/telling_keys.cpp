// SPDX-License-Identifier: MIT
#include "model/hf/telling_keys.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "model/hf/scaling_section.hpp"
#include "model/names.hpp"

namespace vkrope {
namespace {

/// Parts of names of objects that describe no attention of this model; at the beginning of a word.
constexpr auto other_parts = names("adapter", "audio", "compress", "id2label", "image", "img",
                                   "label2id", "lora", "quant", "speech", "vae", "video", "vision",
                                   "visual", "vit");

/// Whether an object is a model by itself, such as a tower or a draft.
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

/// A section that says of itself that it scales nothing.
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
             (says == Says::norm ? ": norms of Q and K that it says are not read" : ""));
    };
    for (const auto& [key, value] : scope.object->items()) {
        if (std::find(read.begin(), read.end(), key) != read.end()) continue;
        look(scope, key, value);
        visit_inside({scope.prefix + shown_key(key), &value}, look);
    }
    return norms;
}

}  // namespace vkrope
