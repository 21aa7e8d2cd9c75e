// SPDX-License-Identifier: MIT
// Which windows of a case the library takes together.
#pragma once

#include <optional>
#include <vector>

#include "conformance/cases/description.hpp"
#include "conformance/cases/positions.hpp"

namespace vkrope::conformance {

/// One pass over the tensors: all windows at once, or one window if the library does not take them
/// together.
struct Pass {
    std::vector<WindowCase> windows;  // offsets from channel 0
    /// Position axis; none: given by the sections, or there is only one.
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

/// The passes that rotate all windows of a case, in their order.
std::vector<Pass> passes_of(const CaseDescription& description, const CasePositions& positions);

}  // namespace vkrope::conformance
