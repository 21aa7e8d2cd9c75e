// SPDX-License-Identifier: MIT
// The definition of the operation, as commands hold outputs against it.
#pragma once

#include <cstdint>
#include <vector>

#include "files/token_positions.hpp"
#include "reference/oracle.hpp"
#include "vkrope/frequencies.hpp"

namespace vkrope::tools {

/// Where tokens have positions on several axes: those on the axes after the first, and which axis
/// turns which pair.
struct FurtherAxes {
    Sections sections;
    std::vector<std::vector<std::int64_t>>
        positions;  // [axes - 1][batch * tokens]; none: all pairs turn by the first axis
};

/// Positions that were given on one axis are the same on all axes of the sections.
FurtherAxes further_axes(const Sections& sections, const TokenPositions& positions,
                         std::uint64_t batch, std::uint64_t tokens);

/// The same operation, whose positions are those on the first axis, with each pair turned by its
/// own axis.
reference::Operation by_axis(reference::Operation operation, const FurtherAxes& further);

/// What breaks the contract, or null.
const char* breach_of(const reference::Verdict& verdict, double bound_u) noexcept;

}  // namespace vkrope::tools
