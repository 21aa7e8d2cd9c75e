// SPDX-License-Identifier: MIT
// Maps a call to workgroups and lanes: pure arithmetic, no Vulkan call.
#pragma once

#include <algorithm>
#include <iterator>

#include "base/divide_up.hpp"
#include "interface.h"
#include "vkrope/vkrope.hpp"

namespace vkrope {

// Maximum number of heads per lane on a GPU, twice as many where a row copies at least as many
// channels as it rotates. A lane takes more than one head only if enough lanes are left to hide the
// latency of their loads.
inline constexpr std::uint32_t max_batch = 4;
inline constexpr std::uint64_t many_lanes = std::uint64_t{1} << 16;

// The device limits that shape a dispatch.
struct DispatchLimits {
    std::uint32_t workgroup_count[3] = {65535, 65535, 65535};
    std::uint32_t workgroup_invocations = 128;  // maximum per workgroup, along x
    // Maximum number of heads of a lane; 1 for devices with few registers.
    std::uint32_t batch = max_batch;
    // The widest access in kernels without and with ops.
    std::uint32_t access = shader::access_wide, ops_access = shader::access_wide;
};

// Workload that a pipeline is optimised for. It does not change the result bits.
enum class Load : std::uint32_t {
    many_tokens,  // GPU: a lane has several heads, which share their angles
    few_tokens,   // GPU: a lane has one head, so there are more workgroups
    processor,    // CPU: a lane has part of a row, in all heads of its token
};

// Shape that a pipeline is specialised to: the size of its units, and the mapping of the chunks,
// heads and tokens of a call to a workgroup. Lane chunk + chunk_lanes * (head + head_lanes *
// token) processes chunks of one row; a chunk is two units.
struct Geometry {
    std::uint32_t access = shader::access_wide;
    std::uint32_t unit_elements = 1;
    // Of the channels that do not rotate, in kernels without ops.
    std::uint32_t copy_access = shader::access_wide;
    std::uint32_t copy_elements = 1;
    std::uint32_t chunk_lanes = 1, head_lanes = 1, group_tokens = 1;
    std::uint32_t chunks_together = 1;  // consecutive chunks that a lane rotates
    std::uint32_t q_batch = 0,
                  k_batch = 0;   // heads of each tensor per lane, head_lanes apart; 0: all
    bool units_apart = false;    // neighbouring lanes have neighbouring units
    bool few_registers = false;  // a lane loads K and V after storing Q, and copies last
    std::uint32_t ops = shader::ops_none;  // shader::ops_*: the lanes that apply the ops of a row
    // ops_owned: number of rows whose norms a lane keeps in registers.
    std::uint32_t norms_held = 1;
    std::uint32_t heads_together = 1;  // ops_shared: heads whose units a lane exchanges at once
    std::uint32_t rounds = 1;          // ops_shared: maximum rounds of heads, for many tokens
    bool staged_gaps = false;          // rows that lanes store together have gaps in shared memory
    // Lanes of a dispatch from which on `rounds` counts.
    std::uint64_t enough_lanes = many_lanes;

    // The access that strides and offsets must allow: the wider one. Wider accesses come first.
    std::uint32_t widest_access() const noexcept { return std::min(access, copy_access); }
    std::uint32_t workgroup_size() const noexcept {
        return chunk_lanes * head_lanes * group_tokens;
    }
};
constexpr bool operator==(const Geometry& a, const Geometry& b) noexcept {
    return a.access == b.access && a.unit_elements == b.unit_elements &&
           a.copy_access == b.copy_access && a.copy_elements == b.copy_elements &&
           a.chunk_lanes == b.chunk_lanes && a.head_lanes == b.head_lanes &&
           a.group_tokens == b.group_tokens && a.chunks_together == b.chunks_together &&
           a.q_batch == b.q_batch && a.k_batch == b.k_batch && a.units_apart == b.units_apart &&
           a.few_registers == b.few_registers && a.ops == b.ops && a.norms_held == b.norms_held &&
           a.heads_together == b.heads_together && a.rounds == b.rounds &&
           a.staged_gaps == b.staged_gaps && a.enough_lanes == b.enough_lanes;
}

// Size of a dispatch. z counts sequences, or groups of q_heads and k_heads heads.
struct Work {
    std::uint32_t z = 0, tokens = 0, q_heads = 0, k_heads = 0;
};

struct DispatchShape {
    std::uint32_t groups[3] = {0, 0, 0};
};

// Returns whether `is` returns true for any tensor of a kernel.
template <class Is>
bool any_tensor(const KernelInfo& info, const Is& is) noexcept {
    return std::any_of(std::begin(info.tensor), std::end(info.tensor), is);
}

// Returns the elements per unit for this kind of access.
std::uint32_t unit_elements(const KernelInfo& info, std::uint32_t access) noexcept;

// Windows of a kernel, at least one. Absent windows have rotary_dim 0.
struct Windows {
    Window of[max_windows] = {};
};
Windows windows_of(const KernelInfo& info) noexcept;

// Returns whether formats and windows allow this access to all channels of all tensors. Strides and
// offsets decide per call.
bool formats_allow(const KernelInfo& info, std::uint32_t access) noexcept;

// Returns whether this access is possible. `offset_and_strides` is the bitwise or of the first
// offset and all strides, in elements.
bool strides_allow(std::uint32_t element_bytes, std::uint64_t offset_and_strides,
                   std::uint32_t access) noexcept;

// Computes the geometry of a pipeline for this load, with the widest accesses that formats and
// windows allow, up to `access`. On a CPU and with ops, they must allow it.
Geometry geometry_for(const KernelInfo& info, std::uint32_t access, Load load,
                      const DispatchLimits& limits) noexcept;

// Maximum loop iterations of a lane for one tensor; llvmpipe silently ends a shader after 65 535.
inline constexpr std::uint64_t max_iterations = 16384;

// Returns the maximum number of heads of a tensor in one dispatch. A lane that has all heads loops
// over them; llvmpipe silently ends a shader after 65 535 iterations of all loops together.
std::uint32_t max_heads(const KernelInfo& info, const Geometry& geometry,
                        const DispatchLimits& limits) noexcept;

// Returns the maximum number of tokens in one dispatch.
std::uint64_t max_tokens(const Geometry& geometry, const DispatchLimits& limits) noexcept;

// Returns the workgroups along x (blocks of tokens), y (groups of heads) and z (see Work::z).
DispatchShape shape_of(const Geometry& geometry, const Work& work) noexcept;

// Returns the maximum number of invocations of positions.comp, along x and then y, in 32 bits.
std::uint64_t max_in_a_row(std::uint32_t workgroup_size, const DispatchLimits& limits) noexcept;

// Returns the numbers of workgroups for 1 to max_in_a_row() invocations.
DispatchShape shape_in_a_row(std::uint64_t invocations, std::uint32_t workgroup_size,
                             const DispatchLimits& limits) noexcept;

}  // namespace vkrope
