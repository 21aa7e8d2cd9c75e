// SPDX-License-Identifier: MIT
// Runs groups of checks on a device, each group in a separate process. A driver that crashes, hangs
// or loses its device ends only one group, and the next group opens the device again.
#pragma once

#include <functional>

#include "conformance/isolation/device_list.hpp"
#include "conformance/report.hpp"

namespace vkrope::conformance {

// Called after each check, `done` checks on this device having ended. `silent` is true for a check
// that was not run. The listener may add to the report, and returns false to end the run.
using RunListener = std::function<bool(const Check&, CheckReport&, std::size_t done, bool silent)>;

// Runs all checks of all groups on `device`. Throws tools::Failure if no check can run because the
// device cannot be opened, which is not a fault of its driver.
//
// command  starts this program again
DeviceReport run_device(const std::vector<std::string>& command, const FoundDevice& device,
                        const std::vector<Group>& groups, const Watch& watch,
                        const RunListener& listener);

}  // namespace vkrope::conformance
