// SPDX-License-Identifier: MIT
// A model's angles as each source gives them at a position, four pairs at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shader.hpp"

namespace vkrope::bounds {

inline constexpr std::array sources = {AngleSource::direct_buffer, AngleSource::factored_texture, AngleSource::computed};

/// The positions that a source covers are those below this.
inline std::uint64_t covered(AngleSource source) {
    return source == AngleSource::factored_texture ? max_factored_positions : max_positions + 1;
}

class Angles {
   public:
    Angles(const std::vector<double>& inv_freq, double attention_factor)
        : attention_factor_(attention_factor), turn_factor_(turn_factor(attention_factor)) {
        for (const double f : inv_freq) fractions_.push_back(turn_fraction(f));
    }

    double attention_factor() const { return attention_factor_; }

    /// a cos and a sin of the pairs [pair, pair + 4).
    void at(AngleSource source, std::int64_t position, std::size_t pair, glsl::vec4& c, glsl::vec4& s) const {
        const std::uint64_t magnitude = position < 0 ? 0 - std::uint64_t(position) : std::uint64_t(position);
        if (source == AngleSource::computed) {
            const auto low = [&](std::size_t j) { return std::uint32_t(fractions_[pair + j]); };
            const auto high = [&](std::size_t j) { return std::uint32_t(fractions_[pair + j] >> 32); };
            shader::vkrope_turn({low(0), low(1), low(2), low(3)}, {high(0), high(1), high(2), high(3)},
                                glsl::uvec4(std::uint32_t(magnitude)), turn_factor_, c, s);
        } else if (source == AngleSource::factored_texture) {
            const std::uint64_t fine_mask = (1u << shader::fine_digit_bits) - 1;
            glsl::vec4 c0, s0, c1, s1;
            rows(magnitude & ~fine_mask, pair, 1, c0, s0);
            rows(magnitude & fine_mask, pair, attention_factor_, c1, s1);
            shader::vkrope_add_angles(c0, s0, c1, s1, c, s);
        } else {
            rows(magnitude, pair, attention_factor_, c, s);
        }
        if (position < 0) s = {-s.x, -s.y, -s.z, -s.w};
    }

    CosSin at(AngleSource source, std::int64_t position, std::size_t pair) const {
        glsl::vec4 c, s;
        at(source, position, pair / 4 * 4, c, s);
        switch (pair % 4) {
            case 0: return {c.x, s.x};
            case 1: return {c.y, s.y};
            case 2: return {c.z, s.z};
            default: return {c.w, s.w};
        }
    }

   private:
    void rows(std::uint64_t position, std::size_t pair, double factor, glsl::vec4& c, glsl::vec4& s) const {
        std::array<CosSin, 4> e;
        for (std::size_t j = 0; j < 4; ++j) e[j] = table_entry(position * fractions_[pair + j], factor);
        c = {e[0].cos, e[1].cos, e[2].cos, e[3].cos};
        s = {e[0].sin, e[1].sin, e[2].sin, e[3].sin};
    }

    double attention_factor_;
    shader::VkropeTurnFactor turn_factor_;
    std::vector<std::uint64_t> fractions_;  // units of 2^-64 turn
};

/// cos and sin of position times inv_freq in real arithmetic: 31 bits times 53 are more than a long double holds, and `rest` is
/// what the product lost.
inline Exact exact(std::int64_t position, double inv_freq) {
    const auto p = static_cast<long double>(position), f = static_cast<long double>(inv_freq);
    const long double angle = p * f, rest = std::fma(p, f, -angle);
    const long double c = std::cos(angle), s = std::sin(angle);
    return {c - rest * s, s + rest * c};
}

/// Frequencies of 64 pairs, of several models.
inline std::vector<std::vector<double>> models() {
    std::vector<std::vector<double>> result;
    for (const double base : {1e4, 5e5, 1e7}) {
        std::vector<double> plain(64);
        Status status = default_inv_freq(base, 128, plain.data());
        std::vector<double> yarn = plain, llama3 = plain;
        double factor = 0;
        if (status) status = scale_yarn(yarn, base, {.factor = 16, .original_max_position_embeddings = 4096}, factor);
        if (status) {
            status = scale_llama3(
                llama3, {.factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_max_position_embeddings = 8192});
        }
        if (!status) std::abort();
        result.insert(result.end(), {plain, yarn, llama3});
    }
    return result;
}

inline constexpr std::array attention_factors = {1.0, 1.01, 1.1386, 1.19, 2.0};

}  // namespace vkrope::bounds
