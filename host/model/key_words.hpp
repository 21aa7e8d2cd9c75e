// SPDX-License-Identifier: MIT
// Classifies keys by the words in their names, so that no unread key is ignored silently.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vkrope {

// What a key may change.
enum class KeyClass {
    nothing,
    angles,         // the angles: rope, rotary, theta, base, interpolation ...
    scaling,        // the angles, if it belongs to a scaling: scaling, beta_fast ...
    scores,         // the scores of attention: softmax_scale, softcap ...
    layers,         // the layers that a setting applies to
    scaled_layers,  // the layers that a scaling applies to
    norm,           // norms of Q and K
};

// Returns what a key may change. Words are separated by `_`, or `.` in GGUF; case is ignored.
//
// states  the value contains numbers or names a scaling: words such as "base" or "fraction" mean
//         angles only there
KeyClass classify_key(const std::string& name, bool states);

// Returns whether a key is a switch that turns RoPE off, such as use_nope.
bool is_switch_of_no_rope(const std::string& name);

// Returns whether a key may be a switch of an interpolation of positions.
bool is_interpolation(const std::string& name);

// Returns whether a key is a switch of RoPE as a whole, such as use_rotary_pos_emb.
bool is_switch_of_rope(const std::string& name);

// Returns whether a key is a switch of another kind of position embedding, such as alibi.
bool is_switch_of_others(const std::string& name);

// Returns whether a key states the kind of position embedding, such as position_embedding_type.
bool is_position_embedding(const std::string& name);

// Returns the lower-case words of a name.
std::vector<std::string> words_of(const std::string& name);

// Returns whether a key contains this part; with `begins_a_word`, at the beginning of a word.
bool in_key(const std::string& key, std::string_view part, bool begins_a_word);

}  // namespace vkrope
