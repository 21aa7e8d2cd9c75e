// SPDX-License-Identifier: MIT
// A Vulkan driver that does what its file name says, on top of another: lib..._crash.so crashes
// when it creates a compute pipeline, ..._hang.so does not return from a submission, ..._load.so
// crashes when it is loaded, ..._right.so is right. VKROPE_REAL_DRIVER names the library of the
// other driver. Unlike a layer, it is one of several devices of a machine.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string own_name() {
    Dl_info info = {};
    ::dladdr(reinterpret_cast<void*>(own_name), &info);
    const std::string path = info.dli_fname == nullptr ? "" : info.dli_fname;
    return path.substr(path.rfind('/') + 1);
}

bool is(const char* behaviour) {
    return own_name().find(std::string("_") + behaviour + ".so") != std::string::npos;
}

void* real_driver() {
    static void* const library = [] {
        const char* name = std::getenv("VKROPE_REAL_DRIVER");
        return ::dlopen(name == nullptr ? "libvulkan_lvp.so" : name, RTLD_NOW | RTLD_LOCAL);
    }();
    return library;
}

template <class Function>
Function real_symbol(const char* name) {
    return real_driver() == nullptr ? nullptr
                                    : reinterpret_cast<Function>(::dlsym(real_driver(), name));
}

PFN_vkVoidFunction real_of_instance(VkInstance instance, const char* name) {
    static const auto get = real_symbol<PFN_vkGetInstanceProcAddr>("vk_icdGetInstanceProcAddr");
    return get == nullptr ? nullptr : get(instance, name);
}

PFN_vkGetDeviceProcAddr real_of_device = nullptr;
PFN_vkGetPhysicalDeviceProperties real_properties = nullptr;
PFN_vkGetPhysicalDeviceProperties2 real_properties2 = nullptr;
PFN_vkCreateComputePipelines real_pipelines = nullptr;
PFN_vkQueueSubmit real_submit = nullptr;

/// The name tells what to expect, and tries to be more than a name on a page.
void rename(VkPhysicalDeviceProperties& properties) {
    const std::string name = own_name() + " <script>document.title='hostile'</script>&\"'\033[31m";
    std::strncpy(properties.deviceName, name.c_str(), sizeof properties.deviceName - 1);
}

VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice physical,
                                          VkPhysicalDeviceProperties* properties) {
    real_properties(physical, properties);
    rename(*properties);
}

VKAPI_ATTR void VKAPI_CALL get_properties2(VkPhysicalDevice physical,
                                           VkPhysicalDeviceProperties2* properties) {
    real_properties2(physical, properties);
    rename(properties->properties);
}

VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache,
                                                std::uint32_t count,
                                                const VkComputePipelineCreateInfo* create,
                                                const VkAllocationCallbacks* allocator,
                                                VkPipeline* made) {
    if (is("crash")) ::raise(SIGSEGV);
    return real_pipelines(device, cache, count, create, allocator, made);
}

VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, std::uint32_t count,
                                      const VkSubmitInfo* submits, VkFence fence) {
    while (is("hang")) ::pause();
    return real_submit(queue, count, submits, fence);
}

template <class Function>
PFN_vkVoidFunction replace(Function& real, PFN_vkVoidFunction found, Function ours) {
    if (found == nullptr) return nullptr;
    real = reinterpret_cast<Function>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(ours);
}

PFN_vkVoidFunction replaced(const std::string& name, PFN_vkVoidFunction found);

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_of_device(VkDevice device, const char* name) {
    return replaced(name, real_of_device(device, name));
}

PFN_vkVoidFunction replaced(const std::string& name, PFN_vkVoidFunction found) {
    if (name == "vkGetDeviceProcAddr") return replace(real_of_device, found, get_of_device);
    if (name == "vkGetPhysicalDeviceProperties")
        return replace(real_properties, found, get_properties);
    if (name == "vkGetPhysicalDeviceProperties2" || name == "vkGetPhysicalDeviceProperties2KHR")
        return replace(real_properties2, found, get_properties2);
    if (name == "vkCreateComputePipelines") return replace(real_pipelines, found, create_pipelines);
    if (name == "vkQueueSubmit") return replace(real_submit, found, submit);
    return found;
}

}  // namespace

#define VKROPE_EXPORTED extern "C" __attribute__((visibility("default")))

VKROPE_EXPORTED PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance,
                                                             const char* name) {
    return replaced(name, real_of_instance(instance, name));
}

VKROPE_EXPORTED PFN_vkVoidFunction vk_icdGetPhysicalDeviceProcAddr(VkInstance instance,
                                                                   const char* name) {
    static const auto get = real_symbol<PFN_vkGetInstanceProcAddr>(
        "vk_icdGetPhysicalDeviceProcAddr");
    return get == nullptr ? nullptr : replaced(name, get(instance, name));
}

VKROPE_EXPORTED VkResult vk_icdNegotiateLoaderICDInterfaceVersion(std::uint32_t* version) {
    if (is("load")) ::raise(SIGSEGV);
    using Negotiate = VkResult (*)(std::uint32_t*);
    static const auto negotiate = real_symbol<Negotiate>(
        "vk_icdNegotiateLoaderICDInterfaceVersion");
    return negotiate == nullptr ? VK_ERROR_INCOMPATIBLE_DRIVER : negotiate(version);
}
