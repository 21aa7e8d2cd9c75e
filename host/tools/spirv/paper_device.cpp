// SPDX-License-Identifier: MIT
#include "spirv/paper_device.hpp"

#include <cstring>
#include <utility>

#include "interface.h"
#include "kernel/vulkan/functions.hpp"

namespace vkrope::tools {
namespace {

std::vector<std::vector<std::uint32_t>>& modules() {
    static std::vector<std::vector<std::uint32_t>> all;
    return all;
}

template <class Handle>
Handle any_handle() noexcept {
    return reinterpret_cast<Handle>(std::uintptr_t{1});
}

VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice,
                                          VkPhysicalDeviceProperties* properties) {
    *properties = {};
    properties->apiVersion = VK_API_VERSION_1_1;
    properties->deviceType = VK_PHYSICAL_DEVICE_TYPE_OTHER;
    VkPhysicalDeviceLimits& limits = properties->limits;
    limits.maxComputeWorkGroupInvocations = 128;
    limits.maxComputeWorkGroupSize[0] = 128;
    for (std::uint32_t& count : limits.maxComputeWorkGroupCount) count = 65535;
    limits.minStorageBufferOffsetAlignment = limits.minUniformBufferOffsetAlignment = 256;
    limits.maxStorageBufferRange = 1u << 27;
    limits.maxUniformBufferRange = 16384;
    limits.maxPerStageDescriptorStorageBuffers = shader::binding_count;
}

VKAPI_ATTR void VKAPI_CALL get_properties_2(VkPhysicalDevice device,
                                            VkPhysicalDeviceProperties2* properties) {
    get_properties(device, &properties->properties);
}

VKAPI_ATTR VkResult VKAPI_CALL create_module(VkDevice, const VkShaderModuleCreateInfo* info,
                                             const VkAllocationCallbacks*, VkShaderModule* module) {
    modules().emplace_back(info->pCode, info->pCode + info->codeSize / sizeof *info->pCode);
    *module = any_handle<VkShaderModule>();
    return VK_SUCCESS;
}

template <class Handle, class Info>
VKAPI_ATTR VkResult VKAPI_CALL create_object(VkDevice, const Info*, const VkAllocationCallbacks*,
                                             Handle* made) {
    *made = any_handle<Handle>();
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice, VkPipelineCache, std::uint32_t count,
                                                const VkComputePipelineCreateInfo*,
                                                const VkAllocationCallbacks*, VkPipeline* made) {
    for (std::uint32_t i = 0; i < count; ++i) made[i] = any_handle<VkPipeline>();
    return VK_SUCCESS;
}

template <class Handle>
VKAPI_ATTR void VKAPI_CALL destroy_object(VkDevice, Handle, const VkAllocationCallbacks*) {}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find(VkInstance, const char* name);
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_of_device(VkDevice, const char* name) {
    return find(VK_NULL_HANDLE, name);
}

// Stands for every function that create() loads and does not call.
VKAPI_ATTR void VKAPI_CALL never_called() {}

template <class Function>
PFN_vkVoidFunction entry(Function function) noexcept {
    return reinterpret_cast<PFN_vkVoidFunction>(function);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find(VkInstance, const char* name) {
    const struct {
        const char* name;
        PFN_vkVoidFunction function;
    } table[] = {
        {"vkGetDeviceProcAddr", entry(find_of_device)},
        {"vkGetPhysicalDeviceProperties", entry(get_properties)},
        {"vkGetPhysicalDeviceProperties2", entry(get_properties_2)},
        {"vkCreateShaderModule", entry(create_module)},
        {"vkCreateDescriptorSetLayout",
         entry(create_object<VkDescriptorSetLayout, VkDescriptorSetLayoutCreateInfo>)},
        {"vkCreatePipelineLayout",
         entry(create_object<VkPipelineLayout, VkPipelineLayoutCreateInfo>)},
        {"vkCreateComputePipelines", entry(create_pipelines)},
        {"vkDestroyShaderModule", entry(destroy_object<VkShaderModule>)},
        {"vkDestroyDescriptorSetLayout", entry(destroy_object<VkDescriptorSetLayout>)},
        {"vkDestroyPipelineLayout", entry(destroy_object<VkPipelineLayout>)},
        {"vkDestroyPipeline", entry(destroy_object<VkPipeline>)},
    };
    for (const auto& one : table) {
        if (std::strcmp(one.name, name) == 0) return one.function;
    }
    return entry(never_called);
}

}  // namespace

DeviceRef paper_device() noexcept {
    DeviceRef device;
    device.instance = any_handle<VkInstance>();
    device.physical = any_handle<VkPhysicalDevice>();
    device.device = any_handle<VkDevice>();
    device.get_instance_proc_addr = find;
    // Without an arena, so that each pipeline's layout has its own bindings alone.
    device.enabled = push_descriptor;
    return device;
}

std::vector<std::vector<std::uint32_t>> take_modules() {
    return std::exchange(modules(), {});
}

}  // namespace vkrope::tools
