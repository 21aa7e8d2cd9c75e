// SPDX-License-Identifier: MIT
// The part of a Hugging Face configuration that names and parametrises the scaling:
// `rope_parameters` (transformers 5) or `rope_scaling` (4), one for all layers or one per layer
// type.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "model/hf/field.hpp"
#include "model/hf/model_types.hpp"

namespace vkrope {

struct ScalingSection {
    std::string name;  ///< as in messages: "rope_parameters", "rope_scaling"; empty if the
                       ///< configuration has neither
    nlohmann::json object = nlohmann::json::object();

    Scope scope() const { return {&object, name + "."}; }
    ScalingSection without_scaling() const;  ///< only the other fields: base, width, sections
};

struct ScalingSections {
    ScalingSection all;  ///< for all layers; empty if there is one per layer type
    std::vector<std::pair<std::string, ScalingSection>>
        by_type;  ///< for each layer type that has one

    std::vector<std::string> types() const;
    const ScalingSection* of(const std::string& type) const;  ///< null if a layer type has none
};

/// Finds the sections. Fails if rope_parameters and rope_scaling contradict each other. If the file
/// has neither, uses the scaling of the model's class, if it has one, with a warning. InternLM's
/// object called rotary becomes such a section.
ScalingSections scaling_sections(const Scope& config, const ModelType& model,
                                 std::vector<std::string>& warnings);

/// The rotated share of the head, under any of its names.
Field partial_rotary_factor(const Scopes& scopes);

}  // namespace vkrope
