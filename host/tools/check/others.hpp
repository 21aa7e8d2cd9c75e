// SPDX-License-Identifier: MIT
// What else a model file has that an engine can take for what was asked for.
#pragma once

#include <vector>

#include "check/hypothesis.hpp"
#include "io/model_file.hpp"

namespace vkrope::tools {

/// The other RoPEs of the model: of its other layers, and at the shortest and the greatest length.
/// Each once.
std::vector<OtherRotation> other_rotations(const ModelFile& file, const ModelOptions& model,
                                           const RopeParams& rotation);

/// What YaRN's parameters may be: those in the file, and those that the frequencies suggest.
std::vector<YarnScaling> yarn_scalings(const ModelFile& file, const RopeParams& rotation);

}  // namespace vkrope::tools
