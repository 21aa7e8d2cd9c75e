// SPDX-License-Identifier: MIT
// What create() makes and record() reads; immutable in between.
#pragma once

#include "kernel/dispatch_shape.hpp"
#include "kernel/functions.hpp"
#include "kernel/modules.hpp"
#include "kernel/validate.hpp"

namespace vkrope {

/// Kinds of access times one or four heads; in lean parts, times two tensors.
inline constexpr std::uint32_t max_pipelines = 6;

struct Pipeline {
    Variant variant;
    VkPipeline handle = VK_NULL_HANDLE;
};

/// What one dispatch of a call serves: Q and K, or one of them, which its module then sees as first.
struct Part {
    KernelInfo info;                   ///< widths as the module sees them
    std::uint32_t first_pipeline = 0;  ///< of Kernel::pipelines; widest access first, and for each, four heads before one
    std::uint32_t pipeline_count = 0;
};

struct Kernel {
    DeviceRef device;
    DeviceFunctions vk;
    KernelInfo info;
    const Module* module = nullptr;
    bool lean = false;  ///< Q and K are parts of their own
    DispatchLimits dispatch_limits;
    StorageLimits storage_limits;
    std::uint32_t max_storage_buffers = 0;
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    Part q, k;  ///< not lean: q serves both
    Pipeline pipelines[max_pipelines];
    std::uint32_t pipeline_count = 0;
};

/// The next unused set of the arena, of which `free_sets` are left.
VkDescriptorSet take_set(DescriptorArena& arena) noexcept;
std::uint32_t free_sets(const DescriptorArena& arena) noexcept;
std::uint32_t capacity(const DescriptorArena& arena) noexcept;

/// Whether the arena was made for this kernel.
bool belongs_to(const DescriptorArena& arena, const Kernel& kernel) noexcept;

}  // namespace vkrope
