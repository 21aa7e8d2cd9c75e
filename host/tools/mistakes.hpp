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
    reference::Operation operation;
    std::uint64_t first_in = 0, first_out = 0;  // elements before those that are compared
};

struct Mistake {
    std::string name, meaning;
    Trial trial;
    bool precision = false;
};

/// Every mistake that could be told apart from the right operation, given data that shows it.
std::vector<Mistake> mistakes_of(const Evidence& evidence);

}  // namespace vkrope::tools
