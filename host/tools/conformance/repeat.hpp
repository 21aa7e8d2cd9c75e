// SPDX-License-Identifier: MIT
// Runs checks several times. A device that gives different bits for the same work is unstable,
// whether the bits are right or wrong.
#pragma once

#include "conformance/suite.hpp"

namespace vkrope::conformance {

// Replaces each check of the groups by a check that runs `times` times.
void repeat_checks(std::vector<Group>& groups, std::uint32_t times);

}  // namespace vkrope::conformance
