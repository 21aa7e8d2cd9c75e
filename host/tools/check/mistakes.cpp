// SPDX-License-Identifier: MIT
#include "check/mistakes.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "check/attempts.hpp"

namespace vkrope::tools {
namespace {

struct Row {
    const char* name;
    Attempt (*attempt)(const Evidence&);
    Part part;
    const char* meaning;
    bool precision = false;
    std::vector<Turn> (*turns)(const Evidence&) = nullptr;  // as Mistake::turns
    bool measured = false;                                  // as Mistake::measured
};

// If several explain an output equally well, the first of them is reported first.
constexpr Row rows[] = {
    {"swapped_pairing", swapped_pairing, Part::pairing,
     "pairs are half_split instead of interleaved, or the reverse"},
    {"reordered_pairs", reordered_pairs, Part::pairing,
     "the values are right, but in the channel order of the other pairing"},
    {"attention_factor_missing", attention_factor_missing, Part::factor,
     "cos and sin lack the attention factor"},
    {"attention_factor_twice", attention_factor_twice, Part::factor,
     "the attention factor was applied twice"},
    {"attention_factor_divided", attention_factor_divided, Part::factor,
     "the output was divided by the attention factor"},
    {"yarn_magnitude_applied", yarn_magnitude_applied, Part::factor,
     "cos and sin have YaRN's magnitude 0.1 ln(factor) + 1, which is not the model's attention "
     "factor"},
    {"softmax_root_applied", softmax_root_applied, Part::factor,
     "cos and sin were multiplied by the magnitude that belongs to the softmax scale"},
    {"attention_factor_applied", attention_factor_applied, Part::factor,
     "the attention factor was applied, but --gain asks to omit or divide it out"},
    {"softmax_scale_applied", softmax_scale_applied, Part::factor,
     "the output was multiplied by the factor of the softmax scale"},
    {"scaling_ignored", scaling_ignored, Part::frequencies,
     "frequencies are unscaled, and the attention factor is missing"},
    {"frequencies_unscaled", frequencies_unscaled, Part::frequencies,
     "frequencies are unscaled, and the attention factor was applied"},
    {"scaling_twice", scaling_twice, Part::frequencies, "the frequencies were scaled twice"},
    {"yarn_range_rounded", yarn_range_rounded, Part::frequencies,
     "YaRN's range of blended pairs was rounded to whole pairs"},
    {"yarn_range_unrounded", yarn_range_unrounded, Part::frequencies,
     "YaRN's range of blended pairs was not rounded to whole pairs"},
    {"factor_in_power", factor_in_power, Part::frequencies,
     "the factor of the scaling multiplies the base, inside the power; it must divide the "
     "frequencies"},
    {"position_plus_one", position_plus_one, Part::positions, "every position is one too large"},
    {"position_minus_one", position_minus_one, Part::positions, "every position is one too small"},
    {"inverse_direction", inverse_direction, Part::direction,
     "the direction is wrong: sin has the other sign"},
    {"not_rotated", not_rotated, Part::alone, "the output is the input"},
    {"positions_zero", positions_zero, Part::positions,
     "every token was rotated as at position 0, which changes nothing"},
    {"positions_from_zero", positions_from_zero, Part::positions,
     "positions were counted from 0 in each sequence"},
    {"positions_of_first_sequence", positions_of_first_sequence, Part::positions,
     "every sequence has the positions of the first one"},
    {"positions_of_first_token", positions_of_first_token, Part::positions,
     "every token of a sequence was rotated at the position of its first token"},
    {"positions_in_16_bits", positions_in_bf16, Part::positions,
     "positions were rounded to bf16, which lacks most numbers above 256"},
    {"positions_in_16_bits", positions_in_f16, Part::positions,
     "positions were rounded to f16, which lacks most numbers above 2048"},
    {"sections_ignored", sections_ignored, Part::axes,
     "every pair was rotated by the position on the first axis"},
    {"sections_in_the_other_order", sections_in_the_other_order, Part::axes,
     "sections are sequential instead of interleaved, or the reverse"},
    {"sections_without_end", sections_without_end, Part::axes,
     "axes alternate over all pairs, beyond the end of their sections"},
    {"height_and_width_exchanged", height_and_width_exchanged, Part::axes,
     "the positions of height and width are swapped"},
    {"rotated_twice", rotated_twice, Part::positions, "the output was rotated a second time"},
    {"window_of_the_other_tensor", window_of_the_other_tensor, Part::window,
     "K's window was rotated in Q, or Q's in K"},
    {"window_at_start", window_at_start, Part::window,
     "the window was taken at the start of a row"},
    {"window_at_end", window_at_end, Part::window, "the window was taken at the end of a row"},
    {"windows_joined", windows_joined, Part::window,
     "pairs were formed over all windows together, not within each"},
    {"whole_head", whole_head, Part::window,
     "all of head_dim was rotated, with frequencies for it"},
    {"proportional_instead_of_partial", proportional_instead_of_partial, Part::window,
     "exponents and the distance of a pair are those of head_dim, as in proportional scaling"},
    {"pair_distance_of_head_dim", pair_distance_of_head_dim, Part::window,
     "the channels of a pair are head_dim / 2 apart, not rotary_dim / 2"},
    {"partial_instead_of_proportional", partial_instead_of_proportional, Part::window,
     "a partial window was rotated: exponents and the distance of a pair are not those of "
     "head_dim"},
    {"pair_distance_of_partial", pair_distance_of_partial, Part::window,
     "the channels of a pair are as far apart as in a partial window, not head_dim / 2"},
    {"exponent_of_partial", exponent_of_partial, Part::frequencies,
     "exponents are those of a partial window, not of head_dim"},
    {"half_of_window", half_of_window, Part::window,
     "half of the window was rotated, as if rotary_dim were half as wide"},
    {"half_of_window_and_frequencies", half_of_window_and_frequencies, Part::window,
     "half of the window was rotated, by the first half of the frequencies"},
    {"second_half_of_window", second_half_of_window, Part::window,
     "the second half of the window was rotated, as if rotary_dim were half as wide"},
    {"half_of_pairs", half_of_pairs, Part::window, "only the first half of the pairs was rotated"},
    {"second_half_of_pairs", second_half_of_pairs, Part::window,
     "only the second half of the pairs was rotated"},
    {"exponent_of_head_dim", exponent_of_head_dim, Part::frequencies,
     "exponents are divided by head_dim, not by rotary_dim"},
    {"base_10000", base_10000, Part::frequencies,
     "frequencies are unscaled, of base 10000, and the attention factor is missing"},
    {"base_10000_with_factor", base_10000_with_factor, Part::frequencies,
     "frequencies are unscaled, of base 10000, and the attention factor was applied"},
    {"inclusive_spacing", inclusive_spacing, Part::frequencies,
     "exponents reach 1: j / (n - 1), not j / n"},
    {"positions_along_heads", positions_along_heads, Part::layout,
     "heads were taken for tokens: the axes are in another order"},
    {"positions_along_batch", positions_along_batch, Part::layout,
     "sequences were taken for tokens: the axes are in another order"},
    {"tokens_and_heads_exchanged", tokens_and_heads_exchanged, Part::layout,
     "tokens and heads were reshaped, not transposed"},
    {"tokens_and_sequences_exchanged", tokens_and_sequences_exchanged, Part::layout,
     "tokens and sequences were reshaped, not transposed"},
    {"pairs_on_other_axes", pairs_on_other_axes, Part::axes, "wrong axes: ", false, nullptr, true},
    {"position_offset", position_offset, Part::positions,
     "every position is off by the same: ", false, nullptr, true},
    {"one_position", one_position, Part::positions,
     "every token was rotated at one position: ", false, nullptr, true},
    {"another_factor", another_factor, Part::factor, "cos and sin have another factor: ", false,
     nullptr, true},
    // Rounding of the frequencies, and computation of cos and sin, come last: they use the
    // frequencies that another mistake may have changed.
    {"frequencies_in_16_bits", frequencies_in_bf16, Part::rounding,
     "frequencies were rounded to bf16 before the product with the position", true},
    {"frequencies_in_16_bits", frequencies_in_f16, Part::rounding,
     "frequencies were rounded to f16 before the product with the position", true},
    {"cos_and_sin_exchanged", cos_and_sin_exchanged, Part::arithmetic, "cos and sin are swapped"},
    {"float32_angles", float32_angles, Part::arithmetic,
     "angles are float32 products of position and frequency", true, float32_products},
    {"float32_angles_by_running_product", float32_angles_by_running_product, Part::arithmetic,
     "each float32 angle was made by multiplying the angle of the pair before it", true},
    {"angles_in_16_bits", angles_in_bf16, Part::arithmetic,
     "positions, frequencies and their products were rounded to bf16", true},
    {"angles_in_16_bits", angles_in_f16, Part::arithmetic,
     "positions, frequencies and their products were rounded to f16", true},
    {"tables_in_16_bits", tables_in_bf16, Part::tables, "cos and sin were rounded to bf16", true,
     bf16_tables},
    {"tables_in_16_bits", tables_in_f16, Part::tables, "cos and sin were rounded to f16", true,
     f16_tables},
    {"subnormals_flushed", subnormals_flushed, Part::alone,
     "subnormal numbers became 0, and all else is right", true},
};

std::optional<Mistake> mistake_of(const Row& row, const Evidence& evidence) {
    Attempt attempt = row.attempt(evidence);
    if (!attempt) {
        return std::nullopt;
    }
    return Mistake{.name = row.name,
                   .meaning = row.meaning + attempt->detail,
                   .trial = std::move(*attempt),
                   .part = row.part,
                   .precision = row.precision,
                   .measured = row.measured,
                   .turns = row.turns == nullptr ? std::vector<Turn>() : row.turns(evidence)};
}

/// Returns true if a mistake in the frequencies gives this other RoPE of the model.
bool same_rotation(const Mistake& mistake, const RopeParams& rotation) {
    return mistake.part == Part::frequencies &&
           !differ(rotation.inv_freq, mistake.trial.operation.inv_freq) &&
           rotation.attention_factor == mistake.trial.operation.attention_factor;
}

/// The other RoPE of the model in place of the right one; nothing if its window does not fit, or if
/// it is the right one.
std::optional<Mistake> other_rotation(const Evidence& evidence, const OtherRotation& other) {
    if (other.rotation.no_rope || other.rotation.sections.order == VKROPE_SECTIONS_SUM) {
        return std::nullopt;
    }
    Trial trial = right(evidence);
    oracle::Operation& operation = trial.operation;
    set_angles(other.rotation, operation);
    const bool groups = operation.head_groups != 0 &&
                        evidence.in.heads % operation.head_groups == 0;
    const bool fits = operation.rotary_offset + channels_to_end(operation) <= evidence.in.head_dim;
    const bool another = differ(operation.inv_freq, evidence.operation.inv_freq) ||
                         operation.attention_factor != evidence.operation.attention_factor;
    if (!groups || !fits || !another) {
        return std::nullopt;
    }
    const bool still = evidence.operation.inv_freq.empty();
    return Mistake{.name = still ? "rotated_without_rope" : other.mistake,
                   .meaning = still ? "rotated although the layer has no RoPE: " + other.meaning
                                    : other.meaning,
                   .trial = std::move(trial),
                   .part = Part::frequencies};
}

}  // namespace

std::vector<Mistake> mistakes_of(const Evidence& evidence) {
    std::vector<Mistake> mistakes;
    if (evidence.operation.positions.empty() || evidence.in.heads == 0) {
        return mistakes;
    }
    const bool rotates = !evidence.operation.inv_freq.empty();
    for (const Row& row : rows) {
        // The table is of what a rotation can have wrong.
        if (std::optional<Mistake> mistake = rotates ? mistake_of(row, evidence) : std::nullopt) {
            mistakes.push_back(std::move(*mistake));
        }
    }
    // The other RoPEs of the model come first: if they explain an output, they are likelier than a
    // base that happens to match. One without scaling is reported as scaling_ignored.
    const auto scaling_ignored = std::find_if(
        mistakes.begin(), mistakes.end(),
        [](const Mistake& mistake) { return mistake.name == "scaling_ignored"; });
    std::vector<Mistake> others;
    for (const OtherRotation& other : evidence.others) {
        std::optional<Mistake> mistake = other_rotation(evidence, other);
        if (mistake && scaling_ignored != mistakes.end() &&
            same_rotation(*scaling_ignored, other.rotation)) {
            scaling_ignored->meaning += "; " + other.meaning;
        } else if (mistake) {
            others.push_back(std::move(*mistake));
        }
    }
    mistakes.insert(mistakes.begin(), std::make_move_iterator(others.begin()),
                    std::make_move_iterator(others.end()));
    return mistakes;
}

void each_two(const Evidence& evidence, const std::vector<Mistake>& singles,
              const std::function<void(const Mistake&)>& visit) {
    for (const Mistake& first : singles) {
        const auto* row = std::find_if(std::begin(rows), std::end(rows), [&first](const Row& each) {
            return each.name == first.name;
        });
        row = row == std::end(rows) ? rows : row + 1;  // another RoPE combines with all rows
        Evidence changed = evidence;
        changed.in = first.trial.in;
        changed.out = first.trial.out;
        changed.operation = first.trial.operation;
        changed.further = first.trial.further;
        for (; row != std::end(rows); ++row) {
            if (first.part == Part::alone || row->part == Part::alone || row->part == first.part) {
                continue;
            }
            if (std::optional<Mistake> both = mistake_of(*row, changed)) {
                both->name = first.name + " + " + both->name;
                both->meaning = first.meaning + "; " + both->meaning;
                both->part = Part::alone;
                both->precision = false;
                both->measured = both->measured || first.measured;
                visit(*both);
            }
        }
    }
}

}  // namespace vkrope::tools
