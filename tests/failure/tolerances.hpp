// SPDX-License-Identifier: MIT
// Every failure whose correct outcome is not its own error.
#pragma once

#include "injection.hpp"

namespace vkrope::test {

const std::vector<Tolerance>& kernel_tolerances();
const std::vector<Tolerance>& runtime_tolerances();

}  // namespace vkrope::test
