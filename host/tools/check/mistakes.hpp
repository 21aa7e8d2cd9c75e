// SPDX-License-Identifier: MIT
// The mistakes that `vkrope check` knows. Each is a table row: the definition with one change.
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
    rotation,  // rotation of V
    store,
    pairing,
    factor,
    frequencies,
    positions,
    axes,
    direction,
    window,
    layout,      // the location of each row in memory
    rounding,    // rounding of the frequencies
    arithmetic,  // computation of cos and sin
    tables,      // rounding of cos and sin
    alone,       // never combined with another mistake
};

/// Computes the cos and sin of a pair, like oracle::Operation::cos_sin.
using Turn = std::function<oracle::CosSin(std::int64_t position, std::size_t pair)>;

/// A row of a table of mistakes.
struct Row {
    std::string name;
    Part part = Part::alone;
    std::string meaning;
    /// Changes the right hypothesis. Returns false if no suitable data could show the change.
    std::function<bool(const Observation& observation, Hypothesis& wrong)> change;
    bool precision = false;  // as Match::precision
    bool measured = false;   // as Match::measured: tried only if no other mistake explains
    /// Candidates for the cos and sin of each pair, likeliest first, which replace those of the
    /// change.
    std::function<std::vector<Turn>(const Observation& observation, const Hypothesis& right)>
        turns = {};
};
using Rows = std::vector<Row>;

/// A row whose change these data can show.
struct Mistake {
    std::string name, meaning;
    Hypothesis hypothesis;
    Part part = Part::alone;
    bool precision = false, measured = false;
    std::vector<Turn> turns = {};
    std::size_t next_row = 0;  // first row that may follow it in a combination
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
Rows ops_mistakes();         // bias, norm, clip, scale, Hadamard transform
Rows store_mistakes();       // codes and scales
Rows pair_mistakes();        // the pairs and the attention factor
Rows scaling_mistakes();     // scaling of the frequencies
Rows position_mistakes();    // the positions, their axes and the direction
Rows window_mistakes();      // the channels that turn
Rows exponent_mistakes();    // exponents and base
Rows layout_mistakes();      // the location of each row in memory
Rows measured_mistakes();    // values read from the output
Rows arithmetic_mistakes();  // on right frequencies and on those of another mistake

/// Returns the pairs whose errors rounding cannot explain; empty if there are none. Rounding errors
/// grow with the angle, because they come from the products of position and frequency, and in pairs
/// that hardly turn cos is 1. So errors are not rounding
/// - in pairs whose errors are much larger in proportion to their angle than those of the others;
/// - in all wrong pairs if several pairs that turn further are right, or if errors are larger than
///   rounding to f32 causes and some pairs are right in which rounding to 16 bits would show.
///
/// pairs  receives the number of pairs in a row
std::vector<std::size_t> odd_pairs(const Observation& observation, double bound_u,
                                   std::uint64_t& pairs);

// Functions that the tables use.

/// Returns unscaled frequencies; empty if the base gives none.
std::vector<double> powers(double base, std::uint64_t rotary_dim);

std::uint32_t rotary_dim(const Hypothesis& hypothesis);

/// Returns the scaling factor of each frequency; empty if the unscaled ones are unknown.
std::vector<double> multipliers(const Observation& observation, const Hypothesis& right);

/// Returns the divisor that scaling applies to the slowest frequencies; 1 if none or unknown.
double factor_of_scaling(const Observation& observation, const Hypothesis& right);

/// Returns true if the window is narrower than the row.
bool is_partial(const Hypothesis& hypothesis);

/// Returns the number of channels from the rotary offset to the end of the last window.
std::uint64_t channels_to_end(const oracle::Operation& operation);

/// Returns true if the windows fit in the row.
bool fits(const Hypothesis& hypothesis);

/// Returns the nearest number of the type, ties to even.
double rounded_to(oracle::Type type, long double value);

/// Returns true if two lists of frequencies differ by more than rounding.
bool differ(const std::vector<double>& a, const std::vector<double>& b);

/// Replaces the frequencies if they differ and fit. A different number of them makes one window.
bool replace_frequencies(Hypothesis& wrong, const std::vector<double>& inv_freq);

/// Replaces the positions on every axis; returns false if none changes. change(token, right)
/// returns the position of one token, where tokens are counted over all sequences.
bool replace_positions(
    Hypothesis& wrong,
    const std::function<std::int64_t(std::uint64_t token, const Positions& right)>& change);

/// The 16-bit types that engines round to, and their names.
struct Rounded {
    oracle::Type type;
    const char* name;
};
inline constexpr Rounded in_16_bits[] = {{oracle::Type::bf16, "bf16"}, {oracle::Type::f16, "f16"}};

}  // namespace vkrope::tools
