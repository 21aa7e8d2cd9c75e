// SPDX-License-Identifier: MIT
// The devices of this machine, found by processes of their own: a driver that crashes as it is
// loaded takes no other driver with it.
#pragma once

#include <string>
#include <vector>

#include "cli/device_text.hpp"
#include "conformance/isolation/child.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::conformance {

struct FoundDevice {
    tools::KnownDevice info;
    std::string select;    ///< for DeviceOptions::select
    std::string manifest;  ///< of its driver, which alone is then loaded; empty: all drivers are
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

/// Lists all devices. If that ends the process, lists the devices of each driver separately. Throws
/// tools::Failure.
///
/// command  starts this program again
FoundDevices find_devices(const std::vector<std::string>& command, const Watch& watch);

}  // namespace vkrope::conformance
