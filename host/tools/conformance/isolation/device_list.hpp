// SPDX-License-Identifier: MIT
// Lists the devices of this machine in a separate process, because a driver may crash when it is
// loaded.
#pragma once

#include <string>
#include <vector>

#include "cli/device_text.hpp"
#include "conformance/isolation/child.hpp"

namespace vkrope::conformance {

struct FoundDevice {
    tools::KnownDevice info;
    std::string select;  // value of DeviceOptions::select
};

// Throws tools::Failure, also if a driver ends the process.
//
// command  starts this program again
std::vector<FoundDevice> find_devices(const std::vector<std::string>& command, const Watch& watch);

}  // namespace vkrope::conformance
