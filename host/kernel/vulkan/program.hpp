// SPDX-License-Identifier: MIT
// A module on a borrowed device: its entry points, limits, layouts, pipelines, and how its bindings
// reach a command buffer. A Kernel is one, and so is a PositionKernel.
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
    std::uint32_t modes = 0;  ///< FloatModes of modules without 16-bit floats
    std::uint32_t float16_modes =
        0;              ///< of modules with them; 0: 16-bit floats do not round as they have to
    BindingList binds;  ///< of its pipelines
    BindingList layout_binds;  ///< of set_layout: those, or every_binding()
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
};

/// Every rule of a DeviceRef.
Status check(const DeviceRef& device) noexcept;

/// Loads the entry points and the limits.
Status borrow(Program& program, const DeviceRef& device);

/// Every binding that some kernel has: a layout that all kernels of a device can share.
BindingList every_binding() noexcept;

/// The words of a module with these specialisation constants and FloatModes, pruned. What they bind
/// is added to program.binds.
Result<Spirv> specialised(Program& program, const Spirv& module, const std::uint32_t* constants,
                          std::uint32_t constant_count, std::uint32_t modes);

/// A set layout of program.layout_binds. Two of the same bindings are compatible.
Status create_set_layout(const Program& program, VkDescriptorSetLayout& layout);

/// For program.binds, with so many bytes of push constants. Sets come from an arena, which serves
/// all kernels whose layouts have the same bindings: all of a device's, where it binds that many
/// storage buffers.
Status create_layouts(Program& program, std::uint32_t push_bytes);

/// `words` as a pipeline, named so where debug utils are enabled.
Status create_pipeline(const Program& program, const Spirv& words, const char* name,
                       VkPipeline& pipeline);

void destroy_layouts(Program& program) noexcept;

/// What a dispatch binds, by binding number. Static use is textual, so every binding that the
/// module declares must be valid.
struct Descriptors {
    VkDescriptorBufferInfo buffers[shader::binding_count] = {};
    VkImageView view = VK_NULL_HANDLE;
};

/// create_arena() for any program.
Result<DescriptorArena*> create_arena_of(const Program* program, std::uint32_t calls);

/// Whether an arena is at hand where one is needed, of this program, with so many sets left.
Status check_arena(const Program& program, const DescriptorArena* arena,
                   std::uint64_t sets) noexcept;

/// Pushes the descriptors, or takes a set of the arena for them.
void bind(VkCommandBuffer commands, const Program& program, const Descriptors& descriptors,
          DescriptorArena* arena) noexcept;

/// A label around what is recorded, where debug utils are enabled.
void begin_label(VkCommandBuffer commands, const Program& program) noexcept;
void end_label(VkCommandBuffer commands, const Program& program) noexcept;

/// Binds the pipeline, pushes the constants, dispatches.
void dispatch(VkCommandBuffer commands, const Program& program, VkPipeline pipeline,
              const void* push, std::uint32_t push_bytes, const DispatchShape& shape) noexcept;

}  // namespace vkrope
