// SPDX-License-Identifier: MIT
// Selects the checks that the options name.
#pragma once

#include "conformance/options.hpp"

namespace vkrope::conformance {

// Removes the checks that --filter excludes. Throws tools::Failure if no check is left.
void apply_filter(const Options& options, std::vector<Group>& groups);

// Returns the checks of one group that a worker runs. Throws tools::Failure.
Group group_of(const std::string& name, const Options& options, BuiltinGroups builtin);

}  // namespace vkrope::conformance
