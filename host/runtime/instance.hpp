// SPDX-License-Identifier: MIT
// Loads Vulkan and creates an instance: extensions, layers, messages.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vkrope/vkrope.hpp"

namespace vkrope {

#define VKROPE_RUNTIME_INSTANCE_FUNCTIONS(X) \
    X(vkCreateDevice)                        \
    X(vkDestroyInstance)                     \
    X(vkEnumerateDeviceExtensionProperties)  \
    X(vkEnumeratePhysicalDevices)            \
    X(vkGetDeviceProcAddr)                   \
    X(vkGetPhysicalDeviceMemoryProperties)   \
    X(vkGetPhysicalDeviceProperties)         \
    X(vkGetPhysicalDeviceProperties2)        \
    X(vkGetPhysicalDeviceQueueFamilyProperties)

// vkrope_device_options with copies of the strings, and with defaults filled in, except that of
// timeout_ns, which depends on the device.
struct OwnedOptions {
    std::string select, pipeline_cache_folder;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
    bool validation = false, push_descriptors = true;
    vkrope_message_callback on_message = nullptr;
    void* user_data = nullptr;
    std::uint64_t timeout_ns = 0, pipeline_cache_bytes = 0;

    explicit OwnedOptions(const DeviceOptions* from);
    void tell(bool is_error, const char* id, const char* text) const {
        if (on_message) on_message(user_data, is_error, id, text);
    }
};

// One VkInstance, with a messenger if validation is on. It must not move: drivers keep pointers.
class Instance {
   public:
    static Result<std::unique_ptr<Instance>> make(const OwnedOptions& options);
    ~Instance();
    Instance(const Instance&) = delete;
    Instance& operator=(const Instance&) = delete;

    const OwnedOptions& options() const noexcept { return options_; }
    VkInstance handle() const noexcept { return handle_; }
    PFN_vkGetInstanceProcAddr get_instance_proc_addr() const noexcept {
        return get_instance_proc_addr_;
    }

    Result<std::vector<VkPhysicalDevice>> physical_devices() const;

#define VKROPE_DECLARE(name) PFN_##name name = nullptr;
    VKROPE_RUNTIME_INSTANCE_FUNCTIONS(VKROPE_DECLARE)
#undef VKROPE_DECLARE

   private:
    explicit Instance(const OwnedOptions& options) : options_(options) {}
    Status create();
    Status load_functions();
    Status create_messenger(const VkDebugUtilsMessengerCreateInfoEXT& info);

    OwnedOptions options_;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr_ = nullptr;
    VkInstance handle_ = VK_NULL_HANDLE;
    VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
};

}  // namespace vkrope
