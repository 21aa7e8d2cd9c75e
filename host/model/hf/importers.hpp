// SPDX-License-Identifier: MIT
// Importers of documents that are no configuration of a language model.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "model/query.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

// The params.json of an original checkpoint, as Mistral and Meta write it.

/// Whether a document is one: it has `dim` and `n_layers` or `n_heads`, and no class.
bool is_checkpoint_params(const nlohmann::json& document);

/// Fails for a key that is not known: the rest of such a model is in its own code.
RopeParams checkpoint_rotation(const nlohmann::json& document, const Query& query);

// The config.json of a diffusion transformer of Hugging Face diffusers.

/// Whether the document is of diffusers, or of Wan's own code: it has `_class_name`, and no
/// `model_type` that names a language model.
bool is_diffusers(const nlohmann::json& config);

/// The rotation of the image or video tokens. Each axis has a window of the head with frequencies
/// of its own: base^(-2j / d) for d channels. Fails for a class whose RoPE is not known, or is not
/// a rotation by whole positions.
RopeParams diffusers_rotation(const nlohmann::json& config);

// LTX-Video and LTX-2 of diffusers, whose angles have a phase.

/// Whether a class of diffusers is one of these.
bool is_ltx(const std::string& class_name);

/// The rotation of the attention that the query names by its layer_type; LTX-Video has only one.
///
/// The frequencies are w = theta^(f / (n - 1)), f = 0 to n - 1, and the angle of an axis is
/// pi / 2 * w * (2 x - 1) for a coordinate x in [0, 1]: a frequency of pi * w for a unit of x, and
/// a phase of -pi / 2 * w. They go to the axes in turn, over the channels of all heads of a token.
RopeParams ltx_rotation(const nlohmann::json& config, const Query& query);

// The config.json of a vision transformer of timm (PyTorch image models).

/// Whether the document is of timm: it has an `architecture`, which is text, and no `model_type`.
bool is_timm(const nlohmann::json& config);

/// The rotation of the patches. The file names a function of timm, which alone has the numbers;
/// the size of the image is the file's. Fails for an architecture that is not in the table.
RopeParams timm_rotation(const nlohmann::json& config);

// The vision tower of a multi-modal configuration.

/// The RoPE of vision_config: tokens have a row and a column, and each rotates its own pairs with
/// its own frequencies, which inv_freq lists section by section. A model that is nothing but a
/// vision tower has the same fields, at the top level.
RopeParams vision_rotation(const nlohmann::json& config, const Query& query);

/// Whether nothing in the model but its vision tower rotates.
bool is_vision_model(const nlohmann::json& config);

}  // namespace vkrope
