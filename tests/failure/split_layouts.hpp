// SPDX-License-Identifier: MIT
// Calls over many layouts, and the kernels for them.
#pragma once

#include <random>

#include "split_model.hpp"

namespace vkrope::test::split {

enum class Layout {
    bshd,
    bhsd,
    sbhd,
    bhsd_to_bshd,
    packed,
    grouped,
    uneven,
    broadcast_k,
    odd,
    paged,
    paged_by_head,
    paged_groups
};
inline constexpr Layout layouts[] = {
    Layout::bshd,   Layout::bhsd,    Layout::sbhd,          Layout::bhsd_to_bshd,
    Layout::packed, Layout::grouped, Layout::uneven,        Layout::broadcast_k,
    Layout::odd,    Layout::paged,   Layout::paged_by_head, Layout::paged_groups};

/// Where the rows of V are.
enum class ValueRows { absent, like_k, apart, in_place };

/// The ops of a call's tensors.
enum class Steps { none, of_heads, of_tokens };

/// A call without ops, at positions from 11 on.
Scenario scenario(const KernelHost& host, Layout layout, ValueRows v, std::uint32_t batch,
                  std::uint32_t tokens, std::mt19937& random);

KernelInfo info_for(Layout layout, ValueRows v, Steps steps = Steps::none);

ValueRows any_v(Layout layout, std::mt19937& random);

/// A call that `info` allows, with what its ops reads.
Scenario scenario_for(const KernelHost& host, const KernelInfo& info, Layout layout, ValueRows v,
                      std::uint32_t batch, std::uint32_t tokens, std::mt19937& random);

/// Whether the heads of a token may be too far apart in memory for one dispatch.
bool heads_may_be_cut(Layout layout);
bool has_groups(Layout layout);

}  // namespace vkrope::test::split
