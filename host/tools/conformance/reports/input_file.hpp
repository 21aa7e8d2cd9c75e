// SPDX-License-Identifier: MIT
// Files that reports and waivers are read from.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace vkrope::conformance {

/// The format of reports, their first key: another number means another meaning.
inline constexpr const char report_format[] = "vkrope-report/2";

/// The document in a regular file. Throws tools::Failure.
///
/// option  for the error
nlohmann::ordered_json json_from(const std::string& option, const std::string& file);

/// Reads a report of --json. Throws tools::Failure, which names an older format.
nlohmann::ordered_json report_from(const std::string& option, const std::string& file);

/// Throws tools::Failure if `figures`, from `file`, are not those of vkrope-bench.
void check_figures(const std::string& option, const std::string& file,
                   const nlohmann::ordered_json& figures);

}  // namespace vkrope::conformance
