// SPDX-License-Identifier: MIT
#include "frequencies/angle_table_layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/angle_layout.hpp"
#include "base/bits.hpp"
#include "base/window_rules.hpp"

namespace vkrope {
namespace {

using ull = unsigned long long;  // the type of %llu on every platform

// Sets the fields that follow from the others. Returns an error if size_t cannot hold the bytes.
Status complete(AngleTableLayout& plan) noexcept {
    const DerivedLayout made = derived(plan);
    plan.format = made.format;
    plan.extent = {std::uint32_t(made.width), std::uint32_t(made.height)};
    plan.usage = made.usage;
    plan.bytes = std::size_t(made.bytes);
    plan.row_texels = made.row_texels;
    if (plan.bytes == made.bytes) return {};
    return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                 "max_position is %u: the table has %llu bytes, but size_t holds at most %llu",
                 plan.rows, ull{made.bytes}, ull{std::numeric_limits<std::size_t>::max()});
}

Status plan_texture(AngleTableLayout& plan, std::uint32_t max_image_side) noexcept {
    if (max_image_side == 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "max_image_side is 0: it must be the device's maxImageDimension2D");
    }
    plan.fold_log2 = std::min(floor_log2(max_image_side),
                              floor_log2(power_at_least(table_rows(plan))));
    const std::uint64_t width = derived(plan).width;
    if (width > max_image_side) {
        return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                     "max_position is %u: %u pairs need a texture %llu texels wide, but the device "
                     "allows %u",
                     plan.rows, plan.pairs, ull{width}, max_image_side);
    }
    return complete(plan);
}

Status plan_buffer(AngleTableLayout& plan) noexcept {
    const std::uint64_t bytes = derived(plan).bytes;
    if (bytes > max_buffer_bytes) {
        return error(
            VKROPE_ERROR_LIMIT_EXCEEDED,
            "max_position is %u: %u pairs need %llu bytes, but a storage buffer has at most %llu",
            plan.rows, plan.pairs, ull{bytes}, ull{max_buffer_bytes});
    }
    return complete(plan);
}

Status plan_factored(AngleTableLayout& plan, std::uint32_t max_image_side) noexcept {
    if (plan.rows > max_factored_positions) {
        return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                     "max_position is %u: a factored table covers at most %llu positions; computed "
                     "angles cover every int32",
                     plan.rows, ull{max_factored_positions});
    }
    return plan_texture(plan, max_image_side);
}

// Checks frequencies or phases, which become fractions of a turn.
Status check_radians(const char* name, const double* radians, std::size_t given,
                     std::uint64_t count, const char* shape) noexcept {
    if (given != count)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotation.%s_count is %llu: it must be %s = %llu", name, ull{given}, shape,
                     ull{count});
    if (!radians) return error(VKROPE_ERROR_INVALID_ARGUMENT, "rotation.%s is null", name);
    for (std::size_t j = 0; j < count; ++j) {
        if (!(std::fabs(radians[j]) < 0x1p11))
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "rotation.%s[%llu] is %g: it must be finite, of magnitude below 2048",
                         name, ull{j}, radians[j]);
    }
    return {};
}

}  // namespace

Status check_head_dim(const vkrope_rope_params& rotation) noexcept {
    const std::uint64_t end = window_end(rotation.windows, rotation.rotary_dim);
    if (rotation.head_dim >= end && rotation.head_dim <= max_head_dim) return {};
    return error(
        VKROPE_ERROR_INVALID_ARGUMENT,
        "rotation.head_dim is %u: it must be at least the %llu channels that its rotary_dim "
        "or windows reach, and at most %u",
        rotation.head_dim, ull{end}, max_head_dim);
}

