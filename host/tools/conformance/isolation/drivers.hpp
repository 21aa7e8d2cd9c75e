// SPDX-License-Identifier: MIT
// Finds the devices of this machine in separate processes, so that a driver that crashes when it is
// loaded does not hide the devices of other drivers.
#pragma once

#include <string>
#include <vector>

#include "cli/device_text.hpp"
#include "conformance/isolation/child.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::conformance {

struct FoundDevice {
    tools::KnownDevice info;
    std::string select;    ///< value of DeviceOptions::select
    std::string manifest;  ///< of the only driver to load; empty: all drivers are loaded
};

/// A driver that ended the process that loaded it.
struct FailedDriver {
    std::string name;  ///< the file name of its manifest
    std::string sentence;
};

struct FoundDevices {
    std::vector<FoundDevice> devices;
    std::vector<FailedDriver> failed;
};

/// Lists all devices. If that ends the listing process, lists the devices of each driver
/// separately. Throws tools::Failure.
///
/// command  starts this program again
FoundDevices find_devices(const std::vector<std::string>& command, const Watch& watch);

}  // namespace vkrope::conformance
