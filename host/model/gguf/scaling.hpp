// SPDX-License-Identifier: MIT
// Applies the keys "rope.scaling.*" and the tensors of divisors to frequencies, with the arguments
// that the graphs of llama.cpp pass to ggml_rope_ext.
#pragma once

#include <cstdint>

#include "model/gguf/architectures.hpp"
#include "model/gguf/fields.hpp"
#include "model/gguf/file.hpp"

namespace vkrope {

struct GgufScalingInput {
    const GgufFile& file;
    const GgufArchitecture& architecture;
    bool sliding = false;  ///< the layer attends to a window
    std::uint64_t seq_len = 0;
};

/// Scales the unscaled frequencies of rotation.base; sets the attention factor, the softmax scale
/// and the rope_type. Warns of what was assumed or ignored.
void apply_gguf_scaling(GgufFields& keys, const GgufScalingInput& input, RopeParams& rotation);

}  // namespace vkrope
