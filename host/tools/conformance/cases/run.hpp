// SPDX-License-Identifier: MIT
// One case on one device: as operations of host/verify, run and compared with their definition.
#pragma once

#include "conformance/cases/description.hpp"
#include "conformance/cases/folder.hpp"
#include "conformance/cases/ops.hpp"
#include "conformance/device_under_test.hpp"
#include "conformance/suite.hpp"

namespace vkrope::conformance {

/// The made scales of one tensor, one for each row.
struct MadeScales {
    std::vector<std::uint64_t> shape = {};  // batch, tokens, heads: the axes of the layout
    std::vector<float> values = {};         // NaN: the token has no slot
};

/// The output of the device for one tensor: contiguous, all planes; or the whole cache.
struct Actual {
    TensorIndex which = Q;
    CaseTensor tensor = {};
    CaseOutput output = {};  // with its initial contents
    std::vector<std::byte> bytes = {};
    std::optional<MadeScales> scales = {};  // if the library makes them
};

struct CaseResult {
    std::vector<Actual> tensors;  // Q, K and V, if present
    std::string problem;          // the first of verify::Verdict; empty: none
};

/// Throws Refusal.
CaseResult run_case(DeviceUnderTest& device, const CaseFolder& folder,
                    const CaseDescription& description);

}  // namespace vkrope::conformance
