// SPDX-License-Identifier: MIT
#include "conformance/reported_limits.hpp"

#include <cstring>

namespace vkrope::conformance {
namespace {

PFN_vkGetInstanceProcAddr real_get = nullptr;
PFN_vkGetPhysicalDeviceProperties real_properties = nullptr;
ReportedLimits reported;

VKAPI_ATTR void VKAPI_CALL properties_with_limits(VkPhysicalDevice physical,
                                                  VkPhysicalDeviceProperties* properties) {
    real_properties(physical, properties);
    const auto report = [](std::uint32_t given, std::uint32_t& limit) {
        if (given != 0) limit = given;
    };
    VkPhysicalDeviceLimits& limits = properties->limits;
    report(reported.vendor, properties->vendorID);
    report(reported.storage_buffers, limits.maxPerStageDescriptorStorageBuffers);
    report(reported.storage_range, limits.maxStorageBufferRange);
    report(reported.workgroups_x, limits.maxComputeWorkGroupCount[0]);
    report(reported.workgroups_y, limits.maxComputeWorkGroupCount[1]);
    report(reported.workgroups_z, limits.maxComputeWorkGroupCount[2]);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get(VkInstance instance, const char* name) {
    const PFN_vkVoidFunction found = real_get(instance, name);
    if (std::strcmp(name, "vkGetPhysicalDeviceProperties") != 0) return found;
    real_properties = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(properties_with_limits);
}

}  // namespace

DeviceRef reporting(const Device& device, const ReportedLimits& limits) {
    DeviceRef ref = device.ref();
    if (limits.no_push_descriptors)
        ref.enabled &= ~std::uint32_t{VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR};
    if (limits == ReportedLimits{}) return ref;
    real_get = ref.get_instance_proc_addr;
    reported = limits;
    ref.get_instance_proc_addr = get;
    return ref;
}

}  // namespace vkrope::conformance
