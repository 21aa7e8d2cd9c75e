// SPDX-License-Identifier: MIT
// Which axis turns which pair of a GGUF file's model: rope.dimension_sections.
#pragma once

#include "model/gguf_architectures.hpp"
#include "model/gguf_field.hpp"

namespace vkrope {

/// Sets the sections, and with them the pairing, which ggml's rope of several axes has but one of;
/// adds to the warnings.
///
/// pairing_is_asked_for  then the pairing stays
void read_gguf_sections(GgufFields& keys, const GgufArchitecture& architecture,
                        bool pairing_is_asked_for, Rotation& rotation);

}  // namespace vkrope
