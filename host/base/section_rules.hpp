// SPDX-License-Identifier: MIT
// Checks the sections of a rotation, of an angle layout and of a kernel.
#pragma once

#include "base/status.hpp"

namespace vkrope {

// Checks that sections are all zero, or assign every pair to one of 2 to 8 axes.
//
// of  prefix of the names of fields in errors: "" or "rotation."
inline Status check_sections(const char* of, const Sections& sections) noexcept {
    std::uint32_t any_set = sections.axes | std::uint32_t(sections.order) | sections.leftover_axis;
    for (const std::uint32_t pairs : sections.pairs) any_set |= pairs;
    if (any_set == 0) return {};  // the most frequent case
    if (sections.order > VKROPE_SECTIONS_SUM)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%ssections.order is %u: it must be a vkrope_section_order", of,
                     unsigned(sections.order));
    const bool summed = sections.order == VKROPE_SECTIONS_SUM,
               interleaved = sections.order == VKROPE_SECTIONS_INTERLEAVED;
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < max_axes; ++i) {
        if (sections.pairs[i] > 32767 || (i >= sections.axes && sections.pairs[i] != 0))
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%ssections.pairs[%u] is %u: it must be at most 32767, and 0 from "
                         "sections.axes on, which is %u",
                         of, i, sections.pairs[i], sections.axes);
        if (summed && sections.pairs[i] != 0)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%ssections.pairs[%u] is %u: in a sum every axis rotates every pair, so "
                         "it must be 0",
                         of, i, sections.pairs[i]);
        sum += sections.pairs[i];
    }
    const std::uint32_t axes = sections.axes;
    if (axes < 2 || axes > max_axes || (interleaved && axes != 3 && axes != 4))
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%ssections.axes is %u: it must be 2 to %u, interleaved 3 or 4, and only "
                     "without any section 0",
                     of, axes, max_axes);
    if (sum == 0 && !summed)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%ssections.pairs are all 0: at least one axis must rotate a pair", of);
    if (sections.leftover_axis == 0 || (interleaved && sections.leftover_axis < axes)) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%ssections.leftover_axis is %u: it must be below sections.axes, %u, and 0 unless "
                 "the order is interleaved",
                 of, sections.leftover_axis, axes);
}

}  // namespace vkrope
