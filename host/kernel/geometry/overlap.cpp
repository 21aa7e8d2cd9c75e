// SPDX-License-Identifier: MIT
#include "kernel/geometry/overlap.hpp"

#include <cinttypes>

#include "base/status.hpp"

namespace vkrope {

Axes axes_of(const TensorRows& rows) noexcept {
    const View& view = rows.view;
    const bool paged = view.page_size != 0;
    const char* owner = paged ? rows.cache_name : rows.name;
    const Axis all[] = {
        {rows.name, "head_stride", view.heads_per_group, view.head, rows.packed_head, 0},
        {rows.name, "group_stride", rows.groups(), view.group, rows.packed_group, 1},
        {owner, paged ? "row_stride" : "token_stride", paged ? view.page_size : rows.tokens,
         view.token, rows.packed_token, 2},
        {owner, paged ? "page_stride" : "batch_stride", paged ? rows.pages : rows.batch, view.batch,
         rows.packed_batch, 3}};
    Axes axes;
    for (const Axis& axis : all) {
        if (axis.count < 2) continue;
        // Errors name the longest axis, and among equal ones an axis whose stride the caller set.
        const auto goes_before = [&](const Axis& other) {
            return other.stride < axis.stride ||
                   (other.stride == axis.stride && other.packed && !axis.packed);
        };
        std::uint32_t at = axes.count++;
        for (; at > 0 && goes_before(axes.of[at - 1]); --at) axes.of[at] = axes.of[at - 1];
        axes.of[at] = axis;
    }
    return axes;
}

const Axis* longest_axis(const Axes& axes) noexcept {
    const Axis *longest = nullptr, *forgotten = nullptr;
    for (std::uint32_t i = 0; i < axes.count; ++i) {
        const Axis& axis = axes.of[i];
        for (std::uint32_t j = 0; axis.packed && j < axes.count; ++j) {
            const Axis& faster = axes.of[j];
            if (faster.packed || faster.rank > axis.rank || faster.stride < axis.stride) continue;
            if (!forgotten || axis.rank < forgotten->rank) forgotten = &axis;
        }
        const bool further = !longest || (axis.count - 1) * axis.stride >
                                             (longest->count - 1) * longest->stride;
        if (!longest || (axis.packed == longest->packed ? further : longest->packed))
            longest = &axis;
    }
    return forgotten ? forgotten : longest;
}

namespace {

// Byte ranges that repeat along axes, in the order of axes_of(). Offsets and strides are in bytes.
struct Pattern {
    std::uint64_t first, length;
    Axes axes;

    std::uint64_t extent() const {
        std::uint64_t bytes = length;
        for (std::uint32_t i = 0; i < axes.count; ++i)
            bytes += (axes.of[i].count - 1) * axes.of[i].stride;
        return bytes;
    }

    // Sets `part` to the ranges in one period of `period` bytes, starting at `at`, without the axes
    // that step by multiples of the period. Returns false if the pattern does not repeat with that
    // period.
    bool within(std::uint64_t period, std::uint64_t at, Pattern& part) const {
        part = {at, length, {}};
        for (std::uint32_t i = 0; i < axes.count; ++i)
            if (axes.of[i].stride < period)
                part.axes.of[part.axes.count++] = axes.of[i];
            else if (axes.of[i].stride % period != 0)
                return false;
        return part.extent() <= period;
    }
};

Pattern pattern_of(const TensorRows& rows) noexcept {
    Pattern pattern{rows.first_byte(), std::uint64_t{rows.view.head_dim} * rows.view.element_bytes,
                    axes_of(rows)};
    for (std::uint32_t i = 0; i < pattern.axes.count; ++i)
        pattern.axes.of[i].stride *= rows.view.element_bytes;
    return pattern;
}

// Returns whether two patterns share no byte: they are disjoint, or they alternate within a common
// period (packed QKV, planes, groups).
bool disjoint(const Pattern& a, const Pattern& b) noexcept {
    if (a.first + a.extent() <= b.first || b.first + b.extent() <= a.first) return true;
    std::uint64_t period = 0;  // longest common period
    Pattern inner_a, inner_b;
    for (const Axes* axes : {&a.axes, &b.axes}) {
        for (std::uint32_t i = 0; i < axes->count; ++i) {
            const std::uint64_t stride = axes->of[i].stride;
            if (stride > period && a.within(stride, 0, inner_a) && b.within(stride, 0, inner_b))
                period = stride;
        }
    }
    if (period == 0) return false;
    // Offsets are modulo `period`, from the start of a: b may extend past the end into the next a.
    a.within(period, 0, inner_a);
    b.within(period, (b.first % period + period - a.first % period) % period, inner_b);
    if (!disjoint(inner_a, inner_b)) return false;
    inner_a.first = period;
    return disjoint(inner_a, inner_b);
}

// Checks the axes from `at` on; the axes after `at` cover `covered` elements. If a shorter stride
// was left at 0 although its axis should be slower, the error names that stride rather than the one
// that the caller set. `channels` is the number of channels per element, for errors, which count
// strides in channels.
Status steps_inside(const Axes& axes, std::uint32_t at, std::uint64_t covered,
                    std::uint32_t channels) noexcept {
    covered *= channels;
    const Axis& axis = axes.of[at];
    for (std::uint32_t i = at; i < axes.count; ++i) {
        const Axis& packed = axes.of[i];
        if (!packed.packed || packed.rank < axis.rank) continue;
        if (i == at) {
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%s.%s is 0, which stands for %" PRIu64
                         ": it must be at least the %" PRIu64
                         " elements that the faster axes cover",
                         axis.owner, axis.field, axis.stride * channels, covered);
        }
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.%s is 0, which stands for %" PRIu64 ": the faster axes then cover %" PRIu64
                     " elements, so %s.%s, %" PRIu64 ", is too small",
                     packed.owner, packed.field, packed.stride * channels, covered, axis.owner,
                     axis.field, axis.stride * channels);
    }
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.%s is %" PRIu64 ": it must be at least the %" PRIu64
                 " elements that the faster axes cover",
                 axis.owner, axis.field, axis.stride * channels, covered);
}

}  // namespace

Status check_no_self_overlap(const TensorRows& rows) noexcept {
    const Axes axes = axes_of(rows);
    std::uint64_t covered = rows.view.head_dim;
    for (std::uint32_t i = axes.count; i-- > 0;) {
        if (axes.of[i].stride < covered) return steps_inside(axes, i, covered, rows.view.channels);
        covered = multiply_add(axes.of[i].count - 1, axes.of[i].stride, covered);
    }
    return {};
}

bool disjoint(const TensorRows& a, const TensorRows& b) noexcept {
    return a.tensor.where.buffer != b.tensor.where.buffer || disjoint(pattern_of(a), pattern_of(b));
}

}  // namespace vkrope
