// SPDX-License-Identifier: MIT
// The options of the command line of vkrope-conformance.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/builtin/builtin.hpp"

namespace vkrope::conformance {

struct Job;

struct Options {
    // Checks to run, and devices.
    std::string device;
    std::string filter;
    Extent extent;
    bool list = false, validation = false;
    std::uint32_t repeat = 1;
    std::optional<std::uint32_t> timeout_s, check_timeout_s;
    std::string waivers;

    // Files to write.
    std::string json;
    bool with_uuid = false;

    // Reports to read instead of a run.
    std::vector<std::string> page, compare;
};

using BuiltinGroups = std::vector<Group> (*)(const Extent&);

// Runs the selected checks and reports the results.
//
// command  starts this program again
tools::ExitCode run_checks(const Options& options, BuiltinGroups builtin,
                           const std::vector<std::string>& command);

// Does the job that run_checks() started this process for, and ends the process.
[[noreturn]] void run_worker(const Job& job, const Options& options, BuiltinGroups builtin);

// These read reports and run no checks.
tools::ExitCode compare_reports(const std::vector<std::string>& files);
tools::ExitCode write_page(const std::vector<std::string>& files);

}  // namespace vkrope::conformance
