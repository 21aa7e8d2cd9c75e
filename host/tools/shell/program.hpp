// SPDX-License-Identifier: MIT
// What main() of each of our programs does around its own work: every way of ending becomes an exit
// code and a sentence.
#pragma once

#include <functional>

#include "shell/failure.hpp"

namespace vkrope::tools {

/// Installs the signal handlers, calls `run`, and says what it throws. Returns what main() returns.
///
/// lost  what is true of the program's outputs where a library ends it or crashes while a device is
/// open, for the error
int run_program(const char* lost, const std::function<ExitCode()>& run);

}  // namespace vkrope::tools
