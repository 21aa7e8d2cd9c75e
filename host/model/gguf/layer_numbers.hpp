// SPDX-License-Identifier: MIT
// Numbers of which a GGUF file has one for all layers, or a list of one for each.
#pragma once

#include <deque>

#include "model/gguf/field.hpp"
#include "model/gguf/layers.hpp"
#include "vkrope/model.hpp"

namespace vkrope {

class GgufLayerNumbers {
   public:
    /// `layer` is what the query asks for, once it has been chosen.
    GgufLayerNumbers(GgufFields& keys, const GgufLayer& layer, const ModelQuery& query)
        : keys_(keys), layer_(layer), query_(query) {}

    /// A list is replaced by the number of the layers asked for; any other field stays what it is.
    ///
    /// otherwise  takes the place of a 0 in the list
    GgufField of_asked(const GgufField& field, const GgufField& otherwise = {});

    /// The number of the layers asked for: from a list of one a layer, which may have this name or
    /// end in _per_layer, or else from the key for sliding layers if the file has one, or else from
    /// the key for all layers. Fails if a list and a single number contradict each other.
    GgufField of_layer(const char* name, const char* sliding_name);

    /// Whether one of the two names of that list has a list.
    bool are_listed(const char* name);

   private:
    GgufField per_layer(const char* name);

    GgufFields& keys_;
    const GgufLayer& layer_;
    const ModelQuery& query_;
    std::deque<GgufValue> picked_;  // what the returned fields point to
};

}  // namespace vkrope
