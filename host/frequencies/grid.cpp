// SPDX-License-Identifier: MIT
// Represents grids of rational coordinates by integer ids, scaled frequencies and phases.
#include <cmath>

#include "base/defaults.hpp"
#include "frequencies/angle_table_layout.hpp"
#include "frequencies/id_range.hpp"
#include "frequencies/scaling_rules.hpp"

namespace vkrope {
namespace {

using ull = unsigned long long;  // the type of %llu on every platform

constexpr double fastest = 0x1p11;                        // the range of turn_fraction
constexpr std::int64_t max_step = std::int64_t{1} << 32;  // a product with a count fits in int64
constexpr std::int64_t max_first = std::int64_t{1} << 62;

Status require_elements(std::uint32_t count, const char* name) noexcept {
    if (count != 0) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is 0: it must be at least 1", name);
}

Status require_axes(const GridAxis* axes, std::uint32_t count) noexcept {
    if (axes == nullptr) return error(VKROPE_ERROR_INVALID_ARGUMENT, "axes is null");
    if (count == 0 || count > max_axes) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "axis_count is %u: it must be 1 to %u axes",
                     count, max_axes);
    }
    return {};
}

std::int64_t step_of(const GridAxis& axis) noexcept {
    return value_or(axis.step, std::int64_t{1});
}
double unit_of(const GridAxis& axis) noexcept {
    return value_or(axis.unit, 1.0);
}

// Checks an axis, except that its ids fit in int32.
Status require_axis(const GridAxis& axis, std::uint32_t index) noexcept {
    if (axis.count == 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "axes[%u].count is 0: it must be at least 1",
                     index);
    }
    if (axis.step > max_step || axis.step < -max_step) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "axes[%u].step is %lld: its magnitude must be at most 2^32", index,
                     static_cast<long long>(axis.step));
    }
    if (!(std::isfinite(axis.unit) && unit_of(axis) > 0)) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "axes[%u].unit is %g: it must be finite and above 0", index, axis.unit);
    }
    if (!std::isfinite(axis.origin)) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "axes[%u].origin is %g: it must be finite",
                     index, axis.origin);
    }
    return {};
}

// Layout of frequencies by head group, axis and pair; axes that are not summed share one row.
struct AxisLayout {
    std::size_t groups, rows, pairs;
    bool sum;

    explicit AxisLayout(const vkrope_rope_params& rotation) noexcept
        : groups(rotation.head_groups), rows(1), pairs(rotation.rotary_dim / 2),
          sum(rotation.sections.axes != 0 && rotation.sections.order == VKROPE_SECTIONS_SUM) {
        if (sum) rows = rotation.sections.axes;
    }
    std::size_t frequencies() const noexcept { return groups * rows * pairs; }
    std::size_t phases() const noexcept { return groups * pairs; }
};

Status require_rotation(const vkrope_rope_params& rotation, std::uint32_t count) noexcept {
    const std::uint32_t axes = rotation.sections.axes == 0 ? 1 : rotation.sections.axes;
    if (count != axes) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "axis_count is %u: it must be the rotation's axes, %u", count, axes);
    }
    if (Status s = check(rotation); !s) return s;
    for (std::uint32_t pair = 0; pair < rotation.rotary_dim / 2; ++pair) {
        const std::uint32_t axis = axis_of(rotation.sections, pair);
        if (axis < count) continue;
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotation.sections has axis %u: it must be below %u", axis, count);
    }
    return {};
}

double without_turns(double radians) noexcept {
    return two_pi * std::remainder(radians / two_pi, 1.0);
}

Result<GridAxis> axis_of_frames(std::uint32_t frames, double base_fps, double fps) noexcept {
    if (Status s = require_elements(frames, "frames"); !s) return {s, {}};
    if (Status s = require_positive(base_fps, "base_fps"); !s) return {s, {}};
    if (Status s = require_positive(fps, "fps"); !s) return {s, {}};
    if (Status s = require_positive(base_fps / fps, "base_fps / fps"); !s) return {s, {}};
    GridAxis axis;
    axis.count = frames;
    axis.unit = base_fps / fps;
    return {{}, axis};
}

Result<GridAxis> axis_of_patches(std::uint32_t patches, std::int64_t first,
                                 double reference) noexcept {
    if (Status s = require_elements(patches, "patches"); !s) return {s, {}};
    if (Status s = require_positive(reference, "reference"); !s) return {s, {}};
    if (Status s = require_positive(reference / patches, "reference / patches"); !s) return {s, {}};
    GridAxis axis;
    axis.count = patches;
    axis.first = first;
    axis.unit = reference / patches;
    return {{}, axis};
}

