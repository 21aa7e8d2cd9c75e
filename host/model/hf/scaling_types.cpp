// SPDX-License-Identifier: MIT
#include "model/hf/scaling_types.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "model/import_error.hpp"
#include "model/json_document.hpp"

namespace vkrope {
namespace {

/// Fields that are valid for every type.
constexpr const char* common_fields[] = {
    "rope_type",         "type",          "rope_theta", "partial_rotary_factor", "mrope_section",
    "mrope_interleaved", "xdrope_section"};

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

const ScalingType* known(const std::string& name) {
    const auto* found = std::find_if(std::begin(scaling_types), std::end(scaling_types),
                                     [&](const ScalingType& type) { return name == type.name; });
    return found == std::end(scaling_types) ? nullptr : found;
}

template <class Names>
bool contains(const Names& names, const std::string& name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

bool is_common_field(const std::string& name) {
    return contains(common_fields, name);
}

bool reads_field(const std::string& type, const std::string& name) {
    return is_common_field(name) || contains(known(type)->fields, name);
}

std::string present_name(const std::string& type) {
    return type == "su"             ? "longrope"
           : type == "mrope"        ? "default"
           : is_deepseek_yarn(type) ? "yarn"
                                    : type;
}

bool is_scaling_name(const std::string& type) {
    const std::string present = present_name(type);
    return present != "default" && known(present) != nullptr;
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
            fail(VKROPE_ERROR_INVALID_DATA, "%s is %s but %s is %s: they must agree", found.name.c_str(),
                 shown(*found.value).c_str(), field.name.c_str(), shown(*field.value).c_str());
        }
        found = field;
        type = named;
    }
    if (found) {
        if (known(type) == nullptr) {
            fail(VKROPE_ERROR_NOT_SUPPORTED,
                 "%s is %s: it must be default, linear, dynamic, yarn, longrope, llama3, "
                 "proportional, mrope or xdrope",
                 found.name.c_str(), shown(*found.value).c_str());
        }
        return type;
    }
    for (const auto& [key, value] : section.object.items()) {
        if (!value.is_null() && !is_common_field(key)) {
            fail(VKROPE_ERROR_INVALID_DATA,
                 "%s.rope_type is missing although %s is there: it is unknown which scaling it "
                 "belongs to",
                 section.name.c_str(), shown_key(key).c_str());
        }
    }
    return "default";
}

}  // namespace vkrope
