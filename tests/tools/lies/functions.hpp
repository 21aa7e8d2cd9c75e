// SPDX-License-Identifier: MIT
// The Vulkan functions that a lie may replace.
#pragma once

#include <vulkan/vulkan.h>

namespace vkrope::lies {

#define VKROPE_LIES_INSTANCE_FUNCTIONS(X)  \
    X(vkCreateDevice)                      \
    X(vkGetPhysicalDeviceMemoryProperties) \
    X(vkGetPhysicalDeviceProperties)       \
    X(vkGetPhysicalDeviceProperties2)

#define VKROPE_LIES_DEVICE_FUNCTIONS(X) \
    X(vkAllocateMemory)                 \
    X(vkBeginCommandBuffer)             \
    X(vkCmdBindDescriptorSets)          \
    X(vkCmdBindPipeline)                \
    X(vkCmdCopyBufferToImage)           \
    X(vkCmdDispatch)                    \
    X(vkCmdFillBuffer)                  \
    X(vkCmdPipelineBarrier)             \
    X(vkCmdPushConstants)               \
    X(vkCmdPushDescriptorSetKHR)        \
    X(vkCreateComputePipelines)         \
    X(vkCreateShaderModule)             \
    X(vkEndCommandBuffer)               \
    X(vkGetQueryPoolResults)            \
    X(vkMapMemory)                      \
    X(vkQueueSubmit)                    \
    X(vkUnmapMemory)                    \
    X(vkUpdateDescriptorSets)           \
    X(vkWaitForFences)

struct Functions {
#define VKROPE_LIES_DECLARE(name) PFN_##name name = nullptr;
    VKROPE_LIES_INSTANCE_FUNCTIONS(VKROPE_LIES_DECLARE)
    VKROPE_LIES_DEVICE_FUNCTIONS(VKROPE_LIES_DECLARE)
#undef VKROPE_LIES_DECLARE
};

/// Functions of the driver below, for a lie to call. There is one device at a time, as in the
/// programs that this layer tests.
extern Functions next;
/// That device, once it is made.
extern VkPhysicalDevice physical_device;

}  // namespace vkrope::lies
