// SPDX-License-Identifier: MIT
// A report as one page for people: verdicts first.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vkrope::conformance {

/// report   as json_of() makes it
/// benches  outputs of vkrope-bench; each is shown with the device of its name
/// log      what was printed
///
/// Throws nlohmann::json::exception if one has another form.
std::string page_of(const nlohmann::ordered_json& report,
                    const std::vector<nlohmann::ordered_json>& benches, const std::string& log);

}  // namespace vkrope::conformance
