// SPDX-License-Identifier: MIT
// What a model class of transformers does to Q, K and V beside the rotation: norms, clip, and the
// scale of the queries by position.
#pragma once

#include <string>

#include "model/field.hpp"
#include "model/hf/model_types.hpp"
#include "model/layers.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

/// Reads the ops of a model.
///
/// model    null if the table of model types does not have it: there is no ops then
/// config   the objects that have the numbers of the language model
/// scaling  the same, after the fields of rope_parameters or rope_scaling
/// layer    the kind that is asked for
ModelOps model_ops(const ModelType* model, const Scopes& config, const Scopes& scaling,
                   const LayerKind& layer);

/// Whether the ops of a class depends on a key, of the model's own object or of its scaling.
bool ops_reads(const std::string& model_type, const std::string& key);

}  // namespace vkrope
