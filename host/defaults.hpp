// SPDX-License-Identifier: MIT
// Replaces fields that are 0 by their defaults, which vkrope.h documents.
#pragma once

#include <cstring>

#include "status.hpp"

namespace vkrope {

/// Returns `value`, or `otherwise` if `value` is 0.
template <class Number>
constexpr Number value_or(Number value, Number otherwise) noexcept {
    return value == 0 ? otherwise : value;
}

inline std::uint32_t sequences_of(const vkrope_call& call) noexcept {
    return value_or(call.batch, 1u);
}
inline std::uint32_t page_size_of(const vkrope_paged_cache& cache) noexcept {
    return value_or(cache.page_size, 1u);
}
inline float q_scale_of(const vkrope_call& call) noexcept {
    return value_or(call.q_scale, 1.0f);
}

/// Returns the info with defaults filled in and every true VkBool32 set to 1, because fields become
/// specialisation constants.
inline KernelInfo completed(KernelInfo info) noexcept {
    info.head_groups = head_groups_of(info);
    info.pairing_out = output_pairing(info);
    for (VkBool32* flag :
         {&info.scatter_kv, &info.phase, &info.channel_angles, &info.two_parameter_sets})
        *flag = *flag != VK_FALSE;
    for (TensorInfo& of : info.tensor) of.ops.scale = scale_of(of.ops);
    return info;
}

/// Returns the rotation with defaults filled in.
inline vkrope_rope_params completed(vkrope_rope_params rotation) noexcept {
    rotation.attention_factor = value_or(rotation.attention_factor, 1.0);
    rotation.head_groups = value_or(rotation.head_groups, 1u);
    return rotation;
}

/// Checks a layout that the caller may have filled. Call this function before reading the format as
/// a VkFormat, because the format may be any number.
inline Status check_plan(const AngleTableLayout* plan, const char* name) noexcept {
    if (Status s = not_null(plan, name); !s) return s;
    std::uint32_t format;
    std::memcpy(&format, &plan->format, sizeof format);
    if (format == VK_FORMAT_UNDEFINED || format == VK_FORMAT_R32G32B32A32_SFLOAT) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.format is %u: it must be the format that vkrope_plan_angles chose, %u or %u",
                 name, format, unsigned(VK_FORMAT_UNDEFINED),
                 unsigned(VK_FORMAT_R32G32B32A32_SFLOAT));
}

}  // namespace vkrope
