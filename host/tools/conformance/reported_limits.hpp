// SPDX-License-Identifier: MIT
// Makes a device report lower limits than it has, for checks of how the library splits calls.
#pragma once

#include "vkrope/vkrope.hpp"

namespace vkrope::conformance {

/// Limits to report; 0 stands for the limit of the device.
struct ReportedLimits {
    std::uint32_t storage_buffers = 0, storage_range = 0, workgroups_x = 0, workgroups_y = 0,
                  workgroups_z = 0;
    bool no_push_descriptors = false;
    bool operator==(const ReportedLimits&) const = default;
};

/// Returns `device` with these limits. To be used by a call of create() directly afterwards,
/// because the limits are stored in a single static variable.
DeviceRef reporting(const Device& device, const ReportedLimits& limits);

}  // namespace vkrope::conformance
