// SPDX-License-Identifier: MIT
// The archive of --report, which people send.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance/report.hpp"

namespace vkrope::conformance {

/// The bytes of a ZIP archive with report.json, index.html, log.txt and bench-N.json.
std::string archive_of(const nlohmann::ordered_json& report,
                       const std::vector<nlohmann::ordered_json>& benches, const std::string& log);

/// `path`; for a folder a file in it, "vkrope-report-DEVICE-2026-01-31.zip".
std::string archive_name(const std::string& path, const Report& report);

/// JSON as in a file of --json.
std::string text_of(const nlohmann::ordered_json& json);

}  // namespace vkrope::conformance
