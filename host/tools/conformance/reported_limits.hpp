// SPDX-License-Identifier: MIT
// A device that reports less than it has, for checks of what the library makes of it.
#pragma once

#include "vkrope/runtime.hpp"

namespace vkrope::conformance {

/// 0: what the device has.
struct ReportedLimits {
    std::uint32_t storage_buffers = 0, storage_range = 0, workgroups_x = 0, workgroups_y = 0,
                  workgroups_z = 0;
    bool operator==(const ReportedLimits&) const = default;
};

/// `device` as create() sees it then. For create() right after: the limits stand in one place.
DeviceRef reporting(const Device& device, const ReportedLimits& limits);

}  // namespace vkrope::conformance
