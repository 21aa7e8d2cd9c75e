// SPDX-License-Identifier: MIT
// Explains the numbers of a model's RoPE. They are computed once and printed as text, JSON or SVG.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "vkrope/vkrope.hpp"

namespace vkrope::tools {

// A pair and the axis that rotates it. With a sum over axes a pair has one entry for each axis
// whose frequency is not 0, and with head groups one for each group.
struct ExplainedPair {
    std::uint32_t first = 0, second = 0;  // channels, counted from the rotary offset
    std::uint32_t pair = 0, group = 0;    // index of the pair in its head, head group
    std::uint32_t axis = 0;               // position axis that rotates it
    double phase = 0;                     // angle at position 0, in radians
    double inv_freq = 0, unscaled = 0;    // radians per position; unscaled: 0 if unknown
    double wavelength = 0;  // positions per turn; infinite for a pair that does not turn
    double slower =
        0;  // unscaled / inv_freq; 0 if unknown, infinite if scaling has stopped the pair
    double turns = 0;  // number of turns within Explanation::length
};

struct Explanation {
    RopeParams rotation;
    bool knows_unscaled = false;
    bool knows_length = false;
    double length = 0;  // number of positions that `turns` refers to: the longest sequence that
                        // these frequencies are valid for, else the model's maximum, else 4096
    std::vector<ExplainedPair> pairs;
};

Explanation explain(RopeParams rotation);

// Returns true if `pairs` contains each pair of a head once.
inline bool one_each(const Explanation& explanation) {
    return explanation.pairs.size() == explanation.rotation.rotary_dim / 2;
}

// Returns the fields of a rotation that every command prints, with the warnings of the reader.
nlohmann::ordered_json rotation_json(const RopeParams& rotation);

// Returns the frequencies of the pairs of the first head group if all axes advance by one.
std::vector<double> joint_frequencies(const RopeParams& rotation);

// Returns the explanation as lines of at most 120 columns.
//
// all  prints one line per pair, however many pairs there are
std::string text_of(const Explanation& explanation, bool all);

nlohmann::ordered_json json_of(const Explanation& explanation);

// Returns two panels: wavelengths by axis with and without scaling, and q.k's decay by distance.
std::string svg_of(const Explanation& explanation);

// Returns (1 / n) sum over j = 1 to n of |S_j|, where S_j is the sum of e^(i m inv_freq[k]) over k
// < j. This is the bound of q.k at distance m, up to a factor that depends only on q and k.
// RoFormer (arXiv:2104.09864), section 3.4.3.
double decay_bound(const std::vector<double>& inv_freq, double distance);

}  // namespace vkrope::tools
