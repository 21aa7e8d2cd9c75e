// SPDX-License-Identifier: MIT
// How far an output may be from what a case expects, as written in its case.json.
#pragma once

#include <optional>
#include <string>

#include "conformance/cases/steps.hpp"

namespace vkrope::conformance {

struct Tolerance {
    double atol = 0, rtol = 0;
    OfEachTensor<std::string> atol_files;        // empty: atol applies
    OfEachTensor<std::string> scale_atol_files;  // of made scales; empty: 0
    std::optional<double> off_by_one;            // the share of codes that may differ by one
};

/// `beside`: an object with atol_files, used if the tolerance has none of its own. Throws Refusal.
std::optional<Tolerance> read_tolerance(std::optional<Fields> fields, std::optional<Fields> beside);

}  // namespace vkrope::conformance
