// SPDX-License-Identifier: MIT
// Compares an output with the expected values of the case.
#pragma once

#include "conformance/cases/run.hpp"

namespace vkrope::conformance {

struct Comparison {
    bool expected = false;  // the case has an expected file
    double max_error = 0;   // largest |actual - expected| of finite values; not for codes
    std::string problem;    // first wrong element and number of wrong elements; empty: all correct
};

/// Reads the expected file, if there is one. Throws Refusal if the files contradict each other.
Comparison compare(const CaseFolder& folder, const CaseDescription& description,
                   const Actual& actual);

}  // namespace vkrope::conformance
