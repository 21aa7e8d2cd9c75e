// SPDX-License-Identifier: MIT
// Finds out what a device may have done from the wrong bits of one element: computes on the host
// each known mistake of drivers, and compares the result with that of the device.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "verify/oracle/oracle.hpp"
#include "verify/shader_source/angles.hpp"

namespace vkrope::conformance {

// An element with wrong bits.
struct WrongElement {
    oracle::Type type;
    std::uint32_t got, before;  // bits after and before the call
    float expected;             // before rounding to the type
};

// The rotation that gave the element.
struct WrongRotation {
    float x0, x1;
    int member;  // 0: y0, 1: y1
    CosSin angle;
    // Returns cos and sin of the position plus `further`, or nothing if it is not covered.
    std::function<std::optional<CosSin>(std::int64_t further)> angle_at;
};

// Returns a clause such as "nothing was written there", or an empty text if no known mistake fits.
std::string symptom_of(const WrongElement& element, const WrongRotation& rotation);
// Does the same for an element that is not rotated.
std::string symptom_of(const WrongElement& element);

}  // namespace vkrope::conformance
