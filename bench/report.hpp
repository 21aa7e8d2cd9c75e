// SPDX-License-Identifier: MIT
// Writes the results as one self-contained HTML page without script or external resources, in light
// and dark mode, for any screen width.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "results.hpp"

namespace vkrope::bench {

/// context  names and values that describe the measurement
std::string html_report(const std::vector<Measured>& results,
                        const std::vector<std::pair<std::string, std::string>>& context);

}  // namespace vkrope::bench
