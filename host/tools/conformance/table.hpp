// SPDX-License-Identifier: MIT
// The final table: groups by devices, and a verdict for each device. Made from JSON reports, so
// that several runs can share one table.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vkrope::conformance {

/// A requested device that was not available.
struct MissingDevice {
    std::string name, reason;
};

/// `devices` are the elements of "devices" of one or several reports. Throws
/// nlohmann::json::exception if one has another form.
std::string table_of(const nlohmann::ordered_json& devices,
                     const std::vector<MissingDevice>& missing = {});

/// Reads the devices of a report written by --json. Throws tools::Failure.
nlohmann::ordered_json read_devices(const std::string& file);

/// Throws tools::Failure if a check has an unknown status, which would be neither good nor bad, or
/// a device an unknown verdict.
void check_words(const std::string& option, const std::string& file,
                 const nlohmann::ordered_json& devices);

/// Says why a run with these devices is not a success: one failed, one had nothing checked, or
/// there is none. Empty: success.
std::string shortfall_of(const nlohmann::ordered_json& devices);

}  // namespace vkrope::conformance
