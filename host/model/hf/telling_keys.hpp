// SPDX-License-Identifier: MIT
// What the name of a key says, for keys that no reader reads: none of them is dropped in silence.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/hf/field.hpp"

namespace vkrope {

enum class Says {
    nothing,
    rotation,  ///< it names RoPE
    scaling,   ///< it may scale the frequencies, cos and sin, or the queries
    yarn,      ///< it names a scaling of RoPE that changes every angle: yarn, ntk, llama_4_scaling
    layers,    ///< it says which layers something holds for
    scaled_layers,  ///< it says which layers a scaling holds for
    norm,           ///< it names norms of Q and K
};

Says what_says(const std::string& key);

/// Whether a value asks for a scaling: 1, and what turns a feature off, do not.
bool asks_for_scaling(const nlohmann::json& value);

/// For objects that no language model has: warns of each key that says something of RoPE, a scaling
/// or norms, and that is not among those that are `read`. Fails with not_supported for a scaling.
void warn_of_unread(const Scope& scope, std::initializer_list<const char*> read,
                    std::vector<std::string>& warnings);

}  // namespace vkrope
