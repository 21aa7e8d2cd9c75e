// SPDX-License-Identifier: MIT
// The checks that need no files.
#pragma once

#include "conformance/suite.hpp"

namespace vkrope::conformance {

enum class Level { quick, full };

// The number of checks in the groups.
struct Extent {
    Level level = Level::quick;
    std::uint32_t random_kernels = 0;  // number in the group random; 0: the default of the level
    bool no_shrink = false;            // random operations that fail are reported as they are
};

// Returns the groups in the order in which they run.
std::vector<Group> builtin_groups(const Extent& extent);

}  // namespace vkrope::conformance
