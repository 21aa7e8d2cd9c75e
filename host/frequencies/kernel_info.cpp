// SPDX-License-Identifier: MIT
// Derives the KernelInfo from a rotation and its angle plan.
#include <algorithm>
#include <iterator>

#include "base/angle_layout.hpp"
#include "base/parameter_layout.hpp"
#include "base/window_rules.hpp"
#include "frequencies/angle_table_layout.hpp"

using namespace vkrope;

vkrope_result vkrope_get_kernel_info(const vkrope_rope_params* params,
                                     const vkrope_angle_table_layout* angles,
                                     const vkrope_element* q, const vkrope_element* k,
                                     const vkrope_element* v, vkrope_kernel_info* made,
                                     vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(params, "rotation"); !s) return s;
            if (Status s = check_layout(angles); !s) return s;
            if (Status s = not_null(made, "info"); !s) return s;
            const vkrope_rope_params rotation = completed(*params);
            const AngleTableLayout& plan = *angles;
            if (rotation.no_rope)
                return error(
                    VKROPE_ERROR_INVALID_ARGUMENT,
                    "rotation.no_rope is set: a layer without RoPE has no kernel, its Q and K "
                    "stay as they are");
            if (plan.pairs != rotation.rotary_dim / 2)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "layout.pairs is %u: it must be the rotation's rotary_dim / 2 = %u",
                             plan.pairs, rotation.rotary_dim / 2);
            const bool of_caller = plan.source == VKROPE_ANGLES_COS_SIN_CACHE;
            if (!of_caller && plan.sections.axes != rotation.sections.axes)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "layout.sections has %u axes: it must be the rotation's sections, "
                             "which have %u",
                             plan.sections.axes, rotation.sections.axes);
            if (!of_caller && plan.sections != rotation.sections)
                return error(
                    VKROPE_ERROR_INVALID_ARGUMENT,
                    "layout.sections differ from the rotation's in order, pairs or leftover_axis; "
                    "make the layout from this rotation");
            if (!of_caller && ((plan.phase != 0) == (rotation.phase_count == 0) ||
                               value_or(plan.head_groups, 1u) != rotation.head_groups))
                return error(
                    VKROPE_ERROR_INVALID_ARGUMENT,
                    "layout.phase is %d and layout.head_groups is %u: they differ from the "
                    "rotation's; make the layout from this rotation",
                    plan.phase, plan.head_groups);
            if (Status s = check_windows("rotation.", rotation.windows, rotation.rotary_dim); !s)
                return s;
            if (Status s = check_head_dim(rotation); !s) return s;
            if (rotation.pairing == VKROPE_PAIRING_NONE || rotation.pairing > VKROPE_INTERLEAVED)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "rotation.pairing is %u: it must be half_split or interleaved",
                             unsigned(rotation.pairing));
            if (!q && !k)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "q and k are both absent: there is nothing to rotate");
            KernelInfo info;
            info.pairing = rotation.pairing;
            info.rotary_dim = rotation.rotary_dim;
            const ModelOps& model = rotation.ops;
            const struct {
                const Element* type;
                std::uint32_t rotary_offset, heads;
                const Ops& ops;
            } tensors[tensor_count] = {
                {q, rotation.q_rotary_offset, model.q_heads, model.tensor[Q]},
                {k, rotation.k_rotary_offset, model.k_heads, model.tensor[K]},
                {v, rotation.k_rotary_offset, model.k_heads, model.tensor[V]}};
            const bool any = std::any_of(
                std::begin(tensors), std::end(tensors),
                [](const auto& of) { return of.type && has_ops(of.ops); });
            for (const TensorIndex t : every_tensor) {
                const auto& [type, rotary_offset, heads, ops] = tensors[t];
                if (!type) continue;
                TensorInfo& tensor = info.tensor[t];
                tensor.in = tensor.out = *type;
                tensor.head_dim = vkrope_row_channels(&rotation, rotary_offset);
                tensor.rotary_offset = t == V ? 0 : rotary_offset;
                tensor.heads = any ? heads : 0;
                tensor.ops = ops;
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
            if (rotation.sections.axes == 0)
                return hand_out(Result<KernelInfo>{{}, info}, made, "info");
            info.positions = VKROPE_POSITIONS_AXIS_IDS;
            info.sections = rotation.sections;
            return hand_out(Result<KernelInfo>{{}, info}, made, "info");
        });
}
