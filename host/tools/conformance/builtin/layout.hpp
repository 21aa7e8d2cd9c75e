// SPDX-License-Identifier: MIT
// The memory of a trial's call.
#pragma once

#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {

/// Lays out the operation of a trial: pieces of memory, separated by guard zones, among random
/// bytes; everything that the trial leaves open is random too.
///
/// counts  whether the call has vkrope_call::out_of_range
verify::Operation laid_out(const Trial& trial, bool counts);

}  // namespace vkrope::conformance
