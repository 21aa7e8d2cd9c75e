// SPDX-License-Identifier: MIT
// A Vulkan layer that makes the driver below it misbehave, as VKROPE_BAD_DRIVER says:
//
//   name         puts control characters into the names of device and driver
//   exit N, quick_exit N, raise NAME, overflow, thread_overflow
//                ends the program in that way when work is submitted
//   hang, lose   does not return when work is submitted; returns VK_ERROR_DEVICE_LOST
//
// With VKROPE_BAD_DRIVER_AT=pipelines it does so when compute pipelines are created instead, with
// =instance when an instance is. The first VKROPE_BAD_DRIVER_AFTER (0) of these calls go well.
#include <signal.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <type_traits>

#include "support/layer_link.hpp"

namespace {

PFN_vkGetInstanceProcAddr next_of_instance = nullptr;
PFN_vkGetDeviceProcAddr next_of_device = nullptr;

// Functions of the driver below. They are looked up when their parents are created: later the
// loader returns the functions above.
PFN_vkCreateDevice next_create_device = nullptr;
PFN_vkGetPhysicalDeviceProperties next_properties = nullptr;
PFN_vkGetPhysicalDeviceProperties2 next_properties2 = nullptr;
PFN_vkQueueSubmit next_submit = nullptr;
PFN_vkCreateComputePipelines next_create_pipelines = nullptr;

// ESC and BEL; DEL; CSI of C1 as UTF-8, then as a byte alone; an overlong ESC; a second line.
constexpr char bad_name[] =
    "bad \033[31m\007 \x7f \xc2\x9b"
    "2J \x9b"
    "5m \xc0\x9b"
    "7m\nname";

std::string behaviour() {
    const char* text = std::getenv("VKROPE_BAD_DRIVER");
    return text == nullptr ? "" : text;
}

volatile bool deeper = true;

/// Uses up the stack. The array is needed after the call, so the compiler cannot turn it into a
/// loop.
[[gnu::noinline]] int overflow() {
    volatile char frame[4096] = {};
    return (deeper ? overflow() : 0) + frame[0];
}

constexpr struct {
    const char* name;
    int number;
} signals[] = {{"HUP", SIGHUP},   {"INT", SIGINT},      {"QUIT", SIGQUIT}, {"PIPE", SIGPIPE},
               {"ALRM", SIGALRM}, {"TERM", SIGTERM},    {"USR1", SIGUSR1}, {"USR2", SIGUSR2},
               {"XCPU", SIGXCPU}, {"PROF", SIGPROF},    {"SEGV", SIGSEGV}, {"BUS", SIGBUS},
               {"FPE", SIGFPE},   {"ILL", SIGILL},      {"ABRT", SIGABRT}, {"SYS", SIGSYS},
               {"TRAP", SIGTRAP}, {"VTALRM", SIGVTALRM}};

void behave_badly() {
    const std::string what = behaviour();
    const std::size_t space = what.find(' ');
    const std::string argument = space == std::string::npos ? "" : what.substr(space + 1);
    if (what.starts_with("exit ")) std::exit(std::stoi(argument));
    if (what.starts_with("quick_exit ")) std::quick_exit(std::stoi(argument));
    for (const auto& [name, number] : signals) {
        if (what.starts_with("raise ") && argument == name) ::raise(number);
    }
    if (what == "overflow") overflow();
    if (what == "thread_overflow") std::thread([] { overflow(); }).join();
    while (what == "hang") ::pause();
}

std::string setting(const char* name, const char* otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : text;
}

/// Called at each place where the driver may misbehave. Returns VK_ERROR_DEVICE_LOST if it does.
VkResult pass(const char* place) {
    static int passed = 0;
    if (setting("VKROPE_BAD_DRIVER_AT", "submit") != place ||
        passed++ < std::stoi(setting("VKROPE_BAD_DRIVER_AFTER", "0"))) {
        return VK_SUCCESS;
    }
    behave_badly();
    return behaviour() == "lose" ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
}

void rename_to_bad(VkPhysicalDeviceProperties& properties) {
    if (behaviour() == "name") std::memcpy(properties.deviceName, bad_name, sizeof bad_name);
}

VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice physical,
                                          VkPhysicalDeviceProperties* properties) {
    next_properties(physical, properties);
    rename_to_bad(*properties);
}

