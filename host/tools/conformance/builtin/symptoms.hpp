// SPDX-License-Identifier: MIT
// From the wrong bits of one element to what the device may have done: each mistake that drivers
// are known for is made on the host, and compared with what the device gave.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "conformance/shader_source/angles.hpp"
#include "verify/oracle/oracle.hpp"

namespace vkrope::conformance {

/// An element with wrong bits.
struct WrongElement {
    oracle::Type type;
    std::uint32_t got, before;  ///< bits after the call, and before it
    float expected;             ///< before it is rounded to the type
};

/// The rotation that has led to it.
struct WrongRotation {
    float x0, x1;
    int member;  ///< 0: y0, 1: y1
    CosSin angle;
    /// cos and sin of the position that is so much further on; nothing if it is not covered.
    std::function<std::optional<CosSin>(std::int64_t further)> angle_at;
};

/// A clause such as "nothing was written there"; empty: unlike every known mistake.
std::string symptom_of(const WrongElement& element, const WrongRotation& rotation);
/// The same for an element that does not rotate.
std::string symptom_of(const WrongElement& element);

}  // namespace vkrope::conformance
