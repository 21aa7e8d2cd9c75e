// SPDX-License-Identifier: MIT
// The mistakes that `vkrope check` knows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "check/judge.hpp"

namespace vkrope::tools {

/// An operation to compare an output with, and how to read the tensors for it.
struct Trial {
    oracle::Tensor in, out;
    oracle::Operation operation;  // positions of the first axis
    FurtherAxes further = {};
    std::uint64_t first_in = 0, first_out = 0;  // first compared element
    std::string detail = {};                    // ends the meaning of the mistake
};

/// The elements of a tensor from its first compared one on.
inline const void* elements_from(const void* tensor, std::uint64_t first, oracle::Type type) {
    return static_cast<const char*>(tensor) + first * oracle::bytes_of(type);
}

/// Applies the same change to the positions of each axis.
template <class Change>
void each_axis(Trial& trial, const Change& change) {
    change(trial.operation.positions);
    for (std::vector<std::int64_t>& positions : trial.further.positions) {
        change(positions);
    }
}

/// The part of the definition that a mistake changes. Mistakes in different parts can be combined.
enum class Part {
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

struct Mistake {
    std::string name, meaning;
    Trial trial;
    Part part = Part::alone;
    bool precision = false;  // as Match::precision
    bool measured = false;   // as Match::measured: tried only where no other mistake explains
    /// Candidates for the cos and sin of each pair, likeliest first; they replace the trial's own.
    /// Empty: the trial's own.
    std::vector<Turn> turns = {};
};

/// Returns every mistake that suitable data could distinguish from the correct operation.
std::vector<Mistake> mistakes_of(const Evidence& evidence);

/// Calls visit(mistake) for every two mistakes that can be combined: "swapped_pairing +
/// attention_factor_missing".
///
/// singles  mistakes_of(evidence)
void each_two(const Evidence& evidence, const std::vector<Mistake>& singles,
              const std::function<void(const Mistake&)>& visit);

}  // namespace vkrope::tools
