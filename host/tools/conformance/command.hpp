// SPDX-License-Identifier: MIT
// The command "vkrope-conformance": runs checks on devices and reports the results.
#pragma once

#include "conformance/options.hpp"

namespace vkrope::conformance {

/// For tools::run_program(): lines are printed as checks end; the report is written after every
/// device is closed.
inline constexpr const char* lost_report =
    "no report was written, and the checks that remain did not run";

/// builtin  the built-in suite; tests pass another one
tools::ExitCode run_command(int argc, char** argv, BuiltinGroups builtin);

}  // namespace vkrope::conformance
