// SPDX-License-Identifier: MIT
// Readers of the parts of a config.json, once its class is known: head, scaling, axes, what
// stands around the rotation, and the keys that are refused or not read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/hf/source.hpp"

namespace vkrope {

// ---- The width of a head row and of its rotated channels, and which pairs have a frequency ----

struct Head {
    std::uint32_t head_dim = 0;  ///< channels; with latent attention, the rotated ones
    std::uint32_t q_rotary_offset = 0;
    std::uint32_t k_rotary_offset = 0;
    bool latent = false;  ///< multi-head latent attention
};

Head read_head(const Source& source, Warnings& warnings);

struct RotaryDim {
    std::uint32_t rotary_dim = 0;
    std::uint32_t turning_pairs = 0;  ///< the other pairs of the window do not rotate
    double share = 1;                 ///< rotated share of the head, in a proportional rotation
};

RotaryDim read_rotary_dim(const Source& source, const Head& head, const std::string& rope_type,
                          Warnings& warnings);

// ---- Scaling ----

/// Inputs of a scaling other than its own parameters.
struct ScalingInput {
    Scope config;     ///< the language model's own object
    double base = 0;  ///< of the frequencies
    double partial_rotary_factor = 1;
    bool deepseek_yarn = false;  ///< latent attention whose YaRN also scales the softmax
    std::uint64_t seq_len = 0;
    std::string model_type = {};  ///< what its ops reads is not ignored
};

/// Applies the scaling rotation.rope_type to unscaled frequencies; sets the attention factor and
/// the softmax scale. Warns of fields that the type does not use, and of what was assumed.
void apply_scaling(const ScalingSection& section, const ScalingInput& input, RopeParams& rotation);

// ---- Sections for positions on several axes ----

/// The axis of each pair: mrope_section, xdrope_section, or the default of the model's class.
Sections position_sections(const ScalingSection& section, const Scope& config,
                           const ModelType& model, std::uint32_t pairs, Warnings& warnings);

/// Turns the pairs of rows and of columns by turns, where the class does: ERNIE 4.5 VL by a sum
/// over axes, in which each pair has a frequency on one of them.
void alternate_axes(const ModelType& model, RopeParams& rotation);

// ---- Norms, clip, and the scale of the queries by position ----

/// Reads the ops of a model.
///
/// model    null if the table of model types does not have it: there are no ops then
/// config   the objects that have the numbers of the language model
/// scaling  the same, after the fields of rope_parameters or rope_scaling
/// layer    the kind that is asked for
ModelOps model_ops(const ModelType* model, const Scopes& config, const Scopes& scaling,
                   const LayerKind& layer);

/// Whether the ops of a class depend on a key, of the model's own object or of its scaling.
bool ops_reads(const std::string& model_type, const std::string& key);

// ---- Keys that are refused, and keys that are not read ----

/// Fails with not_supported, and names the key, if a key of the configuration turns RoPE off or
/// changes it in a way that is not implemented. Ignoring the key would silently give wrong angles.
///
/// rotates_by_class  the model's class has RoPE whatever its position-embedding key says
void refuse_unsupported_keys(const Scopes& scopes, bool rotates_by_class);

/// Fails with not_supported for a class that has RoPE only if the file says so, and for an unknown
/// class, if no key names RoPE.
///
/// section  the scaling of all layers
void refuse_without_rope(const ModelClass& model, const Scopes& top, const ScalingSection& section);

/// MPT has its scaling in attn_config, once for each implementation that it may use. Fails with
/// not_supported if the chosen one scales.
void refuse_scaling_of_attention(const Scopes& top);

/// Several formulas are called ntk. Fails with not_supported for one that is not known.
void require_known_scaling(const ModelType& model, const ScalingSection& section);

/// Warns of each key that says something of RoPE, a scaling, a choice of layers or norms of Q and K
/// and that is not read, in objects that nobody reads too. Fails with not_supported if the angles
/// would be others. Returns whether a key says that Q and K may have norms that are not known.
///
/// around    the objects around the language model's, whose other keys ignored_around() names
/// rotation  as read so far; receives the warnings
bool name_unread_keys(const Source& source, const Query& query, const Scopes& around,
                      RopeParams& rotation);

}  // namespace vkrope
