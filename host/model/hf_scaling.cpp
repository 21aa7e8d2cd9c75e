// SPDX-License-Identifier: MIT
#include "model/hf_scaling.hpp"

#include <algorithm>

#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "vkrope/frequencies.hpp"

namespace vkrope {
namespace {

using nlohmann::json;

/// Fields that may stand here whatever the type.
constexpr const char* common_fields[] = {"rope_type", "type", "rope_theta", "partial_rotary_factor"};

/// A scaling that we know, and the fields that it reads.
struct ScalingType {
    const char* name;
    std::initializer_list<const char*> fields;
};

const ScalingType scaling_types[] = {
    {"default", {}},
    {"linear", {"factor"}},
    {"llama3", {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}},
};

const ScalingType* known(const std::string& name) {
    const auto* found = std::find_if(std::begin(scaling_types), std::end(scaling_types),
                                     [&](const ScalingType& type) { return name == type.name; });
    return found == std::end(scaling_types) ? nullptr : found;
}

template <class Names>
bool contains(const Names& names, const std::string& name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

json object_or_empty(const json& config, const char* name) {
    const Field field = find({{&config, ""}}, {name});
    if (!field) {
        return json::object();
    }
    if (!field.value->is_object()) {
        fail(Code::invalid_data, "%s is %s: must be an object or null", name, shown(*field.value).c_str());
    }
    for (const auto& [key, value] : field.value->items()) {
        if (value.is_object()) {
            fail(Code::not_supported, "%s.%s is an object: parameters per layer type are not supported yet", name,
                 shown_key(key).c_str());
        }
    }
    return *field.value;
}

/// The section without what need not be said twice: nulls, and the fields that find() compares wherever they stand.
json comparable(json section) {
    json result = json::object();
    for (const auto& [key, value] : section.items()) {
        if (!value.is_null() && key != "rope_theta" && key != "partial_rotary_factor") {
            result[key == "type" ? "rope_type" : key] = value;
        }
    }
    return result;
}

void require_agreement(const json& parameters, const json& scaling) {
    const json a = comparable(parameters);
    const json b = comparable(scaling);
    if (a == b) {
        return;
    }
    for (const json* side : {&a, &b}) {
        for (const auto& [key, value] : side->items()) {
            if (!a.contains(key) || !b.contains(key) || a[key] != b[key]) {
                fail(Code::invalid_data, "rope_parameters and rope_scaling differ in %s: they must agree", shown_key(key).c_str());
            }
        }
    }
}

Field required(const Scopes& scopes, const ScalingSection& section, const std::string& type, const char* name) {
    Field field = find(scopes, {name});
    if (!field) {
        fail(Code::invalid_data, "%s.%s is missing: rope_type %s needs it", section.name.c_str(), name, type.c_str());
    }
    return field;
}

}  // namespace

ScalingSection scaling_section(const json& config) {
    const json parameters = object_or_empty(config, "rope_parameters");
    const json scaling = object_or_empty(config, "rope_scaling");
    if (!parameters.empty() && !scaling.empty()) {
        require_agreement(parameters, scaling);
    }
    if (!parameters.empty()) {
        return {"rope_parameters", parameters};
    }
    return {scaling.empty() ? "" : "rope_scaling", scaling};
}

std::string scaling_type(const ScalingSection& section) {
    const Field field = find({section.scope()}, {"rope_type", "type"});
    if (field) {
        std::string type = text(field);
        if (known(type) == nullptr) {
            fail(Code::not_supported, "%s is %s: only default, linear and llama3 are supported", field.name.c_str(),
                 shown(*field.value).c_str());
        }
        return type;
    }
    for (const auto& [key, value] : section.object.items()) {
        if (!value.is_null() && !contains(common_fields, key)) {
            fail(Code::invalid_data, "%s.rope_type is missing although %s is there: which scaling it belongs to is unknown",
                 section.name.c_str(), shown_key(key).c_str());
        }
    }
    return "default";
}

void apply_scaling(const std::string& type, const json& config, const ScalingSection& section, std::vector<double>& inv_freq,
                   std::vector<std::string>& warnings) {
    for (const auto& [key, value] : section.object.items()) {
        if (!value.is_null() && !contains(common_fields, key) && !contains(known(type)->fields, key)) {
            warnings.push_back("ignored key " + section.name + "." + shown_key(key) + ": rope_type " + type + " does not use it");
        }
    }
    const auto number = [&](const char* name) { return positive_number(required({section.scope()}, section, type, name)); };
    Status status;
    if (type == "linear") {
        status = scale_linear(inv_freq, number("factor"));
    } else if (type == "llama3") {
        // transformers 5 also takes the original length from the top level.
        const Scopes everywhere = {section.scope(), {&config, ""}};
        status = scale_llama3(inv_freq, {number("factor"), number("low_freq_factor"), number("high_freq_factor"),
                                         positive_number(required(everywhere, section, type, "original_max_position_embeddings"))});
    }
    if (!status) {
        fail(Code::invalid_data, "%s: %s", section.name.c_str(), status.what);
    }
}

}  // namespace vkrope
