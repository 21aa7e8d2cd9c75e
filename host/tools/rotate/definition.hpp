// SPDX-License-Identifier: MIT
// The definition of the operation, in the form with which commands compare outputs.
#pragma once

#include <cstdint>
#include <vector>

#include "io/token_positions.hpp"
#include "meaning.hpp"
#include "verify/oracle/oracle.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::tools {

/// For tokens with positions on several axes: the positions on every axis after the first, and the
/// sections that map pairs to axes.
struct FurtherAxes {
    Sections sections;
    std::vector<std::vector<std::int64_t>>
        positions;  // [axes - 1][batch * tokens]; empty: all pairs use the first axis
    std::vector<double> summed = {};       // VKROPE_SECTIONS_SUM: RopeParams::inv_freq
    std::vector<std::uint32_t> axes = {};  // [pairs] axis of each pair; empty: as the sections say

    std::uint32_t axis(std::size_t pair) const {
        return axes.empty() ? axis_of(sections, static_cast<std::uint32_t>(pair)) : axes[pair];
    }
};

/// Positions with one axis apply to every axis of the rotation's sections.
FurtherAxes further_axes(const RopeParams& rotation, const TokenPositions& positions,
                         std::uint64_t batch, std::uint64_t tokens);

/// Sets the windows, frequencies, phases, head groups and attention factor. For a sum over axes,
/// sets only the size of operation.inv_freq: by_axis() adds the axes.
void set_angles(const RopeParams& rotation, oracle::Operation& operation);

/// Returns the same operation with each pair rotated by the positions of the axis of the pair. On
/// input, `operation` has the positions of the first axis.
oracle::Operation by_axis(oracle::Operation operation, const FurtherAxes& further);

/// Returns what breaks the contract; null if nothing does.
const char* breach_of(const oracle::Verdict& verdict, double bound_u) noexcept;

}  // namespace vkrope::tools
