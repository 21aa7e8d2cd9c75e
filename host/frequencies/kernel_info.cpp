// SPDX-License-Identifier: MIT
// Derives the KernelInfo from a rotation and its angle plan.
#include <algorithm>
#include <iterator>

#include "defaults.hpp"
#include "parameter_layout.hpp"
#include "status.hpp"
#include "vkrope/frequencies.hpp"

namespace vkrope {

Result<KernelInfo> kernel_info(const Rotation& rotation, const AnglePlan& plan,
                               std::optional<Element> q, std::optional<Element> k,
                               std::optional<Element> v) noexcept {
    if (!rotation.rotates) {
        return {error(VKROPE_ERROR_INVALID_ARGUMENT,
                      "rotation.rotates is false: a layer without RoPE has no kernel, its Q and K "
                      "stay as they are"),
                {}};
    }
    if (plan.pairs == 0 || plan.pairs != rotation.rotary_dim / 2) {
        return {
            error(VKROPE_ERROR_INVALID_ARGUMENT,
                  "plan.pairs is %u: it must be the rotation's rotary_dim / 2 = %u, and above 0",
                  plan.pairs, rotation.rotary_dim / 2),
            {}};
    }
    if (plan.source == VKROPE_ANGLES_AUTOMATIC || plan.source > VKROPE_ANGLES_COS_SIN_CACHE ||
        plan.element > VKROPE_BF16) {
        return {error(VKROPE_ERROR_INVALID_ARGUMENT,
                      "plan.source is %u and plan.element is %u: they must be the values that "
                      "vkrope_plan_angles returned",
                      unsigned(plan.source), unsigned(plan.element)),
                {}};
    }
    const bool of_caller = plan.source == VKROPE_ANGLES_COS_SIN_CACHE;
    if (!of_caller && plan.sections.axes != rotation.sections.axes) {
        return {
            error(VKROPE_ERROR_INVALID_ARGUMENT,
                  "plan.sections has %u axes: it must be the rotation's sections, which have %u",
                  plan.sections.axes, rotation.sections.axes),
            {}};
    }
    if (!of_caller && plan.sections != rotation.sections) {
        return {error(VKROPE_ERROR_INVALID_ARGUMENT,
                      "plan.sections differ from the rotation's in order, pairs or leftover_axis; "
                      "make the plan from this rotation"),
                {}};
    }
    if (!of_caller && ((plan.phase != 0) == rotation.phase.empty() ||
                       value_or(plan.head_groups, 1u) != rotation.head_groups)) {
        return {error(VKROPE_ERROR_INVALID_ARGUMENT,
                      "plan.phase is %d and plan.head_groups is %u: they differ from the "
                      "rotation's; make the plan from this rotation",
                      plan.phase, plan.head_groups),
                {}};
    }
    if (!q && !k)
        return {error(VKROPE_ERROR_INVALID_ARGUMENT,
                      "q and k are both absent: there is nothing to rotate"),
                {}};
    KernelInfo info;
    info.pairing = rotation.pairing;
    info.rotary_dim = rotation.rotary_dim;
    const ModelFinish& finish = rotation.finish;
    const struct {
        std::optional<Element> type;
        std::uint32_t rotary_offset, heads;
        const Finish& ops;
    } tensors[tensor_count] = {{q, rotation.q_rotary_offset, finish.q_heads, finish.tensor[Q]},
                               {k, rotation.k_rotary_offset, finish.k_heads, finish.tensor[K]},
                               {v, rotation.k_rotary_offset, finish.k_heads, finish.tensor[V]}};
    const bool any = std::any_of(std::begin(tensors), std::end(tensors),
                                 [](const auto& of) { return of.type && has_finish(of.ops); });
    for (const TensorIndex t : every_tensor) {
        const auto& [type, rotary_offset, heads, ops] = tensors[t];
        if (!type) continue;
        info.tensor[t] = {.in = *type,
                          .out = *type,
                          .head_dim = row_channels(rotation, rotary_offset),
                          .rotary_offset = t == V ? 0 : rotary_offset,
                          .heads = any ? heads : 0,
                          .ops = ops};
    }
    std::copy(std::begin(rotation.windows), std::end(rotation.windows), info.windows);
    info.angles = plan.source;
    if (of_caller) {
        info.table = plan.element;
        info.channel_angles = plan.channel_angles;
    } else {
        info.phase = plan.phase;
        info.head_groups = plan.head_groups;
    }
    if (rotation.sections.axes == 0) return {{}, info};
    info.positions = VKROPE_POSITIONS_AXIS_IDS;
    info.sections = rotation.sections;
    return {{}, info};
}

}  // namespace vkrope
