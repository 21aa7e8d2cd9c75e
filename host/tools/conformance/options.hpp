// SPDX-License-Identifier: MIT
// What the command line of vkrope-conformance asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/builtin/builtin.hpp"

namespace vkrope::conformance {

struct Options {
    // What runs, and where.
    std::string device;
    std::vector<std::string> cases;
    bool no_builtin = false;
    std::string filter;
    Level level = Level::quick;
    bool list = false, validation = false;
    std::uint32_t timeout_s = 30, repeat = 1;
    std::optional<std::uint32_t> group_timeout_s;
    std::string waivers;

    // What is written.
    std::string outputs, json, junit, archive;
    std::string bench;  ///< the program vkrope-bench, for the archive
    bool with_uuid = false;

    // What is made of files, instead of a run.
    std::vector<std::string> table, missing, compare;
    std::string matrix, page, picture;
};

using BuiltinGroups = std::vector<Group> (*)(Level);

/// Runs what is asked for and reports it.
tools::ExitCode run_checks(const Options& options, BuiltinGroups builtin);

// Read reports, and run nothing.
tools::ExitCode merge_reports(const Options& options);
tools::ExitCode compare_reports(const Options& options);
tools::ExitCode write_matrix(const Options& options);

}  // namespace vkrope::conformance
