// SPDX-License-Identifier: MIT
// The group of checks that folders of cases make.
#pragma once

#include <string>
#include <vector>

#include "conformance/suite.hpp"

namespace vkrope::conformance {

/// A check for every folder at or below one of `folders` that holds a case.json, in order of path.
/// One that cannot be read is a check too, whose outcome is an error, and so is one whose id was
/// there before.
///
/// outputs  where the results go; empty: nowhere
Group find_cases(const std::vector<std::string>& folders, const std::string& outputs);

}  // namespace vkrope::conformance
