// SPDX-License-Identifier: MIT
// Types that all tiers share: short names for those of vkrope.h, which documents them, and what
// C++ adds to them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vkrope/vkrope.h"

/// True if both assign the same axis to every pair. Ignores fields that have no effect.
constexpr bool operator==(const vkrope_sections& a, const vkrope_sections& b) noexcept {
    if (a.axes != b.axes) return false;
    if (a.axes == 0) return true;
    for (std::uint32_t i = 0; i < VKROPE_MAX_AXES; ++i) {
        if (a.pairs[i] != b.pairs[i]) return false;
    }
    return a.order == b.order &&
           (a.order != VKROPE_SECTIONS_INTERLEAVED || a.leftover_axis == b.leftover_axis);
}
constexpr bool operator!=(const vkrope_sections& a, const vkrope_sections& b) noexcept {
    return !(a == b);
}

constexpr bool operator==(const vkrope_window& a, const vkrope_window& b) noexcept {
    return a.offset == b.offset && a.rotary_dim == b.rotary_dim;
}

namespace vkrope {

using Code = vkrope_result;

/// The outcome of a call. Has a fixed size, so reporting an error allocates nothing.
struct [[nodiscard]] Status : vkrope_error {
    explicit operator bool() const noexcept { return code == VKROPE_SUCCESS; }
};

/// A value, or the status that says why there is none (`value` is then value-initialised).
template <class T>
struct [[nodiscard]] Result {
    Status status;
    T value{};

    explicit operator bool() const noexcept { return bool(status); }
    T* operator->() noexcept { return &value; }
    const T* operator->() const noexcept { return &value; }
};

using TensorIndex = vkrope_tensor_index;
inline constexpr TensorIndex Q = VKROPE_Q, K = VKROPE_K, V = VKROPE_V;
inline constexpr TensorIndex every_tensor[] = {Q, K, V};
inline constexpr std::uint32_t tensor_count = VKROPE_TENSORS;

using Pairing = vkrope_pairing;
using Element = vkrope_element;

/// Whether a type can only be stored.
constexpr bool is_quantised(Element element) noexcept {
    return element > VKROPE_BF16;
}

/// Channels of a block: 32 for ggml's types; 1 for the others, whose elements stand alone.
constexpr std::uint32_t block_channels(Element element) noexcept {
    return element >= VKROPE_Q8_0 && element <= VKROPE_Q5_1 ? 32 : 1;
}

/// Bytes of one element, or of one block.
constexpr std::uint32_t element_bytes(Element element) noexcept {
    constexpr std::uint32_t bytes[] = {4, 2, 2, 1, 1, 1, 34, 18, 20, 22, 24};
    return element <= VKROPE_Q5_1 ? bytes[std::uint32_t(element)] : 2;
}

using AngleSource = vkrope_angle_source;
using AnglePrecision = vkrope_angle_precision;
using PositionSource = vkrope_position_source;
using SectionOrder = vkrope_section_order;
inline constexpr std::uint32_t max_axes = VKROPE_MAX_AXES;
using Sections = vkrope_sections;
/// Axes whose products of position and frequency are added in the angle of one pair.
constexpr std::uint32_t summed_axes(const Sections& sections) noexcept {
    return sections.order == VKROPE_SECTIONS_SUM ? sections.axes : 1;
}

using Direction = vkrope_direction;
using Gain = vkrope_gain;
using AnglePlan = vkrope_angle_plan;
using AngleLines = vkrope_angle_lines;
inline AngleLines angle_lines(const AnglePlan& plan) noexcept {
    if (plan.source == VKROPE_ANGLES_COMPUTED) return {1, plan.bytes};
    if (plan.source == VKROPE_ANGLES_DIRECT_BUFFER)
        return {plan.phase ? 2 * plan.rows - 1 : plan.rows,  // with phases, -rows + 1 to rows - 1
                std::size_t{plan.pairs} * 8};                // cos and sin, a float each
    return {plan.extent.height, std::size_t{plan.extent.width} * 16};  // texels of four floats
}

using Window = vkrope_window;
inline constexpr std::uint32_t max_windows = VKROPE_MAX_WINDOWS;

using Mapping = vkrope_mapping;
using Conversion = vkrope_conversion;
using NormKind = vkrope_norm_kind;
using NormSpan = vkrope_norm_span;
using NormPlace = vkrope_norm_place;
using ParameterShape = vkrope_parameter_shape;
using Norm = vkrope_norm;
using StoreScale = vkrope_store_scale;

/// Whether a scale is made for each row.
constexpr bool is_made(StoreScale scale) noexcept {
    return scale >= VKROPE_STORE_SCALE_MADE;
}

using ScaleLayout = vkrope_scale_layout;
using Finish = vkrope_ops;
using ParameterItem = vkrope_parameter_item;
using TensorParameters = vkrope_tensor_parameters;
using ParameterPlan = vkrope_parameter_plan;
using TensorInfo = vkrope_tensor_info;

/// Whether two tensors have the same types and channels.
constexpr bool same_format(const TensorInfo& a, const TensorInfo& b) noexcept {
    return a.in == b.in && a.out == b.out && a.head_dim == b.head_dim &&
           a.rotary_offset == b.rotary_offset;
}

using KernelInfo = vkrope_kernel_info;

/// Factor of vkrope_ops::scale.
constexpr float scale_of(const Finish& ops) noexcept {
    return ops.scale == 0 ? 1 : ops.scale;
}

/// Groups of heads with frequencies of their own.
constexpr std::uint32_t head_groups_of(const KernelInfo& info) noexcept {
    return info.head_groups == 0 ? 1 : info.head_groups;
}

/// Pairing of the output of a kernel.
constexpr Pairing output_pairing(const KernelInfo& info) noexcept {
    return info.pairing_out == VKROPE_PAIRING_NONE ? info.pairing : info.pairing_out;
}

}  // namespace vkrope
