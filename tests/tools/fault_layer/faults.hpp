// SPDX-License-Identifier: MIT
// Declares the faults of the layer, and the functions that implement them.
//
// VKROPE_FAULT selects faults, separated by commas, each NAME or NAME=ARGUMENT.
// Without it, or with "none", the layer changes nothing.
#pragma once

#include <vulkan/vulkan.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "module.hpp"

namespace vkrope::faults {

// The Vulkan functions that a fault may replace.
#define VKROPE_INSTANCE_FUNCTIONS(X)       \
    X(vkCreateDevice)                      \
    X(vkGetPhysicalDeviceMemoryProperties) \
    X(vkGetPhysicalDeviceProperties)       \
    X(vkGetPhysicalDeviceProperties2)

#define VKROPE_DEVICE_FUNCTIONS(X) \
    X(vkAllocateMemory)            \
    X(vkBeginCommandBuffer)        \
    X(vkCmdBindDescriptorSets)     \
    X(vkCmdBindPipeline)           \
    X(vkCmdCopyBufferToImage)      \
    X(vkCmdDispatch)               \
    X(vkCmdFillBuffer)             \
    X(vkCmdPipelineBarrier)        \
    X(vkCmdPushConstants)          \
    X(vkCmdPushDescriptorSetKHR)   \
    X(vkCreateComputePipelines)    \
    X(vkCreateShaderModule)        \
    X(vkDestroyDevice)             \
    X(vkEndCommandBuffer)          \
    X(vkGetQueryPoolResults)       \
    X(vkMapMemory)                 \
    X(vkQueueSubmit)               \
    X(vkUnmapMemory)               \
    X(vkUpdateDescriptorSets)      \
    X(vkWaitForFences)

struct Functions {
#define VKROPE_DECLARE(name) PFN_##name name = nullptr;
    VKROPE_INSTANCE_FUNCTIONS(VKROPE_DECLARE)
    VKROPE_DEVICE_FUNCTIONS(VKROPE_DECLARE)
#undef VKROPE_DECLARE
};

// Functions of the next layer or driver, for a fault to call. There is one device at a time, as in
// the programs that this layer tests.
extern Functions next;
// The physical device of that device, once the device is created.
extern VkPhysicalDevice physical_device;
// The argument of the fault whose `replace` is running.
extern std::string argument;

struct Fault {
    const char* name;
    const char* what;  // what the driver does wrong, as the end of "a driver that"
    // Replaces functions. Called when the instance is created, and again when a device is.
    void (*replace)(Functions&) = nullptr;
    // Changes every shader before the driver sees it.
    void (*rewrite)(Module&) = nullptr;
};

// Each list is defined in the file of the same name.
std::span<const Fault> shader_faults();
std::span<const Fault> command_faults();
std::span<const Fault> device_faults();
std::span<const Fault> program_faults();
// Variations that Vulkan permits. They are no faults, so every check must pass.
std::span<const Fault> variations();

// See barrier_fault.cpp.
void barriers_ignored(Functions& replaced);

// Called at places in a program: ends the program, hangs or fails if the fault is for `place`.
VkResult pass(const char* place);

// The structures of device properties that a fault may change.
struct Reported {
    VkPhysicalDeviceProperties& properties;
    // null: not requested
    VkPhysicalDeviceFloatControlsProperties* float_controls = nullptr;
    VkPhysicalDeviceDriverProperties* driver = nullptr;
};

// Adds a change to the earlier changes. Adding the same change twice has no effect.
void change_properties(Functions& replaced, void (*change)(const Reported&));

// Copies of descriptor writes with one buffer or image each, as the library writes them.
class DescriptorWrites {
   public:
    DescriptorWrites() = default;
    DescriptorWrites(std::uint32_t count, const VkWriteDescriptorSet* given);

    std::uint32_t count() const { return std::uint32_t(writes_.size()); }
    std::uint32_t binding(std::size_t index) const { return writes_[index].dstBinding; }
    // Returns one element for each write, which is empty for a write without a buffer.
    std::vector<VkDescriptorBufferInfo>& buffers() { return buffers_; }
    // Returns the writes with `set` as destination; VK_NULL_HANDLE for push descriptors.
    const VkWriteDescriptorSet* into(VkDescriptorSet set);

   private:
    std::vector<VkWriteDescriptorSet> writes_;
    std::vector<VkDescriptorBufferInfo> buffers_;
    std::vector<VkDescriptorImageInfo> images_;
};

// Like change_properties(), but lets `change` read and alter the descriptor writes of each call,
// for push descriptors and for sets.
void change_descriptors(Functions& replaced, void (*change)(DescriptorWrites&));

// Changes of a shader that are permitted or not, depending on the reported properties.
void flush_subnormals(Module& module);  // replaces each subnormal f32 result by 0
void unify_nan(Module& module);         // replaces each NaN by the same quiet NaN

}  // namespace vkrope::faults
