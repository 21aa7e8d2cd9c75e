// SPDX-License-Identifier: MIT
// Which kinds of layers a GGUF file has, and which of them is asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/gguf_architectures.hpp"
#include "model/gguf_field.hpp"
#include "model/hf_layers.hpp"

namespace vkrope {

struct GgufLayer {
    LayerKind kind;
    bool sliding = false;  ///< it attends to a window
};

/// block_count; 0 where the file does not say it.
std::uint64_t gguf_layer_count(GgufFields& keys);

/// As Layers::choose() of a config.json that says the same.
GgufLayer choose_gguf_layer(GgufFields& keys, const GgufArchitecture& architecture,
                            std::uint64_t layer_count, const ModelQuery& query,
                            std::vector<std::string>& warnings);

}  // namespace vkrope
