// SPDX-License-Identifier: MIT
// What a configuration asks for and this importer does not have, and what it does not read.
#pragma once

#include <string>
#include <vector>

#include "model/field.hpp"
#include "model/hf/scaling_section.hpp"
#include "model/hf/source.hpp"

namespace vkrope {

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
