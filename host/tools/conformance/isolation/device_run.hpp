// SPDX-License-Identifier: MIT
// Runs groups of checks on a device, each group in a process of its own: a driver that crashes,
// hangs, or loses its device ends one group, and the next one starts afresh.
#pragma once

#include <functional>

#include "conformance/isolation/drivers.hpp"
#include "conformance/report.hpp"

namespace vkrope::conformance {

/// A check has ended, after `done` others on this device. `silent` for one that was not run. It may
/// add to the report. False ends the run.
using RunListener = std::function<bool(const Check&, CheckReport&, std::size_t done, bool silent)>;

/// Runs all checks of all groups, on the device that `device` says. Throws tools::Failure if no
/// check can run because the device refuses to be opened, which is not a fault of its driver.
///
/// command  starts this program again
DeviceReport run_device(const std::vector<std::string>& command, const FoundDevice& device,
                        const std::vector<Group>& groups, const Watch& watch,
                        const RunListener& listener);

}  // namespace vkrope::conformance
