// SPDX-License-Identifier: MIT
// Reports the results of a run as lines for people, JSON for programs, and an exit code.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/device_text.hpp"
#include "conformance/builtin/builtin.hpp"
#include "conformance/traits.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::conformance {

struct CheckReport {
    std::string group, id;
    Outcome outcome;
    std::string repeat =
        {};  // options that run only this check; empty if the check is good or was not run
};

struct DeviceReport {
    tools::KnownDevice device;
    Traits traits;
    std::vector<CheckReport> checks;
    // Sentences on how the driver ended groups of checks: "crashed in vkQueueSubmit, signal 11
    // (SIGSEGV), in group positions". Empty if the driver ended no group.
    std::vector<std::string> ends;
    bool whole_suite =
        false;  // all built-in checks of a level were selected, which a verdict needs
    bool interrupted = false;  // the run ended before all checks had run
};

using Report = std::vector<DeviceReport>;

// Returns the line of a check: "pass         onnx/test_rotary_embedding  1.19e-07"
std::string line_of(const CheckReport& check);

inline constexpr const char conformant[] = "conformant", not_conformant[] = "not conformant",
                            unstable_device[] = "unstable", not_judged[] = "not judged";
inline constexpr const char* device_verdicts[] = {conformant, not_conformant, unstable_device,
                                                  not_judged};

// One of the words above, and the reason.
struct DeviceVerdict {
    std::string word, reason;
};
DeviceVerdict verdict_of(const DeviceReport& device);

// Returns a line for each device: verdict, counts of checks, largest error and time.
std::string verdicts_text(const Report& report);

// Returns {"format", "version", "system", "date", "level", "devices": [{"name", "driver", ...,
// "verdict", "interrupted", "ends", "cases": [{"id", "group", "status", "max_error", "reason",
// "max_u", "max_ulp", "seconds", "repeat", "operation", "curves"}]}]}; "operation" and "curves" are
// optional. "system" is what the program was built for: "Linux aarch64". Contains no name of a host
// or user and no path, and a UUID only on request.
nlohmann::ordered_json json_of(const Report& report, Level level, bool with_uuid);

// Returns `path`, or for a folder a file in it: "vkrope-report-DEVICE-2026-01-31.json".
std::string report_path(const std::string& path, const Report& report);

// Returns the last line of a run that did not succeed: "12 of 56 checks passed, 3 failed".
std::string sentence_of(const Report& report);

// Returns success only if on each device at least one check passed, and none failed or erred.
tools::ExitCode exit_of(const Report& report) noexcept;

}  // namespace vkrope::conformance
