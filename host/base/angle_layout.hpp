// SPDX-License-Identifier: MIT
// Derives the fields of an angle layout from each other. The frequencies tier plans layouts, and
// every function that takes a layout uses these rules to check that planning can have produced it.
#pragma once

#include <algorithm>
#include <cstring>

#include "base/defaults.hpp"
#include "base/section_rules.hpp"
#include "interface.h"

namespace vkrope {

// Largest VkPhysicalDeviceLimits::maxStorageBufferRange, which is a uint32_t.
inline constexpr std::uint64_t max_buffer_bytes = 0xffffffff;

constexpr bool is_texture(AngleSource source) noexcept {
    return source == VKROPE_ANGLES_FACTORED_TEXTURE || source == VKROPE_ANGLES_DIRECT_TEXTURE;
}

// Returns the rows of a texture or buffer: positions, or for a factored table the coarse and the
// fine rows.
inline std::uint64_t table_rows(const AngleTableLayout& plan) noexcept {
    return plan.source == VKROPE_ANGLES_FACTORED_TEXTURE
               ? shader::factored_rows(plan.rows, plan.phase)
               : shader::direct_rows(plan.rows, plan.phase);
}

// Fields of a layout that follow from its source, pairs, rows and fold_log2.
struct DerivedLayout {
    VkFormat format = VK_FORMAT_UNDEFINED;
    std::uint64_t width = 0, height = 0, bytes = 0;
    VkFlags usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    std::uint32_t row_texels = 0;
};

// Derives these fields. After 2^fold_log2 rows, rows of a texture continue in the next column.
inline DerivedLayout derived(const AngleTableLayout& plan) noexcept {
    DerivedLayout made;
    const std::uint64_t rows = table_rows(plan);
    if (is_texture(plan.source)) {
        const std::uint64_t column = std::uint64_t{1} << plan.fold_log2;
        made.format = VK_FORMAT_R32G32B32A32_SFLOAT;
        made.usage = VK_IMAGE_USAGE_SAMPLED_BIT;
        made.row_texels = (plan.pairs + 1) / 2;
        made.width = ((rows + column - 1) >> plan.fold_log2) * made.row_texels;
        made.height = std::min(rows, column);
        made.bytes = made.width * made.height * 16;  // four floats a texel
    } else if (plan.source == VKROPE_ANGLES_DIRECT_BUFFER) {
        made.bytes = rows * plan.pairs * 8;  // two floats a pair
    } else if (plan.source == VKROPE_ANGLES_COMPUTED) {
        made.usage = VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT;
        made.bytes = shader::turn_bytes(plan.pairs, value_or(plan.head_groups, 1u),
                                        summed_axes(plan.sections), plan.phase);
    } else {
        const std::uint32_t used = plan.channel_angles ? 2 * plan.pairs : plan.pairs;
        const std::uint64_t elements = (std::uint64_t{plan.rows} - 1) * plan.row_stride + used;
        made.bytes = (elements * element_bytes(plan.element) + 3) / 4 * 4;
    }
    return made;
}

// Returns the most rows that a layout of this source can have.
constexpr std::uint64_t most_rows(AngleSource source) noexcept {
    return source == VKROPE_ANGLES_FACTORED_TEXTURE ? max_factored_positions
           : source == VKROPE_ANGLES_COMPUTED       ? max_positions + 1  // covers -2^31 too
                                                    : max_positions;
}

// A field of a layout, and the values that it can have.
struct LayoutRule {
    const char* field = nullptr;
    std::uint64_t value = 0, least = 0, most = 0;
};

inline Status error_of(const char* of, const LayoutRule& broken) noexcept {
    using ull = unsigned long long;  // the type of %llu on every platform
    if (broken.least == broken.most)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s%s is %llu: a plan with the other fields of this layout has %llu", of,
                     broken.field, ull{broken.value}, ull{broken.least});
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s%s is %llu: a plan with the other fields of this layout has %llu to %llu", of,
                 broken.field, ull{broken.value}, ull{broken.least}, ull{broken.most});
}

// Checks that vkrope_plan_angles or vkrope_plan_cos_sin_cache can have made a layout, which the
// caller may have filled.
//
// of  prefix of the names of fields in errors: "layout." or "angles.layout->"
inline Status check_layout(const char* of, const AngleTableLayout& plan) noexcept {
    const bool texture = is_texture(plan.source),
               cache = plan.source == VKROPE_ANGLES_COS_SIN_CACHE,
               computed = plan.source == VKROPE_ANGLES_COMPUTED;
    // Every call goes through these rules, so a rule costs only a comparison.
    LayoutRule broken;
    const auto fits = [&broken](const char* field, std::uint64_t value, std::uint64_t least,
                                std::uint64_t most) {
        if (value - least <= most - least && value >= least) return true;
        broken = {field, value, least, most};
        return false;
    };
    const std::uint32_t used = plan.channel_angles ? 2 * plan.pairs : plan.pairs, any = ~0u;
    if (!(fits("source", plan.source, VKROPE_ANGLES_AUTOMATIC + 1, VKROPE_ANGLES_COS_SIN_CACHE) &&
          fits("pairs", plan.pairs, 1, max_head_dim / 2) &&
          fits("rows", plan.rows, computed ? most_rows(plan.source) : 1, most_rows(plan.source)) &&
          fits("fold_log2", plan.fold_log2, 0, 31) &&
          fits("head_groups", plan.head_groups, 0, computed ? 65535u : 1u) &&
          fits("phase", plan.phase, 0, cache ? 0 : any) &&
          fits("channel_angles", plan.channel_angles, 0, cache ? any : 0) &&
          fits("element", plan.element, 0, cache ? unsigned(VKROPE_BF16) : 0u) &&
          fits("row_stride", plan.row_stride, cache ? used : 0, cache ? any : 0) &&
          fits("sections.axes", plan.sections.axes, 0, cache ? 0 : max_axes)))
        return error_of(of, broken);
    if (Status s = check_sections(of, plan.sections); !s) return s;
    const double factor = value_or(plan.attention_factor, 1.0);
    if (!cache && !(factor >= 0x1p-64 && factor <= 0x1p64))
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%sattention_factor is %g: it must be 2^-64 to 2^64", of, factor);
    const DerivedLayout made = derived(plan);
    std::uint32_t format;  // may be any number, and then must not be read as a VkFormat
    std::memcpy(&format, &plan.format, sizeof format);
    const bool folds = plan.fold_log2 == 0 ||
                       (texture && table_rows(plan) > std::uint64_t{1} << (plan.fold_log2 - 1));
    const std::uint64_t most_bytes = texture ? made.bytes : std::min(made.bytes, max_buffer_bytes);
    if (!(fits("fold_log2", folds ? 0 : plan.fold_log2, 0, 0) &&
          fits("format", format, made.format, made.format) &&
          fits("extent.width", plan.extent.width, made.width, made.width) &&
          fits("extent.height", plan.extent.height, made.height, made.height) &&
          fits("usage", plan.usage, made.usage, made.usage) &&
          fits("bytes", plan.bytes, made.bytes, most_bytes) &&
          fits("row_texels", plan.row_texels, made.row_texels, made.row_texels)))
        return error_of(of, broken);
    return {};
}

// The same, for the argument `layout` of a function.
inline Status check_layout(const AngleTableLayout* layout) noexcept {
    if (Status s = not_null(layout, "layout"); !s) return s;
    return check_layout("layout.", *layout);
}

}  // namespace vkrope
