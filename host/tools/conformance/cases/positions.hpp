// SPDX-License-Identifier: MIT
// Converts the positions of a case to the positions of a call: a first position, unchanged ids, or
// ids that the library expands on the device.
#pragma once

#include "conformance/cases/folder.hpp"
#include "conformance/device_under_test.hpp"

namespace vkrope::conformance {

struct CasePositions {
    PositionSource source = VKROPE_POSITIONS_IMPLICIT;  // or ids: one axis; axis_ids: `axes` axes
    Positions positions;  // of all sequences; `ids` has no buffer, and its offset counts from 0
    std::uint32_t axes = 1;
    std::vector<std::byte> ids;
    std::uint64_t largest = 0;  // largest |position|

    /// Returns the positions of `batch` sequences from `first` on, for one axis or
    /// for all that the sections use.
    Positions of(std::uint32_t first, std::uint32_t batch, std::uint32_t used_axes,
                 std::optional<std::uint32_t> axis) const;
};

/// batch, tokens  sizes of the tensors to which the positions belong
CasePositions prepare_positions(DeviceUnderTest& device, const CaseFolder& folder,
                                const PositionsCase& described, std::uint32_t batch,
                                std::uint32_t tokens);

/// Returns position b * tokens + t for each token, for tables with one row per token; with
/// `shared`, for tables with one row per token of a sequence.
CasePositions row_per_token(std::uint32_t batch, std::uint32_t tokens, bool shared);

}  // namespace vkrope::conformance
