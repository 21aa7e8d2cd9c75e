// SPDX-License-Identifier: MIT
// The checks that need no files.
#pragma once

#include "conformance/suite.hpp"

namespace vkrope::conformance {

enum class Level { quick, full };

/// In the order in which they run.
std::vector<Group> builtin_groups(Level level);

}  // namespace vkrope::conformance
