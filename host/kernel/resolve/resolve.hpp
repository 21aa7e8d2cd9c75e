// SPDX-License-Identifier: MIT
// Checks every argument before any Vulkan call, and returns the call in resolved form.
#pragma once

#include <optional>

#include "kernel/geometry/view.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

// Where rows begin whose strides follow from other fields.
struct Place {
    VkBuffer buffer = VK_NULL_HANDLE;  // null: there are none
    std::uint64_t first_byte = 0;

    explicit operator bool() const noexcept { return buffer != VK_NULL_HANDLE; }
};

// Q, K or V of a call. Every call clears it, so it is small.
struct ResolvedTensor {
    View in, out;
    bool in_place = false;
    std::uint32_t heads = 0;  // 0: absent
    // Heads per group: the greatest common divisor of the group sizes of input and output.
    std::uint32_t group_heads = 1;
    std::uint32_t pages = 1;         // pages of the cache, if it has one
    std::uint32_t source_pages = 0;  // pages of a cache that is read at other slots, else 0
    std::optional<View> scales;      // a factor for each token
    Place scales_in, scales_out;     // of the rows that are read, and made ones: scales_of()
    Place second;                    // destination: second_of()
};

// A valid call.
struct ResolvedCall {
    std::uint32_t batch = 0, tokens = 0;  // tokens 0: there is nothing to do
    ResolvedTensor tensor[tensor_count];
    View ids, slot_mapping;  // an unused view has no buffer
    Place source_mapping;    // slots that are read: slots_of()
    // The same of V, if it has slots of its own, which differ from K's in one or both.
    Place v_slot_mapping, v_source_mapping;
    VkDescriptorBufferInfo table = {}, table_sin = {},
                           out_of_range = {};  // as bound; unused buffers are null
    std::uint32_t table_offset = 0, table_sin_offset = 0,
                  out_of_range_offset = 0;  // words from the start of the binding
    std::uint32_t ids_axis = 0;             // stride of axes, in words
    std::uint32_t position_step = 0;        // implicit: positions between sequences
    std::uint32_t page_size = 1;
    VkDescriptorBufferInfo token_count = {};  // as bound; null if there is none
    float gain = 1;                           // multiplies cos and sin
    VkDescriptorBufferInfo parameters = {};   // as bound; null if there are none
    std::uint32_t parameters_offset = 0;      // words from the start of the binding
    float q_scale = 1;                        // Call::q_scale * Ops::scale
    bool has_norm_weight = false;             // Call::norm_weight is used
};

// Returns the rows of the second destination of a tensor, which are packed.
View second_of(const KernelInfo& info, const ResolvedCall& call, TensorIndex index) noexcept;

// Returns the scales of the rows of a tensor, which are read or made.
View scales_of(const KernelInfo& info, const ResolvedCall& call, TensorIndex index,
               bool read) noexcept;

// Returns whether V has slots of its own.
inline bool v_has_own_slots(const ResolvedCall& call) noexcept {
    return call.v_slot_mapping || call.v_source_mapping;
}

// Returns slots of a tensor, all of which have the strides of slot_mapping: where its rows go, or
// those that are read. Without such slots it has no buffer.
View slots_of(const ResolvedCall& call, TensorIndex index, bool read) noexcept;

// Checks the arguments of create().
Status check(const DeviceRef& device, const KernelInfo& info) noexcept;

// Requirements of a kernel's ops, computed once for all calls.
struct OpsNeeds {
    bool any = false;  // a tensor has ops or a quantised output
    bool moves_keys = false;
    std::size_t parameter_bytes = 0;  // size of Call::parameters
};

// Returns the requirements of `info`, which must be valid.
OpsNeeds ops_needs(const KernelInfo& info) noexcept;

// Checks and resolves the arguments of record(). `needs` is ops_needs(info).
Result<ResolvedCall> resolve(const KernelInfo& info, const OpsNeeds& needs,
                             const StorageLimits& limits, const Call& call) noexcept;

}  // namespace vkrope
