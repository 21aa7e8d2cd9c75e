// SPDX-License-Identifier: MIT
// Makes a device report lower limits than it has, for checks of how the library splits calls.
#pragma once

#include "verify/unplaced.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::conformance {

using verify::ReportedLimits;

// Returns `device` with these limits. To be used by a call of create() directly afterwards,
// because the limits are stored in a single static variable.
DeviceRef reporting(const Device& device, const ReportedLimits& limits);

}  // namespace vkrope::conformance
