// SPDX-License-Identifier: MIT
// The config.json of a diffusion transformer of Hugging Face diffusers.
#pragma once

#include <nlohmann/json.hpp>

#include "vkrope/frequencies.hpp"

namespace vkrope {

/// Whether the document is of diffusers, or of Wan's own code: it has `_class_name`, and no
/// `model_type` that names a language model.
bool is_diffusers(const nlohmann::json& config);

/// The rotation of the image or video tokens. Each axis has a window of the head with frequencies
/// of its own: base^(-2j / d) for d channels. Fails for a class whose RoPE is not known, or is not
/// a rotation by whole positions.
Rotation diffusers_rotation(const nlohmann::json& config);

}  // namespace vkrope
