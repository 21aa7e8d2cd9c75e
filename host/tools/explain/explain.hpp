// SPDX-License-Identifier: MIT
// What the numbers of a model's RoPE mean: computed once, said as text, as JSON and as a picture.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "vkrope/frequencies.hpp"

namespace vkrope::tools {

struct ExplainedPair {
    std::uint32_t first = 0, second = 0;  // channels of the window, counted from its first
    std::uint32_t axis = 0;               // of the positions that turn it
    double inv_freq = 0, unscaled = 0;    // radians per position; unscaled: 0 where unknown
    double wavelength = 0;  // positions a turn; infinite for a pair that does not turn
    double slower =
        0;  // unscaled / inv_freq; 0 where unknown, infinite where scaling has stopped the pair
    double turns = 0;  // within the length
};

struct Explanation {
    Rotation rotation;
    bool knows_unscaled = false;
    bool knows_length = false;
    double length = 0;  // positions that turns are counted in: what these frequencies serve, or
                        // else the model's, or else 4096
    std::vector<ExplainedPair> pairs;
};

Explanation explain(Rotation rotation);

/// Lines of at most 120 columns.
///
/// all  a line for every pair, however many there are
std::string text_of(const Explanation& explanation, bool all);

nlohmann::ordered_json json_of(const Explanation& explanation);

/// Three panels: wavelengths before and after scaling, the pairs as clock hands, and how q.k decays
/// with distance.
std::string svg_of(const Explanation& explanation);

/// (1 / n) sum over j = 1 to n of |S_j|, where S_j is the sum of e^(i m inv_freq[k]) over k < j:
/// what bounds q.k at distance m, up to a factor that depends on q and k alone. RoFormer
/// (arXiv:2104.09864), section 3.4.3.
double decay_bound(const std::vector<double>& inv_freq, double distance);

}  // namespace vkrope::tools
