// SPDX-License-Identifier: MIT
// The mistakes that `vkrope check` knows. Each is a table row: the definition with one change.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "check/hypothesis.hpp"

namespace vkrope::tools {

// The part of the definition that a mistake changes. Mistakes in different parts can be combined.
enum class Part {
    norm,
    bias,
    clip,
    scale,
    hadamard,
    rotation,  // rotation of V
    pairing,
    factor,
    frequencies,
    positions,
    axes,
    direction,
    exchange,  // of cos and sin
    window,
    layout,      // the location of each row in memory
    rounding,    // rounding of the frequencies
    arithmetic,  // computation of cos and sin
    tables,      // rounding of cos and sin
    alone,       // never combined with another mistake
};

// Computes the cos and sin of a pair, like oracle::Operation::cos_sin.
using Turn = std::function<oracle::CosSin(std::int64_t position, std::size_t pair)>;

// A row of a table of mistakes: a change of the definition, its name, and what the engine did.
struct Row {
    std::string name;
    Part part = Part::alone;
    std::string meaning;  // "left out the norm"; the same in all rows of this name
    // Changes the right hypothesis, and may set its detail. Returns false if no suitable data
    // could show the change. Empty if the change is read from the output or from the model file.
    std::function<bool(const Observation& observation, Hypothesis& wrong)> change = {};
    std::string example = {};  // of a detail that has values
    bool precision = false;    // as Match::precision
    bool measured = false;     // the change is read from the output
    // Candidates for the cos and sin of each pair, likeliest first, which replace those of the
    // change.
    std::function<std::vector<Turn>(const Observation& observation, const Hypothesis& right)>
        turns = {};
};
using Rows = std::vector<Row>;

// The name of positions without a pattern.
inline constexpr const char* other_positions = "other_positions";

// The names of a mistake, and the definition with its changes.
struct Mistake {
    struct Named {
        const Row* row = nullptr;
        std::string detail;  // follows the meaning of the row: "interleaved, not half_split"
    };
    std::vector<Named> named = {};  // in the order of rows; empty: the definition itself
    Hypothesis hypothesis;
    bool precision = false;
    std::vector<Turn> turns = {};

    bool changes(Part part) const;
    // Returns whether the positions have no pattern; such positions could explain any output.
    bool is_vague() const;
    // Returns a measure of the changes: 2 for each, 3 for a measured one, more for a vague one.
    std::size_t cost() const;
    void add(Named mistake);
    std::string name() const;     // "swapped_pairing + attention_factor_missing"
    std::string meaning() const;  // a sentence, "the engine ..."
};

// Every row of every table, in the order of reports.
const Rows& all_rows();

// Returns the first row of a name. Every name must be in a table.
const Row& row_of(std::string_view name);

// Returns whether positions hide another change of the same mistake: if all are equal, it does not
// matter which axis counts tokens; if all are 0, a rotation of V has no effect.
//
// wrong  the mistake's hypothesis with these positions
bool positions_hide_another(const Observation& observation, const Mistake& mistake,
                            const Hypothesis& wrong);

// Adds a row to a mistake. Returns none if the mistake already changes that part, if these data
// could not show the change, or if there is nothing to change.
std::optional<Mistake> with(const Mistake& mistake, const Row& row, const Observation& observation);

// Gives a mistake another RoPE of the model. Returns none if the frequencies are changed already,
// or if the window of that RoPE does not fit.
std::optional<Mistake> with(const Mistake& mistake, const OtherRotation& other,
                            const Observation& observation);

// The tables, in the order in which rows that explain an output equally well are reported.
Rows rotation_mistakes();    // the other RoPEs of the model file, which have no change
Rows ops_mistakes();         // bias, norm, clip, scale, Hadamard transform
Rows pair_mistakes();        // the pairs and the attention factor
Rows scaling_mistakes();     // scaling of the frequencies
Rows position_mistakes();    // the positions, their axes and the direction
Rows window_mistakes();      // the channels that are rotated
Rows exponent_mistakes();    // exponents and base
Rows layout_mistakes();      // the location of each row in memory
Rows measured_mistakes();    // values that are read from the output, which have no change
Rows arithmetic_mistakes();  // applied to right frequencies and to those of another mistake

// Functions that the tables use.

// Returns unscaled frequencies; empty if the base gives none.
std::vector<double> powers(double base, std::uint64_t rotary_dim);

std::uint32_t rotary_dim(const Hypothesis& hypothesis);

// Returns the scaling factor of each frequency; empty if the unscaled ones are unknown.
std::vector<double> multipliers(const Observation& observation, const Hypothesis& right);

// Returns the frequencies of a window of rotary_dim channels with the model's scaling, linear or
// YaRN; empty if it is another or unknown.
std::vector<double> scaled_powers(const Observation& observation, const Hypothesis& right,
                                  std::uint64_t rotary_dim);

// Returns the divisor that scaling applies to the slowest frequencies; 1 if none or unknown.
double factor_of_scaling(const Observation& observation, const Hypothesis& right);

// Returns true if the window is narrower than the row.
bool is_partial(const Hypothesis& hypothesis);

// Returns the number of channels from the rotary offset to the end of the last window.
std::uint64_t channels_to_end(const oracle::Operation& operation);

// Returns true if the windows fit in the row.
bool fits(const Hypothesis& hypothesis);

// Returns the nearest number of the type, ties to even.
double rounded_to(oracle::Type type, long double value);

// Returns true if two lists of frequencies differ by more than rounding.
bool differ(const std::vector<double>& a, const std::vector<double>& b);

// Replaces the frequencies if they differ and fit. A different number of them makes one window.
bool replace_frequencies(Hypothesis& wrong, const std::vector<double>& inv_freq);

// Replaces the positions on every axis; returns false if none changes. change(token, right)
// returns the position of one token, where tokens are counted over all sequences.
bool replace_positions(
    Hypothesis& wrong,
    const std::function<std::int64_t(std::uint64_t token, const Positions& right)>& change);

// The bases that are tried.
inline constexpr double least_base = 100, most_base = 1e9;

// Calls visit(number) for the numbers of two digits from `least` to `most`, as people write them.
void each_round_number(double least, double most, const std::function<void(double)>& visit);

// The 16-bit types that engines round to, and their names.
struct Rounded {
    oracle::Type type;
    const char* name;
};
inline constexpr Rounded in_16_bits[] = {{oracle::Type::bf16, "bf16"}, {oracle::Type::f16, "f16"}};

}  // namespace vkrope::tools
