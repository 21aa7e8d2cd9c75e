// SPDX-License-Identifier: MIT
// Sections for positions on several axes.
#pragma once

#include <string>
#include <vector>

#include "model/hf/field.hpp"
#include "model/hf/model_types.hpp"
#include "model/hf/scaling_section.hpp"
#include "vkrope/frequencies.hpp"

namespace vkrope {

/// The axis of each pair: mrope_section, xdrope_section, or the default of the model's class.
Sections position_sections(const ScalingSection& section, const Scope& config,
                           const ModelType& model, std::uint32_t pairs,
                           std::vector<std::string>& warnings);

}  // namespace vkrope
