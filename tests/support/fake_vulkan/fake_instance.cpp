// SPDX-License-Identifier: MIT
// Implements instance and devices, with the properties that the fake reports.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "entry_points.hpp"

namespace vkrope::test {

namespace {

std::vector<VkExtensionProperties> extensions(
    std::initializer_list<std::pair<bool, const char*>> offered) {
    std::vector<VkExtensionProperties> all;
    for (const auto& [there, name] : offered) {
        if (!there) continue;
        VkExtensionProperties properties = {};
        std::snprintf(properties.extensionName, sizeof properties.extensionName, "%s", name);
        properties.specVersion = 1;
        all.push_back(properties);
    }
    return all;
}

std::vector<VkExtensionProperties> instance_extensions() {
    return extensions({{true, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME},
                       {fake().config.debug_utils, VK_EXT_DEBUG_UTILS_EXTENSION_NAME}});
}

// Extensions of VK_LAYER_KHRONOS_validation, the only possible layer.
std::vector<VkExtensionProperties> layer_extensions() {
    return extensions({{true, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME},
                       {true, VK_EXT_DEBUG_UTILS_EXTENSION_NAME}});
}

bool has_layer(const std::string& name) {
    return fake().config.validation && name == "VK_LAYER_KHRONOS_validation";
}

std::vector<VkExtensionProperties> device_extensions() {
    return extensions(
        {{true, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME},
         {fake().config.push_descriptors, VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME},
         {fake().config.float_controls.has_value(), VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME},
         {fake().config.float16, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME},
         {true, "VK_KHR_portability_subset"}});
}

std::vector<std::string> names(const char* const* list, std::uint32_t count) {
    return std::vector<std::string>(list, list + count);
}

bool offers(const std::vector<VkExtensionProperties>& offered,
            const std::vector<std::string>& wanted) {
    return std::all_of(
        wanted.begin(), wanted.end(),
        [&](const std::string& name) {
            return std::any_of(
                offered.begin(), offered.end(),
                [&](const auto& one) { return name == one.extensionName; });
        });
}

bool contains(const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

VKAPI_ATTR VkResult VKAPI_CALL enumerate_instance_extensions(const char* layer,
                                                             std::uint32_t* count,
                                                             VkExtensionProperties* items) {
    const Unobserved unobserved;
    const VkResult result = fake().enter_fallible("vkEnumerateInstanceExtensionProperties",
                                                  items != nullptr);
    if (layer && !has_layer(layer)) return VK_ERROR_LAYER_NOT_PRESENT;
    return enumerate(result, layer ? layer_extensions() : instance_extensions(), count, items);
}

VKAPI_ATTR VkResult VKAPI_CALL enumerate_version(std::uint32_t* version) {
    const Unobserved unobserved;
    *version = VK_API_VERSION_1_1;
    return fake().enter_fallible("vkEnumerateInstanceVersion");
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info,
                                               const VkAllocationCallbacks* allocator,
                                               VkInstance* instance) {
    const Unobserved unobserved;
    const VkResult result = fake().enter_fallible("vkCreateInstance");
    *instance = wrong_handle<VkInstance>();
    if (result != VK_SUCCESS) return result;
    Object object;
    object.extensions = names(info->ppEnabledExtensionNames, info->enabledExtensionCount);
    std::vector<VkExtensionProperties> offered = instance_extensions();
    for (const std::string& layer : names(info->ppEnabledLayerNames, info->enabledLayerCount)) {
        if (!has_layer(layer)) return VK_ERROR_LAYER_NOT_PRESENT;
        const auto more = layer_extensions();
        offered.insert(offered.end(), more.begin(), more.end());
    }
    if (!offers(offered, object.extensions)) return VK_ERROR_EXTENSION_NOT_PRESENT;
    const std::uint64_t handle = fake().create(VK_OBJECT_TYPE_INSTANCE, 0, allocator, object);
    *instance = reinterpret_cast<VkInstance>(std::uintptr_t(handle));
    return handle ? VK_SUCCESS : VK_ERROR_OUT_OF_HOST_MEMORY;
}

VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance instance,
                                            const VkAllocationCallbacks* allocator) {
    const Entered entered("vkDestroyInstance");
    fake().destroy(VK_OBJECT_TYPE_INSTANCE, number_of(instance), allocator, "vkDestroyInstance");
}

VKAPI_ATTR VkResult VKAPI_CALL create_messenger(VkInstance instance,
                                                const VkDebugUtilsMessengerCreateInfoEXT*,
                                                const VkAllocationCallbacks* allocator,
                                                VkDebugUtilsMessengerEXT* messenger) {
    const Unobserved unobserved;
    const VkResult result = fake().enter_fallible("vkCreateDebugUtilsMessengerEXT");
    *messenger = wrong_handle<VkDebugUtilsMessengerEXT>();
    if (result != VK_SUCCESS) return result;
    fake().find(VK_OBJECT_TYPE_INSTANCE, instance, "vkCreateDebugUtilsMessengerEXT");
    const std::uint64_t handle = fake().create(VK_OBJECT_TYPE_DEBUG_UTILS_MESSENGER_EXT,
                                               number_of(instance), allocator);
    *messenger = reinterpret_cast<VkDebugUtilsMessengerEXT>(std::uintptr_t(handle));
    return handle ? VK_SUCCESS : VK_ERROR_OUT_OF_HOST_MEMORY;
}

VKAPI_ATTR void VKAPI_CALL destroy_messenger(VkInstance, VkDebugUtilsMessengerEXT messenger,
                                             const VkAllocationCallbacks* allocator) {
    const Entered entered("vkDestroyDebugUtilsMessengerEXT");
    fake().destroy(VK_OBJECT_TYPE_DEBUG_UTILS_MESSENGER_EXT, number_of(messenger), allocator,
                   "vkDestroyDebugUtilsMessengerEXT");
}

VKAPI_ATTR VkResult VKAPI_CALL enumerate_physical_devices(VkInstance instance, std::uint32_t* count,
                                                          VkPhysicalDevice* items) {
    const Unobserved unobserved;
    const VkResult result = fake().enter_fallible("vkEnumeratePhysicalDevices", items != nullptr);
    fake().find(VK_OBJECT_TYPE_INSTANCE, instance, "vkEnumeratePhysicalDevices");
    return enumerate(result, std::vector{the_physical_device}, count, items);
}

VKAPI_ATTR VkResult VKAPI_CALL enumerate_device_extensions(VkPhysicalDevice, const char*,
                                                           std::uint32_t* count,
                                                           VkExtensionProperties* items) {
    const Unobserved unobserved;
    return enumerate(
        fake().enter_fallible("vkEnumerateDeviceExtensionProperties", items != nullptr),
        device_extensions(), count, items);
}

VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice,
                                          VkPhysicalDeviceProperties* properties) {
    const Entered entered("vkGetPhysicalDeviceProperties");
    const FakeConfig& config = fake().config;
    *properties = {};
    properties->apiVersion = config.api_version;
    properties->driverVersion = config.driver_version;
    properties->vendorID = config.vendor;
    properties->deviceID = config.device_id;
    properties->pipelineCacheUUID[0] = config.pipeline_cache_uuid;
    properties->deviceType = config.type;
    std::snprintf(properties->deviceName, sizeof properties->deviceName, "Fake");
    VkPhysicalDeviceLimits& limits = properties->limits;
    limits.maxImageDimension2D = 4096;
    limits.maxMemoryAllocationCount = 4096;
    limits.bufferImageGranularity = 1;
    limits.maxPerStageDescriptorStorageBuffers = config.storage_buffers;
    limits.maxStorageBufferRange = config.storage_range;
    limits.minStorageBufferOffsetAlignment = config.offset_alignment;
    limits.maxUniformBufferRange = config.uniform_range;
    limits.minUniformBufferOffsetAlignment = config.uniform_alignment;
    limits.maxPushConstantsSize = 128;
    std::memcpy(limits.maxComputeWorkGroupCount, config.workgroup_count,
                sizeof config.workgroup_count);
    limits.maxComputeWorkGroupInvocations = 128;
    for (std::uint32_t& size : limits.maxComputeWorkGroupSize) size = 128;
    limits.nonCoherentAtomSize = 64;
    limits.timestampPeriod = config.timestamps ? 2.0f : 0.0f;
}

VKAPI_ATTR void VKAPI_CALL get_properties2(VkPhysicalDevice physical,
                                           VkPhysicalDeviceProperties2* properties) {
    get_properties(physical, &properties->properties);
    for (auto* next = static_cast<VkBaseOutStructure*>(properties->pNext); next;
         next = next->pNext) {
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES)
            reinterpret_cast<VkPhysicalDeviceMaintenance3Properties*>(next)
                ->maxMemoryAllocationSize = 1u << 30;
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES)
            reinterpret_cast<VkPhysicalDeviceIDProperties*>(next)->driverUUID[0] =
                fake().config.driver_uuid;
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES) {
            auto* driver = reinterpret_cast<VkPhysicalDeviceDriverProperties*>(next);
            std::snprintf(driver->driverName, sizeof driver->driverName, "fake driver");
        }
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES &&
            fake().config.float_controls) {
            auto* controls = reinterpret_cast<VkPhysicalDeviceFloatControlsProperties*>(next);
            void* const rest = controls->pNext;
            *controls = *fake().config.float_controls;
            controls->sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
            controls->pNext = rest;
        }
    }
}

