// SPDX-License-Identifier: MIT
// Runs one case on one device, as operations of host/verify that are compared with the definition.
#pragma once

#include "conformance/cases/description.hpp"
#include "conformance/cases/folder.hpp"
#include "conformance/cases/ops.hpp"
#include "conformance/device_under_test.hpp"
#include "conformance/suite.hpp"

namespace vkrope::conformance {

/// The scales that the library computes for one tensor, one for each row.
struct MadeScales {
    std::vector<std::uint64_t> shape = {};  // batch, tokens, heads: the axes of the layout
    std::vector<float> values = {};         // NaN: the token has no slot
};

/// The output of the device for one tensor: contiguous with all planes, or the whole cache.
struct Actual {
    TensorIndex which = Q;
    CaseTensor tensor = {};
    CaseOutput output = {};  // including its initial contents
    std::vector<std::byte> bytes = {};
    std::optional<MadeScales> scales = {};  // if the library computes scales
};

struct CaseResult {
    std::vector<Actual> tensors;  // Q, K and V, if present
    std::string problem;          // the first problem of verify::Verdict; empty: none
};

/// Runs the case. Throws Refusal.
CaseResult run_case(DeviceUnderTest& device, const CaseFolder& folder,
                    const CaseDescription& description);

}  // namespace vkrope::conformance
