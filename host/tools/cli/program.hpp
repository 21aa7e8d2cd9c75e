// SPDX-License-Identifier: MIT
// The main() that all programs share: turns each way of ending into an exit code and a sentence.
#pragma once

#include <functional>

#include "cli/failure.hpp"

namespace vkrope::tools {

// Calls `run`, and prints the error that it throws. Returns the exit status for main().
//
// lost  what happened to the outputs, for the error if a library ends the program
int run_program(const char* lost, const std::function<ExitCode()>& run);

}  // namespace vkrope::tools
