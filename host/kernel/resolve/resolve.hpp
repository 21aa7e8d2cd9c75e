// SPDX-License-Identifier: MIT
// Checks every argument before any Vulkan call, and returns the call in resolved form.
#pragma once

#include <optional>

#include "kernel/geometry/view.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

// Q, K or V of a call.
struct ResolvedTensor {
    View in, out;
    bool in_place = false;
    std::uint32_t heads = 0;  // 0: absent
    // Heads per group: the greatest common divisor of the group sizes of input and output.
    std::uint32_t group_heads = 1;
    std::uint32_t pages = 1;         // pages of the cache, if scattered
    std::optional<View> scales;      // a factor for each token
    std::optional<View> scales_out;  // scales that the kernel computes for its rows
    struct {
        VkBuffer buffer = VK_NULL_HANDLE;  // null: there is none
        std::uint64_t first_byte = 0;
    } second;  // destination, see second_of()
};

// A valid call.
struct ResolvedCall {
    std::uint32_t batch = 0, tokens = 0;  // tokens 0: there is nothing to do
    ResolvedTensor tensor[tensor_count];
    View ids, slot_mapping;  // an unused view has no buffer
    VkDescriptorBufferInfo table = {}, table_sin = {},
                           out_of_range = {};  // as bound; unused buffers are null
    std::uint32_t table_offset = 0, table_sin_offset = 0,
                  out_of_range_offset = 0;  // words from the start of the binding
    std::uint32_t ids_axis = 0;             // stride of axes, in words
    std::uint32_t position_step = 0;        // implicit: positions between sequences
    std::uint32_t page_size = 1;
    float gain = 1;                          // multiplies cos and sin
    VkDescriptorBufferInfo parameters = {};  // as bound; null if there are none
    std::uint32_t parameters_offset = 0;     // words from the start of the binding
    float q_scale = 1;                       // Call::q_scale * Ops::scale
};

// Returns the rows of the second destination of a tensor, which are packed.
View second_of(const KernelInfo& info, const ResolvedCall& call, TensorIndex index) noexcept;

// Checks the arguments of create().
Status check(const DeviceRef& device, const KernelInfo& info) noexcept;

// Requirements of a kernel's ops, computed once for all calls.
struct OpsNeeds {
    bool any = false;                 // a tensor has ops or a quantised output
    std::size_t parameter_bytes = 0;  // size of Call::parameters
};

// Returns the requirements of `info`, which must be valid.
OpsNeeds ops_needs(const KernelInfo& info) noexcept;

// Checks and resolves the arguments of record(). `needs` is ops_needs(info).
Result<ResolvedCall> resolve(const KernelInfo& info, const OpsNeeds& needs,
                             const StorageLimits& limits, const Call& call) noexcept;

}  // namespace vkrope
