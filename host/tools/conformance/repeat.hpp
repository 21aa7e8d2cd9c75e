// SPDX-License-Identifier: MIT
// Checks that run several times: a device that gives different bits for the same work is unstable,
// whether the bits are right or wrong.
#pragma once

#include "conformance/suite.hpp"

namespace vkrope::conformance {

/// Each check of the groups becomes one that runs `times` times.
void repeat_checks(std::vector<Group>& groups, std::uint32_t times);

}  // namespace vkrope::conformance
