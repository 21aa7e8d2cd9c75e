/* SPDX-License-Identifier: MIT */
/* What the engine needs of Vulkan. The test makes vulkan.rs from it, as the crate's declarations
   are made. */
#include <vulkan/vulkan_core.h>

typedef struct functions {
    PFN_vkAllocateCommandBuffers vkAllocateCommandBuffers;
    PFN_vkAllocateMemory vkAllocateMemory;
    PFN_vkBeginCommandBuffer vkBeginCommandBuffer;
    PFN_vkBindBufferMemory vkBindBufferMemory;
    PFN_vkCmdPipelineBarrier vkCmdPipelineBarrier;
    PFN_vkCreateBuffer vkCreateBuffer;
    PFN_vkCreateCommandPool vkCreateCommandPool;
    PFN_vkCreateDevice vkCreateDevice;
    PFN_vkDestroyBuffer vkDestroyBuffer;
    PFN_vkDestroyCommandPool vkDestroyCommandPool;
    PFN_vkDestroyDevice vkDestroyDevice;
    PFN_vkDestroyInstance vkDestroyInstance;
    PFN_vkEndCommandBuffer vkEndCommandBuffer;
    PFN_vkEnumeratePhysicalDevices vkEnumeratePhysicalDevices;
    PFN_vkFreeMemory vkFreeMemory;
    PFN_vkGetBufferMemoryRequirements vkGetBufferMemoryRequirements;
    PFN_vkGetDeviceQueue vkGetDeviceQueue;
    PFN_vkGetPhysicalDeviceMemoryProperties vkGetPhysicalDeviceMemoryProperties;
    PFN_vkGetPhysicalDeviceQueueFamilyProperties vkGetPhysicalDeviceQueueFamilyProperties;
    PFN_vkMapMemory vkMapMemory;
    PFN_vkQueueSubmit vkQueueSubmit;
    PFN_vkQueueWaitIdle vkQueueWaitIdle;
} functions;

typedef struct others {
    PFN_vkCreateInstance create_instance;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr;
    VkAccessFlagBits access;
    VkBufferUsageFlagBits usage;
    VkMemoryPropertyFlagBits memory;
    VkPipelineStageFlagBits stage;
    VkQueueFlagBits queue;
} others;
