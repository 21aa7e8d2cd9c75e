// SPDX-License-Identifier: MIT
// Sections for positions on several axes.
#pragma once

#include <string>
#include <vector>

#include "model/field.hpp"
#include "model/hf/model_types.hpp"
#include "model/hf/scaling_section.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

/// The axis of each pair: mrope_section, xdrope_section, or the default of the model's class.
Sections position_sections(const ScalingSection& section, const Scope& config,
                           const ModelType& model, std::uint32_t pairs, Warnings& warnings);

/// Turns the pairs of rows and of columns by turns, where the class does: ERNIE 4.5 VL by a sum
/// over axes, in which each pair has a frequency on one of them.
void alternate_axes(const ModelType& model, RopeParams& rotation);

}  // namespace vkrope
