// SPDX-License-Identifier: MIT
#include "frequencies/angle_table_layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bits.hpp"
#include "defaults.hpp"
#include "interface.h"
#include "status.hpp"
#include "window_rules.hpp"

namespace vkrope {
namespace {

constexpr std::uint64_t max_buffer_bytes =
    0xffffffff;  // VkPhysicalDeviceLimits::maxStorageBufferRange is a uint32_t
constexpr std::uint64_t texel_bytes = 4 * sizeof(float);
constexpr std::uint64_t pair_bytes = 2 * sizeof(float);

using ull = unsigned long long;  // the type of %llu on every platform

struct TextureShape {
    std::uint64_t width = 0;
    std::uint32_t height = 0;

    std::uint64_t bytes() const noexcept { return width * height * texel_bytes; }
};

/// Returns the shape of a texture. After 2^fold_log2 rows, rows continue in the next column.
TextureShape texture_shape(const AngleTableLayout& plan) noexcept {
    const std::uint64_t rows_per_column = std::uint64_t{1} << plan.fold_log2;
    const std::uint64_t rows = texture_rows(plan),
                        columns = (rows + rows_per_column - 1) >> plan.fold_log2;
    return {columns * plan.row_texels, std::uint32_t(columns == 1 ? rows : rows_per_column)};
}

Status plan_texture(AngleTableLayout& plan, std::uint32_t max_image_side) noexcept {
    if (max_image_side == 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "max_image_side is 0: it must be the device's maxImageDimension2D");
    }
    const std::uint64_t rows_per_column = std::min<std::uint64_t>(
        std::uint64_t{1} << floor_log2(max_image_side), power_at_least(texture_rows(plan)));
    plan.fold_log2 = floor_log2(rows_per_column);
    plan.row_texels = (plan.pairs + 1) / 2;
    const TextureShape shape = texture_shape(plan);
    if (shape.width > max_image_side) {
        return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                     "max_position is %u: %u pairs need a texture %llu texels wide, but the device "
                     "allows %u",
                     plan.rows, plan.pairs, ull{shape.width}, max_image_side);
    }
    plan.format = VK_FORMAT_R32G32B32A32_SFLOAT;
    plan.extent = {std::uint32_t(shape.width), shape.height};
    plan.usage = VK_IMAGE_USAGE_SAMPLED_BIT;
    plan.bytes = std::size_t(shape.bytes());
    if (plan.bytes != shape.bytes()) {
        return error(
            VKROPE_ERROR_LIMIT_EXCEEDED,
            "max_position is %u: the texture has %llu bytes, but size_t holds at most %llu",
            plan.rows, ull{shape.bytes()}, ull{std::numeric_limits<std::size_t>::max()});
    }
    return {};
}

std::uint64_t buffer_bytes(const AngleTableLayout& plan) noexcept {
    return shader::direct_rows(plan.rows, plan.phase) * plan.pairs * pair_bytes;
}

