// SPDX-License-Identifier: MIT
// Represents a shader module on a borrowed device: entry points, limits, layouts, pipelines, and
// the binding of descriptors. Kernel and PositionKernel derive from it.
#pragma once

#include "kernel/geometry/geometry.hpp"
#include "kernel/geometry/view.hpp"
#include "kernel/spirv/modules.hpp"
#include "kernel/spirv/spirv.hpp"
#include "kernel/vulkan/functions.hpp"

namespace vkrope {

struct Program {
    DeviceRef device;
    DeviceFunctions vk;
    DispatchLimits dispatch_limits;
    StorageLimits storage_limits;
    std::uint32_t max_storage_buffers = 0;
    bool cpu_device = false;
    std::uint32_t modes = 0;  // FloatModes for modules without 16-bit floats
    std::uint32_t float16_modes =
        0;  // for modules with 16-bit floats; 0: the device cannot round 16-bit floats as needed
    BindingList binds;         // bindings of all its pipelines
    BindingList layout_binds;  // bindings of set_layout, including `binds`
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
};

// Checks a DeviceRef.
Status check(const DeviceRef& device) noexcept;

// Loads the entry points and the limits.
Status borrow(Program& program, const DeviceRef& device);

// Returns all bindings of all kernels, for a layout that all kernels of a device can share.
BindingList every_binding() noexcept;

// Creates a set layout of program.layout_binds. Layouts of the same bindings are compatible.
Status create_set_layout(const Program& program, VkDescriptorSetLayout& layout);

// Creates the layouts for program.binds and `push_bytes` bytes of push constants. An arena
// provides sets for all kernels whose layouts have the same bindings. If the device binds enough
// storage buffers, these are all of its kernels.
Status create_layouts(Program& program, std::uint32_t push_bytes);

// Creates a pipeline of `words`. `name` is its object name if debug_utils is enabled.
Status create_pipeline(const Program& program, const Spirv& words, const char* name,
                       VkPipeline& pipeline);

void destroy_layouts(Program& program) noexcept;

// Descriptors of a dispatch, by binding number. Every binding that the module declares must be
// valid, because Vulkan requires it even if the code that uses the binding never runs.
struct Descriptors {
    VkDescriptorBufferInfo buffers[shader::binding_count] = {};
    VkImageView view = VK_NULL_HANDLE;
};

// Implements create_arena() for any program.
Result<DescriptorArena*> create_arena_of(const Program* program, std::uint32_t calls);

// Checks that there is an arena if the program needs one, that it fits the program, and that it
// has `sets` sets left.
Status check_arena(const Program& program, const DescriptorArena* arena,
                   std::uint64_t sets) noexcept;

// Pushes the descriptors, or writes them to the next set of the arena.
void bind(VkCommandBuffer commands, const Program& program, const Descriptors& descriptors,
          DescriptorArena* arena) noexcept;

// Begins or ends a label around the recorded commands, if debug_utils is enabled.
void begin_label(VkCommandBuffer commands, const Program& program) noexcept;
void end_label(VkCommandBuffer commands, const Program& program) noexcept;

// Orders the dispatches of a call: those before the barrier, then those after it.
void record_barrier(VkCommandBuffer commands, const Program& program) noexcept;

// Binds the pipeline, pushes the constants, and dispatches.
void dispatch(VkCommandBuffer commands, const Program& program, VkPipeline pipeline,
              const void* push, std::uint32_t push_bytes, const DispatchShape& shape) noexcept;

}  // namespace vkrope
