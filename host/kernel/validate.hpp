// SPDX-License-Identifier: MIT
// Every rule that an argument can break, checked before any Vulkan call; what passes comes back resolved.
#pragma once

#include "kernel/dispatch_shape.hpp"

namespace vkrope {

/// The limits of the device that arguments are held against.
struct StorageLimits {
    VkDeviceSize offset_alignment = 256;  ///< minStorageBufferOffsetAlignment, a power of two
    VkDeviceSize range = 1u << 27;        ///< maxStorageBufferRange, bytes
};

/// Where a tensor is bound, and where its rows are from there on.
struct Placement {
    VkDescriptorBufferInfo bound = {};  ///< starts at or below the tensor, where the device can bind and 16 bytes are aligned
    Strides strides;                    ///< elements; offset counts from `bound`
};

/// A call that breaks no rule.
struct ResolvedCall {
    Work work;
    Placement q_in, q_out, k_in, k_out;
    VkDescriptorBufferInfo ids = {}, table = {}, status = {};  ///< bound as above; unused ones are null
    std::uint32_t ids_offset = 0, ids_batch_stride = 0, table_offset = 0,
                  status_offset = 0;  ///< words from the start of the binding
};

Status validate(const DeviceRef& device, const KernelInfo& info) noexcept;

/// A call without tokens or without sequences resolves to work.tokens == 0.
Result<ResolvedCall> validate(const KernelInfo& info, const StorageLimits& limits, const Call& call) noexcept;

}  // namespace vkrope
