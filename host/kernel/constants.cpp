// SPDX-License-Identifier: MIT
#include "kernel/constants.hpp"

#include <algorithm>
#include <iterator>

#include "base/bits.hpp"
#include "base/meaning.hpp"
#include "kernel/geometry/ops.hpp"

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

std::uint32_t pairing_constant(Pairing pairing) {
    return pairing == VKROPE_INTERLEAVED ? shader::pairing_interleaved : shader::pairing_half_split;
}

}  // namespace

shader::Constants constants_of(const Kernel& kernel, const PipelineSet& set,
                               const Geometry& geometry, bool counts) {
    const KernelInfo& info = set.info;
    const Windows windows = windows_of(info);
    const auto& sections = info.sections;
    static_assert(max_windows == shader::max_windows && max_axes == shader::max_axes);
    // A module does not contain the arrays that it does not use, but each array needs a length.
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
    constants.access = geometry.access;
    constants.unit_elements = geometry.unit_elements;
    constants.conversion = kernel.conversion;
    constants.scatter = info.scatter_kv;
    constants.pairing = pairing_constant(info.pairing);
    constants.pairing_out = pairing_constant(info.pairing_out);
    constants.rotary_dim = info.rotary_dim;
    for (std::uint32_t i = 0; i < max_windows; ++i) {
        (&constants.window_dim_0)[i] = windows.of[i].rotary_dim;
        (&constants.window_at_0)[i] = windows.of[i].offset;
    }
    constants.angles = angles_of(info);
    constants.positions = info.positions == VKROPE_POSITIONS_IMPLICIT ? shader::positions_implicit
                                                                      : shader::positions_ids;
    constants.axes = sections.axes;
    constants.section_order = std::uint32_t(sections.order);
    constants.leftover_axis = sections.leftover_axis;
    std::copy(std::begin(sections.pairs), std::end(sections.pairs), &constants.section_0);
    if (sections.order == VKROPE_SECTIONS_SUM) constants.section_0 = 1;
    constants.counter = counts;
    constants.few_registers = geometry.few_registers;
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
    constants.gather = info.gather_kv;
    constants.copy_access = geometry.copy_access;
    constants.copy_elements = geometry.copy_elements;
    constants.token_count = info.token_count;
    for (const TensorIndex t : every_tensor) {
        const TensorInfo& tensor = info.tensor[t];
        shader::TensorConstants& own = constants.tensor[t];
        own.head_dim = tensor.head_dim;
        own.rotary_offset = tensor.rotary_offset;
        own.element_in = std::uint32_t(tensor.in);
        own.element_out = std::uint32_t(tensor.out);
        own.batch = t == Q ? geometry.q_batch : geometry.k_batch;
        if (geometry.ops != shader::ops_none && tensor.head_dim != 0)
            set_ops(tensor, set.parameters.tensor[t], own);
        const bool as_k = t == K && info.rotary_dim != 0;
        const bool angle_0_keeps = info.pairing == info.pairing_out && !info.phase &&
                                   info.angles != VKROPE_ANGLES_COS_SIN_CACHE;
        own.keeps = is_read_from_cache(info, t) && keeps_rows(tensor) && (!as_k || angle_0_keeps);
    }
    return constants;
}

}  // namespace vkrope
