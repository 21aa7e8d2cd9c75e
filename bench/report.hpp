// SPDX-License-Identifier: MIT
// The results as one page of HTML: no script, nothing loaded from elsewhere, in light and in dark,
// on a screen of any width.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "results.hpp"

namespace vkrope::bench {

/// context  what was measured on: names and values
std::string html_report(const std::vector<Measured>& results,
                        const std::vector<std::pair<std::string, std::string>>& context);

}  // namespace vkrope::bench
