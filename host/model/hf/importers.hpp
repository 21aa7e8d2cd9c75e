// SPDX-License-Identifier: MIT
// Declares importers of documents other than configurations of language models.
#pragma once

#include <nlohmann/json.hpp>

#include "model/field.hpp"
#include "model/query.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

// ---- params.json of an original checkpoint of Mistral or Meta ----

// Returns whether a document is such a file: it has `dim`, `n_layers` or `n_heads`, and no class.
bool is_checkpoint_params(const json& document);

// Returns the rotation. Fails for unread keys that concern angles, scores, layers or norms: what
// they mean is in the model's code.
RopeParams checkpoint_rotation(const Scope& document, const Query& query);

// ---- config.json of a diffusion transformer of Hugging Face diffusers ----

// Returns whether the document is of diffusers or of Wan's own code: it has `_class_name`, and no
// `model_type` that names a language model.
bool is_diffusers(const json& document);

// Returns the rotation of the image or video tokens. Each axis has a window of the head with
// separate frequencies: base^(-2j / d) for d channels. Fails for a class whose RoPE is unknown or
// is not a rotation by integer positions.
RopeParams diffusers_rotation(const Scope& document, const Query& query);

// Returns the rotation of LTX-Video or, for the attention that the query selects by layer_type, of
// LTX-2.
//
// The frequencies are w = theta^(f / (n - 1)), f = 0 to n - 1, and the angle of an axis is pi / 2
// * w * (2 x - 1) for a coordinate x in [0, 1]: a frequency of pi * w per unit of x, and a phase
// of -pi / 2 * w. They alternate between the axes, over the channels of all heads of a token.
RopeParams ltx_rotation(const Scope& document, const Query& query);

// ---- config.json of a vision transformer of timm (PyTorch image models) ----

// Returns whether the document is of timm: it has an `architecture` string and no `model_type`.
bool is_timm(const json& document);

// Returns the rotation of the patches. The file contains the image size and names the function of
// timm with the other numbers. Fails for an architecture that is not in the table.
RopeParams timm_rotation(const Scope& document, const Query& query);

// ---- Vision tower of a multi-modal configuration ----

// Returns the RoPE of the vision tower, an object of any name: each token has a row and a column,
// each of which rotates its own pairs with frequencies that inv_freq lists section by section. A
// model that consists only of a vision tower has the same fields at the top level.
RopeParams vision_rotation(const Scope& document, const Query& query);

// Returns whether only the vision tower of the model rotates.
bool is_vision_model(const json& document);

}  // namespace vkrope
