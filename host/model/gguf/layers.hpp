// SPDX-License-Identifier: MIT
// The kinds of layers of a GGUF file, and the choice of one for a query.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "model/gguf/architectures.hpp"
#include "model/gguf/fields.hpp"
#include "model/layers.hpp"
#include "model/query.hpp"
#include "vkrope/vkrope.hpp"

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
                            std::uint64_t layer_count, const Query& query, Warnings& warnings);

/// Numbers of which a file has one for all layers, or a list of one for each.
class GgufLayerNumbers {
   public:
    /// `layer` is what the query asks for, once it has been chosen.
    GgufLayerNumbers(GgufFields& keys, const GgufLayer& layer, const Query& query)
        : keys_(keys), layer_(layer), query_(query) {}

    /// A list is replaced by the number of the layers asked for; any other field stays what it is.
    ///
    /// otherwise  takes the place of a 0 in the list
    Field of_asked(const Field& field, const Field& otherwise = {});

    /// The number of the layers asked for: from a list of one a layer, which may have this name or
    /// end in _per_layer, or else from the key for sliding layers if the file has one, or else from
    /// the key for all layers. Fails if a list and a single number contradict each other.
    Field of_layer(const char* name, const char* sliding_name);

    /// Whether one of the two names of that list has a list.
    bool are_listed(const char* name);

   private:
    Field per_layer(const char* name);

    GgufFields& keys_;
    const GgufLayer& layer_;
    const Query& query_;
    std::deque<json> picked_;  // what the returned fields point to
};

}  // namespace vkrope
