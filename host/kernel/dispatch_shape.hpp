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

/// What a dispatch has to do. z counts sequences or groups of heads; heads are those of one group then.
struct Work {
    std::uint32_t z = 0, tokens = 0, q_heads = 0, k_heads = 0;
    bool q_in_place = false, k_in_place = false;
};

/// Heads that one dispatch can count, of Q and of K. An invocation that owns them all loops over them, and llvmpipe ends a shader
/// after 65 535 iterations of all its loops together, without a word.
std::uint32_t most_heads(const KernelInfo& info, const Variant& variant) noexcept;

struct DispatchShape {
    std::uint32_t groups[3] = {0, 0, 0};
};

/// Elements of a unit at this kind of access.
std::uint32_t unit_elements(const KernelInfo& info, std::uint32_t access) noexcept;

/// The windows of a kernel, one at least; absent ones have rotary_dim 0.
struct Windows {
    Window of[max_windows] = {};
};
Windows windows_of(const KernelInfo& info) noexcept;

/// Whether the widths and windows of Q and K allow this access at all; strides and offsets decide per call.
bool widths_allow(const KernelInfo& info, std::uint32_t access) noexcept;

/// Whether rows allow it whose distances from a 16-byte boundary, in elements, are the multiples of what these bits have in common:
/// the first offset and all strides, combined by or.
bool strides_allow(std::uint32_t element_bytes, std::uint64_t offset_and_strides, std::uint32_t access) noexcept;

/// What a pipeline for this access is specialised to. many_heads: four heads an invocation, on a GPU.
Variant variant_for(const KernelInfo& info, bool cpu, std::uint32_t access, bool many_heads, const DispatchLimits& limits) noexcept;

/// Invocations that one token needs.
std::uint64_t items_per_token(const KernelInfo& info, const Variant& variant, const Work& work) noexcept;

/// The most invocations of a token range that the device dispatches and the shader counts.
std::uint64_t most_invocations(const Variant& variant, const DispatchLimits& limits) noexcept;

/// Workgroups along x, y and z, for 1 to most_invocations() invocations and no more z than the device counts.
DispatchShape shape_of(std::uint64_t invocations, std::uint32_t z, const Variant& variant, const DispatchLimits& limits) noexcept;

}  // namespace vkrope
