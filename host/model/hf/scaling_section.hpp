// SPDX-License-Identifier: MIT
// Finds the part of a Hugging Face configuration that names and parametrises the scaling:
// `rope_parameters` (transformers 5) or `rope_scaling` (4), one for all layers or one per layer
// type.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "model/field.hpp"
#include "model/hf/model_types.hpp"

namespace vkrope {

struct ScalingSection {
    std::string name;  // name in messages: "rope_parameters", "rope_scaling"; empty if the
                       // configuration has neither
    json object = json::object();
    Reads* reads = nullptr;  // of the document

    Scope scope() const { return {&object, name + ".", reads}; }
    // Returns the section without its fields for scaling, with base, width and sections.
    ScalingSection without_scaling() const;
};

struct ScalingSections {
    ScalingSection all;  // for all layers; empty if there is one per layer type
    std::vector<std::pair<std::string, ScalingSection>>
        by_type;  // for each layer type that has one

    std::vector<std::string> types() const;
    const ScalingSection* of(const std::string& type) const;  // null if a layer type has none
};

// Finds the sections. Fails if rope_parameters and rope_scaling contradict each other. If the file
// has neither, uses the scaling of the model's class, if any, with a warning. InternLM's object
// `rotary` becomes such a section.
ScalingSections scaling_sections(const Scope& config, const ModelType& model, Warnings& warnings);

// Keys of the rotated share of the head.
inline const std::initializer_list<const char*> share_names = {
    "partial_rotary_factor", "rotary_pct",        "rope_pct",    "rotary_emb_fraction",
    "rotary_percent",        "rotary_percentage", "rope_percent"};

// Returns the current name of the type: "su" is "longrope", and "mrope", which is not a scaling,
// is "default". Fails with not_supported for an unknown type.
std::string scaling_type(const ScalingSection& section);

// Returns the warnings for set fields of a section that its type does not use, but another type.
Warnings unused_fields(const ScalingSection& section, const std::string& type);

// Returns whether a type is YaRN under a name that means DeepSeek's magnitudes. Source: vLLM's
// get_rope() and initialize_rope() of mlx-lm.
bool is_deepseek_yarn(const std::string& type);

}  // namespace vkrope
