// SPDX-License-Identifier: MIT
#include "runtime/instance.hpp"

#include <cstring>

#include "base/defaults.hpp"
#include "base/status.hpp"
#include "runtime/loader.hpp"

namespace vkrope {

namespace {

constexpr const char* validation_layer = "VK_LAYER_KHRONOS_validation";

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* message,
                                          void* options) {
    static_cast<const OwnedOptions*>(options)->tell(
        severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        message->pMessageIdName ? message->pMessageIdName : "",
        message->pMessage ? message->pMessage : "");
    return VK_FALSE;
}

bool has(const std::vector<VkExtensionProperties>& offered, const char* name) {
    for (const VkExtensionProperties& extension : offered)
        if (std::strcmp(extension.extensionName, name) == 0) return true;
    return false;
}

// Lists the extensions of the loader or of a layer; none if the layer is not installed.
Result<std::vector<VkExtensionProperties>> extensions_of(
    PFN_vkEnumerateInstanceExtensionProperties enumerate, const char* layer) {
    std::uint32_t count = 0;
    VkResult result = enumerate(layer, &count, nullptr);
    std::vector<VkExtensionProperties> offered(result < 0 ? 0 : count);
    if (result >= 0) result = enumerate(layer, &count, offered.data());
    if (result == VK_ERROR_LAYER_NOT_PRESENT && layer) return {};
    if (result < 0) return {vulkan_error(result, "vkEnumerateInstanceExtensionProperties"), {}};
    offered.resize(count);
    return {{}, std::move(offered)};
}

}  // namespace

OwnedOptions::OwnedOptions(const DeviceOptions* from) {
    const DeviceOptions of = from ? *from : DeviceOptions{};
    if (of.select) select = of.select;
    if (of.pipeline_cache_folder) pipeline_cache_folder = of.pipeline_cache_folder;
    get_instance_proc_addr = of.get_instance_proc_addr;
    validation = of.validation;
    push_descriptors = !of.no_push_descriptors;
    on_message = of.on_message;
    user_data = of.user_data;
    timeout_ns = of.timeout_ns;
    pipeline_cache_bytes = value_or(of.pipeline_cache_bytes, std::uint64_t{64} << 20);
}

Result<std::unique_ptr<Instance>> Instance::make(const OwnedOptions& options) {
    std::unique_ptr<Instance> instance(new Instance(options));
    const Status status = instance->create();
    if (!status) instance.reset();
    return {status, std::move(instance)};
}

Status Instance::create() {
    get_instance_proc_addr_ = options_.get_instance_proc_addr ? options_.get_instance_proc_addr
                                                              : find_vulkan_loader();
    if (!get_instance_proc_addr_)
        return error(VKROPE_ERROR_NO_DEVICE, "no Vulkan loader on this system (libvulkan)");
    const auto find = [&](const char* name) {
        return get_instance_proc_addr_(VK_NULL_HANDLE, name);
    };
    const auto create_instance = reinterpret_cast<PFN_vkCreateInstance>(find("vkCreateInstance"));
    const auto enumerate_extensions = reinterpret_cast<PFN_vkEnumerateInstanceExtensionProperties>(
        find("vkEnumerateInstanceExtensionProperties"));
    if (!create_instance || !enumerate_extensions)
        return error(VKROPE_ERROR_NO_DEVICE, "the Vulkan loader lacks vkCreateInstance");
    if (!find("vkEnumerateInstanceVersion"))
        return error(VKROPE_ERROR_NO_DEVICE,
                     "the Vulkan loader offers Vulkan 1.0: vkrope needs 1.1");

    VkApplicationInfo application = {};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.pEngineName = "vkrope";
    application.apiVersion = VK_API_VERSION_1_1;
    VkInstanceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;

    std::vector<const char*> extensions;
    const auto of_loader = extensions_of(enumerate_extensions, nullptr);
    if (!of_loader) return of_loader.status;
    if (has(of_loader.value, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
        extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
        info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
    }

    // For validation, adds the layer's extensions and the checks to enable.
    VkDebugUtilsMessengerCreateInfoEXT messenger = {};
    messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                                VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
                            VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                            VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    messenger.pfnUserCallback = on_message;
    messenger.pUserData = &options_;
    const VkValidationFeatureEnableEXT enables[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
        VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT};
    VkValidationFeaturesEXT features = {};
    features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
    features.pNext = &messenger;
    features.enabledValidationFeatureCount = 2;
    features.pEnabledValidationFeatures = enables;
    if (options_.validation) {
        const auto of_layer = extensions_of(enumerate_extensions, validation_layer);
        if (!of_layer) return of_layer.status;
        if (!has(of_layer.value, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME) ||
            !has(of_layer.value, VK_EXT_DEBUG_UTILS_EXTENSION_NAME)) {
            return error(VKROPE_ERROR_NOT_SUPPORTED, "validation: %s is not installed",
                         validation_layer);
        }
        extensions.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
        extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
        info.enabledLayerCount = 1;
        info.ppEnabledLayerNames = &validation_layer;
        info.pNext = &features;
    }
    info.enabledExtensionCount = std::uint32_t(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();

    const VkResult result = create_instance(&info, nullptr, &handle_);
    if (Status made = created(result, handle_, "vkCreateInstance"); !made) {
        if (result != VK_ERROR_INCOMPATIBLE_DRIVER) return made;
        made = error(VKROPE_ERROR_NO_DEVICE, "no Vulkan driver is installed");
        made.vk_result = result;
        return made;
    }
    if (Status s = load_functions(); !s) return s;
    return options_.validation ? create_messenger(messenger) : Status{};
}

Status Instance::load_functions() {
    // Loads all functions before returning an error: the destructor needs one.
    Status loaded;
#define VKROPE_LOAD(name)                                                         \
    name = reinterpret_cast<PFN_##name>(get_instance_proc_addr_(handle_, #name)); \
    if (!name && loaded)                                                          \
        loaded = error(VKROPE_ERROR_NO_DEVICE,                                    \
                       "the Vulkan loader does not "                              \
                       "offer " #name);
    VKROPE_RUNTIME_INSTANCE_FUNCTIONS(VKROPE_LOAD)
#undef VKROPE_LOAD
    return loaded;
}

Status Instance::create_messenger(const VkDebugUtilsMessengerCreateInfoEXT& info) {
    const auto create_it = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
        get_instance_proc_addr_(handle_, "vkCreateDebugUtilsMessengerEXT"));
    const VkResult result = create_it ? create_it(handle_, &info, nullptr, &messenger_)
                                      : VK_ERROR_EXTENSION_NOT_PRESENT;
    return created(result, messenger_, "vkCreateDebugUtilsMessengerEXT");
}

Instance::~Instance() {
    if (messenger_) {
        reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(get_instance_proc_addr_(
            handle_, "vkDestroyDebugUtilsMessengerEXT"))(handle_, messenger_, nullptr);
    }
    if (handle_ && vkDestroyInstance) vkDestroyInstance(handle_, nullptr);
}

Result<std::vector<VkPhysicalDevice>> Instance::physical_devices() const {
    std::uint32_t count = 0;
    VkResult result = vkEnumeratePhysicalDevices(handle_, &count, nullptr);
    std::vector<VkPhysicalDevice> found(result == VK_SUCCESS ? count : 0);
    if (result == VK_SUCCESS) result = vkEnumeratePhysicalDevices(handle_, &count, found.data());
    if (result != VK_SUCCESS && result != VK_INCOMPLETE)
        return {vulkan_error(result, "vkEnumeratePhysicalDevices"), {}};
    found.resize(count);
    return {{}, found};
}

}  // namespace vkrope