VKAPI_ATTR void VKAPI_CALL get_properties2(VkPhysicalDevice physical,
                                           VkPhysicalDeviceProperties2* properties) {
    next_properties2(physical, properties);
    rename_to_bad(properties->properties);
    for (auto* link = static_cast<VkBaseOutStructure*>(properties->pNext); link != nullptr;
         link = link->pNext) {
        if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES &&
            behaviour() == "name") {
            std::memcpy(reinterpret_cast<VkPhysicalDeviceDriverProperties*>(link)->driverInfo,
                        bad_name, sizeof bad_name);
        }
    }
}

VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, std::uint32_t count,
                                      const VkSubmitInfo* submits, VkFence fence) {
    const VkResult result = pass("submit");
    return result != VK_SUCCESS ? result : next_submit(queue, count, submits, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache,
                                                std::uint32_t count,
                                                const VkComputePipelineCreateInfo* create,
                                                const VkAllocationCallbacks* allocator,
                                                VkPipeline* made) {
    const VkResult result = pass("pipelines");
    return result != VK_SUCCESS
               ? result
               : next_create_pipelines(device, cache, count, create, allocator, made);
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* create,
                                               const VkAllocationCallbacks* allocator,
                                               VkInstance* made) {
    const auto* link = vkrope::test::take_link<VkLayerInstanceCreateInfo>(
        create->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
    if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
    pass("instance");
    next_of_instance = link->pfnNextGetInstanceProcAddr;
    const auto next_create = reinterpret_cast<PFN_vkCreateInstance>(
        next_of_instance(VK_NULL_HANDLE, "vkCreateInstance"));
    const VkResult result = next_create(create, allocator, made);
    if (result != VK_SUCCESS) return result;
    const auto find = [made](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
            next_of_instance(*made, name));
    };
    find(next_create_device, "vkCreateDevice");
    find(next_properties, "vkGetPhysicalDeviceProperties");
    find(next_properties2, "vkGetPhysicalDeviceProperties2");
    return result;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                             const VkDeviceCreateInfo* create,
                                             const VkAllocationCallbacks* allocator,
                                             VkDevice* made) {
    const auto* link = vkrope::test::take_link<VkLayerDeviceCreateInfo>(
        create->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
    if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
    next_of_device = link->pfnNextGetDeviceProcAddr;
    const VkResult result = next_create_device(physical, create, allocator, made);
    if (result == VK_SUCCESS) {
        next_submit = reinterpret_cast<PFN_vkQueueSubmit>(next_of_device(*made, "vkQueueSubmit"));
        next_create_pipelines = reinterpret_cast<PFN_vkCreateComputePipelines>(
            next_of_device(*made, "vkCreateComputePipelines"));
    }
    return result;
}

template <class Function>
PFN_vkVoidFunction untyped(Function* function) {
    return reinterpret_cast<PFN_vkVoidFunction>(function);
}

PFN_vkVoidFunction ours(const std::string& name) {
    if (name == "vkCreateInstance") return untyped(create_instance);
    if (name == "vkCreateDevice") return untyped(create_device);
    if (name == "vkGetPhysicalDeviceProperties") return untyped(get_properties);
    if (name == "vkGetPhysicalDeviceProperties2" || name == "vkGetPhysicalDeviceProperties2KHR")
        return untyped(get_properties2);
    if (name == "vkQueueSubmit") return untyped(submit);
    if (name == "vkCreateComputePipelines") return untyped(create_pipelines);
    return nullptr;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_proc_addr(VkDevice of, const char* name) {
    const bool of_a_device = std::strcmp(name, "vkQueueSubmit") == 0 ||
                             std::strcmp(name, "vkCreateComputePipelines") == 0;
    return of_a_device ? ours(name) : next_of_device(of, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance_proc_addr(VkInstance of, const char* name) {
    if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) return untyped(get_device_proc_addr);
    const PFN_vkVoidFunction found = ours(name);
    return found != nullptr || next_of_instance == nullptr ? found : next_of_instance(of, name);
}

}  // namespace

// The names that the loader looks for in a layer. Here the loader's own functions of these names
// come first.
#define VKROPE_EXPORTED extern "C" __attribute__((visibility("default")))

VKROPE_EXPORTED VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetDeviceProcAddr(VkDevice of,
                                                                             const char* name) {
    return get_device_proc_addr(of, name);
}

VKROPE_EXPORTED VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance of,
                                                                               const char* name) {
    return get_instance_proc_addr(of, name);
}
