// SPDX-License-Identifier: MIT
// One case on one device: described, mapped to calls of the library, run and compared.
#pragma once

#include "conformance/cases/description.hpp"
#include "conformance/cases/folder.hpp"
#include "conformance/cases/ops.hpp"
#include "conformance/device_under_test.hpp"
#include "conformance/suite.hpp"

namespace vkrope::conformance {

/// The output of the device for one tensor: contiguous, all planes; or the whole cache.
struct Actual {
    TensorIndex which = Q;
    CaseTensor tensor;
    CaseOutput output;  // with its initial contents
    std::vector<std::byte> bytes;
    std::optional<MadeScales> scales;  // if the library makes them
};

/// Runs the case and returns Q, K and V, if present. Throws Refusal.
std::vector<Actual> run_case(DeviceUnderTest& device, const CaseFolder& folder,
                             const CaseDescription& description);

}  // namespace vkrope::conformance
