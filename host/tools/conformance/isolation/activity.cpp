// SPDX-License-Identifier: MIT
#include "conformance/isolation/activity.hpp"

#include <sys/mman.h>

#include <new>
#include <string_view>
#include <utility>

#include "runtime/loader.hpp"

namespace vkrope::conformance {
namespace {

/// All that this library and its allocator call, in any order.
#define VKROPE_WATCHED(X)                       \
    X(vkAllocateCommandBuffers)                 \
    X(vkAllocateDescriptorSets)                 \
    X(vkAllocateMemory)                         \
    X(vkBeginCommandBuffer)                     \
    X(vkBindBufferMemory)                       \
    X(vkBindBufferMemory2)                      \
    X(vkBindImageMemory)                        \
    X(vkBindImageMemory2)                       \
    X(vkCmdBindDescriptorSets)                  \
    X(vkCmdBindPipeline)                        \
    X(vkCmdCopyBuffer)                          \
    X(vkCmdCopyBufferToImage)                   \
    X(vkCmdDispatch)                            \
    X(vkCmdPipelineBarrier)                     \
    X(vkCmdPushConstants)                       \
    X(vkCmdPushDescriptorSetKHR)                \
    X(vkCmdResetQueryPool)                      \
    X(vkCmdWriteTimestamp)                      \
    X(vkCreateBuffer)                           \
    X(vkCreateCommandPool)                      \
    X(vkCreateComputePipelines)                 \
    X(vkCreateDescriptorPool)                   \
    X(vkCreateDescriptorSetLayout)              \
    X(vkCreateDevice)                           \
    X(vkCreateFence)                            \
    X(vkCreateImage)                            \
    X(vkCreateImageView)                        \
    X(vkCreateInstance)                         \
    X(vkCreatePipelineLayout)                   \
    X(vkCreateQueryPool)                        \
    X(vkCreateShaderModule)                     \
    X(vkDestroyBuffer)                          \
    X(vkDestroyCommandPool)                     \
    X(vkDestroyDescriptorPool)                  \
    X(vkDestroyDescriptorSetLayout)             \
    X(vkDestroyDevice)                          \
    X(vkDestroyFence)                           \
    X(vkDestroyImage)                           \
    X(vkDestroyImageView)                       \
    X(vkDestroyInstance)                        \
    X(vkDestroyPipeline)                        \
    X(vkDestroyPipelineLayout)                  \
    X(vkDestroyQueryPool)                       \
    X(vkDestroyShaderModule)                    \
    X(vkEndCommandBuffer)                       \
    X(vkEnumerateDeviceExtensionProperties)     \
    X(vkEnumerateInstanceExtensionProperties)   \
    X(vkEnumerateInstanceLayerProperties)       \
    X(vkEnumerateInstanceVersion)               \
    X(vkEnumeratePhysicalDevices)               \
    X(vkFlushMappedMemoryRanges)                \
    X(vkFreeMemory)                             \
    X(vkGetBufferMemoryRequirements)            \
    X(vkGetBufferMemoryRequirements2)           \
    X(vkGetDeviceQueue)                         \
    X(vkGetImageMemoryRequirements)             \
    X(vkGetImageMemoryRequirements2)            \
    X(vkGetPhysicalDeviceFeatures2)             \
    X(vkGetPhysicalDeviceFormatProperties)      \
    X(vkGetPhysicalDeviceMemoryProperties)      \
    X(vkGetPhysicalDeviceMemoryProperties2)     \
    X(vkGetPhysicalDeviceProperties)            \
    X(vkGetPhysicalDeviceProperties2)           \
    X(vkGetPhysicalDeviceQueueFamilyProperties) \
    X(vkGetPhysicalDeviceToolProperties)        \
    X(vkGetQueryPoolResults)                    \
    X(vkInvalidateMappedMemoryRanges)           \
    X(vkMapMemory)                              \
    X(vkQueueSubmit)                            \
    X(vkResetCommandPool)                       \
    X(vkResetFences)                            \
    X(vkUnmapMemory)                            \
    X(vkUpdateDescriptorSets)                   \
    X(vkWaitForFences)

Activity* noted = nullptr;
PFN_vkGetInstanceProcAddr real_get_instance = nullptr;
PFN_vkGetDeviceProcAddr real_get_device = nullptr;

enum Slot : std::size_t {
#define VKROPE_SLOT(name) slot_##name,
    VKROPE_WATCHED(VKROPE_SLOT)
#undef VKROPE_SLOT
        slots
};

PFN_vkVoidFunction real[slots];

class Noted {
   public:
    explicit Noted(const char* name) noexcept {
        noted->calls.fetch_add(1, std::memory_order_relaxed);
        noted->call.store(name, std::memory_order_relaxed);
    }
    ~Noted() { noted->call.store(nullptr, std::memory_order_relaxed); }
    Noted(const Noted&) = delete;
    Noted& operator=(const Noted&) = delete;
};

constexpr const char* names[] = {
#define VKROPE_NAME(name) #name,
    VKROPE_WATCHED(VKROPE_NAME)
#undef VKROPE_NAME
};

template <std::size_t slot, class Function>
struct Watched;
template <std::size_t slot, class Result, class... Arguments>
struct Watched<slot, Result(VKAPI_PTR*)(Arguments...)> {
    static VKAPI_ATTR Result VKAPI_CALL call(Arguments... arguments) {
        const Noted note(names[slot]);
        return reinterpret_cast<Result(VKAPI_PTR*)(Arguments...)>(real[slot])(arguments...);
    }
};

struct Entry {
    std::string_view name;
    PFN_vkVoidFunction function;
};

const Entry watched[] = {
#define VKROPE_ENTRY(name) \
    {#name, reinterpret_cast<PFN_vkVoidFunction>(Watched<slot_##name, PFN_##name>::call)},
    VKROPE_WATCHED(VKROPE_ENTRY)
#undef VKROPE_ENTRY
};

/// Returns what calls `found` and notes it; `found` itself if nobody watches it.
PFN_vkVoidFunction watching(const char* name, PFN_vkVoidFunction found) {
    for (std::size_t slot = 0; found != nullptr && slot < slots; ++slot) {
        if (watched[slot].name == name) {
            real[slot] = found;
            return watched[slot].function;
        }
    }
    return found;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device(VkDevice device, const char* name) {
    return watching(name, real_get_device(device, name));
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance(VkInstance instance, const char* name) {
    const PFN_vkVoidFunction found = real_get_instance(instance, name);
    if (std::string_view(name) == "vkGetDeviceProcAddr" && found != nullptr) {
        real_get_device = reinterpret_cast<PFN_vkGetDeviceProcAddr>(found);
        return reinterpret_cast<PFN_vkVoidFunction>(get_device);
    }
    return watching(name, found);
}

}  // namespace

SharedActivity::SharedActivity() {
    void* const memory = ::mmap(nullptr, sizeof(Activity), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
    activity_ = new (memory) Activity;
}

SharedActivity::~SharedActivity() {
    ::munmap(activity_, sizeof(Activity));
}

PFN_vkGetInstanceProcAddr watched_loader(Activity& activity) {
    noted = &activity;
    real_get_instance = find_vulkan_loader();
    return real_get_instance == nullptr ? nullptr : get_instance;
}

}  // namespace vkrope::conformance
