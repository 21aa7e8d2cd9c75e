// SPDX-License-Identifier: MIT
// What create() makes and record() reads; immutable in between.
#pragma once

#include "kernel/vulkan/program.hpp"

namespace vkrope {

/// Kinds of access times two loads, or two tensors, and V.
inline constexpr std::uint32_t max_pipelines = 9;

struct Pipeline {
    const KernelInfo* info = nullptr;  ///< of the part that it is for
    Geometry geometry;
    VkPipeline handle = VK_NULL_HANDLE;
};

/// What one dispatch of a call serves: Q, K and V, or some of them. Apart, the shader sees each
/// tensor as Q; else a V without K as a K that nothing turns.
struct Part {
    KernelInfo info;  ///< as the shader sees it
    std::uint32_t first_pipeline =
        0;  ///< of Kernel::pipelines; widest access first, and for each, many tokens before few
    std::uint32_t pipeline_count = 0;
};

struct Kernel : Program {
    KernelInfo info;
    bool apart = false;            ///< each tensor has a part of its own
    bool v_joins = false;          ///< V is in the part of K too, for calls where it lies as K does
    std::uint32_t conversion = 0;  ///< shader::conversion_*
    Part q, k;                     ///< where they are not apart, q serves both
    Part v;                        ///< of V alone
    std::uint32_t storage_buffers_to_count = 0;  ///< what a dispatch would bind that counts
    Pipeline pipelines[max_pipelines];
    std::uint32_t pipeline_count = 0;
};

struct PositionKernel : Program {
    VkPipeline pipeline = VK_NULL_HANDLE;
    std::uint32_t workgroup_size = 0;
};

}  // namespace vkrope