VKAPI_ATTR void VKAPI_CALL get_features2(VkPhysicalDevice, VkPhysicalDeviceFeatures2* features) {
    const Entered entered("vkGetPhysicalDeviceFeatures2");
    for (auto* next = static_cast<VkBaseOutStructure*>(features->pNext); next; next = next->pNext) {
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES)
            reinterpret_cast<VkPhysicalDeviceShaderFloat16Int8Features*>(next)->shaderFloat16 =
                (fake().config.float16 || fake().config.api_version >= VK_API_VERSION_1_2) &&
                fake().config.float16_feature;
    }
}

VKAPI_ATTR void VKAPI_CALL get_queue_families(VkPhysicalDevice, std::uint32_t* count,
                                              VkQueueFamilyProperties* families) {
    const Entered entered("vkGetPhysicalDeviceQueueFamilyProperties");
    *count = 1;
    if (families)
        *families = {VK_QUEUE_COMPUTE_BIT, 1, fake().config.timestamps ? 64u : 0u, {1, 1, 1}};
}

// Both types of memory, device-local and host-visible, are small, so an allocation is cheap.
VKAPI_ATTR void VKAPI_CALL get_memory(VkPhysicalDevice, VkPhysicalDeviceMemoryProperties* memory) {
    const Entered entered("vkGetPhysicalDeviceMemoryProperties");
    *memory = {};
    memory->memoryTypeCount = memory->memoryHeapCount = 2;
    memory->memoryTypes[0] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
    memory->memoryTypes[1] = {
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, 1};
    if (fake().config.coherent)
        memory->memoryTypes[1].propertyFlags |= VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    memory->memoryHeaps[0] = {VkDeviceSize{16} << 20, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
    memory->memoryHeaps[1] = {VkDeviceSize{16} << 20, 0};
}

VKAPI_ATTR void VKAPI_CALL get_memory2(VkPhysicalDevice physical,
                                       VkPhysicalDeviceMemoryProperties2* memory) {
    get_memory(physical, &memory->memoryProperties);
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                             const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* allocator,
                                             VkDevice* device) {
    const Unobserved unobserved;
    const VkResult result = fake().enter_fallible("vkCreateDevice");
    *device = wrong_handle<VkDevice>();
    if (result != VK_SUCCESS) return result;
    if (physical != the_physical_device) fake().fault("vkCreateDevice: unknown physical device");
    Object object;
    object.extensions = names(info->ppEnabledExtensionNames, info->enabledExtensionCount);
    if (!offers(device_extensions(), object.extensions)) return VK_ERROR_EXTENSION_NOT_PRESENT;
    if (!contains(object.extensions, "VK_KHR_portability_subset"))
        fake().fault("vkCreateDevice: VK_KHR_portability_subset is offered and not enabled");
    for (const auto* next = static_cast<const VkBaseInStructure*>(info->pNext); next;
         next = next->pNext) {
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES)
            object.float16 = reinterpret_cast<const VkPhysicalDeviceShaderFloat16Int8Features*>(
                                 next)
                                 ->shaderFloat16;
    }
    if (object.float16 && !fake().config.float16_feature) return VK_ERROR_FEATURE_NOT_PRESENT;
    if (object.float16 && !contains(object.extensions, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME))
        fake().fault("vkCreateDevice: shaderFloat16 without VK_KHR_shader_float16_int8");
    const std::uint64_t handle = fake().create(
        VK_OBJECT_TYPE_DEVICE, fake().only(VK_OBJECT_TYPE_INSTANCE), allocator, object);
    *device = reinterpret_cast<VkDevice>(std::uintptr_t(handle));
    return handle ? VK_SUCCESS : VK_ERROR_OUT_OF_HOST_MEMORY;
}

VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice device, const VkAllocationCallbacks* allocator) {
    const Entered entered("vkDestroyDevice");
    fake().destroy(VK_OBJECT_TYPE_DEVICE, number_of(device), allocator, "vkDestroyDevice");
}

VKAPI_ATTR void VKAPI_CALL get_device_queue(VkDevice device, std::uint32_t, std::uint32_t,
                                            VkQueue* queue) {
    const Entered entered("vkGetDeviceQueue");
    check_device(device, "vkGetDeviceQueue");
    *queue = the_queue;
}

VKAPI_ATTR VkResult VKAPI_CALL set_name(VkDevice device,
                                        const VkDebugUtilsObjectNameInfoEXT* info) {
    const Unobserved unobserved;
    if (const VkResult result = fake().enter_fallible("vkSetDebugUtilsObjectNameEXT");
        result != VK_SUCCESS)
        return result;
    check_device(device, "vkSetDebugUtilsObjectNameEXT");
    Object* object = fake().find(info->objectType, info->objectHandle,
                                 "vkSetDebugUtilsObjectNameEXT");
    if (object) object->name = info->pObjectName ? info->pObjectName : "";
    return VK_SUCCESS;
}

bool of_debug_utils(const std::string& name) {
    return name.find("DebugUtils") != std::string::npos;
}

