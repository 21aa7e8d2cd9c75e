// SPDX-License-Identifier: MIT
// What create() makes and record() reads; immutable in between.
#pragma once

#include "kernel/functions.hpp"
#include "kernel/modules.hpp"
#include "kernel/validate.hpp"

namespace vkrope {

/// Kinds of access times one or four heads.
inline constexpr std::uint32_t max_pipelines = 6;

struct Pipeline {
    Variant variant;
    VkPipeline handle = VK_NULL_HANDLE;
};

struct Kernel {
    DeviceRef device;
    DeviceFunctions vk;
    KernelInfo info;
    const Module* module = nullptr;
    DispatchLimits dispatch_limits;
    StorageLimits storage_limits;
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    Pipeline pipelines[max_pipelines];  ///< widest access first; for each, four heads before one
    std::uint32_t pipeline_count = 0;
};

/// The next unused set of the arena. Code::limit_exceeded when it is full.
Result<VkDescriptorSet> take_set(DescriptorArena& arena) noexcept;

/// Whether the arena was made for this kernel.
bool belongs_to(const DescriptorArena& arena, const Kernel& kernel) noexcept;

}  // namespace vkrope
