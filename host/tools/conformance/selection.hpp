// SPDX-License-Identifier: MIT
// The checks that the options name.
#pragma once

#include "conformance/options.hpp"

namespace vkrope::conformance {

/// All groups that the options name, whatever their filter leaves. Throws tools::Failure.
std::vector<Group> find_groups(const Options& options, BuiltinGroups builtin);

/// Removes what --filter leaves out. Throws tools::Failure if nothing is left.
void apply_filter(const Options& options, std::vector<Group>& groups);

/// The checks of one group that run, as a worker needs them. Throws tools::Failure.
Group group_of(const std::string& name, const Options& options, BuiltinGroups builtin);

}  // namespace vkrope::conformance
