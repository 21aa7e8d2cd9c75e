// SPDX-License-Identifier: MIT
#include "conformance/device_properties.hpp"

namespace vkrope::conformance {

void add_properties(const DeviceRef& device, void* structure) {
    const auto get = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties2>(
        device.get_instance_proc_addr(device.instance, "vkGetPhysicalDeviceProperties2"));
    if (get == nullptr) return;
    VkPhysicalDeviceProperties2 properties = {};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties.pNext = structure;
    get(device.physical, &properties);
}

}  // namespace vkrope::conformance
