// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "injection.hpp"

namespace vkrope::test {

// The table is from the attributes successcodes and errorcodes in the Vulkan registry (vk.xml of
// 1.3.239), with the codes that its extensions add, and VK_ERROR_UNKNOWN, which any entry point may
// return.
std::vector<VkResult> result_codes(const std::string& entry, bool fills_array) {
    constexpr VkResult host = VK_ERROR_OUT_OF_HOST_MEMORY, device = VK_ERROR_OUT_OF_DEVICE_MEMORY,
                       replay = VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS_KHR;
    static const std::set<std::string> of_memory_alone = {
        "vkAllocateCommandBuffers",
        "vkBeginCommandBuffer",
        "vkBindImageMemory",
        "vkBindImageMemory2",
        "vkCreateCommandPool",
        "vkCreateDescriptorSetLayout",
        "vkCreateFence",
        "vkCreatePipelineCache",
        "vkCreatePipelineLayout",
        "vkCreateQueryPool",
        "vkEndCommandBuffer",
        "vkFlushMappedMemoryRanges",
        "vkInvalidateMappedMemoryRanges",
        "vkSetDebugUtilsObjectNameEXT",
    };
    static const std::map<std::string, std::vector<VkResult>> table = {
        {"vkAllocateDescriptorSets",
         {host, device, VK_ERROR_FRAGMENTED_POOL, VK_ERROR_OUT_OF_POOL_MEMORY}},
        {"vkAllocateMemory", {host, device, VK_ERROR_INVALID_EXTERNAL_HANDLE, replay}},
        {"vkBindBufferMemory", {host, device, replay}},
        {"vkBindBufferMemory2", {host, device, replay}},
        {"vkCreateBuffer", {host, device, replay}},
        {"vkCreateComputePipelines",
         {host, device, VK_PIPELINE_COMPILE_REQUIRED_EXT, VK_ERROR_INVALID_SHADER_NV}},
        {"vkCreateDebugUtilsMessengerEXT", {host}},
        {"vkCreateDescriptorPool", {host, device, VK_ERROR_FRAGMENTATION_EXT}},
        {"vkCreateDevice",
         {host, device, VK_ERROR_INITIALIZATION_FAILED, VK_ERROR_EXTENSION_NOT_PRESENT,
          VK_ERROR_FEATURE_NOT_PRESENT, VK_ERROR_TOO_MANY_OBJECTS, VK_ERROR_DEVICE_LOST}},
        {"vkCreateImage", {host, device, VK_ERROR_COMPRESSION_EXHAUSTED_EXT, replay}},
        {"vkCreateImageView", {host, device, replay}},
        {"vkCreateInstance",
         {host, device, VK_ERROR_INITIALIZATION_FAILED, VK_ERROR_LAYER_NOT_PRESENT,
          VK_ERROR_EXTENSION_NOT_PRESENT, VK_ERROR_INCOMPATIBLE_DRIVER}},
        {"vkCreateShaderModule", {host, device, VK_ERROR_INVALID_SHADER_NV}},
        {"vkEnumerateDeviceExtensionProperties",
         {VK_INCOMPLETE, host, device, VK_ERROR_LAYER_NOT_PRESENT}},
        {"vkEnumerateInstanceExtensionProperties",
         {VK_INCOMPLETE, host, device, VK_ERROR_LAYER_NOT_PRESENT}},
        {"vkEnumerateInstanceVersion", {host}},
        {"vkEnumeratePhysicalDevices",
         {VK_INCOMPLETE, host, device, VK_ERROR_INITIALIZATION_FAILED}},
        {"vkGetPipelineCacheData", {VK_INCOMPLETE, host, device}},
        {"vkGetQueryPoolResults", {VK_NOT_READY, host, device, VK_ERROR_DEVICE_LOST}},
        {"vkMapMemory", {host, device, VK_ERROR_MEMORY_MAP_FAILED}},
        {"vkQueueSubmit", {host, device, VK_ERROR_DEVICE_LOST}},
        {"vkResetCommandPool", {device}},
        {"vkResetFences", {device}},
        {"vkWaitForFences", {VK_TIMEOUT, host, device, VK_ERROR_DEVICE_LOST}},
    };
    const auto found = table.find(entry);
    REQUIRE_MESSAGE((found != table.end() || of_memory_alone.contains(entry)),
                    entry << " is in neither table");
    std::vector<VkResult> codes = found == table.end() ? std::vector{host, device} : found->second;
    std::erase_if(codes, [&](VkResult code) { return code == VK_INCOMPLETE && !fills_array; });
    codes.push_back(VK_ERROR_UNKNOWN);
    return codes;
}

}  // namespace vkrope::test
