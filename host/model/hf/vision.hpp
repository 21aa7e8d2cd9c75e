// SPDX-License-Identifier: MIT
// The vision tower of a multi-modal configuration.
#pragma once

#include <nlohmann/json.hpp>

#include "vkrope/model.hpp"

namespace vkrope {

/// The RoPE of vision_config: tokens have a row and a column, and each rotates its own pairs with
/// its own frequencies, which inv_freq lists section by section. A model that is nothing but a
/// vision tower has the same fields, at the top level.
Rotation vision_rotation(const nlohmann::json& config, const ModelQuery& query);

/// Whether nothing in the model but its vision tower rotates.
bool is_vision_model(const nlohmann::json& config);

}  // namespace vkrope
