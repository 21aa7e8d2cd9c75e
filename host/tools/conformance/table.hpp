// SPDX-License-Identifier: MIT
// The table at the end: groups by devices, and a verdict for each device. Made of JSON reports, so
// that several runs can make one.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vkrope::conformance {

/// A device that was asked for and could not be had.
struct MissingDevice {
    std::string name, reason;
};

/// `devices` are the elements of "devices" of one report or several. Throws
/// nlohmann::json::exception where one is no such thing.
std::string table_of(const nlohmann::ordered_json& devices,
                     const std::vector<MissingDevice>& missing = {});

/// The devices of a report that --json has written. Throws tools::Failure.
nlohmann::ordered_json read_devices(const std::string& file);

/// Why these devices are no success, as a run says it of its own: one has failed, on one nothing
/// was checked, or there is none. Empty: they are one.
std::string shortfall_of(const nlohmann::ordered_json& devices);

}  // namespace vkrope::conformance
