// SPDX-License-Identifier: MIT
// The part of a Hugging Face configuration that names and parametrises the scaling: `rope_parameters` (transformers 5) or
// `rope_scaling` (4).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/config_field.hpp"

namespace vkrope {

struct ScalingSection {
    std::string name;  ///< "rope_parameters", "rope_scaling", or empty where the configuration has neither
    nlohmann::json object = nlohmann::json::object();

    Scope scope() const { return {&object, name + "."}; }
};

/// Finds the section; that both generations say different things is an error.
ScalingSection scaling_section(const nlohmann::json& config);

/// "default", "linear" or "llama3"; every other type is not_supported.
std::string scaling_type(const ScalingSection& section);

/// Applies the scaling `type` to frequencies without any. Adds to `warnings` what the section holds and the type does not use.
void apply_scaling(const std::string& type, const nlohmann::json& config, const ScalingSection& section,
                   std::vector<double>& inv_freq, std::vector<std::string>& warnings);

}  // namespace vkrope
