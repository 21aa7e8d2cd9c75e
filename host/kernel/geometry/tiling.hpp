// SPDX-License-Identifier: MIT
// Splits a call into tiles that the device can bind and dispatch: pure arithmetic, no Vulkan call.
// A head row is never split.
#pragma once

#include "kernel/geometry/geometry.hpp"
#include "kernel/geometry/view.hpp"

namespace vkrope {

// Tiles of one size, except the last in each direction.
struct Tiling {
    Counts whole;  // counts of the call
    Counts tile;   // counts of the largest tile; batch or groups is 1, and z counts the other
    bool heads_outer =
        false;  // heads vary more slowly than tokens, so that the tiles' outputs ascend

    std::uint64_t count() const noexcept;
    Tile at(std::uint64_t index) const noexcept;
};

// Views that are bound for a tensor: input and output and, if present, ids, slots, factors of
// tokens, computed scales and a second destination. Each must fit in maxStorageBufferRange.
struct Bound {
    static constexpr std::uint32_t most = 7;
    const char* names[most];
    const View* views[most];
    std::uint32_t count = 0;
    bool packed_tokens = false;     // one view is [batch, tokens], without strides in the shader
    const View* aligned = nullptr;  // a view without an offset in the shader

    void add(const char* name, const View& view) {
        names[count] = name;
        views[count++] = &view;
    }
};

// Splits `whole` so that each binding fits the range, and heads and tokens fit one dispatch.
// Returns limit_exceeded if one head row does not fit, or if no tiles of `aligned` begin at offsets
// that the device allows.
Result<Tiling> tile(const KernelInfo& info, const Geometry& geometry, const Counts& whole,
                    std::uint32_t group_heads, const Bound& bound, const StorageLimits& storage,
                    const DispatchLimits& dispatch) noexcept;

}  // namespace vkrope
