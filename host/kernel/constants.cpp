// SPDX-License-Identifier: MIT
#include "kernel/constants.hpp"

#include <bit>
#include <cstddef>
#include <cstring>

#include "kernel/geometry/finish.hpp"

namespace vkrope {

namespace {

std::uint32_t angles_of(const KernelInfo& info) {
    switch (info.angles) {
        case VKROPE_ANGLES_DIRECT_TEXTURE: return shader::angles_texture;
        case VKROPE_ANGLES_COMPUTED: return shader::angles_computed;
        case VKROPE_ANGLES_DIRECT_BUFFER: return shader::angles_pairs;
        case VKROPE_ANGLES_COS_SIN_CACHE:
            return shader::angles_cos_sin_cache + std::uint32_t(info.table);
        default: return shader::angles_factored;
    }
}

std::uint32_t hadamard_levels(const Finish& finish) {
    return finish.hadamard == 0 ? 0 : std::uint32_t(std::bit_width(finish.hadamard) - 1);
}

std::uint32_t store_scale_of(const Finish& finish) {
    const StoreScale scale = finish.store_scale;
    if (is_made(scale))
        return shader::store_scale_made |
               (finish.scale_layout == VKROPE_SCALE_LAYOUT_PAGES_HEADS ? shader::store_scale_paged
                                                                       : 0) |
               (scale == VKROPE_STORE_SCALE_MADE_POWER_OF_TWO ? shader::store_scale_power_of_two
                                                              : 0);
    return scale == VKROPE_STORE_SCALE_GIVEN        ? shader::store_scale_given
           : scale == VKROPE_STORE_SCALE_GIVEN_HEAD ? shader::store_scale_given_head
                                                    : shader::store_scale_none;
}

std::uint32_t pairing_constant(Pairing pairing) {
    return pairing == VKROPE_INTERLEAVED ? shader::pairing_interleaved : shader::pairing_half_split;
}

shader::TensorConstants finish_of(const TensorInfo& tensor, const TensorParameters& parameters) {
    const Finish& ops = tensor.ops;
    const std::uint32_t of_row = row_heads(tensor);
    const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
    return {.t_steps = steps_of(tensor),
            .t_row_heads = of_row,
            .t_inverse_n = bits(float(1 / (double(of_row) * tensor.head_dim))),
            .t_eps = bits(ops.norm.eps),
            .t_clip = bits(ops.clip),
            .t_factor = bits(ops.scale),
            .t_bias = std::uint32_t(parameters.bias.shape),
            .t_bias_at = parameters.bias.offset,
            .t_weight = std::uint32_t(parameters.weight.shape),
            .t_weight_at = parameters.weight.offset,
            .t_norm_bias = std::uint32_t(parameters.norm_bias.shape),
            .t_norm_bias_at = parameters.norm_bias.offset,
            .t_hadamard = hadamard_levels(ops),
            .t_store_scale = store_scale_of(ops),
            .t_store_scale_at = parameters.store_scale.offset,
            .t_scale_floor = bits(ops.scale_floor),
            .t_scale_heads = tensor.heads};
}

}  // namespace

shader::Constants constants_of(const Kernel& kernel, const Part& part, const Geometry& geometry,
                               bool counts) {
    const KernelInfo& info = part.info;
    const Windows windows = windows_of(info);
    const auto& of = windows.of;
    const auto& sections = info.sections;
    static_assert(max_windows == shader::max_windows && max_axes == shader::max_axes);
    // An array that a module does not use is not in it, but has a length.
    const auto shared = [&geometry](std::uint64_t length) {
        return geometry.finish == shader::finish_shared && length != 0 ? std::uint32_t(length) : 1u;
    };
    shader::Constants constants = {
        .workgroup_size = geometry.workgroup_size(),
        .step_lanes = geometry.step_lanes,
        .head_lanes = geometry.head_lanes,
        .group_tokens = geometry.group_tokens,
        .steps_together = geometry.steps_together,
        .units_apart = geometry.units_apart,
        .rare_branches = geometry.units_apart,  // on a GPU
        .q_batch = geometry.q_batch,
        .k_batch = geometry.k_batch,
        .access = geometry.access,
        .unit_elements = geometry.unit_elements,
        .conversion = kernel.conversion,
        .q_head_dim = info.tensor[Q].head_dim,
        .q_rotary_offset = info.tensor[Q].rotary_offset,
        .q_element_in = std::uint32_t(info.tensor[Q].in),
        .q_element_out = std::uint32_t(info.tensor[Q].out),
        .k_head_dim = info.tensor[K].head_dim,
        .k_rotary_offset = info.tensor[K].rotary_offset,
        .k_element_in = std::uint32_t(info.tensor[K].in),
        .k_element_out = std::uint32_t(info.tensor[K].out),
        .v_head_dim = info.tensor[V].head_dim,
        .v_element_in = std::uint32_t(info.tensor[V].in),
        .v_element_out = std::uint32_t(info.tensor[V].out),
        .scatter = info.scatter_kv,
        .pairing = pairing_constant(info.pairing),
        .pairing_out = pairing_constant(info.pairing_out),
        .rotary_dim = info.rotary_dim,
        .window_dim_0 = of[0].rotary_dim,
        .window_dim_1 = of[1].rotary_dim,
        .window_dim_2 = of[2].rotary_dim,
        .window_dim_3 = of[3].rotary_dim,
        .window_at_0 = of[0].offset,
        .window_at_1 = of[1].offset,
        .window_at_2 = of[2].offset,
        .window_at_3 = of[3].offset,
        .angles = angles_of(info),
        .positions = info.positions == VKROPE_POSITIONS_IMPLICIT ? shader::positions_implicit
                                                                 : shader::positions_ids,
        .axes = sections.axes,
        .section_order = std::uint32_t(sections.order),
        .leftover_axis = sections.leftover_axis,
        .section_0 = sections.order == VKROPE_SECTIONS_SUM ? 1 : sections.pairs[0],
        .section_1 = sections.pairs[1],
        .section_2 = sections.pairs[2],
        .section_3 = sections.pairs[3],
        .section_4 = sections.pairs[4],
        .section_5 = sections.pairs[5],
        .section_6 = sections.pairs[6],
        .section_7 = sections.pairs[7],
        .counter = counts,
        .k_after_q = geometry.k_after_q,
        .finish = geometry.finish,
        .norms_held = geometry.norms_held,
        .exchanged = shared(exchanged(info, geometry)),
        .heads_together = geometry.heads_together,
        .staged = shared(staged(info, geometry)),
        .phase = info.phase,
        .head_groups = info.head_groups,
        .channel_angles = info.channel_angles,
        .second_parameters = info.two_parameter_sets
                                 ? std::uint32_t(kernel.needs.parameter_bytes / 8)
                                 : 0,
        .staged_gaps = geometry.staged_gaps};
    if (geometry.finish == shader::finish_none) return constants;
    constexpr std::size_t first = offsetof(shader::Constants, q_steps),
                          block = sizeof(shader::TensorConstants);
    static_assert(offsetof(shader::Constants, k_steps) == first + block &&
                  offsetof(shader::Constants, v_steps) == first + 2 * block);
    for (const TensorIndex t : every_tensor) {
        if (info.tensor[t].head_dim == 0) continue;
        const shader::TensorConstants own = finish_of(info.tensor[t], part.parameters.tensor[t]);
        std::memcpy(reinterpret_cast<char*>(&constants) + first + t * block, &own, block);
    }
    return constants;
}

}  // namespace vkrope
