// SPDX-License-Identifier: MIT
// Splits a call into boxes that the device can bind and dispatch: pure arithmetic, no Vulkan call.
// A head row is never split.
#pragma once

#include "kernel/geometry/geometry.hpp"
#include "kernel/geometry/view.hpp"

namespace vkrope {

/// Boxes of one size, except the last in each direction.
struct Tiling {
    Counts whole;  ///< of the call
    Counts box;    ///< of the largest box; batch or groups is 1, z counts the other
    bool heads_outer =
        false;  ///< heads vary more slowly than tokens, so that the boxes' outputs ascend

    std::uint64_t count() const noexcept;
    Box at(std::uint64_t index) const noexcept;
};

/// Views bound for a tensor, each of which must fit maxStorageBufferRange: input and output, and if
/// present ids, slots, factors of tokens and made scales.
struct Bound {
    static constexpr std::uint32_t most = 6;
    const char* names[most] = {};
    const View* views[most] = {};
    std::uint32_t count = 0;
    bool packed_tokens = false;  ///< one view has [batch, tokens] without strides in the shader

    void add(const char* name, const View& view) {
        names[count] = name;
        views[count++] = &view;
    }
};

/// Splits `whole` so that each binding fits the range, and heads and tokens fit one dispatch.
/// Returns limit_exceeded if one head row does not fit.
Result<Tiling> tile(const KernelInfo& info, const Geometry& geometry, const Counts& whole,
                    std::uint32_t group_heads, const Bound& bound, const StorageLimits& storage,
                    const DispatchLimits& dispatch) noexcept;

}  // namespace vkrope
