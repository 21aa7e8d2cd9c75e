// SPDX-License-Identifier: MIT
// Defines queries of vkrope.h and a few others as constant expressions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "vkrope/vkrope.hpp"

// Returns true if both sections assign the same axis to every pair. Ignores unused fields.
constexpr bool operator==(const vkrope_sections& a, const vkrope_sections& b) noexcept {
    if (a.axes != b.axes) return false;
    if (a.axes == 0) return true;
    for (std::uint32_t i = 0; i < VKROPE_MAX_AXES; ++i)
        if (a.pairs[i] != b.pairs[i]) return false;
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

// Returns the name of an element type, for errors.
constexpr const char* element_name(Element element) noexcept {
    constexpr const char* names[] = {"f32",  "f16",  "bf16", "e4m3fn", "e5m2",   "int8", "q8_0",
                                     "q4_0", "q4_1", "q5_0", "q5_1",   "iq4_nl", "int4"};
    static_assert(sizeof names / sizeof *names == VKROPE_INT4 + 1);
    return element <= VKROPE_INT4 ? names[std::uint32_t(element)] : "no element type";
}
// See vkrope_is_quantised.
constexpr bool is_quantised(Element element) noexcept {
    return element > VKROPE_BF16;
}
// See vkrope_block_channels.
constexpr std::uint32_t block_channels(Element element) noexcept {
    return element >= VKROPE_Q8_0 && element <= VKROPE_IQ4_NL ? 32 : element == VKROPE_INT4 ? 2 : 1;
}
// Returns whether a type has ggml's blocks, which contain their scales.
constexpr bool has_blocks(Element element) noexcept {
    return block_channels(element) == 32;
}
// See vkrope_element_bytes.
constexpr std::uint32_t element_bytes(Element element) noexcept {
    constexpr std::uint32_t bytes[] = {4, 2, 2, 1, 1, 1, 34, 18, 20, 22, 24, 18, 1};
    return element <= VKROPE_INT4 ? bytes[std::uint32_t(element)] : 2;
}
// Returns whether a field of a tuning is set.
constexpr bool is_tuned(const Tuning& tuning) noexcept {
    return (tuning.lane_heads | tuning.group_lanes | tuning.group_tokens) != 0;
}
// See vkrope_summed_axes.
constexpr std::uint32_t summed_axes(const Sections& sections) noexcept {
    return sections.order == VKROPE_SECTIONS_SUM ? sections.axes : 1;
}
// See vkrope_axis_of.
constexpr std::uint32_t axis_of(const Sections& sections, std::uint32_t pair) noexcept {
    std::uint32_t sum = 0;
    for (const std::uint32_t pairs : sections.pairs) sum += pairs;
    if (sum == 0) return 0;
    const std::uint32_t m = pair % sum;
    if (sections.order == VKROPE_SECTIONS_INTERLEAVED)
        return m < 3 * sections.pairs[m % 3] ? m % 3 : sections.leftover_axis;
    std::uint32_t axis = 0;
    for (std::uint32_t end = sections.pairs[0]; m >= end; end += sections.pairs[axis]) ++axis;
    return axis;
}
// See vkrope_default_angles.
constexpr AngleSource default_angles(vkrope_angle_precision precision,
                                     std::uint64_t max_position) noexcept {
    if (precision == VKROPE_ANGLE_PRECISION_FLOAT32) return VKROPE_ANGLES_DIRECT_TEXTURE;
    return max_position > max_factored_positions ? VKROPE_ANGLES_COMPUTED
                                                 : VKROPE_ANGLES_FACTORED_TEXTURE;
}
// See vkrope_error_bound.
constexpr double error_bound(AngleSource source, double attention_factor) noexcept {
    return source == VKROPE_ANGLES_FACTORED_TEXTURE ? 6
           : source == VKROPE_ANGLES_COMPUTED       ? 4.5
           : attention_factor == 1                  ? 2.5
                                                    : 3;
}
// See vkrope_get_angle_lines.
inline AngleLines angle_lines(const AngleTableLayout& layout) noexcept {
    if (layout.source == VKROPE_ANGLES_COMPUTED) return {1, layout.bytes};
    if (layout.source == VKROPE_ANGLES_DIRECT_BUFFER)
        return {
            layout.phase ? 2 * layout.rows - 1 : layout.rows,  // phases: also rows of positions < 0
            std::size_t{layout.pairs} * 8};                    // two floats: cos and sin
    return {layout.extent.height, std::size_t{layout.extent.width} * 16};  // a texel is four floats
}
// Returns the factor of vkrope_ops::scale.
constexpr float scale_of(const Ops& ops) noexcept {
    return ops.scale == 0 ? 1 : ops.scale;
}
// Returns the number of head groups, each of which has its own frequencies.
constexpr std::uint32_t head_groups_of(const KernelInfo& info) noexcept {
    return info.head_groups == 0 ? 1 : info.head_groups;
}
// Returns the pairing of a kernel's output.
constexpr Pairing output_pairing(const KernelInfo& info) noexcept {
    return info.pairing_out == VKROPE_PAIRING_NONE ? info.pairing : info.pairing_out;
}
// Returns whether two tensors have the same types and channels.
constexpr bool same_format(const TensorInfo& a, const TensorInfo& b) noexcept {
    return a.in == b.in && a.out == b.out && a.head_dim == b.head_dim &&
           a.rotary_offset == b.rotary_offset;
}
// Returns a model's ops for rows whose rotated channels begin at `rotary_offset`. In a latent row
// the norm ends there. It is neither that of the rotated channels alone nor that of an assembled
// key.
constexpr Ops ops_of_row(Ops ops, std::uint32_t rotary_offset) noexcept {
    const Norm& norm = ops.norm;
    if (norm.channels != 0 && norm.first_channel + norm.channels != rotary_offset) ops.norm = {};
    return ops;
}
// Returns whether a tensor has a second destination.
constexpr bool has_second(const TensorInfo& tensor) noexcept {
    return tensor.second_of != VKROPE_SECOND_NONE;
}
// Returns whether the kernel computes scales of the rows that it stores.
constexpr bool is_made(StoreScale scale) noexcept {
    return scale >= VKROPE_STORE_SCALE_MADE;
}
// Returns the number of scales of a row, made or read.
constexpr std::uint32_t scale_groups(const TensorInfo& tensor) noexcept {
    return tensor.ops.store_scale_group == 0 ? 1 : tensor.head_dim / tensor.ops.store_scale_group;
}
// Returns whether the rows of a tensor come from a cache: of slots, quantised or transformed.
constexpr bool is_read_from_cache(const KernelInfo& info, TensorIndex index) noexcept {
    const TensorInfo& tensor = info.tensor[index];
    return index != Q && tensor.head_dim != 0 &&
           (info.gather_kv || is_quantised(tensor.in) || tensor.ops.hadamard_of_input != 0);
}
// Returns whether a kernel moves keys: it reads rows of a cache, and has no Q.
constexpr bool moves_keys(const KernelInfo& info) noexcept {
    return is_read_from_cache(info, K) || is_read_from_cache(info, V);
}

}  // namespace vkrope