// Entry points of an extension exist if the extension is enabled.
bool enabled(const std::string& name) {
    if (name == "vkCmdPushDescriptorSetKHR")
        return fake().enabled(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME);
    return !of_debug_utils(name) || fake().enabled(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
}

PFN_vkVoidFunction find_device_entry(const char* name) {
    static const EntryPoints all = [] {
        EntryPoints merged = {{"vkDestroyDevice", entry_point(destroy_device)},
                              {"vkGetDeviceQueue", entry_point(get_device_queue)},
                              {"vkSetDebugUtilsObjectNameEXT", entry_point(set_name)}};
        for (const auto& more : {pipeline_entry_points(), memory_entry_points(),
                                 command_entry_points(), queue_entry_points()})
            merged.insert(more.begin(), more.end());
        return merged;
    }();
    const auto found = all.find(name);
    return found == all.end() || fake().config.missing.contains(name) || !enabled(name)
               ? nullptr
               : found->second;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_proc_addr(VkDevice device, const char* name) {
    const Entered entered("vkGetDeviceProcAddr");
    check_device(device, "vkGetDeviceProcAddr");
    return of_debug_utils(name) && !fake().config.device_finds_debug_utils
               ? nullptr
               : find_device_entry(name);
}

}  // namespace

EntryPoints global_entry_points() {
    return {{"vkCreateInstance", entry_point(create_instance)},
            {"vkEnumerateInstanceExtensionProperties", entry_point(enumerate_instance_extensions)},
            {"vkEnumerateInstanceVersion", entry_point(enumerate_version)},
            {"vkGetInstanceProcAddr", entry_point(fake_get_instance_proc_addr)}};
}

EntryPoints instance_entry_points() {
    return {{"vkCreateDebugUtilsMessengerEXT", entry_point(create_messenger)},
            {"vkCreateDevice", entry_point(create_device)},
            {"vkDestroyDebugUtilsMessengerEXT", entry_point(destroy_messenger)},
            {"vkDestroyInstance", entry_point(destroy_instance)},
            {"vkEnumerateDeviceExtensionProperties", entry_point(enumerate_device_extensions)},
            {"vkEnumeratePhysicalDevices", entry_point(enumerate_physical_devices)},
            {"vkGetDeviceProcAddr", entry_point(get_device_proc_addr)},
            {"vkGetPhysicalDeviceFeatures2", entry_point(get_features2)},
            {"vkGetPhysicalDeviceMemoryProperties", entry_point(get_memory)},
            {"vkGetPhysicalDeviceMemoryProperties2", entry_point(get_memory2)},
            {"vkGetPhysicalDeviceProperties", entry_point(get_properties)},
            {"vkGetPhysicalDeviceProperties2", entry_point(get_properties2)},
            {"vkGetPhysicalDeviceQueueFamilyProperties", entry_point(get_queue_families)}};
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL fake_get_instance_proc_addr(VkInstance instance,
                                                                     const char* name) {
    const Entered entered("vkGetInstanceProcAddr");
    static const EntryPoints global = global_entry_points(), of_instance = instance_entry_points();
    if (fake().config.missing.contains(name)) return nullptr;
    if (const auto found = global.find(name); found != global.end()) return found->second;
    if (!instance) return nullptr;
    fake().find(VK_OBJECT_TYPE_INSTANCE, instance, "vkGetInstanceProcAddr");
    if (const auto found = of_instance.find(name); found != of_instance.end())
        return enabled(name) ? found->second : nullptr;
    return find_device_entry(name);
}

}  // namespace vkrope::test
