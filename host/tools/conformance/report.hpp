// SPDX-License-Identifier: MIT
// The results of a run: lines for people, JSON for programs, and the exit code.
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
        {};  ///< options that run it alone, on any device; empty if it is good or was not run
};

struct DeviceReport {
    tools::KnownDevice device;
    Traits traits;
    std::vector<CheckReport> checks;
    /// How the driver ended groups of checks: "crashed in vkQueueSubmit, signal 11 (SIGSEGV), in
    /// group positions". Empty: never.
    std::vector<std::string> ends;
    nlohmann::ordered_json figures = nullptr;  ///< of vkrope-bench; null: it was not timed
    bool whole_suite =
        false;  // all built-in checks of a level were selected: a verdict on the device needs it
    bool interrupted = false;       // before all checks had run
    bool may_be_timed = true;       // false: no check got an answer, or it was given up
    bool ended_when_timed = false;  // by its driver
};

using Report = std::vector<DeviceReport>;

/// "pass         onnx/test_rotary_embedding  1.19e-07"
std::string line_of(const CheckReport& check);

inline constexpr const char conformant[] = "conformant", not_conformant[] = "not conformant",
                            unstable_device[] = "unstable", not_judged[] = "not judged";
inline constexpr const char* device_verdicts[] = {conformant, not_conformant, unstable_device,
                                                  not_judged};

/// One of these words, and the reason.
struct DeviceVerdict {
    std::string word, reason;
};
DeviceVerdict verdict_of(const DeviceReport& device);

/// A line for each device: its verdict, counts of checks, the largest error and the time.
std::string verdicts_text(const Report& report);

/// {"format", "version", "date", "level", "devices": [{"name", "driver", ..., "verdict",
/// "interrupted", "ends", "cases": [{"id", "group", "status", "max_error", "reason", "max_u",
/// "max_ulp", "seconds", "repeat", "curves"}], "bench"}]}; "curves" and "bench" where there are
/// some. Contains no host, user or path, and a UUID only on request.
nlohmann::ordered_json json_of(const Report& report, Level level, bool with_uuid);

/// `path`; for a folder a file in it, "vkrope-report-DEVICE-2026-01-31.json".
std::string report_path(const std::string& path, const Report& report);

/// "12 of 56 checks passed, 3 failed", for the end of a run that did not succeed.
std::string sentence_of(const Report& report);

/// Returns success only if on each device at least one check passed or was computed, and none
/// failed or erred.
tools::ExitCode exit_of(const Report& report) noexcept;

}  // namespace vkrope::conformance
