// SPDX-License-Identifier: MIT
// Compares an output with the expected values of the case, and with its own input where nothing may
// change.
#pragma once

#include <span>

#include "conformance/cases/description.hpp"
#include "conformance/cases/folder.hpp"
#include "conformance/cases/tensor.hpp"

namespace vkrope::conformance {

struct Comparison {
    bool expected = false;  // there was an expected file
    double max_error = 0;   // largest |actual - expected| of finite values
    std::string problem;    // first wrong element and number of wrong elements; empty: all right
};

/// Reads the expected file, if any. Throws Refusal if the files contradict each other.
Comparison compare(const CaseFolder& folder, const CaseDescription& description,
                   const TensorCase& described, const CaseTensor& tensor,
                   std::span<const std::byte> actual);

}  // namespace vkrope::conformance
