// SPDX-License-Identifier: MIT
// The config.json of a vision transformer of timm (PyTorch image models).
#pragma once

#include <nlohmann/json.hpp>

#include "vkrope/frequencies.hpp"

namespace vkrope {

/// Whether the document is of timm: it has an `architecture`, which is text, and no `model_type`.
bool is_timm(const nlohmann::json& config);

/// The rotation of the patches. The file names a function of timm, which alone has the numbers;
/// the size of the image is the file's. Fails for an architecture that is not in the table.
Rotation timm_rotation(const nlohmann::json& config);

}  // namespace vkrope
