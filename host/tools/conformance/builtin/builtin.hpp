// SPDX-License-Identifier: MIT
// The checks that need no files.
#pragma once

#include "conformance/suite.hpp"

namespace vkrope::conformance {

enum class Level { quick, full };

/// How many checks the groups have.
struct Extent {
    Level level = Level::quick;
    std::uint32_t random_kernels = 0;  ///< of the group random; 0: as many as the level has
};

/// In the order in which they run.
std::vector<Group> builtin_groups(const Extent& extent);

}  // namespace vkrope::conformance
