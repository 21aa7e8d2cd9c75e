// SPDX-License-Identifier: MIT
// What the layout of an angle table and its content rest on: the rules for a rotation and a plan.
#pragma once

#include "vkrope/vkrope.hpp"

namespace vkrope {

Status check(const vkrope_rope_params& rotation) noexcept;

/// Whether tables of this source can have the rotation's precision, head groups and summed axes.
Status check_source(const vkrope_rope_params& rotation, AngleSource source) noexcept;

/// Whether only computed angles can have the rotation's head groups or summed axes.
inline bool needs_computed(const vkrope_rope_params& rotation) noexcept {
    return rotation.head_groups != 1 || rotation.sections.order == VKROPE_SECTIONS_SUM;
}

/// Rows of a texture: positions, or the coarse rows and then the fine ones of a factored table.
std::uint64_t texture_rows(const AngleTableLayout& plan) noexcept;

/// True if the fields of a plan are consistent, so that filling the table stays within plan.bytes.
bool consistent(const AngleTableLayout& plan) noexcept;

}  // namespace vkrope
