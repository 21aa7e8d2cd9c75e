// SPDX-License-Identifier: MIT
// How a call falls on invocations: pure arithmetic, no Vulkan call.
#pragma once

#include "interface.h"
#include "vkrope/kernel.hpp"

namespace vkrope {

/// The part of VkPhysicalDeviceLimits that shapes a dispatch.
struct DispatchLimits {
    std::uint32_t workgroup_count[3] = {65535, 65535, 65535};
    std::uint32_t workgroup_invocations = 128;  ///< the most in one workgroup, along x
};

/// What one pipeline is specialised to.
struct Variant {
    std::uint32_t access = shader::access_wide;
    std::uint32_t unit_elements = 1;
    std::uint32_t heads_batch = 1;
    std::uint32_t heads_owned = 1;  ///< 0: all heads of a token
    std::uint32_t units_owned = 1;
    std::uint32_t workgroup_size = 64;
};

/// What a call asks of the dispatch, after validation.
struct Work {
    std::uint32_t batch = 0, tokens = 0, q_heads = 0, k_heads = 0;
    bool q_in_place = false, k_in_place = false;
};

struct DispatchShape {
    std::uint32_t groups[3] = {0, 0, 0};
};

/// Elements of a unit at this kind of access.
std::uint32_t unit_elements(const KernelInfo& info, std::uint32_t access) noexcept;

/// Whether the widths and windows of Q and K allow this access at all; strides and offsets decide per call.
bool widths_allow(const KernelInfo& info, std::uint32_t access) noexcept;

/// Whether a tensor of this width, stored with these element strides and this offset (elements from a 16-byte boundary), allows it.
struct Strides {
    std::uint64_t offset = 0, batch = 0, token = 0, head = 0;
};
bool strides_allow(Element element, const Strides& strides, std::uint32_t access) noexcept;

/// What a pipeline for this access is specialised to. many_heads: four heads an invocation, on a GPU.
Variant variant_for(const KernelInfo& info, bool cpu, std::uint32_t access, bool many_heads, const DispatchLimits& limits) noexcept;

/// Invocations that one token needs.
std::uint64_t items_per_token(const KernelInfo& info, const Variant& variant, const Work& work) noexcept;

/// Workgroups along x, y and z. limit_exceeded where the device cannot count that far.
Result<DispatchShape> dispatch_shape(const KernelInfo& info, const Variant& variant, const Work& work,
                                     const DispatchLimits& limits) noexcept;

}  // namespace vkrope
