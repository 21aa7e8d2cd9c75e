// SPDX-License-Identifier: MIT
// Which steps a finish has, and where weights, biases and scales are in a parameter buffer. The
// frequencies tier plans and fills it, the kernel tier reads it.
#pragma once

#include "vkrope/types.hpp"

namespace vkrope {

/// Whether a tensor has a bias, norm, clip, scale or Hadamard transform.
constexpr bool has_finish(const Finish& finish) noexcept {
    return finish.norm.kind != NormKind::none || finish.bias != ParameterShape::none ||
           finish.clip != 0 || finish.scale != 1 || finish.scale_call || finish.scale_tokens ||
           finish.hadamard != 0;
}

/// Shape of a scale that the caller gives.
constexpr ParameterShape shape_of(StoreScale scale) noexcept {
    return scale == StoreScale::given        ? ParameterShape::tensor
           : scale == StoreScale::given_head ? ParameterShape::head
                                             : ParameterShape::none;
}

/// Places the items of `info`, whose shapes keep their rules, and returns how many floats they
/// take. If these are more than 32 bits can count, the plan is not valid.
constexpr std::uint64_t lay_out_parameters(const KernelInfo& info, ParameterPlan& plan) noexcept {
    std::uint64_t floats = 0;
    const auto place = [&floats](ParameterItem& item, ParameterShape shape, std::uint32_t head_dim,
                                 std::uint32_t heads, std::uint32_t added) {
        item = {};
        if (shape == ParameterShape::none) return;
        const bool of_heads = shape == ParameterShape::head_channel ||
                              shape == ParameterShape::head;
        const bool of_channels = shape == ParameterShape::channel ||
                                 shape == ParameterShape::head_channel;
        const std::uint64_t count = std::uint64_t{of_heads ? heads : 1} *
                                    (of_channels ? head_dim : 1);
        item = {shape, std::uint32_t(floats), std::uint32_t(count), added};
        floats += (count + 3) / 4 * 4;
    };
    const auto tensor = [&place](TensorParameters& of, const Finish& finish, std::uint32_t head_dim,
                                 std::uint32_t heads) {
        place(of.bias, finish.bias, head_dim, heads, 0);
        place(of.weight, finish.norm.weight, head_dim, heads, finish.norm.weight_offset);
        place(of.norm_bias, finish.norm.bias, head_dim, heads, 0);
        place(of.store_scale, shape_of(finish.store_scale), head_dim, heads, 0);
    };
    tensor(plan.tensor[Q], info.tensor[Q].ops, info.tensor[Q].head_dim, info.tensor[Q].heads);
    tensor(plan.tensor[K], info.tensor[K].ops, info.tensor[K].head_dim, info.tensor[K].heads);
    tensor(plan.tensor[V], info.tensor[V].ops, info.tensor[V].head_dim, info.tensor[V].heads);
    plan.bytes = std::size_t(floats * 4);
    return floats;
}

}  // namespace vkrope
