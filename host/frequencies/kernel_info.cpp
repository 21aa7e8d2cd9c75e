// SPDX-License-Identifier: MIT
// Derives the KernelInfo from a rotation and its angle plan, or from a layer without RoPE.
#include <algorithm>
#include <iterator>

#include "base/angle_layout.hpp"
#include "base/meaning.hpp"
#include "base/parameter_layout.hpp"
#include "base/window_rules.hpp"
#include "frequencies/angle_table_layout.hpp"

using namespace vkrope;

namespace {

// Checks that the layout is that of the rotation, and that the rotation fits its rows.
Status check_rotation(const vkrope_rope_params& rotation, const AngleTableLayout& plan) noexcept {
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
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "layout.sections differ from the rotation's in order, pairs or leftover_axis; "
                     "make the layout from this rotation");
    if (!of_caller && ((plan.phase != 0) == (rotation.phase_count == 0) ||
                       value_or(plan.head_groups, 1u) != rotation.head_groups))
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "layout.phase is %d and layout.head_groups is %u: they differ from the "
                     "rotation's; make the layout from this rotation",
                     plan.phase, plan.head_groups);
    if (Status s = check_windows("rotation.", rotation.windows, rotation.rotary_dim); !s) return s;
    if (Status s = check_head_dim(rotation); !s) return s;
    if (rotation.pairing == VKROPE_PAIRING_NONE || rotation.pairing > VKROPE_INTERLEAVED)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotation.pairing is %u: it must be half_split or interleaved",
                     unsigned(rotation.pairing));
    return {};
}

// Checks the rows of a layer without RoPE, which has no layout.
Status check_without_rope(const vkrope_rope_params& rotation,
                          const AngleTableLayout* plan) noexcept {
    if (plan)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "layout is given: rotation.no_rope is set, so it must be null");
    if (rotation.head_dim < 2 || rotation.head_dim > max_head_dim)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "rotation.head_dim is %u: it must be 2 to %u",
                     rotation.head_dim, max_head_dim);
    const struct {
        const char* field;
        std::uint32_t value;
    } offsets[] = {{"q_rotary_offset", rotation.q_rotary_offset},
                   {"k_rotary_offset", rotation.k_rotary_offset}};
    for (const auto& [field, value] : offsets)
        if (value > max_head_dim - rotation.head_dim)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "rotation.%s is %u: with head_dim %u a row has more than %u channels",
                         field, value, rotation.head_dim, max_head_dim);
    return {};
}

void set_rotation(const vkrope_rope_params& rotation, const AngleTableLayout& plan,
                  KernelInfo& info) noexcept {
    info.pairing = rotation.pairing;
    info.rotary_dim = rotation.rotary_dim;
    info.tensor[Q].rotary_offset = info.tensor[Q].head_dim ? rotation.q_rotary_offset : 0;
    info.tensor[K].rotary_offset = info.tensor[K].head_dim ? rotation.k_rotary_offset : 0;
    std::copy(std::begin(rotation.windows), std::end(rotation.windows), info.windows);
    info.angles = plan.source;
    if (plan.source == VKROPE_ANGLES_COS_SIN_CACHE) {
        info.table = plan.element;
        info.channel_angles = plan.channel_angles;
    } else {
        info.phase = plan.phase;
        info.head_groups = plan.head_groups;
    }
    if (rotation.sections.axes == 0) return;
    info.positions = VKROPE_POSITIONS_AXIS_IDS;
    info.sections = rotation.sections;
}

// Sets the rows and the ops of the tensors that have a type.
void set_tensors(const vkrope_rope_params& rotation,
                 const vkrope_element* const (&types)[tensor_count], KernelInfo& info) noexcept {
    const ModelOps& model = rotation.ops;
    bool any = false;
    for (const TensorIndex t : every_tensor) {
        if (!types[t]) continue;
        TensorInfo& tensor = info.tensor[t];
        tensor.in = tensor.out = *types[t];
        const std::uint32_t rotary_offset = t == Q ? rotation.q_rotary_offset
                                                   : rotation.k_rotary_offset;
        tensor.head_dim = vkrope_row_channels(&rotation, rotary_offset);
        tensor.ops = ops_of_row(model.tensor[t], rotary_offset);
        any = any || has_ops(tensor.ops);
    }
    // A latent row is one head, but an assembled key, which has no latent norm, has several.
    const bool assembled = model.tensor[K].norm.kind != info.tensor[K].ops.norm.kind;
    const std::uint32_t k_heads = types[K] && assembled ? 0 : model.k_heads;
    for (const TensorIndex t : every_tensor)
        if (types[t] && any) info.tensor[t].heads = t == Q ? model.q_heads : k_heads;
}

}  // namespace

vkrope_result vkrope_get_kernel_info(const vkrope_rope_params* params,
                                     const vkrope_angle_table_layout* angles,
                                     const vkrope_element* q, const vkrope_element* k,
                                     const vkrope_element* v, vkrope_kernel_info* made,
                                     vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(params, "rotation"); !s) return s;
            const vkrope_rope_params rotation = completed(*params);
            if (rotation.no_rope) {
                if (Status s = check_without_rope(rotation, angles); !s) return s;
            } else {
                if (Status s = check_layout(angles); !s) return s;
                if (Status s = check_rotation(rotation, *angles); !s) return s;
            }
            if (!q && !k)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "q and k are both absent: a kernel takes at least one of them");
            KernelInfo info;
            set_tensors(rotation, {q, k, v}, info);
            if (!rotation.no_rope) set_rotation(rotation, *angles, info);
            return hand_out(Result<KernelInfo>{{}, info}, made, "info");
        });
}
