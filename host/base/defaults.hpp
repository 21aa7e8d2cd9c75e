// SPDX-License-Identifier: MIT
// Replaces fields that are 0 by their defaults, which vkrope.h documents.
#pragma once

#include "base/status.hpp"

namespace vkrope {

// Returns `value`, or `otherwise` if `value` is 0.
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

// Returns the info with defaults filled in and every true VkBool32 set to 1, because fields become
// specialisation constants.
inline KernelInfo completed(KernelInfo info) noexcept {
    info.head_groups = head_groups_of(info);
    info.pairing_out = output_pairing(info);
    for (VkBool32* flag : {&info.scatter_kv, &info.gather_kv, &info.phase, &info.channel_angles,
                           &info.two_parameter_sets, &info.token_count})
        *flag = *flag != VK_FALSE;
    for (TensorInfo& of : info.tensor) {
        Ops& ops = of.ops;
        if (of.head_dim != 0) ops.scale = scale_of(ops);
        for (VkBool32* flag : {&ops.scale_call, &ops.scale_tokens, &ops.scales_in,
                               &ops.norm.round_between, &ops.norm.weight_bound})
            *flag = *flag != VK_FALSE;
    }
    return info;
}

// Returns the rotation with defaults filled in.
inline vkrope_rope_params completed(vkrope_rope_params rotation) noexcept {
    rotation.attention_factor = value_or(rotation.attention_factor, 1.0);
    rotation.head_groups = value_or(rotation.head_groups, 1u);
    return rotation;
}

}  // namespace vkrope