Status plan_buffer(AngleTableLayout& plan) noexcept {
    const std::uint64_t bytes = buffer_bytes(plan);
    if (bytes > max_buffer_bytes) {
        return error(
            VKROPE_ERROR_LIMIT_EXCEEDED,
            "max_position is %u: %u pairs need %llu bytes, but a storage buffer has at most %llu",
            plan.rows, plan.pairs, ull{bytes}, ull{max_buffer_bytes});
    }
    plan.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    plan.bytes = std::size_t(bytes);
    return {};
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

std::uint64_t turn_bytes(const AngleTableLayout& plan) noexcept {
    return shader::turn_bytes(plan.pairs, value_or(plan.head_groups, 1u),
                              summed_axes(plan.sections), plan.phase);
}

void plan_turns(AngleTableLayout& plan) noexcept {
    plan.rows = std::uint32_t(max_positions) + 1;  // covers -2^31 too
    plan.usage = VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT;
    plan.bytes = std::size_t(turn_bytes(plan));
}

Status check_sum(const Sections& sections) noexcept {
    if (sections.order > VKROPE_SECTIONS_SUM)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotation.sections.order is %u: it must be a vkrope_section_order",
                     unsigned(sections.order));
    if (sections.order != VKROPE_SECTIONS_SUM) return {};
    if (sections.axes < 2 || sections.axes > max_axes)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotation.sections.axes is %u: a sum must have 2 to %u axes", sections.axes,
                     max_axes);
    for (std::uint32_t i = 0; i < max_axes; ++i) {
        if (sections.pairs[i] != 0)
            return error(
                VKROPE_ERROR_INVALID_ARGUMENT,
                "rotation.sections.pairs[%u] is %u: in a sum every axis rotates every pair, "
                "so it must be 0",
                i, sections.pairs[i]);
    }
    return {};
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
    if (rotation.head_groups == 0 || rotation.head_groups > 65535)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotation.head_groups is %u: it must be 1 to 65535", rotation.head_groups);
    if (Status s = check_sum(rotation.sections); !s) return s;
    const std::uint64_t pairs = std::uint64_t{rotation.rotary_dim / 2} * rotation.head_groups;
    const std::uint32_t axes = summed_axes(rotation.sections);
    const char* shape = axes > 1                   ? "head_groups * sections.axes * rotary_dim / 2"
                        : rotation.head_groups > 1 ? "head_groups * rotary_dim / 2"
                                                   : "rotary_dim / 2";
    if (Status s = check_radians("inv_freq", rotation.inv_freq, rotation.inv_freq_count,
                                 pairs * axes, shape);
        !s)
        return s;
    if (rotation.phase_count != 0) {
        shape = rotation.head_groups > 1 ? "head_groups * rotary_dim / 2" : "rotary_dim / 2";
        if (Status s = check_radians("phase", rotation.phase, rotation.phase_count, pairs, shape);
            !s)
            return s;
    }
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

std::uint64_t texture_rows(const AngleTableLayout& plan) noexcept {
    return plan.source == VKROPE_ANGLES_FACTORED_TEXTURE
               ? shader::factored_rows(plan.rows, plan.phase)
               : shader::direct_rows(plan.rows, plan.phase);
}

