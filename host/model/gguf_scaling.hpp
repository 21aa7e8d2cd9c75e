// SPDX-License-Identifier: MIT
// What the keys "rope.scaling.*" and the tensors of divisors do to frequencies: the arguments with
// which the graphs of llama.cpp call ggml_rope_ext.
#pragma once

#include <cstdint>

#include "model/gguf_architectures.hpp"
#include "model/gguf_field.hpp"
#include "model/gguf_file.hpp"

namespace vkrope {

struct GgufScalingInput {
    const GgufFile& file;
    const GgufArchitecture& architecture;
    bool sliding = false;  ///< the layer attends to a window
    std::uint64_t seq_len = 0;
};

/// Applies them to frequencies of rotation.base without any; sets the attention factor, the softmax
/// scale and the rope_type, and adds to the warnings what was assumed or ignored.
void apply_gguf_scaling(GgufFields& keys, const GgufScalingInput& input, Rotation& rotation);

}  // namespace vkrope
