// SPDX-License-Identifier: MIT
// The devices of this machine, found by processes of their own: a driver that crashes as it is
// loaded takes no other driver with it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/isolation/child.hpp"
#include "vkrope/runtime.hpp"

namespace vkrope::conformance {

struct FoundDevice {
    DeviceInfo info;
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
/// printed  receives what drivers and layers print
FoundDevices find_devices(const DeviceOptions& options, ChildLimits limits,
                          const std::function<void(std::string_view)>& printed);

/// For a child, before anything of Vulkan: loads this driver only, unless `manifest` is empty.
void load_only(const std::string& manifest);

}  // namespace vkrope::conformance
