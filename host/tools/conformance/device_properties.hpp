// SPDX-License-Identifier: MIT
// What a device reports beyond vkrope::DeviceInfo.
#pragma once

#include "vkrope/vkrope.hpp"

namespace vkrope::conformance {

/// Fills a structure that extends VkPhysicalDeviceProperties2; leaves it as it is if the instance
/// has no such function.
void add_properties(const DeviceRef& device, void* structure);

}  // namespace vkrope::conformance
