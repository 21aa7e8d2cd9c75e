// SPDX-License-Identifier: MIT
// Every rule that an argument can break, checked before any Vulkan call; what passes comes back
// resolved.
#pragma once

#include "kernel/geometry/view.hpp"
#include "vkrope/kernel.hpp"

namespace vkrope {

/// Q, K or V of a call.
struct ResolvedTensor {
    View in, out;
    bool in_place = false;
    std::uint32_t heads = 0;  ///< 0: absent
    /// Heads of a group: the largest number of which the groups of input and output consist.
    std::uint32_t group_heads = 1;
    std::uint32_t pages = 1;  ///< scattered: of the cache
};

/// A call that breaks no rule.
struct ResolvedCall {
    std::uint32_t batch = 0, tokens = 0;  ///< tokens 0: there is nothing to do
    ResolvedTensor q, k, v;
    View ids, slot_mapping;  ///< unused ones have no buffer
    VkDescriptorBufferInfo table = {}, table_sin = {},
                           status = {};  ///< as bound; unused ones are null
    std::uint32_t table_offset = 0, table_sin_offset = 0,
                  status_offset = 0;  ///< words from the start of the binding
    std::uint32_t ids_axis = 0;       ///< words from axis to axis
    std::uint32_t position_step = 0;  ///< implicit: from sequence to sequence
    std::uint32_t page_size = 1;
    float gain = 1;  ///< multiplies cos and sin
};

/// What create() takes.
Status check(const DeviceRef& device, const KernelInfo& info) noexcept;

/// What record() takes.
Result<ResolvedCall> resolve(const KernelInfo& info, const StorageLimits& limits,
                             const Call& call) noexcept;

}  // namespace vkrope
