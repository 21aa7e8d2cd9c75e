// SPDX-License-Identifier: MIT
// What main() of each of our programs does around its own work: every way of ending becomes an exit
// code and a sentence.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "failure.hpp"

namespace vkrope::tools {

inline constexpr const char* exit_codes =
    "Data goes to stdout, messages to stderr.\n"
    "Exit codes: 0 success, 1 verification failed, 2 usage, 3 no suitable device (or beyond its "
    "limits), 4 device lost or\n"
    "driver crash, 5 a file that cannot be read, is wrong or cannot be written, 6 out of memory.";

/// --help and --version arrive as errors of exit code 0: their text goes to stdout. True: that was
/// it.
bool print_help(const CLI::App& app, const CLI::ParseError& error);

/// Installs the signal handlers, calls `run`, and says what it throws. Returns what main() returns.
///
/// lost  what is true of the program's outputs where a library ends it or crashes while a device is
/// open, for the error
int run_program(const char* lost, const std::function<ExitCode()>& run);

}  // namespace vkrope::tools
