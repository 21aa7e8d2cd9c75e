// SPDX-License-Identifier: MIT
#include "kernel/geometry/ops.hpp"

#include <algorithm>

#include "base/bits.hpp"
#include "base/defaults.hpp"

namespace vkrope {

namespace {

std::uint32_t hadamard_levels(std::uint32_t block) {
    return block == 0 ? 0 : floor_log2(block);
}

std::uint32_t store_scale_of(const Ops& ops) {
    const StoreScale scale = ops.store_scale;
    if (is_made(scale))
        return shader::store_scale_made |
               (scale == VKROPE_STORE_SCALE_MADE_POWER_OF_TWO ? shader::store_scale_power_of_two
                                                              : 0);
    return scale == VKROPE_STORE_SCALE_GIVEN        ? shader::store_scale_given
           : scale == VKROPE_STORE_SCALE_GIVEN_HEAD ? shader::store_scale_given_head
                                                    : shader::store_scale_none;
}

template <class Use>
void for_tensors(const KernelInfo& info, const Use& use) {
    for (const TensorInfo& tensor : info.tensor)
        if (tensor.head_dim != 0) use(tensor);
}

}  // namespace

std::uint32_t op_bits(const TensorInfo& tensor) noexcept {
    const Ops& ops = tensor.ops;
    const Norm& norm = ops.norm;
    std::uint32_t bits = 0;
    const auto add = [&bits](bool has, std::uint32_t op) { bits |= has ? op : 0; };
    add(norm.kind == VKROPE_NORM_RMS, shader::op_rms);
    add(norm.kind == VKROPE_NORM_LAYER, shader::op_layer);
    add(norm.span == VKROPE_NORM_SPAN_TOKEN, shader::op_token);
    add(norm.kind != VKROPE_NORM_NONE && norm.place == VKROPE_NORM_PLACE_BEFORE, shader::op_before);
    add(norm.place == VKROPE_NORM_PLACE_AFTER, shader::op_after);
    add(norm.round_between && tensor.in != VKROPE_F32 && !is_quantised(tensor.in),
        shader::op_rounds);
    // A sum of 2^28 squares of f16 is finite; a bias, a rotation or a transform may make channels
    // larger.
    add(tensor.in == VKROPE_F16 && ops.bias == VKROPE_PARAMETER_NONE &&
            norm.place == VKROPE_NORM_PLACE_BEFORE && ops.hadamard_of_input == 0,
        shader::op_one_sum);
    add(ops.clip != 0, shader::op_clip);
    add(scale_of(ops) != 1, shader::op_scale);
    add(ops.scale_call, shader::op_scale_call);
    add(ops.scale_tokens, shader::op_scale_tokens);
    return has_ops(ops) ? bits : 0;
}

std::uint32_t row_heads(const TensorInfo& tensor) noexcept {
    return tensor.ops.norm.span == VKROPE_NORM_SPAN_TOKEN ? tensor.heads : 1;
}

void set_ops(const TensorInfo& tensor, const TensorParameters& parameters,
             shader::TensorConstants& constants) noexcept {
    const Ops& ops = tensor.ops;
    const std::uint32_t of_row = row_heads(tensor);
    constants.ops = op_bits(tensor);
    constants.row_heads = of_row;
    constants.norm_first = ops.norm.first_channel;
    constants.norm_dim = norm_channels(ops.norm, tensor.head_dim);
    constants.inverse_n = bits_of(float(1 / (double(of_row) * constants.norm_dim)));
    constants.eps = bits_of(ops.norm.eps);
    constants.clip = bits_of(ops.clip);
    constants.factor = bits_of(ops.scale);
    constants.bias = std::uint32_t(parameters.bias.shape);
    constants.bias_at = parameters.bias.offset;
    constants.weight = std::uint32_t(ops.norm.weight);
    constants.weight_bound = ops.norm.weight_bound != VK_FALSE;
    constants.element_weight = std::uint32_t(ops.norm.weight_type);
    constants.weight_added = ops.norm.weight_offset;
    constants.weight_at = parameters.weight.offset;
    constants.norm_bias = std::uint32_t(parameters.norm_bias.shape);
    constants.norm_bias_at = parameters.norm_bias.offset;
    constants.hadamard = hadamard_levels(ops.hadamard);
    constants.store_scale = store_scale_of(ops);
    constants.store_scale_at = parameters.store_scale.offset;
    constants.scale_floor = bits_of(ops.scale_floor);
    constants.scale_heads = tensor.heads;
    constants.second_of = std::uint32_t(tensor.second_of);
    constants.element_second = std::uint32_t(tensor.second);
    constants.row_scales = scale_groups(tensor);
    constants.scale_bytes = ops.scale_type == VKROPE_SCALE_TYPE_UE8M0;
    constants.scales_paged = ops.scale_layout == VKROPE_SCALE_LAYOUT_PAGES_HEADS;
    constants.scales_read = ops.scales_in != VK_FALSE;
    constants.hadamard_read = hadamard_levels(ops.hadamard_of_input);
    if (!is_quantised(tensor.in)) return;
    constants.element_in = shader::element_f32;  // as it is read
    constants.element_read = std::uint32_t(tensor.in);
}

std::uint64_t exchanged(const KernelInfo& info, const Geometry& geometry) noexcept {
    std::uint64_t most = 0;
    for_tensors(info, [&](const TensorInfo& tensor) {
        if (tensor.ops.norm.kind == VKROPE_NORM_NONE) return;
        const bool token = tensor.ops.norm.span == VKROPE_NORM_SPAN_TOKEN;
        const std::uint64_t lane_heads = token ? divide_up(tensor.heads, geometry.head_lanes) : 1;
        const std::uint64_t rows = geometry.head_lanes *
                                   std::min<std::uint64_t>(lane_heads, geometry.heads_together);
        const std::uint64_t units = norm_channels(tensor.ops.norm, tensor.head_dim) /
                                    geometry.unit_elements;
        const std::uint64_t sums = geometry.group_tokens *
                                   (rows * units + (token ? tensor.heads : 0));
        // A lane that owns its rows has room for both parts of the sums of any tensor.
        const bool one = geometry.chunk_lanes != 1 && (op_bits(tensor) & shader::op_one_sum) != 0;
        most = std::max(most, one ? sums : 2 * sums);
    });
    return most;
}

std::uint64_t staged(const KernelInfo& info, const Geometry& geometry) noexcept {
    std::uint64_t most = 0;
    for_tensors(info, [&](const TensorInfo& tensor) {
        if (!stores_together(tensor)) return;
        const std::uint64_t rows = std::uint64_t{geometry.head_lanes} * geometry.group_tokens;
        // Each lane shows the others its part of the scale of the row, or of a block.
        using namespace shader;
        const auto type = uint(tensor.out);
        const uint block_lanes = VKROPE_BLOCK_LANES(type, tensor.head_dim, geometry.chunk_lanes);
        std::uint64_t shown = 0;  // words of a row
        if (VKROPE_HAS_BLOCKS(type) && block_lanes > 1)
            shown = VKROPE_SHOWN_WORDS(type) * geometry.chunk_lanes;
        else if (is_made(tensor.ops.store_scale))
            shown = std::max(geometry.chunk_lanes, scale_groups(tensor));
        const std::uint64_t row_words = VKROPE_ROW_WORDS(std::uint64_t{tensor.head_dim},
                                                         geometry.staged_gaps ? 1u : 0u);
        most = std::max(most, rows * (row_words + shown));
    });
    return most;
}

std::uint64_t shared_bytes(const KernelInfo& info, const Geometry& geometry) noexcept {
    constexpr std::uint64_t word_bytes = 4;
    return (exchanged(info, geometry) + staged(info, geometry)) * word_bytes;
}

Iterations owned_iterations(const KernelInfo& info, const Geometry& geometry) noexcept {
    Iterations most;
    for_tensors(info, [&](const TensorInfo& tensor) {
        const Norm& norm = tensor.ops.norm;
        const std::uint64_t units = tensor.head_dim / geometry.unit_elements;
        const std::uint64_t chunks = units / 2 + 1;
        const std::uint64_t rounds = norm.kind == VKROPE_NORM_NONE    ? 0
                                     : norm.kind == VKROPE_NORM_LAYER ? 3
                                                                      : 1;
        // A sum that overflows is computed twice.
        const std::uint64_t sums = 2 * rounds *
                                   (power_at_least(units) + 1 +
                                    (norm.place == VKROPE_NORM_PLACE_AFTER ? chunks : 0));
        const bool token = norm.span == VKROPE_NORM_SPAN_TOKEN;
        most.row = std::max(most.row, token ? sums * tensor.heads : 0);
        most.head = std::max(most.head, chunks + (token ? 0 : sums));
    });
    return most;
}

}  // namespace vkrope
