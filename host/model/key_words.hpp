// SPDX-License-Identifier: MIT
// Classifies unread keys by their names, so that no key is ignored silently.
#pragma once

#include <string>
#include <string_view>

namespace vkrope {

enum class Says {
    nothing,
    rotation,  ///< names RoPE
    scaling,   ///< may scale the frequencies, cos and sin, or the queries
    yarn,      ///< names a scaling of RoPE that changes every angle: yarn, ntk, llama_4_scaling
    layers,    ///< selects the layers that a setting applies to
    scaled_layers,  ///< selects the layers that a scaling applies to
    norm,           ///< names norms of Q and K
};

/// Returns the class of a key. Words are separated by `_`, or `.` in GGUF; case is ignored.
Says what_says(const std::string& name);

/// Returns whether a key contains this part; with `begins_a_word`, at the beginning of a word.
bool in_key(const std::string& key, std::string_view part, bool begins_a_word);

}  // namespace vkrope
