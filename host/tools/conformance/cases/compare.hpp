// SPDX-License-Identifier: MIT
// An output against what the case expects of it, and against its own input where nothing may
// change.
#pragma once

#include <span>

#include "conformance/cases/description.hpp"
#include "conformance/cases/folder.hpp"
#include "conformance/cases/tensor.hpp"

namespace vkrope::conformance {

struct Comparison {
    bool expected = false;  // there was something to compare with
    double max_error = 0;   // largest |actual - expected| of finite numbers
    std::string problem;  // the first element that is wrong, and how many are; empty: all are right
};

/// Reads the expected file, if any. Throws Refusal where the files contradict each other.
Comparison compare(const CaseFolder& folder, const CaseDescription& description,
                   const TensorCase& described, const CaseTensor& tensor,
                   std::span<const std::byte> actual);

}  // namespace vkrope::conformance
