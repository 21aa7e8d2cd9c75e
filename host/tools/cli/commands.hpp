// SPDX-License-Identifier: MIT
// The subcommands of vkrope. Each function adds the options and the action of one subcommand.
#pragma once

#include "cli/command_line.hpp"

namespace vkrope::tools {

void add_devices(CommandLine& vkrope);
void add_frequencies(CommandLine& vkrope);
void add_explain(CommandLine& vkrope);
void add_rotate(CommandLine& vkrope);
void add_check(CommandLine& vkrope);
void add_make_input(CommandLine& vkrope);

}  // namespace vkrope::tools
