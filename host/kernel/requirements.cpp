// SPDX-License-Identifier: MIT
// Implements requirements(): checks a device and lists the extensions that an engine should enable.
#include <cstring>
#include <memory>
#include <new>

#include "base/status.hpp"
#include "kernel/vulkan/functions.hpp"

namespace vkrope {

namespace {

constexpr std::uint32_t lowest_api_version = VK_API_VERSION_1_1;

Result<Requirements> requirements_of(VkInstance instance, VkPhysicalDevice physical,
                                     PFN_vkGetInstanceProcAddr get_instance_proc_addr) {
    if (!instance || !physical || !get_instance_proc_addr) {
        return {error(VKROPE_ERROR_INVALID_ARGUMENT,
                      "instance, physical and get_instance_proc_addr must not be null"),
                {}};
    }
    const Result<InstanceFunctions> vk = InstanceFunctions::load(instance, get_instance_proc_addr);
    if (!vk) return {vk.status, {}};
    Requirements needs;
    needs.api_version = lowest_api_version;
    VkPhysicalDeviceProperties properties = {};
    vk->vkGetPhysicalDeviceProperties(physical, &properties);
    if (properties.apiVersion < lowest_api_version) {
        return {error(VKROPE_ERROR_NOT_SUPPORTED, "%s offers Vulkan %u.%u: vkrope needs 1.1",
                      properties.deviceName, VK_API_VERSION_MAJOR(properties.apiVersion),
                      VK_API_VERSION_MINOR(properties.apiVersion)),
                {}};
    }
    std::uint32_t count = 0;
    VkResult result = vk->vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr);
    if (result != VK_SUCCESS)
        return {vulkan_error(result, "vkEnumerateDeviceExtensionProperties"), {}};
    const std::unique_ptr<VkExtensionProperties[]> offered(new (std::nothrow)
                                                               VkExtensionProperties[count]);
    if (!offered)
        return {error(VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                      "not enough memory for the names of %u extensions", count),
                {}};
    result = vk->vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, offered.get());
    if (result != VK_SUCCESS && result != VK_INCOMPLETE)
        return {vulkan_error(result, "vkEnumerateDeviceExtensionProperties"), {}};
    const auto add_if_offered = [&](const char* name) {
        for (std::uint32_t i = 0; i < count; ++i) {
            if (std::strcmp(offered[i].extensionName, name) != 0) continue;
            needs.optional_extensions[needs.optional_extension_count++] = name;
            return true;
        }
        return false;
    };
    if (add_if_offered(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME))
        needs.enabled |= VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR;
    if (add_if_offered(VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME))
        needs.enabled |= VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS;
    const bool half_extension = add_if_offered(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
    const bool core_1_2 = properties.apiVersion >= VK_API_VERSION_1_2;
    if (core_1_2) needs.enabled_in_core |= VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS;
    if (half_extension || core_1_2) {
        VkPhysicalDeviceShaderFloat16Int8Features half = {};
        half.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
        VkPhysicalDeviceFeatures2 features = {};
        features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
        features.pNext = &half;
        vk->vkGetPhysicalDeviceFeatures2(physical, &features);
        needs.offers_shader_float16 = half_extension && half.shaderFloat16;
        if (core_1_2 && half.shaderFloat16)
            needs.enabled_in_core |= VKROPE_DEVICE_FEATURE_SHADER_FLOAT16;
    }
    return {{}, needs};
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_get_requirements(VkInstance instance, VkPhysicalDevice physical,
                                      PFN_vkGetInstanceProcAddr get_instance_proc_addr,
                                      vkrope_requirements* requirements, vkrope_error* failure) {
    return answer(
        failure,
        [&] {
            return hand_out(requirements_of(instance, physical, get_instance_proc_addr),
                            requirements, "requirements");
        });
}
