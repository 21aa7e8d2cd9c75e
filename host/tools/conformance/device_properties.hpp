// SPDX-License-Identifier: MIT
// Queries properties of a device that vkrope::DeviceInfo does not contain.
#pragma once

#include "vkrope/vkrope.hpp"

namespace vkrope::conformance {

// Fills a structure that extends VkPhysicalDeviceProperties2, or leaves the structure unchanged if
// the instance has no such function.
void add_properties(const DeviceRef& device, void* structure);

}  // namespace vkrope::conformance
