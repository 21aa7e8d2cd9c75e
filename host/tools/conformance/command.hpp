// SPDX-License-Identifier: MIT
// The command "vkrope-conformance": runs checks on devices and reports the results.
#pragma once

#include "conformance/options.hpp"

namespace vkrope::conformance {

// Tells tools::run_program() what an exit of a driver loses: lines are printed as checks end, but
// the report is written after every device is closed.
inline constexpr const char* lost_report =
    "no report was written, and the checks that remain did not run";

// builtin  returns the built-in suite; tests pass another function
tools::ExitCode run_command(int argc, char** argv, BuiltinGroups builtin);

}  // namespace vkrope::conformance
