// SPDX-License-Identifier: MIT
// Declares the rules for a rotation and an angle layout that planning and filling share.
#pragma once

#include "vkrope/vkrope.hpp"

namespace vkrope {

Status check(const vkrope_rope_params& rotation) noexcept;

// Checks that a head row has all rotated channels.
Status check_head_dim(const vkrope_rope_params& rotation) noexcept;

// Checks that tables of this source support the rotation's precision, head groups and summed axes.
Status check_source(const vkrope_rope_params& rotation, AngleSource source) noexcept;

// Returns whether only computed angles support the rotation's head groups or summed axes.
inline bool needs_computed(const vkrope_rope_params& rotation) noexcept {
    return rotation.head_groups != 1 || rotation.sections.order == VKROPE_SECTIONS_SUM;
}

}  // namespace vkrope