bool consistent(const AngleTableLayout& plan) noexcept {
    if (plan.source == VKROPE_ANGLES_COMPUTED) {
        return plan.bytes == turn_bytes(plan);
    }
    if (plan.rows == 0 || plan.rows > max_positions) {
        return false;
    }
    if (plan.source == VKROPE_ANGLES_DIRECT_BUFFER) {
        return plan.bytes == buffer_bytes(plan);
    }
    if (plan.source == VKROPE_ANGLES_FACTORED_TEXTURE && plan.rows > max_factored_positions) {
        return false;
    }
    if (plan.fold_log2 > 31 || plan.row_texels != (plan.pairs + 1) / 2) {
        return false;
    }
    const TextureShape shape = texture_shape(plan);
    return plan.extent.width == shape.width && plan.extent.height == shape.height &&
           plan.bytes == shape.bytes();
}

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_plan_angles(const vkrope_rope_params* given, vkrope_angle_source source,
                                 uint64_t max_position, uint32_t max_image_side,
                                 vkrope_angle_table_layout* made, vkrope_error* failure) {
    return answer(failure, [&]() -> Status {
        if (Status s = not_null(given, "rotation"); !s) return s;
        if (Status s = not_null(made, "layout"); !s) return s;
        const vkrope_rope_params rotation = completed(*given);
        if (Status status = check(rotation); !status) {
            return status;
        }
        if (source == VKROPE_ANGLES_AUTOMATIC) {
            source = needs_computed(rotation) ? VKROPE_ANGLES_COMPUTED
                                              : default_angles(rotation.precision, max_position);
        }
        const std::uint64_t most = max_positions + (source == VKROPE_ANGLES_COMPUTED ? 1 : 0);
        if (max_position == 0 || max_position > most) {
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "max_position is %llu: it must be 1 to %llu", ull{max_position},
                         ull{most});
        }
        if (Status status = check_source(rotation, source); !status) {
            return status;
        }
        AngleTableLayout plan;
        plan.source = source;
        plan.pairs = rotation.rotary_dim / 2;
        plan.rows = std::uint32_t(max_position);
        plan.attention_factor = rotation.attention_factor;
        if (rotation.sections.axes != 0) plan.sections = rotation.sections;
        plan.phase = rotation.phase_count != 0;
        plan.head_groups = rotation.head_groups;
        Status status;
        switch (source) {
            case VKROPE_ANGLES_DIRECT_TEXTURE: status = plan_texture(plan, max_image_side); break;
            case VKROPE_ANGLES_DIRECT_BUFFER: status = plan_buffer(plan); break;
            case VKROPE_ANGLES_FACTORED_TEXTURE:
                status = plan_factored(plan, max_image_side);
                break;
            case VKROPE_ANGLES_COMPUTED: plan_turns(plan); break;
            case VKROPE_ANGLES_COS_SIN_CACHE:
                status = error(
                    VKROPE_ERROR_INVALID_ARGUMENT,
                    "source is VKROPE_ANGLES_COS_SIN_CACHE: use vkrope_plan_cos_sin_cache for a "
                    "cache of your own cos and sin");
                break;
            default:
                status = error(VKROPE_ERROR_INVALID_ARGUMENT,
                               "source is %u: it must be a vkrope_angle_source", unsigned(source));
                break;
        }
        if (!status) {
            return status;
        }
        *made = plan;
        return {};
    });
}

vkrope_result vkrope_plan_cos_sin_cache(uint32_t pairs, uint32_t rows, uint32_t row_stride,
                                        vkrope_element element, VkBool32 channel_angles,
                                        vkrope_angle_table_layout* made, vkrope_error* failure) {
    return answer(failure, [&]() -> Status {
        if (Status s = not_null(made, "layout"); !s) return s;
        if (pairs == 0 || pairs > max_head_dim / 2)
            return error(VKROPE_ERROR_INVALID_ARGUMENT, "pairs is %u: it must be 1 to %u", pairs,
                         max_head_dim / 2);
        if (rows == 0 || rows > max_positions)
            return error(VKROPE_ERROR_INVALID_ARGUMENT, "rows is %u: it must be 1 to %llu", rows,
                         ull{max_positions});
        const std::uint32_t used = channel_angles ? 2 * pairs : pairs;
        if (row_stride == 0) row_stride = used;
        if (row_stride < used)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "row_stride is %u: it must be at least %s, %u", row_stride,
                         channel_angles ? "2 * pairs" : "pairs", used);
        if (element > VKROPE_BF16)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "element is %u: it must be a vkrope_element", unsigned(element));
        const std::uint64_t elements = (std::uint64_t{rows} - 1) * row_stride + used;  // below 2^63
        if (elements > (max_buffer_bytes - 3) / element_bytes(element)) {
            return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                         "rows is %u: with row_stride %u they span %llu elements, but a storage "
                         "buffer has at most %llu bytes",
                         rows, row_stride, ull{elements}, ull{max_buffer_bytes});
        }
        const std::uint64_t bytes = elements * element_bytes(element);
        AngleTableLayout plan;
        plan.attention_factor = 1;
        plan.head_groups = 1;
        plan.source = VKROPE_ANGLES_COS_SIN_CACHE;
        plan.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
        plan.bytes = std::size_t(bytes + 3) / 4 * 4;
        plan.pairs = pairs;
        plan.rows = rows;
        plan.row_stride = row_stride;
        plan.element = element;
        plan.channel_angles = channel_angles != VK_FALSE;
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
