// SPDX-License-Identifier: MIT
// Applies the scaling that a section names to frequencies.
#pragma once

#include <cstdint>
#include <string>

#include "model/hf/scaling_section.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

/// Inputs of a scaling other than its own parameters.
struct ScalingInput {
    Scope config;     ///< the language model's own object
    double base = 0;  ///< of the frequencies
    double partial_rotary_factor = 1;
    bool deepseek_yarn = false;  ///< latent attention whose YaRN also scales the softmax
    std::uint64_t seq_len = 0;
    std::string model_type = {};  ///< what its ops reads is not ignored
};

/// Applies the scaling rotation.rope_type to unscaled frequencies; sets the attention factor and
/// the softmax scale. Warns of fields that the type does not use, and of what was assumed.
void apply_scaling(const ScalingSection& section, const ScalingInput& input, RopeParams& rotation);

}  // namespace vkrope
