// SPDX-License-Identifier: MIT
// The mistakes that `vkrope check` knows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "check/judge.hpp"

namespace vkrope::tools {

/// An operation to compare an output with, and how the tensors are read for it.
struct Trial {
    reference::Tensor in, out;
    reference::Operation operation;  // positions of the first axis
    FurtherAxes further = {};
    std::uint64_t first_in = 0, first_out = 0;  // elements before those that are compared
};

/// Changes the positions on each axis alike.
template <class Change>
void each_axis(Trial& trial, const Change& change) {
    change(trial.operation.positions);
    for (std::vector<std::int64_t>& positions : trial.further.positions) {
        change(positions);
    }
}

/// What of the definition a mistake changes. Mistakes that change different parts can be made at
/// once.
enum class Part {
    pairing,
    factor,
    frequencies,
    positions,
    axes,
    direction,
    window,
    layout,      // which row is where
    arithmetic,  // how cos and sin are made
    alone,       // no other mistake is looked for beside it
};

/// What turns a pair, as reference::Operation::cos_sin.
using Turn = std::function<reference::CosSin(std::int64_t position, std::size_t pair)>;

struct Mistake {
    std::string name, meaning;
    Trial trial;
    Part part = Part::alone;
    bool precision = false;  // as Match::precision
    /// The trial, but for how each pair is turned: as one of these, the likelier first. None: there
    /// is no choice.
    std::vector<Turn> turns = {};
};

/// Every mistake that could be told apart from the right operation, given data that shows it.
std::vector<Mistake> mistakes_of(const Evidence& evidence);

/// Calls visit(mistake) for every two mistakes that can be made at once: "swapped_pairing +
/// attention_factor_missing".
///
/// singles  mistakes_of(evidence)
void each_two(const Evidence& evidence, const std::vector<Mistake>& singles,
              const std::function<void(const Mistake&)>& visit);

}  // namespace vkrope::tools
