// SPDX-License-Identifier: MIT
// What all rotations from the arguments of other libraries begin with.
#pragma once

#include <algorithm>
#include <utility>

#include "frequencies/limits.hpp"
#include "status.hpp"
#include "vkrope/frequencies.hpp"

namespace vkrope {

/// A number of channels, under the name that its library gives it.
struct Dimension {
    const char* name;
    std::uint32_t value;
};

struct NamedBase {
    const char* name;
    double value;
};

Status check_dimensions(const Dimension& head, const Dimension& rotated) noexcept;

/// A rotation with the frequencies base^(-2j / rotated).
Result<Rotation> plain_rotation(const Dimension& head, const Dimension& rotated, Pairing pairing,
                                const NamedBase& base);

/// The rotation, or none if the last step failed.
Result<Rotation> finished(const Status& status, Rotation& rotation);

}  // namespace vkrope
