// SPDX-License-Identifier: MIT
// Reports as one page for people: verdicts first, then each device.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vkrope::conformance {

struct NamedReport {
    std::string name;  ///< of its file
    nlohmann::ordered_json report;
};

/// Devices by name and driver, the newest report of each first. Throws
/// nlohmann::json::exception if a report has another form than that of json_of().
std::string page_of(const std::vector<NamedReport>& reports);

}  // namespace vkrope::conformance
