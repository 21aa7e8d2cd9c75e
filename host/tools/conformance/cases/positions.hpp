// SPDX-License-Identifier: MIT
// From the positions of a case to what a call takes: a first position, ids as they are, or ids that
// the library expands on the device.
#pragma once

#include "conformance/cases/folder.hpp"
#include "conformance/device_under_test.hpp"

namespace vkrope::conformance {

struct CasePositions {
    PositionSource source = PositionSource::implicit;  // ids: one axis; axis_ids: as many as `axes`
    Positions positions;                               // for all sequences
    std::uint32_t axes = 1;
    Buffer ids;
    std::uint32_t id_bytes = 4;
    std::uint64_t largest = 0;  // |position|

    /// Those of `sequences` sequences from `first` on, of one axis or of all.
    Positions of(std::uint32_t first, std::optional<std::uint32_t> axis) const;
};

/// batch, tokens  of the tensors that the positions are for
CasePositions prepare_positions(DeviceUnderTest& device, const CaseFolder& folder,
                                const PositionsCase& described, std::uint32_t batch,
                                std::uint32_t tokens);

/// Row b * tokens + t for each token: of tables that have a row for each, or with `shared` one for
/// each token of a sequence.
CasePositions row_per_token(std::uint32_t batch, std::uint32_t tokens, bool shared);

}  // namespace vkrope::conformance
