// SPDX-License-Identifier: MIT
// Computes the cos and sin that each angle source gives the shader for a frequency and a position:
// the values that the host writes into tables, and those that the shader computes from them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "frequencies/table_entry.hpp"
#include "verify/shader_source/shader.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::shader_source {

// Converts the attention factor to the constants that the host passes to vkrope_turn.
inline shader::VkropeTurnFactor turn_factor(double attention_factor) {
    RopeParams rotation;
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = 2;
    rotation.rotary_dim = 2;
    rotation.inv_freq = {1.0};
    rotation.attention_factor = attention_factor;
    const Result<AngleTableLayout> plan = plan_angles(rotation, VKROPE_ANGLES_COMPUTED, 1, 0);
    std::vector<float> numbers(plan.value.bytes / sizeof(float));
    if (numbers.size() < 8 || !fill_angles(rotation, plan.value, numbers.data(), plan.value.bytes))
        std::abort();
    return {numbers[4], numbers[5], numbers[0], numbers[1], numbers[2]};
}

// The phases and the additional frequencies of a pair.
struct Turning {
    std::vector<double> phase = {};  // [head_groups, pairs]; empty: none
    std::uint32_t head_groups = 1;
    std::uint32_t axes = 1;  // number of axes whose products are added
};

class Angles {
   public:
    // inv_freq  [head_groups, axes, pairs]
    Angles(const std::vector<double>& inv_freq, double attention_factor,
           const Turning& turning = {})
        : attention_factor_(attention_factor), turn_factor_(turn_factor(attention_factor)),
          axes_(turning.axes), pairs_(inv_freq.size() / turning.axes / turning.head_groups),
          has_phases_(!turning.phase.empty()),
          signed_(has_phases_ || turning.head_groups != 1 || turning.axes != 1) {
        for (const double f : inv_freq) fractions_.push_back(vkrope_turn_fraction(f));
        fractions_.resize((inv_freq.size() + 3) / 4 * 4);
        for (const double phase : turning.phase) phases_.push_back(vkrope_turn_fraction(phase));
        phases_.resize(fractions_.size());
    }

    double attention_factor() const { return attention_factor_; }

    // Returns cos and sin, times the attention factor, of the pairs [pair, pair + 4); `pair` is a
    // multiple of 4. Only for angles without phases, head groups and sums over axes, for which the
    // angle of -position is the negated angle of position.
    void at(AngleSource source, std::int64_t position, std::size_t pair, glsl::vec4& c,
            glsl::vec4& s) const {
        const std::uint64_t magnitude = position < 0 ? 0 - std::uint64_t(position)
                                                     : std::uint64_t(position);
        if (source == VKROPE_ANGLES_COMPUTED) {
            const auto low = [&](std::size_t j) { return std::uint32_t(fractions_[pair + j]); };
            const auto high = [&](std::size_t j) {
                return std::uint32_t(fractions_[pair + j] >> 32);
            };
            shader::vkrope_turn({low(0), low(1), low(2), low(3)},
                                {high(0), high(1), high(2), high(3)},
                                glsl::uvec4(std::uint32_t(magnitude)), turn_factor_, c, s);
        } else if (source == VKROPE_ANGLES_FACTORED_TEXTURE) {
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

    // Returns the cos and sin of one pair; `pair` counts [head_groups, pairs].
    CosSin at(AngleSource source, std::int64_t position, std::size_t pair) const {
        if (signed_) return signed_at(source, position, pair);
        glsl::vec4 c, s;
        at(source, position, pair / 4 * 4, c, s);
        switch (pair % 4) {
            case 0: return {c.x, s.x};
            case 1: return {c.y, s.y};
            case 2: return {c.z, s.z};
            default: return {c.w, s.w};
        }
    }

    // Returns cos and sin of the sum over all axes; `positions` has one position per axis.
    CosSin sum_at(std::span<const std::int64_t> positions, std::size_t pair) const {
        const std::size_t first = pair / pairs_ * axes_ * pairs_ + pair % pairs_;
        glsl::uvec4 low(0u), high(0u);
        const auto add = [&](std::uint64_t fraction, std::uint32_t times) {
            shader::vkrope_add_turns(glsl::uvec4(std::uint32_t(fraction)),
                                     glsl::uvec4(std::uint32_t(fraction >> 32)), times, low, high);
        };
        for (std::size_t axis = 0; axis < axes_; ++axis)
            add(fractions_[first + axis * pairs_], std::uint32_t(positions[axis]));
        if (has_phases_) add(phases_[pair], 1);
        glsl::vec4 c, s;
        shader::vkrope_cos_sin(high, turn_factor_, c, s);
        return {c.x, s.x};
    }

   private:
    // Returns cos and sin where positions below 0 have separate digits, or a separate row.
    CosSin signed_at(AngleSource source, std::int64_t position, std::size_t pair) const {
        if (source == VKROPE_ANGLES_COMPUTED) return sum_at({&position, 1}, pair);
        const std::uint64_t fraction = fractions_[pair], phase = phases_[pair];
        if (source != VKROPE_ANGLES_FACTORED_TEXTURE)
            return table_entry(std::uint64_t(position) * fraction + phase, attention_factor_);
        constexpr std::int64_t fine_rows = 1 << shader::fine_digit_bits;
        std::int64_t fine = position % fine_rows;
        if (fine < 0) fine += fine_rows;
        const std::int64_t coarse = position - fine;
        CosSin coarse_row = table_entry(std::uint64_t(std::abs(coarse)) * fraction, 1);
        if (coarse < 0) coarse_row.sin = -coarse_row.sin;
        const CosSin fine_row = table_entry(std::uint64_t(fine) * fraction + phase,
                                            attention_factor_);
        glsl::vec4 c, s;
        shader::vkrope_add_angles(glsl::vec4(coarse_row.cos), glsl::vec4(coarse_row.sin),
                                  glsl::vec4(fine_row.cos), glsl::vec4(fine_row.sin), c, s);
        return {c.x, s.x};
    }

    void rows(std::uint64_t position, std::size_t pair, double factor, glsl::vec4& c,
              glsl::vec4& s) const {
        std::array<CosSin, 4> e;
        for (std::size_t j = 0; j < 4; ++j)
            e[j] = table_entry(position * fractions_[pair + j], factor);
        c = {e[0].cos, e[1].cos, e[2].cos, e[3].cos};
        s = {e[0].sin, e[1].sin, e[2].sin, e[3].sin};
    }

    double attention_factor_;
    shader::VkropeTurnFactor turn_factor_;
    std::size_t axes_, pairs_;
    bool has_phases_, signed_;
    std::vector<std::uint64_t> fractions_, phases_;  // units of 2^-64 turn
};

}  // namespace vkrope::shader_source
