// SPDX-License-Identifier: MIT
#include "kernel/vulkan/functions.hpp"

#include "base/status.hpp"

namespace vkrope {

namespace {

// Looks up entry points by name. The status names the first missing entry point.
struct Loader {
    VkInstance instance;
    PFN_vkGetInstanceProcAddr of_instance;
    VkDevice device = VK_NULL_HANDLE;
    PFN_vkGetDeviceProcAddr of_device = nullptr;
    bool or_of_instance = false;
    Status& status;

    PFN_vkVoidFunction operator()(const char* name) const noexcept {
        PFN_vkVoidFunction found = of_device ? of_device(device, name) : nullptr;
        if (!found && or_of_instance) found = of_instance(instance, name);
        if (!found && status)
            status = error(VKROPE_ERROR_INVALID_ARGUMENT,
                           "get_instance_proc_addr: it returned null for %s", name);
        return found;
    }
};

}  // namespace

#define VKROPE_LOAD(name) loaded->name = reinterpret_cast<PFN_##name>(find(#name));

Result<InstanceFunctions> InstanceFunctions::load(
    VkInstance instance, PFN_vkGetInstanceProcAddr get_instance_proc_addr) {
    Result<InstanceFunctions> loaded;
    const Loader find = {instance, get_instance_proc_addr, VK_NULL_HANDLE, nullptr,
                         true,     loaded.status};
    VKROPE_INSTANCE_FUNCTIONS(VKROPE_LOAD)
    return loaded;
}

Result<DeviceFunctions> DeviceFunctions::load(const DeviceRef& device,
                                              const InstanceFunctions& instance) {
    Result<DeviceFunctions> loaded;
    Loader find = {device.instance, device.get_instance_proc_addr,
                   device.device,   instance.vkGetDeviceProcAddr,
                   false,           loaded.status};
    VKROPE_DEVICE_FUNCTIONS(VKROPE_LOAD)
    if (device.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR)
        VKROPE_LOAD(vkCmdPushDescriptorSetKHR)
    if (device.enabled & VKROPE_DEVICE_FEATURE_DEBUG_UTILS) {
        find.or_of_instance = true;  // VK_EXT_debug_utils is an instance extension, so a device
                                     // need not know its functions
        VKROPE_LOAD(vkCmdBeginDebugUtilsLabelEXT)
        VKROPE_LOAD(vkCmdEndDebugUtilsLabelEXT)
        VKROPE_LOAD(vkSetDebugUtilsObjectNameEXT)
    }
#undef VKROPE_LOAD
    return loaded;
}

}  // namespace vkrope
