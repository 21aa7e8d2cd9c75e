// SPDX-License-Identifier: MIT
// What a program does with the C interface. Names begin like those of the same C++ scenarios, whose
// tolerances also apply here.
#pragma once

#include <vector>

#include "c_objects.hpp"
#include "injection.hpp"

namespace vkrope::test {

Status make_rotation(OwnedRotation& rotation);

std::vector<Scenario> plan_scenarios_in_c();
std::vector<Scenario> kernel_scenarios_in_c();
std::vector<Scenario> runtime_scenarios_in_c();

}  // namespace vkrope::test
