// SPDX-License-Identifier: MIT
// Handles that several tiers of the C interface need.
#pragma once

#include <memory>
#include <vector>

#include "c/guard.hpp"
#include "vkrope/frequencies.hpp"

struct vkrope_rotation {
    vkrope::Rotation of;
    std::vector<const char*> warnings;  // of.warnings, in the form of vkrope_rotation_info
};

namespace vkrope::c {

/// Creates a handle for `rotation`.
std::unique_ptr<vkrope_rotation> wrap(Rotation&& rotation);

/// Checks a plan that the caller may have filled. Its format, which may be any number, is not read
/// as a VkFormat before.
Status check_plan(const vkrope_angle_plan* plan, const char* name) noexcept;

/// Writes what was made to the caller.
template <class Value>
Status hand_out(const Result<Value>& made, Value* to, const char* name) noexcept {
    if (Status s = not_null(to, name); !s) return s;
    if (made) *to = made.value;
    return made.status;
}

}  // namespace vkrope::c
