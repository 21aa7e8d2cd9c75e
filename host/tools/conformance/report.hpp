// SPDX-License-Identifier: MIT
// What a run found: lines and a table for people, JSON for programs, and the exit code.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance/builtin/builtin.hpp"
#include "conformance/traits.hpp"
#include "vkrope/runtime.hpp"

namespace vkrope::conformance {

struct CheckReport {
    std::string group, id;
    Outcome outcome;
};

struct DeviceReport {
    DeviceInfo device;
    Traits traits;
    std::vector<CheckReport> checks;
    bool whole_suite =
        false;  // all built-in checks of a level were to run: what a verdict on the device takes
    bool interrupted = false;  // before all of them had
};

using Report = std::vector<DeviceReport>;

/// "pass         onnx/test_rotary_embedding  1.19e-07"
std::string line_of(const CheckReport& check);

inline constexpr const char conformant[] = "conformant", not_conformant[] = "not conformant",
                            not_judged[] = "not judged";
inline constexpr const char* device_verdicts[] = {conformant, not_conformant, not_judged};

/// One of these words, and why.
struct DeviceVerdict {
    std::string word, reason;
};
DeviceVerdict verdict_of(const DeviceReport& device);

/// {"version", "level", "devices": [{"name", "driver", ..., "verdict", "interrupted", "cases":
/// [{"id", "group", "status", "max_error", "reason", "max_u", "max_ulp", "seconds"}]}]}. Names no
/// host, user or path, and a UUID only on demand.
nlohmann::ordered_json json_of(const Report& report, Level level, bool with_uuid);

/// "12 of 56 checks passed, 3 failed", for the end of a run that is no success.
std::string sentence_of(const Report& report);

/// success only where on each device at least one check passed or was computed, and none failed or
/// erred.
tools::ExitCode exit_of(const Report& report) noexcept;

}  // namespace vkrope::conformance
