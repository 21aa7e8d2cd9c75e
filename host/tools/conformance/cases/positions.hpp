// SPDX-License-Identifier: MIT
// Maps the positions of a case to those of a call: a first position, ids unchanged, or ids that the
// library expands on the device.
#pragma once

#include "conformance/cases/folder.hpp"
#include "conformance/device_under_test.hpp"

namespace vkrope::conformance {

struct CasePositions {
    PositionSource source = VKROPE_POSITIONS_IMPLICIT;  // ids: one axis; axis_ids: `axes` axes
    Positions positions;  // of all sequences; `ids` has no buffer, its offset counts from 0
    std::uint32_t axes = 1;
    std::vector<std::byte> ids;
    std::uint64_t largest = 0;  // largest |position|

    /// Returns the positions of the sequences from `first` on, for one axis or for all.
    Positions of(std::uint32_t first, std::optional<std::uint32_t> axis) const;
};

/// batch, tokens  sizes of the tensors that the positions are for
CasePositions prepare_positions(DeviceUnderTest& device, const CaseFolder& folder,
                                const PositionsCase& described, std::uint32_t batch,
                                std::uint32_t tokens);

/// Position b * tokens + t for each token, for tables with one row per token; with `shared`, one
/// row per token of a sequence.
CasePositions row_per_token(std::uint32_t batch, std::uint32_t tokens, bool shared);

}  // namespace vkrope::conformance
