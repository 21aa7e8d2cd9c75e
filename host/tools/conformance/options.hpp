// SPDX-License-Identifier: MIT
// What the command line of vkrope-conformance asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/builtin/builtin.hpp"

namespace vkrope::conformance {

struct Job;

struct Options {
    // What runs, and where.
    std::string device;
    std::vector<std::string> cases;
    bool no_builtin = false;
    std::string filter;
    Extent extent;
    bool list = false, validation = false;
    std::uint32_t timeout_s = 30, repeat = 1;
    std::optional<std::uint32_t> check_timeout_s;
    std::string waivers;

    // What is written.
    std::string outputs, json, junit;
    std::string bench;  ///< the program vkrope-bench, for the report
    bool with_uuid = false;

    // What is made of reports, instead of a run.
    std::vector<std::string> page, compare;
};

using BuiltinGroups = std::vector<Group> (*)(const Extent&);

/// Runs what is asked for and reports it.
///
/// command  starts this program again
tools::ExitCode run_checks(const Options& options, BuiltinGroups builtin,
                           const std::vector<std::string>& command);

/// Does what this process was started for by run_checks(), and ends it.
[[noreturn]] void run_worker(const Job& job, const Options& options, BuiltinGroups builtin);

// Read reports, and run nothing.
tools::ExitCode compare_reports(const std::vector<std::string>& files);
tools::ExitCode write_page(const std::vector<std::string>& files);

}  // namespace vkrope::conformance
