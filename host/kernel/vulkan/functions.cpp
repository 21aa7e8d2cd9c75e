// SPDX-License-Identifier: MIT
#include "kernel/vulkan/functions.hpp"

#include "status.hpp"

namespace vkrope {

namespace {

// Fills one entry; the first one that is missing decides the status.
template <class Function, class Find>
void load_one(Function& entry, const char* name, const Find& find, Status& status) {
    entry = reinterpret_cast<Function>(find(name));
    if (!entry && status)
        status = error(VKROPE_ERROR_INVALID_ARGUMENT,
                       "get_instance_proc_addr: it returned null for %s", name);
}

}  // namespace

Result<InstanceFunctions> InstanceFunctions::load(
    VkInstance instance, PFN_vkGetInstanceProcAddr get_instance_proc_addr) {
    Result<InstanceFunctions> loaded;
    const auto find = [&](const char* name) { return get_instance_proc_addr(instance, name); };
#define VKROPE_LOAD(name) load_one(loaded.value.name, #name, find, loaded.status);
    VKROPE_INSTANCE_FUNCTIONS(VKROPE_LOAD)
    return loaded;
}

Result<DeviceFunctions> DeviceFunctions::load(const DeviceRef& device,
                                              const InstanceFunctions& instance) {
    Result<DeviceFunctions> loaded;
    bool or_of_instance = false;
    const auto find = [&](const char* name) {
        const PFN_vkVoidFunction of_device = instance.vkGetDeviceProcAddr(device.device, name);
        return of_device || !or_of_instance ? of_device
                                            : device.get_instance_proc_addr(device.instance, name);
    };
    VKROPE_DEVICE_FUNCTIONS(VKROPE_LOAD)
    if (device.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR)
        VKROPE_LOAD(vkCmdPushDescriptorSetKHR)
    if (device.enabled & VKROPE_DEVICE_FEATURE_DEBUG_UTILS) {
        or_of_instance = true;  // VK_EXT_debug_utils is an instance extension: a device need not
                                // know its functions
        VKROPE_LOAD(vkCmdBeginDebugUtilsLabelEXT)
        VKROPE_LOAD(vkCmdEndDebugUtilsLabelEXT)
        VKROPE_LOAD(vkSetDebugUtilsObjectNameEXT)
    }
#undef VKROPE_LOAD
    return loaded;
}

}  // namespace vkrope
