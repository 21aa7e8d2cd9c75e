// SPDX-License-Identifier: MIT
// Changes what a device reports.
#pragma once

#include "functions.hpp"

namespace vkrope::lies {

/// The structures that a program may ask for, as far as a lie changes one.
struct Reported {
    VkPhysicalDeviceProperties& properties;
    VkPhysicalDeviceFloatControlsProperties* float_controls;  ///< null: not asked for
};

/// Adds a change to those before; the same one again adds nothing.
void change_properties(Functions& told, void (*change)(const Reported&));

}  // namespace vkrope::lies
