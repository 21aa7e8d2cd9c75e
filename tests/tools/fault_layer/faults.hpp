// SPDX-License-Identifier: MIT
// The faults of the layer, and what they are made of.
//
// VKROPE_FAULT names those that the layer has, with commas between them: NAME or NAME=ARGUMENT.
// Without it, or with "none", the layer changes nothing.
#pragma once

#include <vulkan/vulkan.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "module.hpp"

namespace vkrope::faults {

/// The Vulkan functions that a fault may replace.
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

/// Functions of the driver below, for a fault to call. There is one device at a time, as in the
/// programs that this layer tests.
extern Functions next;
/// That device, once it is made.
extern VkPhysicalDevice physical_device;
/// The argument of the fault whose `replace` runs.
extern std::string argument;

struct Fault {
    const char* name;
    const char* what;  ///< what the driver does wrong, as a clause
    /// Replaces functions. Called when the instance is made, and again when a device is.
    void (*replace)(Functions&) = nullptr;
    /// Changes every shader before the driver sees it.
    void (*rewrite)(Module&) = nullptr;
};

// Each list stands in the file of its name.
std::span<const Fault> shader_faults();
std::span<const Fault> command_faults();
std::span<const Fault> device_faults();
std::span<const Fault> program_faults();
/// What Vulkan permits: no faults, and every check must pass.
std::span<const Fault> variations();

/// See barrier_fault.cpp.
void barriers_ignored(Functions& replaced);

/// Ends the program, hangs or fails if that is the fault of this place, which a program passes.
VkResult pass(const char* place);

/// The structures of properties that a program may ask for, as far as a fault changes one.
struct Reported {
    VkPhysicalDeviceProperties& properties;
    // null: not asked for
    VkPhysicalDeviceFloatControlsProperties* float_controls = nullptr;
    VkPhysicalDeviceDriverProperties* driver = nullptr;
};

/// Adds a change to those before; the same one again adds nothing.
void change_properties(Functions& replaced, void (*change)(const Reported&));

/// Copies of descriptor writes with one buffer or image each, as the library makes them.
class DescriptorWrites {
   public:
    DescriptorWrites() = default;
    DescriptorWrites(std::uint32_t count, const VkWriteDescriptorSet* given);

    std::uint32_t count() const { return std::uint32_t(writes_.size()); }
    std::uint32_t binding(std::size_t index) const { return writes_[index].dstBinding; }
    /// One for each write; of a write without a buffer it is empty.
    std::vector<VkDescriptorBufferInfo>& buffers() { return buffers_; }
    /// The writes into `set`; VK_NULL_HANDLE for those that are pushed.
    const VkWriteDescriptorSet* into(VkDescriptorSet set);

   private:
    std::vector<VkWriteDescriptorSet> writes_;
    std::vector<VkDescriptorBufferInfo> buffers_;
    std::vector<VkDescriptorImageInfo> images_;
};

/// As change_properties(): lets `change` see, and alter, what each call writes into descriptors,
/// pushed or in sets.
void change_descriptors(Functions& replaced, void (*change)(DescriptorWrites&));

// Changes of a shader that are permitted or not, depending on what the device reports.
void flush_subnormals(Module& module);  ///< makes 0 of each f32 result that is subnormal
void unify_nan(Module& module);         ///< makes one quiet NaN of each NaN

}  // namespace vkrope::faults
