// SPDX-License-Identifier: MIT
// vkrope explain, as JSON.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/ops_text.hpp"
#include "cli/words.hpp"
#include "explain/explain.hpp"
#include "io/model_file.hpp"

namespace vkrope::tools {
namespace {

nlohmann::ordered_json known(double value) {
    return value == 0 || !std::isfinite(value) ? nlohmann::ordered_json(nullptr)
                                               : nlohmann::ordered_json(value);
}

// Returns the windows, with offsets relative to the rotary offset.
nlohmann::ordered_json windows_json(const RopeParams& rotation) {
    nlohmann::ordered_json windows = nlohmann::ordered_json::array();
    for (const Window& window : windows_of(rotation)) {
        if (window.rotary_dim == 0) continue;  // a layer without RoPE
        windows.push_back({{"offset", window.offset}, {"rotary_dim", window.rotary_dim}});
    }
    return windows;
}

}  // namespace

nlohmann::ordered_json rotation_json(const RopeParams& rotation) {
    return {{"rope_type", rotation.rope_type},
            {"rotates", !rotation.no_rope},
            {"head_dim", rotation.head_dim},
            {"rotary_dim", rotation.rotary_dim},
            {"q_rotary_offset", rotation.q_rotary_offset},
            {"k_rotary_offset", rotation.k_rotary_offset},
            {"windows", windows_json(rotation)},
            {"pairing", word_for(pairings, rotation.pairing)},
            {"attention_factor", rotation.attention_factor},
            {"softmax_scale", rotation.softmax_scale},
            {"head_groups", rotation.head_groups},
            {"ops", ops_json(rotation.ops)},
            {"warnings", rotation.warnings}};
}

nlohmann::ordered_json json_of(const Explanation& explanation) {
    const RopeParams& rotation = explanation.rotation;
    nlohmann::ordered_json pairs = nlohmann::ordered_json::array();
    nlohmann::ordered_json never = nlohmann::ordered_json::array();
    for (std::size_t j = 0; j < explanation.pairs.size(); ++j) {
        const ExplainedPair& pair = explanation.pairs[j];
        pairs.push_back({{"channels", {pair.first, pair.second}},
                         {"axis", pair.axis},
                         {"head_group", pair.group},
                         {"phase", pair.phase},
                         {"inv_freq", pair.inv_freq},
                         {"wavelength", known(pair.wavelength)},
                         {"unscaled_inv_freq", known(pair.unscaled)},
                         {"slower_by", known(pair.slower)},
                         {"turns", pair.turns}});
        if (pair.turns < 1) never.push_back(j);
    }
    nlohmann::ordered_json json = rotation_json(rotation);
    json.update(
        {{"base", known(rotation.base)},
         {"length", rotation.max_position > 0 ? nlohmann::ordered_json(rotation.max_position)
                                              : nlohmann::ordered_json(nullptr)},
         {"turns_within", explanation.length},
         {"q_dot_k_factor", rotation.attention_factor * rotation.attention_factor},
         {"position_axes", std::max(rotation.sections.axes, 1u)},
         {"pairs", pairs},
         {"pairs_without_a_turn", never}});
    return json;
}

}  // namespace vkrope::tools
