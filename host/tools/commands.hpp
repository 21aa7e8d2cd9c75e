// SPDX-License-Identifier: MIT
// The subcommands: each adds its options to the command line and returns what runs it once the line
// has been read.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "failure.hpp"

namespace vkrope::tools {

struct Command {
    CLI::App* options = nullptr;
    std::function<ExitCode()> run;  // or throws Failure
};

Command add_devices(CLI::App& vkrope);
Command add_frequencies(CLI::App& vkrope);
Command add_explain(CLI::App& vkrope);
Command add_rotate(CLI::App& vkrope);
Command add_check(CLI::App& vkrope);
Command add_accuracy(CLI::App& vkrope);
Command add_make_input(CLI::App& vkrope);

}  // namespace vkrope::tools
