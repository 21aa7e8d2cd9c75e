// SPDX-License-Identifier: MIT
// Produces the dispatches of a planned call, each with its bindings, push constants and shape, and
// the barriers between them. Reads the kernel; makes no Vulkan call.
#pragma once

#include "kernel/plan.hpp"

namespace vkrope {

// Buffers that a dispatch binds, by binding number. Unused buffers are null. The constants for
// computed angles are at binding_table. Buffers from binding_q_out on are
// written, or counted as such (binding_v_scales_in).
struct Bindings {
    VkDescriptorBufferInfo of[shader::binding_count];
};

// Returns whether `later` accesses a range that `earlier` writes, or writes a range that `earlier`
// reads. Disjoint rows may have overlapping ranges, as in packed QKV, or because a binding starts
// before its first row.
bool conflict(const Bindings& earlier, const Bindings& later) noexcept;

// Dispatch of one tile of some tensors.
struct Dispatch {
    const Pipeline* pipeline = nullptr;
    Bindings bindings = {};
    shader::Push push = {};
    DispatchShape shape;
    std::uint32_t part = 0;  // index in Plan::of of its tensors
};

// Iterates over the dispatches of a call. Borrows its arguments.
class DispatchSequence {
   public:
    DispatchSequence(const Kernel& kernel, const Call& call, const ResolvedCall& resolved,
                     const Plan& plan) noexcept
        : kernel_(kernel), call_(call), resolved_(resolved), plan_(plan) {}

    Dispatch at(std::uint64_t index) const noexcept;

    // Returns whether `next` has to wait for an earlier dispatch, because their bound ranges
    // overlap and at least one of the two writes. Call it once for each dispatch, in order.
    bool needs_barrier(const Dispatch& next, bool is_last) noexcept;

   private:
    const Kernel& kernel_;
    const Call& call_;
    const ResolvedCall& resolved_;
    const Plan& plan_;
    std::uint64_t index_ = 0, first_since_barrier_ = 0;
    // Hulls of the ranges bound since the last barrier, for each part of the plan from first_part_
    // to last_part_: a range that does not overlap a hull overlaps none of its ranges. The
    // dispatches of a part bind ranges of the same buffers.
    Bindings since_barrier_[Plan::most_parts];
    std::uint32_t first_part_ = 0, last_part_ = 0;
};

}  // namespace vkrope
