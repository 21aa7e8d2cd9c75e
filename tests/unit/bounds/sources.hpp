// SPDX-License-Identifier: MIT
// Lists the angle sources, and the models whose angles they compute.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "error.hpp"

namespace vkrope::bounds {

inline constexpr std::array sources = {VKROPE_ANGLES_DIRECT_BUFFER, VKROPE_ANGLES_FACTORED_TEXTURE,
                                       VKROPE_ANGLES_COMPUTED};

// Returns the number of positions, from 0 on, that a source covers.
inline std::uint64_t covered(AngleSource source) {
    return source == VKROPE_ANGLES_FACTORED_TEXTURE ? max_factored_positions : max_positions + 1;
}

using shader_source::Angles;

// Returns cos and sin of position times inv_freq in real arithmetic. 31 bits times 53 bits exceed
// a long double, and `rest` is the part that the product lost.
inline Exact exact(std::int64_t position, double inv_freq) {
    const auto p = static_cast<long double>(position), f = static_cast<long double>(inv_freq);
    const long double angle = p * f, rest = std::fma(p, f, -angle);
    const long double c = std::cos(angle), s = std::sin(angle);
    return {c - rest * s, s + rest * c};
}

// Returns frequencies of 64 pairs, of several models.
inline std::vector<std::vector<double>> models() {
    std::vector<std::vector<double>> result;
    for (const double base : {1e4, 5e5, 1e7}) {
        std::vector<double> plain(64);
        Status status = default_inv_freq(base, 128, plain.data());
        std::vector<double> yarn = plain, llama3 = plain;
        double factor = 0;
        if (status)
            status = scale_yarn(yarn, base,
                                {.factor = 16, .original_max_position_embeddings = 4096}, factor);
        if (status) {
            status = scale_llama3(llama3, {.factor = 8,
                                           .low_freq_factor = 1,
                                           .high_freq_factor = 4,
                                           .original_max_position_embeddings = 8192});
        }
        if (!status) std::abort();
        result.insert(result.end(), {plain, yarn, llama3});
    }
    return result;
}

inline constexpr std::array attention_factors = {1.0, 1.01, 1.1386, 1.19, 2.0};

}  // namespace vkrope::bounds
