// SPDX-License-Identifier: MIT
// What more than one tier of the C interface needs: rotations, plans and device references, from C
// and to C.
#pragma once

#include <memory>
#include <vector>

#include "c/guard.hpp"
#include "c/structs.hpp"
#include "vkrope/frequencies.hpp"
#include "vkrope/kernel.hpp"

struct vkrope_rotation {
    vkrope::Rotation of;
    std::vector<const char*> warnings;  // of.warnings, as vkrope_rotation_info has them
    vkrope_sections sections = {};      // of.sections, likewise
};

namespace vkrope::c {

/// A handle for `rotation`.
std::unique_ptr<vkrope_rotation> wrap(Rotation&& rotation);

/// Reads the sections at `from`, of which null has none; `name` is the parameter's, for errors.
Status read_sections(const vkrope_sections* from, const char* name, Sections& sections);

/// Reads the plan at `from`; `name` is the parameter's, for errors.
Status read_plan(const vkrope_angle_plan* from, const char* name, AnglePlan& plan) noexcept;

/// With struct_size set.
vkrope_angle_plan to_c(const AnglePlan& plan) noexcept;

}  // namespace vkrope::c
