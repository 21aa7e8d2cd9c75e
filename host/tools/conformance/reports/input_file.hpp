// SPDX-License-Identifier: MIT
// Reads the files that contain reports and waivers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace vkrope::conformance {

// The format of reports, stored under their first key. The number changes with the meaning.
inline constexpr const char report_format[] = "vkrope-report/2";

// Returns the JSON document in a regular file. Throws tools::Failure.
//
// option  the option that named the file, for the error message
nlohmann::ordered_json json_from(const std::string& option, const std::string& file);

// Reads a report of --json. Throws tools::Failure, which names any other format.
nlohmann::ordered_json report_from(const std::string& option, const std::string& file);

}  // namespace vkrope::conformance
