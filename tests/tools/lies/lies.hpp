// SPDX-License-Identifier: MIT
// The table of lies. VKROPE_LIE names those that the layer tells; without it, or with "none", the
// layer changes nothing.
#pragma once

#include <span>

#include "functions.hpp"
#include "module.hpp"

namespace vkrope::lies {

struct Lie {
    const char* name;
    const char* what;  ///< what the driver does wrong, as a clause
    /// Replaces functions. Called when the instance is made, and again when a device is.
    void (*tell)(Functions&) = nullptr;
    /// Changes every shader before the driver sees it.
    void (*rewrite)(Module&) = nullptr;
};

// Each list stands in the file of its name.
std::span<const Lie> shader_lies();
std::span<const Lie> command_lies();
std::span<const Lie> device_lies();
/// What Vulkan permits: no lies, and every check must pass.
std::span<const Lie> liberties();

/// Null if no list has this name.
const Lie* find_lie(const char* name);

}  // namespace vkrope::lies
