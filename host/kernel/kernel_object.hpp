// SPDX-License-Identifier: MIT
// What create() makes and record() reads; immutable in between.
#pragma once

#include "kernel/program.hpp"

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

struct Kernel : Program {
    KernelInfo info;
    bool lean = false;             ///< Q and K are parts of their own
    std::uint32_t conversion = 0;  ///< shader::conversion_*
    Part q, k;                     ///< not lean: q serves both
    Pipeline pipelines[max_pipelines];
    std::uint32_t pipeline_count = 0;
};

struct PositionKernel : Program {
    VkPipeline pipeline = VK_NULL_HANDLE;
    Variant variant;  ///< only its workgroup size counts
};

}  // namespace vkrope
