// SPDX-License-Identifier: MIT
// The Vulkan loader and an instance: extensions, layers, messages.
#pragma once

#include <memory>

#include "vkrope/runtime.hpp"

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

/// One VkInstance, with a messenger if validation is on. Must not move: drivers keep a pointer to
/// its options.
class Instance {
   public:
    static Result<std::unique_ptr<Instance>> make(const DeviceOptions& options);
    ~Instance();
    Instance(const Instance&) = delete;
    Instance& operator=(const Instance&) = delete;

    VkInstance handle() const noexcept { return handle_; }
    PFN_vkGetInstanceProcAddr get_instance_proc_addr() const noexcept {
        return get_instance_proc_addr_;
    }

    Result<std::vector<VkPhysicalDevice>> physical_devices() const;

#define VKROPE_DECLARE(name) PFN_##name name = nullptr;
    VKROPE_RUNTIME_INSTANCE_FUNCTIONS(VKROPE_DECLARE)
#undef VKROPE_DECLARE

   private:
    explicit Instance(const DeviceOptions& options) : options_(options) {}
    Status create();
    Status load_functions();
    Status create_messenger(const VkDebugUtilsMessengerCreateInfoEXT& info);

    DeviceOptions options_;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr_ = nullptr;
    VkInstance handle_ = VK_NULL_HANDLE;
    VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
};

}  // namespace vkrope
