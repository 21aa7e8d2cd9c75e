// SPDX-License-Identifier: MIT
// Where an output is wrong: the region, and the rows in words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/compare.hpp"

namespace vkrope::tools {

/// "token 3", "heads 1, 4-7"; empty if all are set.
std::string ranges_text(const char* one, const std::vector<bool>& those);

/// None if nothing is wrong, if the wrong elements share no region, or if the region is the whole
/// tensor.
std::optional<Lone> lone_of(const oracle::Tensor& tensor, const Comparison& verdict,
                            const Judgement& judgement);

/// The sequences, tokens and heads of the set rows: "token 3, heads 1, 4-7". An axis all of whose
/// indices occur is left out.
std::string where_of(const oracle::Tensor& tensor, const std::vector<bool>& rows);

}  // namespace vkrope::tools
