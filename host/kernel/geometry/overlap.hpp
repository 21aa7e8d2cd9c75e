// SPDX-License-Identifier: MIT
// Finds overlap between the tensors of a call, and between the rows of one tensor: pure arithmetic,
// no Vulkan call.
#pragma once

#include <limits>

#include "kernel/geometry/view.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

inline constexpr std::uint64_t too_large = std::numeric_limits<std::uint64_t>::max();

// Returns a * b + c, or too_large if the result does not fit.
constexpr std::uint64_t multiply_add(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
    if (a == too_large || b == too_large || c == too_large) return too_large;
    if (b != 0 && a > (too_large - 1 - c) / b) return too_large;
    return a * b + c;
}

// A tensor of a call while it is being resolved to a View.
struct TensorRows {
    const char* name;
    const Tensor& tensor;
    std::uint32_t batch, tokens;
    View& view;
    const char* cache_name = "paged_cache";  // name of the page strides in errors
    std::uint32_t pages = 1;                 // pages of the cache, if scattered
    std::uint64_t span = 0;                  // elements from the first to one past the last
    // True for the strides that the caller left at 0, which errors name first.
    bool packed_head = false, packed_group = false, packed_token = false, packed_batch = false;

    std::uint64_t first_byte() const { return tensor.where.offset; }
    std::uint64_t end_byte() const { return first_byte() + span * view.element_bytes; }
    std::uint32_t groups() const { return view.heads / view.heads_per_group; }
};

// Direction in which the rows of a tensor repeat.
struct Axis {
    const char* owner = "";
    const char* field = "";
    std::uint64_t count = 1, stride = 0;  // elements
    bool packed = false;                  // the field was left at 0
    std::uint32_t rank = 0;               // order of packed axes: head, group, token, batch
};

// Axes with more than one step, from the longest stride to the shortest.
struct Axes {
    Axis of[4];
    std::uint32_t count = 0;
};
Axes axes_of(const TensorRows& rows) noexcept;

// Returns the axis whose stride most likely makes a tensor too long: an axis whose stride was left
// at 0 although a faster axis has a set stride that is no shorter; else the longest of the axes
// with a set stride; else the longest axis. Returns null for a tensor of one row.
const Axis* longest_axis(const Axes& axes) noexcept;

// Checks that the rows of an output do not overlap: each stride must step over everything that the
// faster axes cover.
Status check_no_self_overlap(const TensorRows& rows) noexcept;

// Returns whether the rows of two resolved tensors share no byte, because their ranges are
// disjoint, or because they alternate within a common period (packed QKV, planes, groups). Also
// returns false if this cannot be decided.
bool disjoint(const TensorRows& a, const TensorRows& b) noexcept;

}  // namespace vkrope