Result<GridAxis> axis_of_interval(std::uint32_t patches, double low, double high) noexcept {
    if (Status s = require_elements(patches, "patches"); !s) return {s, {}};
    if (!(std::isfinite(low) && std::isfinite(high) && low < high)) {
        return {error(VKROPE_ERROR_INVALID_ARGUMENT,
                      "low is %g and high is %g: they must be finite, low below high", low, high),
                {}};
    }
    // Centre i is low + (2i + 1) * half.
    const double half = high / (2.0 * patches) - low / (2.0 * patches);
    if (Status s = require_positive(half, "the distance of two ids"); !s) return {s, {}};
    GridAxis axis;
    axis.count = patches;
    axis.first = low == -high ? 1 - std::int64_t{patches} : 1;
    axis.step = 2;
    axis.unit = half;
    axis.origin = low == -high ? 0 : low;
    return {{}, axis};
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_frame_axis(uint32_t frames, double base_fps, double fps,
                                vkrope_grid_axis* axis, vkrope_error* failure) {
    return answer(
        failure, [&] { return hand_out(axis_of_frames(frames, base_fps, fps), axis, "axis"); });
}

vkrope_result vkrope_resized_axis(uint32_t patches, int64_t first, double reference,
                                  vkrope_grid_axis* axis, vkrope_error* failure) {
    return answer(
        failure,
        [&] { return hand_out(axis_of_patches(patches, first, reference), axis, "axis"); });
}

vkrope_result vkrope_interval_axis(uint32_t patches, double low, double high,
                                   vkrope_grid_axis* axis, vkrope_error* failure) {
    return answer(
        failure, [&] { return hand_out(axis_of_interval(patches, low, high), axis, "axis"); });
}

vkrope_result vkrope_fold_grid(const vkrope_grid_axis* axes, uint32_t axis_count, double* inv_freq,
                               double* phase, vkrope_rope_params* params, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(params, "rotation"); !s) return s;
            if (Status s = not_null(inv_freq, "inv_freq"); !s) return s;
            if (Status s = require_axes(axes, axis_count); !s) return s;
            const vkrope_rope_params rotation = completed(*params);
            if (Status s = require_rotation(rotation, axis_count); !s) return s;
            bool shifted = false, scaled = false;
            for (std::uint32_t a = 0; a < axis_count; ++a) {
                if (Status s = require_axis(axes[a], a); !s) return s;
                shifted = shifted || axes[a].origin != 0;
                scaled = scaled || unit_of(axes[a]) != 1;
            }
            const AxisLayout layout(rotation);
            const bool phased = shifted || rotation.phase_count != 0;
            if (phased) {
                if (Status s = not_null(phase, "phase"); !s) return s;
            }
            const auto axis_at = [&](std::size_t at) -> std::size_t {
                return layout.sum ? at / layout.pairs % layout.rows
                                  : axis_of(rotation.sections, std::uint32_t(at % layout.pairs));
            };
            for (std::size_t at = 0; at < layout.frequencies(); ++at) {
                const std::size_t a = axis_at(at);
                const double folded = rotation.inv_freq[at] * unit_of(axes[a]);
                if (!(std::fabs(folded) < fastest))
                    return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                                 "axes[%llu].unit is %g: it makes inv_freq[%llu] %g radians per "
                                 "position, which must be below 2048",
                                 ull{a}, axes[a].unit, ull{at}, folded);
            }
            for (std::size_t at = 0; phased && at < layout.phases(); ++at)
                phase[at] = rotation.phase_count != 0 ? rotation.phase[at] : 0;
            for (std::size_t at = 0; at < layout.frequencies(); ++at) {
                const std::size_t a = axis_at(at);
                if (shifted) {
                    double& start =
                        phase[at / layout.pairs / layout.rows * layout.pairs + at % layout.pairs];
                    start = without_turns(start + axes[a].origin * rotation.inv_freq[at]);
                }
                inv_freq[at] = rotation.inv_freq[at] * unit_of(axes[a]);
            }
            params->inv_freq = inv_freq;
            if (phased) {
                params->phase = phase;
                params->phase_count = layout.phases();
            }
            if (scaled) params->base = 0;
            return {};
        });
}

uint64_t vkrope_grid_tokens(const vkrope_grid_axis* axes, uint32_t count) {
    if (count > max_axes) return 0;
    std::uint64_t tokens = axes == nullptr ? 0 : 1;
    for (std::uint32_t a = 0; axes != nullptr && a < count; ++a) {
        if (axes[a].count != 0 && tokens > ~std::uint64_t{0} / axes[a].count) return 0;
        tokens *= axes[a].count;
    }
    return tokens;
}

vkrope_result vkrope_grid_ids(const vkrope_grid_axis* axes, uint32_t axis_count, int32_t* ids,
                              size_t tokens, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = require_axes(axes, axis_count); !s) return s;
            for (std::uint32_t a = 0; a < axis_count; ++a) {
                const GridAxis& axis = axes[a];
                if (Status s = require_axis(axis, a); !s) return s;
                if (axis.first > max_first || axis.first < -max_first)
                    return id_out_of_range("axes", a, "first", axis.first);
                const std::int64_t last = axis.first +
                                          step_of(axis) * (std::int64_t{axis.count} - 1);
                for (const std::int64_t id : {axis.first, last})
                    if (!fits_id(id)) return id_out_of_range("axes", a, "ids", id);
            }
            if (vkrope_grid_tokens(axes, axis_count) != tokens)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "tokens is %llu: it must be %llu, the grid's elements", ull{tokens},
                             ull{vkrope_grid_tokens(axes, axis_count)});
            if (ids == nullptr) return error(VKROPE_ERROR_INVALID_ARGUMENT, "ids is null");
            std::size_t inner = tokens;
            for (std::uint32_t a = 0; a < axis_count; ++a) {
                inner /= axes[a].count;
                for (std::size_t token = 0; token < tokens; ++token) {
                    const auto element = std::int64_t(token / inner % axes[a].count);
                    ids[a * tokens + token] = std::int32_t(axes[a].first +
                                                           step_of(axes[a]) * element);
                }
            }
            return {};
        });
}
