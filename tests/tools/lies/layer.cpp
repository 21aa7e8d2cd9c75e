// SPDX-License-Identifier: MIT
// VK_LAYER_VKROPE_lies: stands between a program and a driver, and tells the lie that VKROPE_LIE
// names, or several at once, with commas between their names. Its functions are the driver's, but
// for those that a lie replaces. Changes of properties and of shaders add up; of two lies that
// replace another function, the later one counts.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "lies.hpp"
#include "support/layer_link.hpp"

namespace vkrope::lies {

namespace {

Functions told;  // to the program
std::vector<const Lie*> lies;
PFN_vkGetInstanceProcAddr next_of_instance = nullptr;
PFN_vkGetDeviceProcAddr next_of_device = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL create_rewritten_module(VkDevice device,
                                                       const VkShaderModuleCreateInfo* given,
                                                       const VkAllocationCallbacks* allocator,
                                                       VkShaderModule* made) {
    Module module(given->pCode, given->codeSize / sizeof(std::uint32_t));
    for (const Lie* lie : lies) {
        if (lie->rewrite != nullptr) lie->rewrite(module);
    }
    const std::vector<std::uint32_t> words = module.words();
    VkShaderModuleCreateInfo info = *given;
    info.codeSize = words.size() * sizeof(std::uint32_t);
    info.pCode = words.data();
    return next.vkCreateShaderModule(device, &info, allocator, made);
}

void tell_lie() {
    told = next;
    for (const Lie* lie : lies) {
        if (lie->rewrite != nullptr) told.vkCreateShaderModule = create_rewritten_module;
        if (lie->tell != nullptr) lie->tell(told);
    }
}

/// False if a name is not in the table.
bool choose_lies() {
    const char* const given = std::getenv("VKROPE_LIE");
    std::istringstream names(given == nullptr ? "none" : given);
    lies.clear();
    for (std::string name; std::getline(names, name, ',');) {
        if (name == "none") continue;
        lies.push_back(find_lie(name.c_str()));
        if (lies.back() != nullptr) continue;
        std::fprintf(stderr, "VKROPE_LIE: '%s' is not a lie\n", name.c_str());
        return false;
    }
    return true;
}

template <class Function>
void set(Function& function, PFN_vkVoidFunction found) {
    function = reinterpret_cast<Function>(found);
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* create,
                                               const VkAllocationCallbacks* allocator,
                                               VkInstance* made) {
    const auto* link = test::take_link<VkLayerInstanceCreateInfo>(
        create->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
    if (!choose_lies() || link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
    next_of_instance = link->pfnNextGetInstanceProcAddr;
    PFN_vkCreateInstance next_create = nullptr;
    set(next_create, next_of_instance(VK_NULL_HANDLE, "vkCreateInstance"));
    const VkResult result = next_create(create, allocator, made);
    if (result != VK_SUCCESS) return result;
#define VKROPE_LIES_FIND(name) set(next.name, next_of_instance(*made, #name));
    VKROPE_LIES_INSTANCE_FUNCTIONS(VKROPE_LIES_FIND)
#undef VKROPE_LIES_FIND
    tell_lie();
    return result;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                             const VkDeviceCreateInfo* create,
                                             const VkAllocationCallbacks* allocator,
                                             VkDevice* made) {
    const auto* link = test::take_link<VkLayerDeviceCreateInfo>(
        create->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
    if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
    next_of_device = link->pfnNextGetDeviceProcAddr;
    physical_device = physical;
    const VkResult result = told.vkCreateDevice(physical, create, allocator, made);
    if (result != VK_SUCCESS) return result;
#define VKROPE_LIES_FIND(name) set(next.name, next_of_device(*made, #name));
    VKROPE_LIES_DEVICE_FUNCTIONS(VKROPE_LIES_FIND)
#undef VKROPE_LIES_FIND
    tell_lie();
    return result;
}

template <class Function>
PFN_vkVoidFunction untyped(Function* function) {
    return reinterpret_cast<PFN_vkVoidFunction>(function);
}

/// Null if the lie may not replace this function, or the driver has none.
PFN_vkVoidFunction told_function(const char* name) {
#define VKROPE_LIES_RETURN(function)                                   \
    if (std::strcmp(name, #function) == 0 && next.function != nullptr) \
        return untyped(told.function);
    VKROPE_LIES_INSTANCE_FUNCTIONS(VKROPE_LIES_RETURN)
    VKROPE_LIES_DEVICE_FUNCTIONS(VKROPE_LIES_RETURN)
#undef VKROPE_LIES_RETURN
    return std::strcmp(name, "vkGetPhysicalDeviceProperties2KHR") == 0
               ? untyped(told.vkGetPhysicalDeviceProperties2)
               : nullptr;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_proc_addr(VkDevice of, const char* name) {
    const PFN_vkVoidFunction ours = told_function(name);
    return ours != nullptr ? ours : next_of_device(of, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance_proc_addr(VkInstance of, const char* name) {
    if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) return untyped(get_device_proc_addr);
    if (std::strcmp(name, "vkCreateInstance") == 0) return untyped(create_instance);
    if (std::strcmp(name, "vkCreateDevice") == 0) return untyped(create_device);
    const PFN_vkVoidFunction ours = told_function(name);
    return ours != nullptr || next_of_instance == nullptr ? ours : next_of_instance(of, name);
}

}  // namespace
}  // namespace vkrope::lies

// The names that the loader looks for in a layer.
#define VKROPE_EXPORTED extern "C" __attribute__((visibility("default")))

VKROPE_EXPORTED VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetDeviceProcAddr(VkDevice of,
                                                                             const char* name) {
    return vkrope::lies::get_device_proc_addr(of, name);
}

VKROPE_EXPORTED VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance of,
                                                                               const char* name) {
    return vkrope::lies::get_instance_proc_addr(of, name);
}
