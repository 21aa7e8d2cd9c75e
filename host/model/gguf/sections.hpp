// SPDX-License-Identifier: MIT
// The axis of each pair: rope.dimension_sections of a GGUF file.
#pragma once

#include "model/gguf/architectures.hpp"
#include "model/gguf/fields.hpp"

namespace vkrope {

/// Sets the sections and adds warnings. Also sets the pairing to half_split, the only one of ggml's
/// rope of several axes.
///
/// pairing_is_asked_for  the pairing does not change
void read_gguf_sections(GgufFields& keys, const GgufArchitecture& architecture,
                        bool pairing_is_asked_for, RopeParams& rotation);

}  // namespace vkrope
