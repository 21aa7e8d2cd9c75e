// SPDX-License-Identifier: MIT
// The command "vkrope-conformance": runs checks on devices, and says what they found.
#pragma once

#include <vector>

#include "builtin.hpp"

namespace vkrope::conformance {

using BuiltinGroups = std::vector<Group> (*)(Level);

/// builtin  the suite; tests put another in its place
tools::ExitCode run_command(int argc, char** argv, BuiltinGroups builtin);

}  // namespace vkrope::conformance
