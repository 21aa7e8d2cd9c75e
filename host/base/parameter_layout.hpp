// SPDX-License-Identifier: MIT
// Finds the ops of a tensor, and places weights, biases and scales in a parameter buffer. The
// frequencies tier plans and fills the buffer, and the kernel tier reads it.
#pragma once

#include <cstring>

#include "base/defaults.hpp"

namespace vkrope {

// Returns whether a tensor has a bias, norm, clip, scale or Hadamard transform.
constexpr bool has_ops(const Ops& ops) noexcept {
    return ops.norm.kind != VKROPE_NORM_NONE || ops.bias != VKROPE_PARAMETER_NONE ||
           ops.clip != 0 || scale_of(ops) != 1 || ops.scale_call || ops.scale_tokens ||
           ops.hadamard != 0 || ops.hadamard_of_input != 0;
}

// Returns whether rows of this many channels have the part that a norm takes.
constexpr bool fits_in_row(const Norm& norm, std::uint32_t head_dim) noexcept {
    return std::uint64_t{norm.first_channel} + norm.channels <= head_dim;
}

// Returns the number of channels that a norm takes, which are those of its weight and bias.
constexpr std::uint32_t norm_channels(const Norm& norm, std::uint32_t head_dim) noexcept {
    return value_or(norm.channels, head_dim);
}

// Returns the bytes of a norm's weight in a buffer of its own, in whole words.
constexpr std::uint64_t bound_weight_bytes(const TensorInfo& of) noexcept {
    const Norm& norm = of.ops.norm;
    const std::uint64_t rows = norm.weight == VKROPE_PARAMETER_HEAD_CHANNEL ? of.heads : 1;
    const std::uint64_t bytes = rows * norm_channels(norm, of.head_dim) *
                                element_bytes(norm.weight_type);
    return (bytes + 3) / 4 * 4;
}

// Checks that the other fields of a tensor with head_dim 0 are 0.
inline Status check_absent(const char* tensor, const TensorInfo& of) noexcept {
    if (of.head_dim != 0) return {};
    constexpr Ops none = {};
    static_assert(alignof(Ops) == 4, "without padding: each field has 4 bytes");
    const struct {
        const char* field;
        bool set;
    } fields[] = {{"in", of.in != 0},
                  {"out", of.out != 0},
                  {"rotary_offset", of.rotary_offset != 0},
                  {"heads", of.heads != 0},
                  {"ops", std::memcmp(&of.ops, &none, sizeof none) != 0},
                  {"second_of", of.second_of != 0},
                  {"second", of.second != 0}};
    for (const auto& [field, set] : fields)
        if (Status s = not_set(tensor, field, set, "head_dim is 0"); !s) return s;
    return {};
}

// Checks the part of a row that a norm takes.
inline Status check_norm_part(const char* tensor, const Norm& norm,
                              std::uint32_t head_dim) noexcept {
    if (norm.channels == 0 && norm.first_channel != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.norm.first_channel is %u: norm.channels is 0, so it must be 0", tensor,
                     norm.first_channel);
    if (fits_in_row(norm, head_dim)) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.ops.norm.channels is %u: with first_channel %u they must end within head_dim, "
                 "%u",
                 tensor, norm.channels, norm.first_channel, head_dim);
}

// Returns the shape of a scale that the caller provides.
constexpr ParameterShape shape_of(StoreScale scale) noexcept {
    return scale == VKROPE_STORE_SCALE_GIVEN        ? VKROPE_PARAMETER_TENSOR
           : scale == VKROPE_STORE_SCALE_GIVEN_HEAD ? VKROPE_PARAMETER_HEAD
                                                    : VKROPE_PARAMETER_NONE;
}

// Places the items of `info`, whose shapes must be valid, and returns their total number of
// floats. If that number exceeds 32 bits, the plan is not valid.
constexpr std::uint64_t lay_out_parameters(const KernelInfo& info, ParameterLayout& plan) noexcept {
    std::uint64_t floats = 0;
    const auto place = [&floats](ParameterItem& item, ParameterShape shape, std::uint32_t channels,
                                 std::uint32_t heads, std::uint32_t added) {
        item = {};
        if (shape == VKROPE_PARAMETER_NONE) return;
        const bool of_heads = shape == VKROPE_PARAMETER_HEAD_CHANNEL ||
                              shape == VKROPE_PARAMETER_HEAD;
        const bool of_channels = shape == VKROPE_PARAMETER_CHANNEL ||
                                 shape == VKROPE_PARAMETER_HEAD_CHANNEL;
        const std::uint64_t count = std::uint64_t{of_heads ? heads : 1} *
                                    (of_channels ? channels : 1);
        item = {shape, std::uint32_t(floats), std::uint32_t(count), added};
        floats += (count + 3) / 4 * 4;
    };
    for (const TensorIndex t : every_tensor) {
        TensorParameters& item = plan.tensor[t];
        const TensorInfo& of = info.tensor[t];
        const Norm& norm = of.ops.norm;
        place(item.bias, of.ops.bias, of.head_dim, of.heads, 0);
        const std::uint32_t normed = norm_channels(norm, of.head_dim);
        if (!norm.weight_bound)
            place(item.weight, norm.weight, normed, of.heads, norm.weight_offset);
        else
            item.weight = {};
        place(item.norm_bias, norm.bias, normed, of.heads, 0);
        place(item.store_scale, shape_of(of.ops.store_scale), of.head_dim, of.heads, 0);
    }
    plan.bytes = std::size_t(floats * 4);
    return floats;
}

}  // namespace vkrope
