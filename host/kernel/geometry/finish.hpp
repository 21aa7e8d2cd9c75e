// SPDX-License-Identifier: MIT
// What norms, biases, clip and scale ask of the lanes of a workgroup: pure arithmetic.
#pragma once

#include "kernel/geometry/geometry.hpp"

namespace vkrope {

/// Whether a tensor, or any tensor of a kernel, has a bias, norm, clip or scale.
inline bool has_finish(const Finish& finish) noexcept {
    return finish.norm.kind != NormKind::none || finish.bias != ParameterShape::none ||
           finish.clip != 0 || finish.scale != 1 || finish.scale_call || finish.scale_tokens;
}
inline bool has_finish(const KernelInfo& info) noexcept {
    return has_finish(info.q_finish) || has_finish(info.k_finish) || has_finish(info.v_finish);
}

/// shader::step_* of a tensor.
std::uint32_t steps_of(const Finish& finish, const HeadFormat& width) noexcept;

/// Heads that a norm takes as one row: 1, or all of `heads`.
std::uint32_t row_heads(const Finish& finish, std::uint32_t heads) noexcept;

/// Sums that the lanes of a workgroup exchange for one tensor at a time.
std::uint64_t exchanged(const KernelInfo& info, const Geometry& geometry) noexcept;

/// Loop iterations of a lane that owns its rows, for the rows of one norm, and for each of its
/// heads: of the tensor that takes most.
struct Iterations {
    std::uint64_t row = 0, head = 0;
};
Iterations owned_iterations(const KernelInfo& info, const Geometry& geometry) noexcept;

}  // namespace vkrope
