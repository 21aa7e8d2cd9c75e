// SPDX-License-Identifier: MIT
#include "conformance/reports/waivers.hpp"

#include <algorithm>

#include "conformance/reports/input_file.hpp"

namespace vkrope::conformance {
namespace {

using Json = nlohmann::ordered_json;

std::string field(const std::string& file, const Json& waiver, const char* key, bool required) {
    const auto found = waiver.find(key);
    if (found == waiver.end() && !required) return {};
    if (found == waiver.end() || !found->is_string() || found->get<std::string>().empty()) {
        tools::fail(tools::ExitCode::bad_file,
                    "--waive: '{}': a waiver has no \"{}\", which must be a text", file, key);
    }
    return found->get<std::string>();
}

bool concerns(const Waiver& waiver, const DeviceReport& device) {
    return device.device.name.find(waiver.device) != std::string::npos;
}

}  // namespace

std::vector<Waiver> read_waivers(const std::string& file) {
    const Json json = json_from("--waive", file);
    if (!json.is_object() || !json.contains("waivers") || !json.at("waivers").is_array()) {
        tools::fail(tools::ExitCode::bad_file, "--waive: '{}' has no list \"waivers\" of objects",
                    file);
    }
    std::vector<Waiver> waivers;
    for (const Json& entry : json.at("waivers")) {
        waivers.push_back({.check = field(file, entry, "check", true),
                           .device = field(file, entry, "device", false),
                           .reason = field(file, entry, "reason", true),
                           .link = field(file, entry, "link", true)});
    }
    return waivers;
}

std::vector<std::string> waive(DeviceReport& device, const std::vector<Waiver>& waivers) {
    std::vector<std::string> needless;
    for (const Waiver& waiver : waivers) {
        for (CheckReport& check : device.checks) {
            if (check.id != waiver.check || !concerns(waiver, device)) continue;
            Outcome& outcome = check.outcome;
            if (is_bad(outcome.verdict)) {
                outcome.verdict = Verdict::waived;
                outcome.reason = fmt::format("{} (waived: {}, {})", outcome.reason, waiver.reason,
                                             waiver.link);
            } else if (outcome.verdict != Verdict::waived) {
                needless.push_back(
                    fmt::format("the waiver of '{}' is not needed on {}: the check is '{}'",
                                waiver.check, device.device.name, word_for(outcome.verdict)));
            }
        }
    }
    return needless;
}

std::vector<std::string> unknown_waivers(const std::vector<Waiver>& waivers,
                                         const std::vector<Group>& groups) {
    std::vector<std::string> unknown;
    for (const Waiver& waiver : waivers) {
        const bool known = std::any_of(groups.begin(), groups.end(), [&](const Group& group) {
            return std::any_of(group.checks.begin(), group.checks.end(),
                               [&](const auto& check) { return check->id() == waiver.check; });
        });
        if (!known) {
            unknown.push_back(
                fmt::format("the waiver of '{}' names a check that does not exist", waiver.check));
        }
    }
    return unknown;
}

}  // namespace vkrope::conformance
