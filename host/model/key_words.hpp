// SPDX-License-Identifier: MIT
// What the name of a key says, for keys that no reader reads: none of them is dropped in silence.
#pragma once

#include <string>
#include <string_view>

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

/// Words are apart by `_`, and by `.` in GGUF files. Capitals do not count.
Says what_says(const std::string& name);

/// Whether a key has this part, at the beginning of a word if it must.
bool in_key(const std::string& key, std::string_view part, bool begins_a_word);

}  // namespace vkrope
