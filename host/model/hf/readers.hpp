// SPDX-License-Identifier: MIT
// Declares the readers of the parts of a config.json of a known class: head, scaling, axes, ops
// before and after the rotation, and keys that are rejected or not read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/hf/source.hpp"

namespace vkrope {

// ---- Width of a head row and of its rotated channels; pairs with a frequency ----

struct Head {
    std::uint32_t head_dim = 0;  // number of channels; with latent attention, of the rotated ones
    std::uint32_t q_rotary_offset = 0;
    std::uint32_t k_rotary_offset = 0;
    bool latent = false;  // multi-head latent attention
    Field field = {};     // what states head_dim; empty: a quotient or a default
};

Head read_head(const Source& source, Warnings& warnings);

struct RotaryDim {
    std::uint32_t rotary_dim = 0;
    std::uint32_t turning_pairs = 0;  // the other pairs of the window do not rotate
    double share = 1;                 // rotated share of the head, in a proportional rotation
};

RotaryDim read_rotary_dim(const Source& source, const Head& head, const std::string& rope_type,
                          Warnings& warnings);

// ---- Scaling ----

// Inputs of a scaling other than its own parameters.
struct ScalingInput {
    Scope config;     // the language model's own object
    double base = 0;  // base of the frequencies
    double partial_rotary_factor = 1;
    bool deepseek_yarn = false;  // latent attention whose YaRN also scales the softmax
    std::uint64_t seq_len = 0;
};

// Applies the scaling rotation.rope_type to unscaled frequencies; sets the attention factor and
// the softmax scale. Warns of fields that the type does not use and of assumptions.
void apply_scaling(const ScalingSection& section, const ScalingInput& input, RopeParams& rotation);

// ---- Sections for positions on several axes ----

// Returns the axis of each pair: mrope_section, xdrope_section, or the class's default.
Sections position_sections(const ScalingSection& section, const Scope& config,
                           const ModelType& model, std::uint32_t pairs, Warnings& warnings);

// Alternates rows and columns from pair to pair in classes that do so. For ERNIE 4.5 VL the result
// is a sum over axes, in which each pair has a frequency on one axis only.
void alternate_axes(const ModelType& model, RopeParams& rotation);

// ---- Norms, clip, and the scale of the queries by position ----

// Reads the ops of a model.
//
// model    null: the table of model types has no row, and there are no ops
// config   the objects with the numbers of the language model
// scaling  the same objects, after the fields of rope_parameters or rope_scaling
// layer    the selected kind
// head     its rows
ModelOps model_ops(const ModelType* model, const Scopes& config, const Scopes& scaling,
                   const LayerKind& layer, const Head& head);

// Returns the factor that the file or the class applies to the caller's softmax scale,
// head_dim^-0.5: its own scale of the scores times the square root of the row's channels.
//
// row  number of channels of a query row
double scale_of_scores(const Source& source, std::uint32_t row, Warnings& warnings);

// ---- Rejected keys ----

// Returns the field that names the kind of position embedding, such as position_embedding_type;
// empty if there is none.
Field position_embedding(const Scopes& top);

// What the value of position_embedding_type says, such as "rope_gptj" or "mistral_yarn".
struct PositionEmbedding {
    bool rotates = false;    // it does not name another position embedding
    bool says_rope = false;  // it names RoPE
    Pairing pairing = VKROPE_PAIRING_NONE;
    std::string scaling;  // empty: the value names none
};

// Reads the field, which may be empty. Fails with not_supported for a value that names RoPE and
// something unknown.
PositionEmbedding read_position_embedding(const Field& type);

// Fails with not_supported, and names the key, if a key of the configuration turns RoPE off or
// changes RoPE in a way that vkrope does not support for this class.
void refuse_unsupported_keys(const Scopes& top, const ModelType& model);

// Fails with not_supported if no key enables RoPE in a class that requires such a key, or if the
// class is unknown and no key names RoPE.
//
// section  the scaling of all layers
void refuse_without_rope(const ModelClass& model, const Scopes& top, const ScalingSection& section);

// Fails with not_supported if the chosen implementation of attention scales. MPT has its scaling
// in attn_config, once for each implementation.
void refuse_scaling_of_attention(const Scopes& top);

// Fails with not_supported for an unknown formula named ntk; several formulas have this name.
void require_known_scaling(const ModelType& model, const ScalingSection& section);

}  // namespace vkrope
