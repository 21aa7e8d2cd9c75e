// SPDX-License-Identifier: MIT
// Inserts the faults that VKROPE_FAULT names between a program and a driver. Functions that no
// fault replaces are passed on to the driver. Changes of properties, of descriptors and of shaders
// add up. Of faults that replace one function for other purposes, only the last takes effect.
//
// As the layer VK_LAYER_VKROPE_faults, this library precedes all devices of a machine. As a driver,
// one of several, it wraps the driver library VKROPE_REAL_DRIVER, and its file name selects faults.
#include <dlfcn.h>
#include <vulkan/vk_layer.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <type_traits>

#include "faults.hpp"

namespace vkrope::faults {

Functions next;
VkPhysicalDevice physical_device = VK_NULL_HANDLE;
std::string argument;

namespace {

Functions of_program;
struct Chosen {
    const Fault* fault;
    std::string argument;
};
std::vector<Chosen> chosen;
bool is_driver = false;
PFN_vkGetInstanceProcAddr next_of_instance = nullptr;
PFN_vkGetDeviceProcAddr next_of_device = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL create_rewritten_module(VkDevice device,
                                                       const VkShaderModuleCreateInfo* given,
                                                       const VkAllocationCallbacks* allocator,
                                                       VkShaderModule* made) {
    Module module({given->pCode, given->codeSize / sizeof(std::uint32_t)});
    for (const Chosen& one : chosen)
        if (one.fault->rewrite != nullptr) one.fault->rewrite(module);
    const std::vector<std::uint32_t> words = module.words();
    VkShaderModuleCreateInfo info = *given;
    info.codeSize = words.size() * sizeof(std::uint32_t);
    info.pCode = words.data();
    return next.vkCreateShaderModule(device, &info, allocator, made);
}

void replace_functions() {
    of_program = next;
    for (const Chosen& one : chosen) {
        argument = one.argument;
        if (one.fault->rewrite != nullptr)
            of_program.vkCreateShaderModule = create_rewritten_module;
        if (one.fault->replace != nullptr) one.fault->replace(of_program);
    }
}

const Fault* find_fault(const std::string& name) {
    for (const auto list :
         {shader_faults(), command_faults(), device_faults(), program_faults(), variations()}) {
        for (const Fault& fault : list)
            if (fault.name == name) return &fault;
    }
    return nullptr;
}

// Returns the faults that the file name of a driver selects: libvkrope_icd_crash.so and so on.
std::string faults_of_driver() {
    Dl_info info = {};
    ::dladdr(reinterpret_cast<void*>(faults_of_driver), &info);
    const std::string path = info.dli_fname == nullptr ? "" : info.dli_fname;
    const auto is = [&](const char* name) {
        return path.ends_with(std::string("_icd_") + name + ".so");
    };
    return std::string("hostile_name=") + path.substr(path.rfind('/') + 1) +
           (is("crash")  ? ",raise=SEGV@pipelines"
            : is("hang") ? ",hang=@submit"
            : is("load") ? ",raise=SEGV@load"
                         : "");
}

// Reads the names of the faults. Returns false if a name is not in a table.
bool choose_faults() {
    const char* const given = std::getenv("VKROPE_FAULT");
    std::istringstream names(is_driver ? faults_of_driver() : given == nullptr ? "none" : given);
    chosen.clear();
    for (std::string text; std::getline(names, text, ',');) {
        const std::string name = text.substr(0, text.find('='));
        if (name == "none") continue;
        chosen.push_back({find_fault(name), text.substr(std::min(name.size() + 1, text.size()))});
        if (chosen.back().fault != nullptr) continue;
        std::fprintf(stderr, "VKROPE_FAULT: '%s' is not a fault\n", name.c_str());
        return false;
    }
    replace_functions();
    return true;
}

// Returns a function of the real driver, whose library is loaded on first use.
template <class Function>
Function of_real_driver(const char* name) {
    static void* const library = [] {
        const char* driver = std::getenv("VKROPE_REAL_DRIVER");
        return ::dlopen(driver == nullptr ? "libvulkan_lvp.so" : driver, RTLD_NOW | RTLD_LOCAL);
    }();
    return library == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(library, name));
}

template <class Function>
void set(Function& function, PFN_vkVoidFunction found) {
    function = reinterpret_cast<Function>(found);
}

// Returns the link to the next layer, which the loader appends to a create info, and advances the
// loader's link for that layer. Returns null if the loader gave no link, as to a driver.
//
// LayerInfo   VkLayerInstanceCreateInfo or VkLayerDeviceCreateInfo
template <class LayerInfo>
auto* take_link(const void* chain, VkStructureType type) {
    auto* info = static_cast<LayerInfo*>(const_cast<void*>(chain));
    while (info != nullptr && (info->sType != type || info->function != VK_LAYER_LINK_INFO))
        info = static_cast<LayerInfo*>(const_cast<void*>(info->pNext));
    decltype(info->u.pLayerInfo) link = nullptr;
    if (info != nullptr && !is_driver) {
        link = info->u.pLayerInfo;
        info->u.pLayerInfo = link->pNext;
    }
    return link;
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* create,
                                               const VkAllocationCallbacks* allocator,
                                               VkInstance* made) {
    const auto* link = take_link<VkLayerInstanceCreateInfo>(
        create->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
    if (!choose_faults() || (link == nullptr && !is_driver)) return VK_ERROR_INITIALIZATION_FAILED;
    if (const VkResult result = pass("instance"); result != VK_SUCCESS) return result;
    if (link != nullptr) next_of_instance = link->pfnNextGetInstanceProcAddr;
    PFN_vkCreateInstance next_create = nullptr;
    set(next_create, next_of_instance(VK_NULL_HANDLE, "vkCreateInstance"));
    const VkResult result = next_create(create, allocator, made);
    if (result != VK_SUCCESS) return result;
#define VKROPE_FIND(name) set(next.name, next_of_instance(*made, #name));
    VKROPE_INSTANCE_FUNCTIONS(VKROPE_FIND)
#undef VKROPE_FIND
    if (is_driver) set(next_of_device, next_of_instance(*made, "vkGetDeviceProcAddr"));
    replace_functions();
    return result;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                             const VkDeviceCreateInfo* create,
                                             const VkAllocationCallbacks* allocator,
                                             VkDevice* made) {
    const auto* link = take_link<VkLayerDeviceCreateInfo>(
        create->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
    if (link == nullptr && !is_driver) return VK_ERROR_INITIALIZATION_FAILED;
    if (link != nullptr) next_of_device = link->pfnNextGetDeviceProcAddr;
    physical_device = physical;
    const VkResult result = of_program.vkCreateDevice(physical, create, allocator, made);
    if (result != VK_SUCCESS) return result;
#define VKROPE_FIND(name) set(next.name, next_of_device(*made, #name));
    VKROPE_DEVICE_FUNCTIONS(VKROPE_FIND)
#undef VKROPE_FIND
    replace_functions();
    return result;
}

template <class Function>
PFN_vkVoidFunction untyped(Function* function) {
    return reinterpret_cast<PFN_vkVoidFunction>(function);
}

// Returns null if no fault may replace this function or the driver lacks it.
PFN_vkVoidFunction replaced_function(const char* name) {
    if (std::strcmp(name, "vkCreateDevice") == 0) return untyped(create_device);
#define VKROPE_RETURN(function)                                        \
    if (std::strcmp(name, #function) == 0 && next.function != nullptr) \
        return untyped(of_program.function);
    VKROPE_INSTANCE_FUNCTIONS(VKROPE_RETURN)
    VKROPE_DEVICE_FUNCTIONS(VKROPE_RETURN)
#undef VKROPE_RETURN
    return std::strcmp(name, "vkGetPhysicalDeviceProperties2KHR") == 0
               ? untyped(of_program.vkGetPhysicalDeviceProperties2)
               : nullptr;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_proc_addr(VkDevice of, const char* name) {
    const PFN_vkVoidFunction ours = replaced_function(name);
    return ours != nullptr ? ours : next_of_device(of, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance_proc_addr(VkInstance of, const char* name) {
    if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) return untyped(get_device_proc_addr);
    if (std::strcmp(name, "vkCreateInstance") == 0) return untyped(create_instance);
    const PFN_vkVoidFunction ours = replaced_function(name);
    return ours != nullptr || next_of_instance == nullptr ? ours : next_of_instance(of, name);
}

}  // namespace
}  // namespace vkrope::faults

// The entry points that the loader looks up in a layer, then those that it looks up in a driver.
#define VKROPE_EXPORTED extern "C" __attribute__((visibility("default")))

VKROPE_EXPORTED VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetDeviceProcAddr(VkDevice of,
                                                                             const char* name) {
    return vkrope::faults::get_device_proc_addr(of, name);
}

VKROPE_EXPORTED VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance of,
                                                                               const char* name) {
    return vkrope::faults::get_instance_proc_addr(of, name);
}

VKROPE_EXPORTED VkResult vk_icdNegotiateLoaderICDInterfaceVersion(std::uint32_t* version) {
    using namespace vkrope::faults;
    is_driver = true;
    next_of_instance = of_real_driver<PFN_vkGetInstanceProcAddr>("vk_icdGetInstanceProcAddr");
    choose_faults();
    pass("load");
    const auto negotiate = of_real_driver<VkResult (*)(std::uint32_t*)>(
        "vk_icdNegotiateLoaderICDInterfaceVersion");
    return negotiate == nullptr ? VK_ERROR_INCOMPATIBLE_DRIVER : negotiate(version);
}

VKROPE_EXPORTED PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance of, const char* name) {
    return vkrope::faults::get_instance_proc_addr(of, name);
}

VKROPE_EXPORTED PFN_vkVoidFunction vk_icdGetPhysicalDeviceProcAddr(VkInstance of,
                                                                   const char* name) {
    using namespace vkrope::faults;
    static const auto get = of_real_driver<PFN_vkGetInstanceProcAddr>(
        "vk_icdGetPhysicalDeviceProcAddr");
    const PFN_vkVoidFunction found = get == nullptr ? nullptr : get(of, name);
    const PFN_vkVoidFunction ours = replaced_function(name);
    return found == nullptr || ours == nullptr ? found : ours;
}
