// SPDX-License-Identifier: MIT
// The mistakes one by one: each returns the operation with one change, or nothing where suitable
// data could not show it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "check/mistakes.hpp"

namespace vkrope::tools {

using Attempt = std::optional<Trial>;
using Positions = std::vector<std::int64_t>;  // of one axis, [batch, tokens]

/// The correct operation.
Trial right(const Evidence& evidence);

/// The correct operation with one change.
template <class Change>
Attempt with(const Evidence& evidence, const Change& change) {
    Trial trial = right(evidence);
    change(trial.operation);
    return trial;
}

/// The attempt, or none.
Attempt if_any(bool applicable, Attempt attempt);

/// Unscaled frequencies; empty for a base that has none.
std::vector<double> powers(double base, std::uint32_t rotary_dim);

std::uint32_t rotary_dim(const Evidence& evidence);

/// What the scaling multiplies each frequency by; empty if the unscaled ones are unknown.
std::vector<double> multipliers(const Evidence& evidence);

/// Whether the window is narrower than the row.
bool is_partial(const Evidence& evidence);

/// Channels from the rotary offset to the end of the last window.
std::uint64_t channels_to_end(const oracle::Operation& operation);

/// Replaces the frequencies. Another number of them has one window.
void set_frequencies(oracle::Operation& operation, const std::vector<double>& inv_freq);

/// The nearest number of the type, ties to even.
double rounded_to(oracle::Type type, long double value);

/// Whether two lists of frequencies differ by more than rounding.
bool differ(const std::vector<double>& a, const std::vector<double>& b);

/// The correct operation with other frequencies, if their pairs fit in the row from the rotary
/// offset on.
Attempt with_frequencies(const Evidence& evidence, const std::vector<double>& inv_freq);

/// Replaces the positions on every axis: change(token, right) returns the position of one token,
/// counted over all sequences.
Attempt with_positions(const Evidence& evidence,
                       const std::function<std::int64_t(std::uint64_t, const Positions&)>& change);

// The pairs and the turn.
Attempt swapped_pairing(const Evidence& evidence);
Attempt reordered_pairs(const Evidence& evidence);
Attempt inverse_direction(const Evidence& evidence);
Attempt rotated_twice(const Evidence& evidence);
Attempt cos_and_sin_exchanged(const Evidence& evidence);

// The attention factor.
Attempt attention_factor_missing(const Evidence& evidence);
Attempt attention_factor_applied(const Evidence& evidence);
Attempt attention_factor_twice(const Evidence& evidence);
Attempt attention_factor_divided(const Evidence& evidence);
Attempt softmax_scale_applied(const Evidence& evidence);
Attempt yarn_magnitude_applied(const Evidence& evidence);
Attempt softmax_root_applied(const Evidence& evidence);

// The frequencies.
Attempt frequencies_unscaled(const Evidence& evidence);
Attempt scaling_ignored(const Evidence& evidence);
Attempt base_10000(const Evidence& evidence);
Attempt base_10000_with_factor(const Evidence& evidence);
Attempt scaling_twice(const Evidence& evidence);
Attempt whole_head(const Evidence& evidence);
Attempt exponent_of_head_dim(const Evidence& evidence);
Attempt inclusive_spacing(const Evidence& evidence);
Attempt yarn_range_rounded(const Evidence& evidence);
Attempt yarn_range_unrounded(const Evidence& evidence);
Attempt factor_in_power(const Evidence& evidence);
Attempt exponent_of_partial(const Evidence& evidence);
Attempt frequencies_in_bf16(const Evidence& evidence);
Attempt frequencies_in_f16(const Evidence& evidence);

// How many pairs turn, and which channels they have.
Attempt proportional_instead_of_partial(const Evidence& evidence);
Attempt pair_distance_of_head_dim(const Evidence& evidence);
Attempt partial_instead_of_proportional(const Evidence& evidence);
Attempt pair_distance_of_partial(const Evidence& evidence);
Attempt half_of_window(const Evidence& evidence);
Attempt half_of_window_and_frequencies(const Evidence& evidence);
Attempt second_half_of_window(const Evidence& evidence);
Attempt half_of_pairs(const Evidence& evidence);
Attempt second_half_of_pairs(const Evidence& evidence);

// The positions, and their axes.
Attempt position_plus_one(const Evidence& evidence);
Attempt position_minus_one(const Evidence& evidence);
Attempt positions_zero(const Evidence& evidence);
Attempt not_rotated(const Evidence& evidence);
Attempt positions_from_zero(const Evidence& evidence);
Attempt positions_of_first_sequence(const Evidence& evidence);
Attempt positions_of_first_token(const Evidence& evidence);
Attempt positions_in_bf16(const Evidence& evidence);
Attempt positions_in_f16(const Evidence& evidence);
Attempt sections_ignored(const Evidence& evidence);
Attempt sections_in_the_other_order(const Evidence& evidence);
Attempt height_and_width_exchanged(const Evidence& evidence);
Attempt sections_without_end(const Evidence& evidence);

// Values that the output shows.
Attempt pairs_on_other_axes(const Evidence& evidence);
Attempt position_offset(const Evidence& evidence);
Attempt one_position(const Evidence& evidence);
Attempt another_factor(const Evidence& evidence);

// The window, and the layout.
Attempt window_of_the_other_tensor(const Evidence& evidence);
Attempt window_at_start(const Evidence& evidence);
Attempt window_at_end(const Evidence& evidence);
Attempt windows_joined(const Evidence& evidence);
Attempt positions_along_heads(const Evidence& evidence);
Attempt positions_along_batch(const Evidence& evidence);
Attempt tokens_and_heads_exchanged(const Evidence& evidence);
Attempt tokens_and_sequences_exchanged(const Evidence& evidence);

// The arithmetic.
Attempt float32_angles(const Evidence& evidence);
Attempt float32_angles_by_running_product(const Evidence& evidence);
Attempt angles_in_bf16(const Evidence& evidence);
Attempt angles_in_f16(const Evidence& evidence);
Attempt tables_in_bf16(const Evidence& evidence);
Attempt tables_in_f16(const Evidence& evidence);
Attempt subnormals_flushed(const Evidence& evidence);

/// The pow() of an engine decides the last bits of a float32 frequency, and implementations differ.
/// At a far position each variant is another angle.
std::vector<Turn> float32_products(const Evidence& evidence);

/// The tables of an engine may be of exact angles, or of those float32 products.
std::vector<Turn> bf16_tables(const Evidence& evidence);
std::vector<Turn> f16_tables(const Evidence& evidence);

}  // namespace vkrope::tools
