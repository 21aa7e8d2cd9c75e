// SPDX-License-Identifier: MIT
// The mistakes that `vkrope check` knows. Each is a row of a table: the definition with one change.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "check/hypothesis.hpp"

namespace vkrope::tools {

/// The part of the definition that a mistake changes. Mistakes in different parts can be combined.
enum class Part {
    norm,
    bias,
    clip,
    scale,
    hadamard,
    rotation,  // of V
    store,
    pairing,
    factor,
    frequencies,
    positions,
    axes,
    direction,
    window,
    layout,      // the place of each row
    rounding,    // of the frequencies
    arithmetic,  // computation of cos and sin
    tables,      // rounding of cos and sin
    alone,       // never combined with another mistake
};

/// Computes the cos and sin of a pair, as oracle::Operation::cos_sin.
using Turn = std::function<oracle::CosSin(std::int64_t position, std::size_t pair)>;

/// A row of a table.
struct Row {
    std::string name;
    Part part = Part::alone;
    std::string meaning;
    /// Changes what is right; false where suitable data could not show it.
    std::function<bool(const Observation& observation, Hypothesis& wrong)> change;
    bool precision = false;  // as Match::precision
    bool measured = false;   // as Match::measured: tried only where no other mistake explains
    /// Candidates for the cos and sin of each pair, likeliest first, in place of those of the
    /// change.
    std::function<std::vector<Turn>(const Observation& observation, const Hypothesis& right)>
        turns = {};
};
using Rows = std::vector<Row>;

/// A row that these data can show.
struct Mistake {
    std::string name, meaning;
    Hypothesis hypothesis;
    Part part = Part::alone;
    bool precision = false, measured = false;
    std::vector<Turn> turns = {};
    std::size_t next_row = 0;  // the first of the table that comes after it in a combination
};

/// Returns every mistake that suitable data could distinguish from the correct operation.
std::vector<Mistake> mistakes_of(const Observation& observation);

/// Calls visit(mistake) for every two mistakes that can be combined: "swapped_pairing +
/// attention_factor_missing".
///
/// singles  mistakes_of(observation)
void each_two(const Observation& observation, const std::vector<Mistake>& singles,
              const std::function<void(const Mistake&)>& visit);

// The tables, in the order in which rows that explain an output equally well are reported.
Rows ops_mistakes();         // bias, norm, clip, scale and Hadamard transform
Rows store_mistakes();       // codes and scales
Rows pair_mistakes();        // the pairs and the attention factor
Rows scaling_mistakes();     // of the frequencies
Rows position_mistakes();    // the positions, their axes and the direction
Rows window_mistakes();      // which channels turn
Rows exponent_mistakes();    // and the base
Rows layout_mistakes();      // the place of each row
Rows measured_mistakes();    // values that the output shows
Rows arithmetic_mistakes();  // of right frequencies, and of those that another mistake has changed

/// The pairs whose errors rounding cannot explain; empty if there are none. Rounding errors grow
/// with the angle: the products of position and frequency have them, and in pairs that hardly turn
/// cos is 1. So errors are no rounding
/// - in pairs that err by far more in proportion to their angle than the others do;
/// - in all wrong pairs if several pairs that turn farther are right, or if errors are larger than
///   rounding of f32 makes them and pairs are right that rounding of 16 bits would show.
///
/// pairs  receives the number of pairs of a row
std::vector<std::size_t> odd_pairs(const Observation& observation, double bound_u,
                                   std::uint64_t& pairs);

// For the tables.

/// Unscaled frequencies; empty for a base that has none.
std::vector<double> powers(double base, std::uint64_t rotary_dim);

std::uint32_t rotary_dim(const Hypothesis& hypothesis);

/// What the scaling multiplies each frequency by; empty if the unscaled ones are unknown.
std::vector<double> multipliers(const Observation& observation, const Hypothesis& right);

/// What the scaling divides the slowest frequencies by; 1 without a scaling, or if it is unknown.
double factor_of_scaling(const Observation& observation, const Hypothesis& right);

/// Whether the window is narrower than the row.
bool is_partial(const Hypothesis& hypothesis);

/// Channels from the rotary offset to the end of the last window.
std::uint64_t channels_to_end(const oracle::Operation& operation);

/// Whether the windows fit in the row.
bool fits(const Hypothesis& hypothesis);

/// The nearest number of the type, ties to even.
double rounded_to(oracle::Type type, long double value);

/// Whether two lists of frequencies differ by more than rounding.
bool differ(const std::vector<double>& a, const std::vector<double>& b);

/// Replaces the frequencies, if they are others and fit. Another number of them has one window.
bool replace_frequencies(Hypothesis& wrong, const std::vector<double>& inv_freq);

/// Replaces the positions on every axis, if that changes one: change(token, right) returns the
/// position of one token, counted over all sequences.
bool replace_positions(
    Hypothesis& wrong,
    const std::function<std::int64_t(std::uint64_t token, const Positions& right)>& change);

/// The types of 16 bits that engines round to, and their names.
struct Rounded {
    oracle::Type type;
    const char* name;
};
inline constexpr Rounded in_16_bits[] = {{oracle::Type::bf16, "bf16"}, {oracle::Type::f16, "f16"}};

}  // namespace vkrope::tools
