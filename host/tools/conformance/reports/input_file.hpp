// SPDX-License-Identifier: MIT
// Files that reports are read from: JSON, and the ZIP archives of --report.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vkrope::conformance {

/// The format of reports, their first key: another number means another meaning.
inline constexpr const char report_format[] = "vkrope-report/1";

/// A report with the outputs of vkrope-bench that came with it.
struct ReportFile {
    nlohmann::ordered_json report;  ///< null: a file of vkrope-bench alone
    std::vector<nlohmann::ordered_json> benches;
};

/// The content of a regular file of at most `max_bytes`. Throws tools::Failure.
///
/// option  for the error
std::string content_of(const std::string& option, const std::string& file, std::size_t max_bytes);

/// The document in a file. Throws tools::Failure.
nlohmann::ordered_json json_from(const std::string& option, const std::string& file);

/// Reads an archive of --report, a file of --json, or one of vkrope-bench. Throws tools::Failure,
/// which says why it is none of them.
ReportFile report_from(const std::string& option, const std::string& file);

}  // namespace vkrope::conformance
