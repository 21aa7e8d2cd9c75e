// SPDX-License-Identifier: MIT
// The kinds of layers of a GGUF file, and the choice of one for a query.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/gguf/architectures.hpp"
#include "model/gguf/field.hpp"
#include "model/layers.hpp"
#include "vkrope/model.hpp"

namespace vkrope {

struct GgufLayer {
    LayerKind kind;
    bool sliding = false;  ///< it attends to a window
    Layers layers;         ///< of the model
};

/// block_count; 0 if the file does not have it.
std::uint64_t gguf_layer_count(GgufFields& keys);

/// Chooses as Layers::choose() does for an equivalent config.json.
GgufLayer choose_gguf_layer(GgufFields& keys, const GgufArchitecture& architecture,
                            std::uint64_t layer_count, const ModelQuery& query,
                            std::vector<std::string>& warnings);

}  // namespace vkrope
