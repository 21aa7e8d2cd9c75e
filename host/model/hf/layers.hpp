// SPDX-License-Identifier: MIT
// The layers of a configuration: `layer_types`, older keys with the same meaning, or the pattern of
// the model's class.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "model/field.hpp"
#include "model/hf/model_types.hpp"
#include "model/layers.hpp"

namespace vkrope {

/// Names of the base of sliding layers, where it is another.
inline const std::initializer_list<const char*> local_base_names = {
    "rope_local_base_freq", "local_rope_theta", "swa_rope_theta"};

/// A field that lists a number for each layer; 0 for a layer that has none.
LayerNumbers listed_numbers(const Field& field, const Layers& layers);

/// config  the language model's own object
/// named   layer types that have rope_parameters of their own
Layers read_layers(const Scope& config, const ModelType& model, std::vector<std::string> named);

}  // namespace vkrope
