// SPDX-License-Identifier: MIT
// The steps around the rotation that a GGUF file states, or that its architecture has.
#pragma once

#include "model/gguf/architectures.hpp"
#include "model/gguf/fields.hpp"
#include "model/query.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

/// The ops of a layer: the norms whose weights the file holds, with its eps, what the
/// architecture normalises without weights, clamps and query scales.
///
/// architecture  its row; without a name, which norms a tensor belongs to is not known
/// rotation      pairing, head_dim and `rotates` of the layer; a norm of another width is left out
///               with a warning
ModelOps gguf_ops(GgufFields& keys, const GgufFile& file, const GgufArchitecture& architecture,
                  const Query& query, RopeParams& rotation);

}  // namespace vkrope
