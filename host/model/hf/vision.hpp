// SPDX-License-Identifier: MIT
// The vision tower of a multi-modal configuration.
#pragma once

#include <nlohmann/json.hpp>

#include "vkrope/frequencies.hpp"

namespace vkrope {

/// The RoPE of vision_config: tokens have a row and a column, and each rotates its own pairs with
/// its own frequencies, which inv_freq lists section by section.
Rotation vision_rotation(const nlohmann::json& config);

}  // namespace vkrope