Status check(const vkrope_rope_params& rotation) noexcept {
    if (rotation.no_rope) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotation.no_rope is set: a layer without RoPE has no angle table");
    }
    if (rotation.rotary_dim < 2 || rotation.rotary_dim > max_head_dim ||
        rotation.rotary_dim % 2 != 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotation.rotary_dim is %u: it must be even, 2 to %u", rotation.rotary_dim,
                     max_head_dim);
    }
    if (Status s = check_windows("rotation.", rotation.windows, rotation.rotary_dim); !s) return s;
    if (rotation.head_dim != 0) {
        if (Status s = check_head_dim(rotation); !s) return s;
    }
    if (rotation.head_groups == 0 || rotation.head_groups > 65535)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotation.head_groups is %u: it must be 1 to 65535", rotation.head_groups);
    if (Status s = check_sections("rotation.", rotation.sections); !s) return s;
    const std::uint64_t pairs = std::uint64_t{rotation.rotary_dim / 2} * rotation.head_groups;
    const std::uint32_t axes = summed_axes(rotation.sections);
    const char* shape = axes > 1                   ? "head_groups * sections.axes * rotary_dim / 2"
                        : rotation.head_groups > 1 ? "head_groups * rotary_dim / 2"
                                                   : "rotary_dim / 2";
    if (Status s = check_radians("inv_freq", rotation.inv_freq, rotation.inv_freq_count,
                                 pairs * axes, shape);
        !s)
        return s;
    if (rotation.phase && rotation.phase_count == 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotation.phase_count is 0 although rotation.phase is not null");
    if (rotation.phase_count != 0) {
        shape = rotation.head_groups > 1 ? "head_groups * rotary_dim / 2" : "rotary_dim / 2";
        if (Status s = check_radians("phase", rotation.phase, rotation.phase_count, pairs, shape);
            !s)
            return s;
    }
    if (rotation.phase_count == 0 &&
        std::all_of(rotation.inv_freq, rotation.inv_freq + rotation.inv_freq_count,
                    [](double radians) { return radians == 0; }))
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotation.inv_freq is 0 for every pair: nothing would rotate");
    // Outside this range, products with the factor could overflow or lose precision.
    if (!(rotation.attention_factor >= 0x1p-64 && rotation.attention_factor <= 0x1p64)) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotation.attention_factor is %g: it must be 2^-64 to 2^64",
                     rotation.attention_factor);
    }
    return {};
}

Status check_source(const vkrope_rope_params& rotation, AngleSource source) noexcept {
    if (rotation.precision > VKROPE_ANGLE_PRECISION_FLOAT32) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotation.precision is %u: it must be a vkrope_angle_precision",
                     unsigned(rotation.precision));
    }
    if (needs_computed(rotation) && source != VKROPE_ANGLES_COMPUTED) {
        if (rotation.head_groups != 1)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "rotation.head_groups is %u: source must be computed, but it is %u",
                         rotation.head_groups, unsigned(source));
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotation.sections.order is sum: source must be computed, but it is %u",
                     unsigned(source));
    }
    if (rotation.precision == VKROPE_ANGLE_PRECISION_EXACT) return {};
    if (source != VKROPE_ANGLES_DIRECT_TEXTURE && source != VKROPE_ANGLES_DIRECT_BUFFER)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotation.precision is VKROPE_ANGLE_PRECISION_FLOAT32: source must be "
                     "VKROPE_ANGLES_DIRECT_TEXTURE or _BUFFER, but it is %u",
                     unsigned(source));
    if (rotation.phase_count == 0) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "rotation.precision is float32: rotation.phase_count is %llu, but only exact "
                 "angles have phases",
                 ull{rotation.phase_count});
}

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_plan_angles(const vkrope_rope_params* given, vkrope_angle_source source,
                                 uint64_t max_position, uint32_t max_image_side,
                                 vkrope_angle_table_layout* made, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(given, "rotation"); !s) return s;
            if (Status s = not_null(made, "layout"); !s) return s;
            const vkrope_rope_params rotation = completed(*given);
            if (Status status = check(rotation); !status) return status;
            if (source == VKROPE_ANGLES_AUTOMATIC)
                source = needs_computed(rotation)
                             ? VKROPE_ANGLES_COMPUTED
                             : default_angles(rotation.precision, max_position);
            const std::uint64_t most = source == VKROPE_ANGLES_COMPUTED ? most_rows(source)
                                                                        : max_positions;
            if (max_position == 0 || max_position > most)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "max_position is %llu: it must be 1 to %llu", ull{max_position},
                             ull{most});
            if (Status status = check_source(rotation, source); !status) return status;
            AngleTableLayout plan;
            plan.source = source;
            plan.pairs = rotation.rotary_dim / 2;
            plan.rows = std::uint32_t(max_position);
            plan.attention_factor = rotation.attention_factor;
            plan.sections = rotation.sections;
            plan.phase = rotation.phase_count != 0;
            plan.head_groups = rotation.head_groups;
            Status status;
            switch (source) {
                case VKROPE_ANGLES_DIRECT_TEXTURE:
                    status = plan_texture(plan, max_image_side);
                    break;
                case VKROPE_ANGLES_DIRECT_BUFFER: status = plan_buffer(plan); break;
                case VKROPE_ANGLES_FACTORED_TEXTURE:
                    status = plan_factored(plan, max_image_side);
                    break;
                case VKROPE_ANGLES_COMPUTED:
                    plan.rows = std::uint32_t(most_rows(source));
                    status = complete(plan);
                    break;
                case VKROPE_ANGLES_COS_SIN_CACHE:
                    status = error(VKROPE_ERROR_INVALID_ARGUMENT,
                                   "source is VKROPE_ANGLES_COS_SIN_CACHE: use "
                                   "vkrope_plan_cos_sin_cache for a "
                                   "cache of your own cos and sin");
                    break;
                default:
                    status = error(VKROPE_ERROR_INVALID_ARGUMENT,
                                   "source is %u: it must be a vkrope_angle_source",
                                   unsigned(source));
                    break;
            }
            if (!status) return status;
            *made = plan;
            return {};
        });
}

