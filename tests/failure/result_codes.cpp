// SPDX-License-Identifier: MIT
#include "result_codes.hpp"

#include <map>

namespace vkrope::test {

std::vector<VkResult> result_codes(const std::string& entry, bool fills_array) {
    // From vk.xml of Vulkan 1.3.239, with the codes that its extensions add.
    static const std::map<std::string, std::vector<VkResult>> table = {
        {"vkAllocateCommandBuffers", {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkAllocateDescriptorSets",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_FRAGMENTED_POOL,
          VK_ERROR_OUT_OF_POOL_MEMORY}},
        {"vkAllocateMemory",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
          VK_ERROR_INVALID_EXTERNAL_HANDLE, VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS_KHR}},
        {"vkBeginCommandBuffer", {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkBindBufferMemory",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
          VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS_KHR}},
        {"vkBindBufferMemory2",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
          VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS_KHR}},
        {"vkBindImageMemory", {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkBindImageMemory2", {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkCreateBuffer",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
          VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS_KHR}},
        {"vkCreateCommandPool", {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkCreateComputePipelines",
         {VK_PIPELINE_COMPILE_REQUIRED_EXT, VK_ERROR_OUT_OF_HOST_MEMORY,
          VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_INVALID_SHADER_NV}},
        {"vkCreateDebugUtilsMessengerEXT", {VK_ERROR_OUT_OF_HOST_MEMORY}},
        {"vkCreateDescriptorPool",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_FRAGMENTATION_EXT}},
        {"vkCreateDescriptorSetLayout",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkCreateDevice",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
          VK_ERROR_INITIALIZATION_FAILED, VK_ERROR_EXTENSION_NOT_PRESENT,
          VK_ERROR_FEATURE_NOT_PRESENT, VK_ERROR_TOO_MANY_OBJECTS, VK_ERROR_DEVICE_LOST}},
        {"vkCreateFence", {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkCreateImage",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
          VK_ERROR_COMPRESSION_EXHAUSTED_EXT, VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS_KHR}},
        {"vkCreateImageView",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
          VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS_KHR}},
        {"vkCreateInstance",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
          VK_ERROR_INITIALIZATION_FAILED, VK_ERROR_LAYER_NOT_PRESENT,
          VK_ERROR_EXTENSION_NOT_PRESENT, VK_ERROR_INCOMPATIBLE_DRIVER}},
        {"vkCreatePipelineCache", {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkCreatePipelineLayout", {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkCreateQueryPool", {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkCreateShaderModule",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_INVALID_SHADER_NV}},
        {"vkEndCommandBuffer", {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkEnumerateDeviceExtensionProperties",
         {VK_INCOMPLETE, VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
          VK_ERROR_LAYER_NOT_PRESENT}},
        {"vkEnumerateInstanceExtensionProperties",
         {VK_INCOMPLETE, VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
          VK_ERROR_LAYER_NOT_PRESENT}},
        {"vkEnumerateInstanceVersion", {VK_ERROR_OUT_OF_HOST_MEMORY}},
        {"vkEnumeratePhysicalDevices",
         {VK_INCOMPLETE, VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
          VK_ERROR_INITIALIZATION_FAILED}},
        {"vkFlushMappedMemoryRanges", {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkGetPipelineCacheData",
         {VK_INCOMPLETE, VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkGetQueryPoolResults",
         {VK_NOT_READY, VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
          VK_ERROR_DEVICE_LOST}},
        {"vkInvalidateMappedMemoryRanges",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkMapMemory",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_MEMORY_MAP_FAILED}},
        {"vkQueueSubmit",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST}},
        {"vkResetCommandPool", {VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkResetFences", {VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkSetDebugUtilsObjectNameEXT",
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY}},
        {"vkWaitForFences",
         {VK_TIMEOUT, VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
          VK_ERROR_DEVICE_LOST}},
    };
    const auto found = table.find(entry);
    if (found == table.end()) return {};
    std::vector<VkResult> codes = found->second;
    std::erase_if(codes, [&](VkResult code) { return code == VK_INCOMPLETE && !fills_array; });
    codes.push_back(VK_ERROR_UNKNOWN);
    return codes;
}

}  // namespace vkrope::test
