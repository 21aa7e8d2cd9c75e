// SPDX-License-Identifier: MIT
// Every failure that another outcome than its own error is right for, in one place.
#pragma once

#include "injection.hpp"

namespace vkrope::test {

const std::vector<Tolerance>& kernel_tolerances();
const std::vector<Tolerance>& runtime_tolerances();

}  // namespace vkrope::test
