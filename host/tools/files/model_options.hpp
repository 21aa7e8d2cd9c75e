// SPDX-License-Identifier: MIT
// The options that select a model and the part of it that a command uses.
#pragma once

#include <optional>

#include "files/model_file.hpp"
#include "shell/command_line.hpp"

namespace vkrope::tools {

/// Adds --model, --seq-len, --layer-type, --layer, --tower and --pairing. Returns --model, which is
/// required.
Option add_model_options(CommandLine& command, ModelOptions& options);

/// Adds --pairing, for weights that were permuted and for models whose pairing is not known.
void add_pairing(CommandLine& command, std::optional<Pairing>& pairing);

}  // namespace vkrope::tools
