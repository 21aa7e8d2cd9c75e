// SPDX-License-Identifier: MIT
#include "kernel/constants.hpp"

#include <cstddef>
#include <cstring>

#include "bits.hpp"
#include "kernel/geometry/ops.hpp"
#include "meaning.hpp"

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

std::uint32_t hadamard_levels(const Ops& ops) {
    return ops.hadamard == 0 ? 0 : floor_log2(ops.hadamard);
}

std::uint32_t store_scale_of(const Ops& ops) {
    const StoreScale scale = ops.store_scale;
    if (is_made(scale))
        return shader::store_scale_made |
               (ops.scale_layout == VKROPE_SCALE_LAYOUT_PAGES_HEADS ? shader::store_scale_paged
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

shader::TensorConstants ops_of(const TensorInfo& tensor, const TensorParameters& parameters) {
    const Ops& ops = tensor.ops;
    const std::uint32_t of_row = row_heads(tensor);
    shader::TensorConstants own = {};
    own.t_ops = op_bits(tensor);
    own.t_row_heads = of_row;
    own.t_inverse_n = bits_of(float(1 / (double(of_row) * tensor.head_dim)));
    own.t_eps = bits_of(ops.norm.eps);
    own.t_clip = bits_of(ops.clip);
    own.t_factor = bits_of(ops.scale);
    own.t_bias = std::uint32_t(parameters.bias.shape);
    own.t_bias_at = parameters.bias.offset;
    own.t_weight = std::uint32_t(parameters.weight.shape);
    own.t_weight_at = parameters.weight.offset;
    own.t_norm_bias = std::uint32_t(parameters.norm_bias.shape);
    own.t_norm_bias_at = parameters.norm_bias.offset;
    own.t_hadamard = hadamard_levels(ops);
    own.t_store_scale = store_scale_of(ops);
    own.t_store_scale_at = parameters.store_scale.offset;
    own.t_scale_floor = bits_of(ops.scale_floor);
    own.t_scale_heads = tensor.heads;
    return own;
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
        return geometry.ops == shader::ops_shared && length != 0 ? std::uint32_t(length) : 1u;
    };
    shader::Constants constants = {};
    constants.workgroup_size = geometry.workgroup_size();
    constants.chunk_lanes = geometry.chunk_lanes;
    constants.head_lanes = geometry.head_lanes;
    constants.group_tokens = geometry.group_tokens;
    constants.chunks_together = geometry.chunks_together;
    constants.units_apart = geometry.units_apart;
    constants.rare_branches = geometry.units_apart;  // on a GPU
    constants.q_batch = geometry.q_batch;
    constants.k_batch = geometry.k_batch;
    constants.access = geometry.access;
    constants.unit_elements = geometry.unit_elements;
    constants.conversion = kernel.conversion;
    constants.q_head_dim = info.tensor[Q].head_dim;
    constants.q_rotary_offset = info.tensor[Q].rotary_offset;
    constants.q_element_in = std::uint32_t(info.tensor[Q].in);
    constants.q_element_out = std::uint32_t(info.tensor[Q].out);
    constants.k_head_dim = info.tensor[K].head_dim;
    constants.k_rotary_offset = info.tensor[K].rotary_offset;
    constants.k_element_in = std::uint32_t(info.tensor[K].in);
    constants.k_element_out = std::uint32_t(info.tensor[K].out);
    constants.v_head_dim = info.tensor[V].head_dim;
    constants.v_element_in = std::uint32_t(info.tensor[V].in);
    constants.v_element_out = std::uint32_t(info.tensor[V].out);
    constants.scatter = info.scatter_kv;
    constants.pairing = pairing_constant(info.pairing);
    constants.pairing_out = pairing_constant(info.pairing_out);
    constants.rotary_dim = info.rotary_dim;
    constants.window_dim_0 = of[0].rotary_dim;
    constants.window_dim_1 = of[1].rotary_dim;
    constants.window_dim_2 = of[2].rotary_dim;
    constants.window_dim_3 = of[3].rotary_dim;
    constants.window_at_0 = of[0].offset;
    constants.window_at_1 = of[1].offset;
    constants.window_at_2 = of[2].offset;
    constants.window_at_3 = of[3].offset;
    constants.angles = angles_of(info);
    constants.positions = info.positions == VKROPE_POSITIONS_IMPLICIT ? shader::positions_implicit
                                                                      : shader::positions_ids;
    constants.axes = sections.axes;
    constants.section_order = std::uint32_t(sections.order);
    constants.leftover_axis = sections.leftover_axis;
    constants.section_0 = sections.order == VKROPE_SECTIONS_SUM ? 1 : sections.pairs[0];
    constants.section_1 = sections.pairs[1];
    constants.section_2 = sections.pairs[2];
    constants.section_3 = sections.pairs[3];
    constants.section_4 = sections.pairs[4];
    constants.section_5 = sections.pairs[5];
    constants.section_6 = sections.pairs[6];
    constants.section_7 = sections.pairs[7];
    constants.counter = counts;
    constants.k_after_q = geometry.k_after_q;
    constants.ops = geometry.ops;
    constants.norms_held = geometry.norms_held;
    constants.exchanged = shared(exchanged(info, geometry));
    constants.heads_together = geometry.heads_together;
    constants.staged = shared(staged(info, geometry));
    constants.phase = info.phase;
    constants.head_groups = info.head_groups;
    constants.channel_angles = info.channel_angles;
    constants.second_parameters = info.two_parameter_sets
                                      ? std::uint32_t(kernel.needs.parameter_bytes / 8)
                                      : 0;
    constants.staged_gaps = geometry.staged_gaps;
    if (geometry.ops == shader::ops_none) return constants;
    constexpr std::size_t first = offsetof(shader::Constants, q_ops),
                          block = sizeof(shader::TensorConstants);
    static_assert(offsetof(shader::Constants, k_ops) == first + block &&
                  offsetof(shader::Constants, v_ops) == first + 2 * block);
    for (const TensorIndex t : every_tensor) {
        if (info.tensor[t].head_dim == 0) continue;
        const shader::TensorConstants own = ops_of(info.tensor[t], part.parameters.tensor[t]);
        std::memcpy(reinterpret_cast<char*>(&constants) + first + t * block, &own, block);
    }
    return constants;
}

}  // namespace vkrope
