// SPDX-License-Identifier: MIT
// Finds where an output is wrong: the region, and a text that lists the rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/compare.hpp"

namespace vkrope::tools {

// Returns "token 3" or "heads 1, 4-7"; empty if all are set.
std::string ranges_text(const char* one, const std::vector<bool>& those);

// Returns none if nothing is wrong, if the wrong elements share no region, or if the region is the
// whole tensor.
std::optional<Lone> lone_of(const Hypothesis& right, const Comparison& comparison,
                            const Judgement& judgement);

// Lists the sequences, tokens and heads of the set rows: "token 3, heads 1, 4-7". Leaves out an
// axis whose indices all occur.
std::string where_of(const oracle::Tensor& tensor, const std::vector<bool>& rows);

}  // namespace vkrope::tools
