// SPDX-License-Identifier: MIT
// The allowed distance of an output from the values that a case expects, as given in its case.json.
#pragma once

#include <optional>
#include <string>

#include "conformance/cases/steps.hpp"

namespace vkrope::conformance {

struct Tolerance {
    double atol = 0, rtol = 0;
    OfEachTensor<std::string> atol_files;        // empty: atol applies
    OfEachTensor<std::string> scale_atol_files;  // for scales that the library computes; empty: 0
    std::optional<double> off_by_one;            // the share of codes that may differ by one
};

/// Returns the tolerance, with the atol_files of `beside` if it has none. Throws Refusal.
std::optional<Tolerance> read_tolerance(std::optional<Fields> fields, std::optional<Fields> beside);

}  // namespace vkrope::conformance
