// SPDX-License-Identifier: MIT
// The mistakes that `vkrope check` knows.
#pragma once

#include <string>
#include <vector>

#include "judge.hpp"

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

struct Mistake {
    std::string name, meaning;
    Trial trial;
    bool precision = false;
};

/// Every mistake that could be told apart from the right operation, given data that shows it.
std::vector<Mistake> mistakes_of(const Evidence& evidence);

}  // namespace vkrope::tools
