// SPDX-License-Identifier: MIT
// Writes reports as one HTML page: first the verdicts, then a section for each device.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vkrope::conformance {

struct NamedReport {
    std::string name;  // name of the file of the report
    nlohmann::ordered_json report;
};

// Returns a page of devices by name and driver, the newest report of each first. Throws
// nlohmann::json::exception if a report does not have the form of json_of().
std::string page_of(const std::vector<NamedReport>& reports);

}  // namespace vkrope::conformance
