// SPDX-License-Identifier: MIT
// The group of checks for folders of cases.
#pragma once

#include <string>
#include <vector>

#include "conformance/suite.hpp"

namespace vkrope::conformance {

/// The name of the group.
inline constexpr const char cases_group[] = "cases";

/// Returns a check for every folder at or below one of `folders` that contains a case.json, sorted
/// by path. A case that cannot be read, or whose id is a duplicate, is a check with outcome error.
///
/// outputs  folder for the results; empty: results are not written
Group find_cases(const std::vector<std::string>& folders, const std::string& outputs);

}  // namespace vkrope::conformance
