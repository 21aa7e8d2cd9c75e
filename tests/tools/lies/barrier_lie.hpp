// SPDX-License-Identifier: MIT
#pragma once

#include "functions.hpp"

namespace vkrope::lies {

/// See barrier_lie.cpp.
void barriers_ignored(Functions& told);

}  // namespace vkrope::lies
