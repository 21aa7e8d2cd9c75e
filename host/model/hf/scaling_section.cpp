// SPDX-License-Identifier: MIT
#include "model/hf/scaling_section.hpp"

#include <algorithm>
#include <initializer_list>

#include "model/names.hpp"

namespace vkrope {
namespace {

/// Fields that are valid for every type.
constexpr auto common_fields = names("rope_type", "type", "rope_theta", "partial_rotary_factor",
                                     "mrope_section", "mrope_interleaved", "xdrope_section");

/// A supported scaling, and the fields that it reads.
struct ScalingType {
    const char* name;
    std::initializer_list<const char*> fields;
};

const ScalingType scaling_types[] = {
    {"default", {}},
    {"dynamic", {"factor", "alpha", "original_max_position_embeddings"}},
    {"linear", {"factor"}},
    {"llama3",
     {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}},
    {"longrope",
     {"factor", "short_factor", "long_factor", "attention_factor", "short_mscale", "long_mscale",
      "original_max_position_embeddings"}},
    {"ntk", {"factor", "mixed_b"}},
    {"proportional", {"factor"}},
    {"xdrope", {"alpha"}},
    {"yarn",
     {"factor", "beta_fast", "beta_slow", "truncate", "attention_factor", "mscale",
      "mscale_all_dim", "original_max_position_embeddings"}},
};

json object_or_empty(const Scope& config, const char* name) {
    const Field field = find({config}, {name});
    if (!field) {
        return json::object();
    }
    if (!field.value->is_object()) {
        refuse(field, "an object or null");
    }
    return *field.value;
}

/// Removes HunyuanImage 3's type custom, which means that the model's code computes the tables.
void read_custom(const ModelType& model, json& section) {
    if (!model.custom_scales_nothing) return;
    for (const char* key : {"rope_type", "type"}) {
        const auto type = section.find(key);
        if (type != section.end() && *type == "custom") *type = "default";
    }
}

/// Returns the section without nulls and without the fields that share() compares.
json comparable(const json& section) {
    json result = json::object();
    for (const auto& [key, value] : section.items()) {
        if (value.is_object()) {
            result[key] = comparable(value);
        } else if ((key == "type" || key == "rope_type") && value.is_string()) {
            result["rope_type"] = present_name(value.get<std::string>());
        } else if (!value.is_null() && key != "rope_theta" && key != "partial_rotary_factor") {
            result[key] = value;
        }
    }
    return result;
}

bool is_by_type(const json& section) {
    return std::any_of(section.begin(), section.end(),
                       [](const json& value) { return value.is_object(); });
}

/// Returns the part of rope_parameters that must equal rope_scaling. If only rope_parameters has
/// types, it is the equal section of any type, or else that of full attention, as older files mean.
json counterpart(const json& parameters, const json& scaling) {
    if (!is_by_type(parameters) || is_by_type(scaling)) {
        return comparable(parameters);
    }
    for (const json& section : parameters) {
        if (section.is_object() && comparable(section) == comparable(scaling)) {
            return comparable(section);
        }
    }
    const auto full = parameters.find(full_attention);
    return comparable(full != parameters.end() && full->is_object() ? *full : parameters);
}

void require_agreement(const json& parameters, const json& scaling) {
    const json a = counterpart(parameters, scaling);
    const json b = comparable(scaling);
    if (a == b) {
        return;
    }
    for (const json* side : {&a, &b}) {
        for (const auto& [key, value] : side->items()) {
            if (!a.contains(key) || !b.contains(key) || a[key] != b[key]) {
                invalid_data("rope_parameters and rope_scaling differ in {}: they must agree",
                             shown_key(key));
            }
        }
    }
}

/// Returns the layer type whose section has this value of `key`; empty if there is none.
std::string type_that_says(const ScalingSections& sections, const std::string& key,
                           const json& value) {
    for (const auto& [type, section] : sections.by_type) {
        const auto own = section.object.find(key);
        if (own != section.object.end() && *own == value) {
            return type;
        }
    }
    return {};
}

ScalingSections divided(const std::string& name, const json& object, Warnings& warnings) {
    ScalingSections sections;
    for (const auto& [key, value] : object.items()) {
        if (value.is_object()) {
            sections.by_type.push_back({key, {name + "." + shown_key(key), value}});
        }
    }
    if (sections.by_type.empty()) {
        sections.all = {name, object};
        return sections;
    }
    if (sections.by_type.size() > max_layer_types) {
        invalid_data("{} has {} layer types: it must have at most {}", name,
                     sections.by_type.size(), max_layer_types);
    }
    for (const auto& [key, value] : object.items()) {
        if (value.is_object() || value.is_null()) {
            continue;
        }
        const std::string type = type_that_says(sections, key, value);
        if (type.empty()) {
            invalid_data(
                "{} has both {} and parameters per layer type: it is unknown which of them applies",
                name, shown_key(key));
        }
        warn(warnings,
             "ignored key {}.{}, which is {}: each layer type's own key is read; {} has the same "
             "value",
             name, shown_key(key), shown(value), shown_key(type));
    }
    return sections;
}

/// Copies a field that only rope_scaling has; if both objects have the field, the values must
/// agree. With sections per layer type, one section must agree.
void share(json& parameters, const json& scaling, const char* key) {
    const auto old = scaling.find(key);
    if (old == scaling.end() || old->is_null()) {
        return;
    }
    bool said = false, agrees = false;
    const auto compare = [&](const json& section) {
        const auto own = section.find(key);
        said = said || (own != section.end() && !own->is_null());
        agrees = agrees || (own != section.end() && *own == *old);
    };
    compare(parameters);
    bool by_type = false;
    for (const json& section : parameters) {
        if (section.is_object()) {
            by_type = true;
            compare(section);
        }
    }
    if (!said && !by_type) {
        parameters[key] = *old;
    } else if (!agrees) {
        invalid_data("rope_parameters and rope_scaling differ in {}: they must agree", key);
    }
}

/// Converts InternLM's {"base", "type", "scaling_factor"} to the fields of rope_scaling. Source:
/// InternLMAttention in its modeling_internlm.py.
ScalingSection of_rotary(const Scope& config, const Field& rotary, Warnings& warnings) {
    const Scope scope = {rotary.value, rotary.name + "."};
    ScalingSection section = {rotary.name, json::object()};
    if (const Field base = find({scope}, {"base"})) {
        section.object["rope_theta"] = positive_number(base);
        const Field other = find({config}, {"rope_theta"});
        if (other && *other.value != *base.value) {
            disagree(base, other);
        }
    }
    const Field type = find({scope}, {"type"});
    if (!type) {
        invalid_data("{}.type is missing: it must be origin or dynamic", rotary.name);
    }
    if (*type.value != "origin" && *type.value != "dynamic") {
        not_supported("{}: it must be origin or dynamic", stated(type));
    }
    const bool grows = *type.value == "dynamic";
    section.object["rope_type"] = grows ? "dynamic" : "default";
    const Field factor = find({scope}, {"scaling_factor"});
    if (grows) {
        section.object["factor"] = factor ? positive_number(factor) : 1;
    }
    for (const auto& [key, value] : rotary.value->items()) {
        const bool read = key == "base" || key == "type" || (grows && key == "scaling_factor");
        if (!read && !value.is_null()) {
            warn(warnings, "ignored key {}{}", scope.prefix, shown_key(key));
        }
    }
    return section;
}

}  // namespace

bool is_common_field(const std::string& name) {
    return contains(common_fields, name);
}

bool reads_field(const std::string& type, const std::string& name) {
    return is_common_field(name) || contains(find_row(scaling_types, type)->fields, name);
}

std::string present_name(const std::string& type) {
    return type == "su"             ? "longrope"
           : type == "mrope"        ? "default"
           : is_deepseek_yarn(type) ? "yarn"
                                    : type;
}

bool is_scaling_name(const std::string& type) {
    const std::string present = present_name(type);
    return present != "default" && find_row(scaling_types, present) != nullptr;
}

bool is_deepseek_yarn(const std::string& type) {
    return type == "deepseek_yarn" || type == "telechat3-yarn";
}

std::string scaling_type(const ScalingSection& section) {
    std::string type;
    Field found;
    for (const char* key : {"rope_type", "type"}) {
        const Field field = find({section.scope()}, {key});
        if (!field) {
            continue;
        }
        const std::string named = present_name(text(field));
        if (found && named != type) {
            disagree(found, field);
        }
        found = field;
        type = named;
    }
    if (found) {
        if (find_row(scaling_types, type) == nullptr) {
            not_supported(
                "{}: it must be default, linear, dynamic, yarn, longrope, llama3, proportional, "
                "mrope or xdrope",
                stated(found));
        }
        return type;
    }
    for (const auto& [key, value] : section.object.items()) {
        if (!value.is_null() && !is_common_field(key)) {
            invalid_data(
                "{}.rope_type is missing although {} is present: the scaling that it belongs to is "
                "unknown",
                section.name, shown_key(key));
        }
    }
    return "default";
}

ScalingSection ScalingSection::without_scaling() const {
    ScalingSection rest = {name, json::object()};
    for (const auto& [key, value] : object.items()) {
        if (is_common_field(key) && key != "rope_type" && key != "type") {
            rest.object[key] = value;
        }
    }
    return rest;
}

std::vector<std::string> ScalingSections::types() const {
    std::vector<std::string> names;
    for (const auto& [type, section] : by_type) {
        names.push_back(type);
    }
    return names;
}

const ScalingSection* ScalingSections::of(const std::string& type) const {
    if (by_type.empty()) {
        return &all;
    }
    for (const auto& [name, section] : by_type) {
        if (name == type) {
            return &section;
        }
    }
    return nullptr;
}

ScalingSections scaling_sections(const Scope& config, const ModelType& model, Warnings& warnings) {
    json parameters = object_or_empty(config, "rope_parameters");
    json scaling = object_or_empty(config, "rope_scaling");
    read_custom(model, parameters);
    read_custom(model, scaling);
    if (const Field rotary = model.rotary_object ? find({config}, {"rotary"}) : Field();
        rotary && rotary.value->is_object()) {
        if (!parameters.empty() || !scaling.empty()) {
            invalid_data("{} and {} are both present: it is unknown which of them applies",
                         rotary.name, parameters.empty() ? "rope_scaling" : "rope_parameters");
        }
        return {of_rotary(config, rotary, warnings), {}};
    }
    if (!parameters.empty() && !scaling.empty()) {
        require_agreement(parameters, scaling);
        for (const char* key : {"rope_theta", "partial_rotary_factor"}) {
            share(parameters, scaling, key);
        }
    }
    if (!parameters.empty()) {
        return divided(config.prefix + "rope_parameters", parameters, warnings);
    }
    // An explicit null in a file turns scaling off.
    if (scaling.empty() && model.scaling != nullptr &&
        !config.object->contains("rope_parameters") && !config.object->contains("rope_scaling")) {
        warn(warnings, "rope_scaling is missing: assuming the default of {}", model.name);
        return divided("rope_parameters", json::parse(model.scaling), warnings);
    }
    return scaling.empty() ? ScalingSections()
                           : divided(config.prefix + "rope_scaling", scaling, warnings);
}

}  // namespace vkrope
