// SPDX-License-Identifier: MIT
// A vulkan-1.dll beside the programs, before that of the system, whose driver misbehaves where a
// pipeline is created: it crashes where it can delete the file that VKROPE_CRASH names, and hangs
// where it can delete that of VKROPE_HANG, so in one process each.
#include <windows.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

namespace {

// The functions of the system's loader.
PFN_vkGetInstanceProcAddr next_instance = nullptr;
PFN_vkGetDeviceProcAddr next_device = nullptr;
PFN_vkCreateComputePipelines next_create = nullptr;

// Returns true if the variable names a file, which then no longer exists.
bool takes_file_of(const char* variable) {
    const char* const file = std::getenv(variable);
    return file != nullptr && ::DeleteFileA(file) != 0;
}

VkResult VKAPI_CALL create(VkDevice device, VkPipelineCache cache, std::uint32_t count,
                           const VkComputePipelineCreateInfo* infos,
                           const VkAllocationCallbacks* allocator, VkPipeline* pipelines) {
    if (takes_file_of("VKROPE_CRASH")) *static_cast<volatile int*>(nullptr) = 1;
    if (takes_file_of("VKROPE_HANG")) ::Sleep(INFINITE);
    return next_create(device, cache, count, infos, allocator, pipelines);
}

// Returns `create` in place of vkCreateComputePipelines, and keeps the function that it calls.
PFN_vkVoidFunction replaced(PFN_vkVoidFunction found, const char* name) {
    if (found == nullptr || std::strcmp(name, "vkCreateComputePipelines") != 0) return found;
    next_create = reinterpret_cast<PFN_vkCreateComputePipelines>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(&create);
}

PFN_vkVoidFunction VKAPI_CALL of_device(VkDevice device, const char* name) {
    return replaced(next_device(device, name), name);
}

}  // namespace

extern "C" __declspec(dllexport) PFN_vkVoidFunction VKAPI_CALL
    vkGetInstanceProcAddr(VkInstance instance, const char* name) {
    if (next_instance == nullptr) {
        char path[MAX_PATH + 16] = {};
        ::GetSystemDirectoryA(path, MAX_PATH);
        const HMODULE system = ::LoadLibraryA(std::strcat(path, "\\vulkan-1.dll"));
        if (system == nullptr) return nullptr;
        next_instance = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
            reinterpret_cast<void*>(::GetProcAddress(system, "vkGetInstanceProcAddr")));
    }
    const PFN_vkVoidFunction found = next_instance(instance, name);
    if (found == nullptr || std::strcmp(name, "vkGetDeviceProcAddr") != 0)
        return replaced(found, name);
    next_device = reinterpret_cast<PFN_vkGetDeviceProcAddr>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(&of_device);
}