vkrope_result vkrope_plan_cos_sin_cache(uint32_t pairs, uint32_t rows, uint32_t row_stride,
                                        vkrope_element element, VkBool32 channel_angles,
                                        vkrope_angle_table_layout* made, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(made, "layout"); !s) return s;
            if (pairs == 0 || pairs > max_head_dim / 2)
                return error(VKROPE_ERROR_INVALID_ARGUMENT, "pairs is %u: it must be 1 to %u",
                             pairs, max_head_dim / 2);
            if (rows == 0 || rows > max_positions)
                return error(VKROPE_ERROR_INVALID_ARGUMENT, "rows is %u: it must be 1 to %llu",
                             rows, ull{max_positions});
            const std::uint32_t used = channel_angles ? 2 * pairs : pairs;
            if (row_stride == 0) row_stride = used;
            if (row_stride < used)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "row_stride is %u: it must be at least %s, %u", row_stride,
                             channel_angles ? "2 * pairs" : "pairs", used);
            if (element > VKROPE_BF16)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "element is %u: it must be a vkrope_element", unsigned(element));
            const std::uint64_t elements = (std::uint64_t{rows} - 1) * row_stride +
                                           used;  // below 2^63
            if (elements > (max_buffer_bytes - 3) / element_bytes(element))
                return error(
                    VKROPE_ERROR_LIMIT_EXCEEDED,
                    "rows is %u: with row_stride %u they span %llu elements, but a storage "
                    "buffer has at most %llu bytes",
                    rows, row_stride, ull{elements}, ull{max_buffer_bytes});
            AngleTableLayout plan;
            plan.attention_factor = 1;
            plan.head_groups = 1;
            plan.source = VKROPE_ANGLES_COS_SIN_CACHE;
            plan.pairs = pairs;
            plan.rows = rows;
            plan.row_stride = row_stride;
            plan.element = element;
            plan.channel_angles = channel_angles != VK_FALSE;
            if (Status status = complete(plan); !status) return status;
            *made = plan;
            return {};
        });
}

vkrope_angle_source vkrope_default_angles(vkrope_angle_precision precision, uint64_t max_position) {
    return default_angles(precision, max_position);
}

double vkrope_error_bound(vkrope_angle_source source, double attention_factor) {
    return error_bound(source, attention_factor);
}
