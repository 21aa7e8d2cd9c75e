// SPDX-License-Identifier: MIT
// How a call is cut into boxes that the device can bind and dispatch: pure arithmetic, no Vulkan
// call. A head row is the atom.
#pragma once

#include "kernel/geometry/geometry.hpp"
#include "kernel/geometry/view.hpp"

namespace vkrope {

/// Boxes of one size, but for the last in each direction.
struct Tiling {
    Counts whole;  ///< of the call
    Counts box;    ///< of the largest box; batch or groups is 1, the other falls along z
    bool heads_outer =
        false;  ///< heads step more slowly than tokens, so that the boxes' outputs ascend

    std::uint64_t count() const noexcept;
    Box at(std::uint64_t index) const noexcept;
};

/// What is bound for a tensor, and therefore has to fit maxStorageBufferRange: input, output, and
/// where there are such, ids and slots.
struct Bound {
    static constexpr std::uint32_t most = 4;
    const char* names[most] = {};
    const View* views[most] = {};
    std::uint32_t count = 0;

    void add(const char* name, const View& view) {
        names[count] = name;
        views[count++] = &view;
    }
};

/// Cuts `whole` so that what is bound fits the range, and its heads and tokens fit one dispatch.
/// limit_exceeded where one head row does not fit.
Result<Tiling> tile(const KernelInfo& info, const Geometry& geometry, const Counts& whole,
                    std::uint32_t group_heads, const Bound& bound, const StorageLimits& storage,
                    const DispatchLimits& dispatch) noexcept;

}  // namespace vkrope
