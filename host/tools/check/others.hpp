// SPDX-License-Identifier: MIT
// The other parameters in a model file that an engine can mistake for the requested ones.
#pragma once

#include <vector>

#include "check/hypothesis.hpp"
#include "io/model_file.hpp"

namespace vkrope::tools {

// Returns the other RoPEs of the model, each once: those of its other layers, and those for the
// shortest and the longest sequence.
std::vector<OtherRotation> other_rotations(const ModelFile& file, const ModelOptions& model,
                                           const RopeParams& rotation);

// Returns the RoPEs of the same file with another number in it: a base, a factor, a length.
std::vector<OtherRotation> variations_of(const ModelFile& file, const ModelOptions& model,
                                         const RopeParams& rotation);

// Returns candidates for YaRN's parameters: those of the file, and those that fit the frequencies.
std::vector<YarnScaling> yarn_scalings(const ModelFile& file, const RopeParams& rotation);

}  // namespace vkrope::tools
