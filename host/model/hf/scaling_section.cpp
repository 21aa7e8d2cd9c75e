// SPDX-License-Identifier: MIT
#include "model/hf/scaling_section.hpp"

#include <algorithm>
#include <initializer_list>

#include "model/names.hpp"

namespace vkrope {
namespace {

// Fields that are valid for every type.
constexpr auto common_fields = names("rope_type", "type", "rope_theta", "partial_rotary_factor",
                                     "mrope_section", "mrope_interleaved", "xdrope_section");

// A supported scaling, and the fields that it reads.
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
    if (!field) return json::object();
    if (!field.value->is_object()) refuse(field, "an object or null");
    return *field.value;
}

// Removes HunyuanImage 3's type custom, which means that the model's code computes the tables.
void read_custom(const ModelType& model, json& section) {
    if (!model.custom_scales_nothing) return;
    for (const char* key : {"rope_type", "type"}) {
        const auto type = section.find(key);
        if (type != section.end() && *type == "custom") *type = "default";
    }
}

// Returns the current name of a type that has several names; returns any other name unchanged.
std::string present_name(const std::string& type) {
    return type == "su"             ? "longrope"
           : type == "mrope"        ? "default"
           : is_deepseek_yarn(type) ? "yarn"
                                    : type;
}

bool is_common_field(const std::string& name) {
    return contains(common_fields, name);
}

// Returns the value of a field for comparisons; present_name() has converted names of types.
json value_of(const json& section, const std::string& key) {
    const bool is_type = key == "type" || key == "rope_type";
    for (const std::string& name :
         is_type ? std::vector<std::string>{"rope_type", "type"} : std::vector<std::string>{key}) {
        const auto entry = section.find(name);
        if (entry == section.end() || entry->is_null()) continue;
        return is_type && entry->is_string() ? json(present_name(entry->get<std::string>()))
                                             : *entry;
    }
    return {};
}

// Fails unless rope_parameters, or its section of some layer type, states each field of
// rope_scaling with the same value. Copies a base or a share that only rope_scaling has.
void merge(const std::string& prefix, json& parameters, const json& scaling) {
    std::vector<std::pair<std::string, const json*>> sections = {{prefix, &parameters}};
    for (const auto& [type, section] : parameters.items())
        if (section.is_object()) sections.emplace_back(prefix + shown_key(type) + ".", &section);
    json copied = json::object();
    for (const auto& [key, value] : scaling.items()) {
        if (value.is_null()) continue;
        if (value.is_object() && parameters.contains(key) && parameters[key].is_object()) {
            merge(prefix + shown_key(key) + ".", parameters[key], value);
            continue;
        }
        const json wanted = value_of(scaling, key);
        std::string said;
        bool agrees = false;
        for (const auto& [name, section] : sections) {
            const json stated = value_of(*section, key);
            agrees = agrees || (!stated.is_null() && stated == wanted);
            if (!stated.is_null() && said.empty())
                said = name + shown_key(key) + " is " + shown(stated);
        }
        const bool may_copy = key == "rope_theta" || key == "partial_rotary_factor";
        if (agrees) continue;
        if (said.empty() && may_copy && sections.size() == 1) {
            copied[key] = value;
            continue;
        }
        if (said.empty()) said = prefix + shown_key(key) + " is missing";
        invalid_data("{} but rope_scaling.{} is {}: they must agree", said, shown_key(key),
                     shown(value));
    }
    parameters.update(copied);
}

// Returns the layer type whose section has this value of `key`; empty if there is none.
std::string type_that_says(const ScalingSections& sections, const std::string& key,
                           const json& value) {
    for (const auto& [type, section] : sections.by_type) {
        const auto field = section.object.find(key);
        if (field != section.object.end() && *field == value) return type;
    }
    return {};
}

// Notes that the fields of all types are known: unused_fields() reports those that are not used.
void know_fields(const ScalingSection& section) {
    for (const ScalingType& type : scaling_types) know({section.scope()}, type.fields);
    for (const std::string_view field : common_fields) know({section.scope()}, {field.data()});
}

// Notes that all keys of an object are known, at any depth.
void know_all(const Scope& scope) {
    for (const auto& [key, value] : scope.object->items()) {
        know({scope}, {key.c_str()});
        if (value.is_object()) know_all({&value, scope.prefix + key + ".", scope.reads});
    }
}

ScalingSections divided(const std::string& name, const json& object, Reads* reads,
                        Warnings& warnings) {
    ScalingSections sections;
    for (const auto& [key, value] : object.items()) {
        if (value.is_object()) {
            sections.by_type.push_back({key, {name + "." + shown_key(key), value, reads}});
            know({{nullptr, name + ".", reads}}, {key.c_str()});
            know_fields(sections.by_type.back().second);
        }
    }
    if (sections.by_type.empty()) {
        sections.all = {name, object, reads};
        know_fields(sections.all);
        return sections;
    }
    if (sections.by_type.size() > max_layer_types) {
        invalid_data("{} has {} layer types: it must have at most {}", name,
                     sections.by_type.size(), max_layer_types);
    }
    for (const auto& [key, value] : object.items()) {
        if (value.is_object() || value.is_null()) continue;
        know({{nullptr, name + ".", reads}}, {key.c_str()});
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

// Converts InternLM's {"base", "type", "scaling_factor"} to the fields of rope_scaling. Source:
// InternLMAttention in its modeling_internlm.py.
ScalingSection of_rotary(const Scope& config, const Field& rotary) {
    const Scope scope = inside(config, rotary);
    ScalingSection section = {rotary.name, json::object(), config.reads};
    if (const Field base = find({scope}, {"base"})) {
        section.object["rope_theta"] = positive_number(base);
        const Field other = find({config}, {"rope_theta"});
        if (other && *other.value != *base.value) disagree(base, other);
    }
    const Field type = find({scope}, {"type"});
    if (!type) invalid_data("{}.type is missing: it must be origin or dynamic", rotary.name);
    if (*type.value != "origin" && *type.value != "dynamic")
        not_supported("{}: it must be origin or dynamic", stated(type));
    const bool grows = *type.value == "dynamic";
    section.object["rope_type"] = grows ? "dynamic" : "default";
    if (grows) {
        const Field factor = find({scope}, {"scaling_factor"});
        section.object["factor"] = factor ? positive_number(factor) : 1;
    }
    return section;
}

}  // namespace

Warnings unused_fields(const ScalingSection& section, const std::string& type) {
    Warnings warnings;
    const ScalingType* row = find_row(scaling_types, type);
    for (const ScalingType& other : scaling_types) {
        for (const char* field : other.fields) {
            const auto entry = section.object.find(field);
            if (entry == section.object.end() || entry->is_null() || contains(row->fields, field))
                continue;
            std::string warning = sentence<std::string, const char*, std::string>(
                "ignored key {}.{}: rope_type {} does not use it", section.name, field, type);
            if (!contains(warnings, warning)) warnings.push_back(std::move(warning));
        }
    }
    return warnings;
}

bool is_deepseek_yarn(const std::string& type) {
    return type == "deepseek_yarn" || type == "telechat3-yarn";
}

std::string scaling_type(const ScalingSection& section) {
    std::string type;
    Field found;
    for (const char* key : {"rope_type", "type"}) {
        const Field field = find({section.scope()}, {key});
        if (!field) continue;
        const std::string named = present_name(text(field));
        if (found && named != type) disagree(found, field);
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
    ScalingSection rest = {name, json::object(), reads};
    for (const auto& [key, value] : object.items())
        if (is_common_field(key) && key != "rope_type" && key != "type") rest.object[key] = value;
    return rest;
}

std::vector<std::string> ScalingSections::types() const {
    std::vector<std::string> names;
    for (const auto& [type, section] : by_type) names.push_back(type);
    return names;
}

const ScalingSection* ScalingSections::of(const std::string& type) const {
    if (by_type.empty()) return &all;
    for (const auto& [name, section] : by_type)
        if (name == type) return &section;
    return nullptr;
}

ScalingSections scaling_sections(const Scope& config, const ModelType& model, Warnings& warnings) {
    json parameters = object_or_empty(config, "rope_parameters");
    json scaling = object_or_empty(config, "rope_scaling");
    read_custom(model, parameters);
    read_custom(model, scaling);
    if (model.rotary_object && config.object->value("rotary", json()).is_object()) {
        const Field rotary = find({config}, {"rotary"});
        if (!parameters.empty() || !scaling.empty()) {
            invalid_data("{} and {} are both present: it is unknown which of them applies",
                         rotary.name, parameters.empty() ? "rope_scaling" : "rope_parameters");
        }
        return {of_rotary(config, rotary), {}};
    }
    if (const Field factor = model.dynamic_factor ? find({config}, {model.dynamic_factor})
                                                  : Field();
        factor && parameters.empty() && scaling.empty()) {
        const json section = {{"rope_type", "dynamic"}, {"factor", positive_number(factor)}};
        return {{factor.name, section, config.reads}, {}};
    }
    if (!parameters.empty() && !scaling.empty()) {
        merge(config.prefix + "rope_parameters.", parameters, scaling);
        // merge() has compared its fields with those of rope_parameters.
        know_all({&scaling, config.prefix + "rope_scaling.", config.reads});
    }
    if (!parameters.empty())
        return divided(config.prefix + "rope_parameters", parameters, config.reads, warnings);
    // An explicit null in a file turns scaling off.
    if (scaling.empty() && model.scaling != nullptr &&
        !config.object->contains("rope_parameters") && !config.object->contains("rope_scaling")) {
        warn(warnings, "rope_scaling is missing: assuming the default of {}", model.name);
        return divided("rope_parameters", json::parse(model.scaling), nullptr, warnings);
    }
    return scaling.empty()
               ? ScalingSections()
               : divided(config.prefix + "rope_scaling", scaling, config.reads, warnings);
}

}  // namespace vkrope
