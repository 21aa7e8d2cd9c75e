// SPDX-License-Identifier: MIT
// Defines vkrope_kernel, which create() fills and record() reads.
#pragma once

#include "kernel/resolve/resolve.hpp"
#include "kernel/vulkan/program.hpp"

namespace vkrope {

// Maximum number of pipelines of a kernel: four kinds of access, of which two have two loads, or
// all have two tensors; four for V, and four for each second destination.
inline constexpr std::uint32_t max_pipelines = 20;

struct PipelineSet;

struct Pipeline {
    const PipelineSet* set = nullptr;  // the set that the pipeline belongs to
    Geometry geometry;
    bool for_many_tokens = false;  // the next pipeline has the same access, for few tokens
    VkPipeline handle = VK_NULL_HANDLE;
};

// The tensors of one dispatch: Q, K and V, or some of them. With `separate_dispatches`, the shader
// sees each tensor as Q; otherwise it sees a V without K as a K that does not rotate.
struct PipelineSet {
    KernelInfo info;             // as the shader sees it
    ParameterLayout parameters;  // layout of the parameters, as the shader sees it
    std::uint32_t first_pipeline =
        0;  // index in Kernel::pipelines: widest access first, then many tokens before few
    std::uint32_t pipeline_count = 0;
};

}  // namespace vkrope

struct vkrope_kernel : vkrope::Program {
    vkrope::KernelInfo info;
    vkrope::OpsNeeds needs;
    bool separate_dispatches = false;  // each tensor has its own set
    bool v_joins = false;              // K's set also takes V, in calls where V has K's strides
    bool seconds_join = false;         // a tensor's set also stores its second destination
    std::uint32_t conversion = 0;      // shader::conversion_*
    // Without `separate_dispatches`, the set of Q is also that of K, and of a V that joins. The
    // set of V is for V alone.
    vkrope::PipelineSet set[vkrope::tensor_count];
    // Without `seconds_join`: for the second destinations of K and V.
    vkrope::PipelineSet second_set[vkrope::tensor_count];
    std::uint32_t storage_buffers_to_count = 0;  // needed by a dispatch that counts tokens
    vkrope::Pipeline pipelines[vkrope::max_pipelines];
    std::uint32_t pipeline_count = 0;
};

namespace vkrope {

// Checks and resolves the arguments of record().
inline Result<ResolvedCall> resolve(const Kernel& kernel, const Call& call) noexcept {
    return resolve(kernel.info, kernel.needs, kernel.storage_limits, call);
}

}  // namespace vkrope

struct vkrope_position_kernel : vkrope::Program {
    // By shader::position_output_*. A device that binds few storage buffers has only that of ids.
    VkPipeline pipelines[vkrope::shader::position_output_count] = {};
    std::uint32_t workgroup_size = 0;
};
