// SPDX-License-Identifier: MIT
// The options that select a model and the part of it that a command uses.
#pragma once

#include "cli/command_line.hpp"
#include "io/model_file.hpp"

namespace vkrope::tools {

/// Adds --model, which is required, --seq-len, --layer-type, --layer, --tower and --pairing, for
/// weights that were permuted and for models whose pairing is not known.
void add_model_options(CommandLine& command, ModelOptions& options);

}  // namespace vkrope::tools
