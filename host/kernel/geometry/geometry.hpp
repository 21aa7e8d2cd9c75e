// SPDX-License-Identifier: MIT
// How a call falls on the lanes of workgroups: pure arithmetic, no Vulkan call.
#pragma once

#include "interface.h"
#include "vkrope/kernel.hpp"

namespace vkrope {

/// value / by, rounded up.
constexpr std::uint64_t divide_up(std::uint64_t value, std::uint64_t by) noexcept {
    return (value + by - 1) / by;
}

/// The part of a device that shapes a dispatch.
struct DispatchLimits {
    std::uint32_t workgroup_count[3] = {65535, 65535, 65535};
    std::uint32_t workgroup_invocations = 128;  ///< the most in one workgroup, along x
    std::uint32_t batch =
        shader::max_batch;  ///< heads whose words the registers of a lane hold; 1: they are few
};

/// Which row of the table a pipeline is from. It never changes a bit of the result.
enum class Load : std::uint32_t {
    many_tokens,  ///< GPU: lanes have several heads each, which share their angles
    few_tokens,   ///< GPU: one head each, over as many workgroups as that takes
    processor,    ///< a lane has a share of a row, in all heads of its token
};

/// What one pipeline is specialised to: which units it moves, and how the steps, heads and tokens
/// of a call fall on a workgroup. Lane step + step_lanes * (head + head_lanes * token) has steps of
/// one row, a step being two units.
struct Geometry {
    std::uint32_t access = shader::access_wide;
    std::uint32_t unit_elements = 1;
    std::uint32_t step_lanes = 1, head_lanes = 1, group_tokens = 1;
    std::uint32_t steps_together = 1;  ///< steps side by side that a lane turns
    std::uint32_t q_batch = 0,
                  k_batch = 0;   ///< heads that a lane has of each, head_lanes apart; 0: all
    bool whole_batches = false;  ///< no lane has fewer heads, but where a call is cut between them
    bool units_apart = false;    ///< neighbouring lanes have neighbouring units
    bool k_after_q = false;  ///< Q's words fill a lane's registers: it loads K when they are stored

    std::uint32_t workgroup_size() const noexcept { return step_lanes * head_lanes * group_tokens; }
};
constexpr bool operator==(const Geometry& a, const Geometry& b) noexcept {
    return a.access == b.access && a.unit_elements == b.unit_elements &&
           a.step_lanes == b.step_lanes && a.head_lanes == b.head_lanes &&
           a.group_tokens == b.group_tokens && a.steps_together == b.steps_together &&
           a.q_batch == b.q_batch && a.k_batch == b.k_batch && a.whole_batches == b.whole_batches &&
           a.units_apart == b.units_apart && a.k_after_q == b.k_after_q;
}

/// What a dispatch has to do. z counts sequences or groups of heads; heads are those of one group
/// then.
struct Work {
    std::uint32_t z = 0, tokens = 0, q_heads = 0, k_heads = 0;
};

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

/// Whether the widths and windows allow this access at all; strides and offsets decide per call.
bool widths_allow(const KernelInfo& info, std::uint32_t access) noexcept;

/// Whether rows allow it whose distances from a 16-byte boundary, in elements, are the multiples of
/// what these bits have in common: the first offset and all strides, combined by or.
bool strides_allow(std::uint32_t element_bytes, std::uint64_t offset_and_strides,
                   std::uint32_t access) noexcept;

/// The table: what a pipeline for this access is specialised to.
Geometry geometry_for(const KernelInfo& info, std::uint32_t access, Load load,
                      const DispatchLimits& limits) noexcept;

/// Heads of a tensor that one dispatch serves. A lane that has them all loops over them, and
/// llvmpipe ends a shader after 65 535 iterations of all its loops together, without a word.
std::uint32_t max_heads(const KernelInfo& info, const Geometry& geometry,
                        const DispatchLimits& limits) noexcept;

/// Tokens that one dispatch serves.
std::uint64_t max_tokens(const Geometry& geometry, const DispatchLimits& limits) noexcept;

/// Workgroups along x, y and z: blocks of tokens, groups of heads, and z.
DispatchShape shape_of(const Geometry& geometry, const Work& work) noexcept;

/// Invocations that the device dispatches along x and then y, and that a shader counts in 32 bits:
/// those of positions.comp.
std::uint64_t max_in_a_row(std::uint32_t workgroup_size, const DispatchLimits& limits) noexcept;

/// Workgroups for 1 to max_in_a_row() of them.
DispatchShape shape_in_a_row(std::uint64_t invocations, std::uint32_t workgroup_size,
                             const DispatchLimits& limits) noexcept;

}  // namespace vkrope
