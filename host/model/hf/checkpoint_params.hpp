// SPDX-License-Identifier: MIT
// The params.json of an original checkpoint, as Mistral and Meta write it.
#pragma once

#include <nlohmann/json.hpp>

#include "vkrope/model.hpp"

namespace vkrope {

/// Whether a document is in this format: it has `dim` and `n_layers` or `n_heads`, and no class.
bool is_checkpoint_params(const nlohmann::json& document);

/// Reads it. Fails for a key that is not known: the rest of such a model is in its own code.
Rotation checkpoint_rotation(const nlohmann::json& document, const ModelQuery& query);

}  // namespace vkrope
