// SPDX-License-Identifier: MIT
// Groups the windows of a case into passes that the library supports.
#pragma once

#include <optional>
#include <vector>

#include "conformance/cases/description.hpp"
#include "conformance/cases/positions.hpp"

namespace vkrope::conformance {

/// One pass over the tensors: all windows at once, or one window if the library does not support
/// them together.
struct Pass {
    std::vector<WindowCase> windows;  // offsets count from channel 0
    /// The position axis. None if the sections give the axes, or if there is only one axis.
    std::optional<std::uint32_t> axis = {};
    Sections sections = {};

    std::uint32_t rotary_dim() const {
        std::uint32_t sum = 0;
        for (const WindowCase& window : windows) {
            sum += window.rotary_dim;
        }
        return sum;
    }
};

/// Returns the passes that rotate all windows of a case, in the order of the windows.
std::vector<Pass> passes_of(const CaseDescription& description, const CasePositions& positions);

}  // namespace vkrope::conformance
