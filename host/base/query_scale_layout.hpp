// SPDX-License-Identifier: MIT
// Derives the fields of the layout of a table of factors from each other. The frequencies tier
// plans layouts, and every function that takes one checks that planning can have produced it.
#pragma once

#include <cmath>

#include "base/angle_layout.hpp"

namespace vkrope {

// Returns the layout of the factors of positions 0 to max_position - 1, 1 to 2^31.
inline QueryScaleLayout layout_of(const QueryScale& scale, std::uint64_t max_position) noexcept {
    QueryScaleLayout made;
    made.scale = scale;
    const bool steps = scale.kind != VKROPE_QUERY_SCALING_LOGN && scale.length >= 1 &&
                       std::floor(scale.length) == scale.length;
    made.positions_per_row = steps ? std::uint32_t(std::fmin(scale.length, 0x1p31)) : 1;
    made.shift = steps && scale.kind == VKROPE_QUERY_SCALING_LLAMA4;
    made.rows = std::uint32_t((max_position - 1 + made.shift) / made.positions_per_row + 1);
    made.bytes = std::size_t{made.rows} * 4;
    return made;
}

// Checks a layout, which the caller may have filled.
//
// of  prefix of the names of fields in errors: "layout." or "query_scale_layout->"
inline Status check_layout(const char* of, const QueryScaleLayout& layout) noexcept {
    const QueryScaleLayout most = layout_of(layout.scale, max_positions);
    const LayoutRule rules[] = {
        {"scale.kind", std::uint64_t(layout.scale.kind), VKROPE_QUERY_SCALING_LOGN,
         VKROPE_QUERY_SCALING_MINISTRAL3},
        {"positions_per_row", layout.positions_per_row, most.positions_per_row,
         most.positions_per_row},
        {"shift", layout.shift, most.shift, most.shift},
        {"rows", layout.rows, 1, std::min<std::uint64_t>(most.rows, max_buffer_bytes / 4)},
        {"bytes", layout.bytes, std::uint64_t{layout.rows} * 4, std::uint64_t{layout.rows} * 4}};
    for (const LayoutRule& rule : rules)
        if (rule.value < rule.least || rule.value > rule.most) return error_of(of, rule);
    return {};
}

}  // namespace vkrope
