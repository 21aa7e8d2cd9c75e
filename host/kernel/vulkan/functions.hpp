// SPDX-License-Identifier: MIT
// Declares the Vulkan entry points that the kernel tier calls, in a private table filled through
// the caller's vkGetInstanceProcAddr. No vk* symbol is linked or exported, so the library works
// with any loader.
#pragma once

#include "vkrope/vkrope.hpp"

namespace vkrope {

// Result of vkrope_get_boundary. Outputs are also read: the counter and words that hold channels of
// two rows are changed atomically.
inline constexpr Boundary call_boundary = {
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_UNIFORM_READ_BIT,
    VK_ACCESS_SHADER_READ_BIT, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
    VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};

#define VKROPE_INSTANCE_FUNCTIONS(X)        \
    X(vkEnumerateDeviceExtensionProperties) \
    X(vkGetPhysicalDeviceFeatures2)         \
    X(vkGetPhysicalDeviceProperties)        \
    X(vkGetPhysicalDeviceProperties2)       \
    X(vkGetDeviceProcAddr)

#define VKROPE_DEVICE_FUNCTIONS(X)  \
    X(vkAllocateDescriptorSets)     \
    X(vkCmdBindDescriptorSets)      \
    X(vkCmdBindPipeline)            \
    X(vkCmdDispatch)                \
    X(vkCmdPipelineBarrier)         \
    X(vkCmdPushConstants)           \
    X(vkCreateComputePipelines)     \
    X(vkCreateDescriptorPool)       \
    X(vkCreateDescriptorSetLayout)  \
    X(vkCreatePipelineLayout)       \
    X(vkCreateShaderModule)         \
    X(vkDestroyDescriptorPool)      \
    X(vkDestroyDescriptorSetLayout) \
    X(vkDestroyPipeline)            \
    X(vkDestroyPipelineLayout)      \
    X(vkDestroyShaderModule)        \
    X(vkUpdateDescriptorSets)

#define VKROPE_DECLARE(name) PFN_##name name = nullptr;

struct InstanceFunctions {
    VKROPE_INSTANCE_FUNCTIONS(VKROPE_DECLARE)

    // Loads the functions. If one is missing, returns invalid_argument, which names it.
    static Result<InstanceFunctions> load(VkInstance instance,
                                          PFN_vkGetInstanceProcAddr get_instance_proc_addr);
};

struct DeviceFunctions {
    VKROPE_DEVICE_FUNCTIONS(VKROPE_DECLARE)
    PFN_vkCmdPushDescriptorSetKHR vkCmdPushDescriptorSetKHR =
        nullptr;  // null unless push_descriptor is enabled
    // Null unless debug_utils is enabled.
    PFN_vkCmdBeginDebugUtilsLabelEXT vkCmdBeginDebugUtilsLabelEXT = nullptr;
    PFN_vkCmdEndDebugUtilsLabelEXT vkCmdEndDebugUtilsLabelEXT = nullptr;
    PFN_vkSetDebugUtilsObjectNameEXT vkSetDebugUtilsObjectNameEXT = nullptr;

    static Result<DeviceFunctions> load(const DeviceRef& device, const InstanceFunctions& instance);
};

#undef VKROPE_DECLARE

}  // namespace vkrope
