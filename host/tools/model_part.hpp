// SPDX-License-Identifier: MIT
// Which part of a model a command is about: the options that `frequencies`, `explain` and `check`
// have beside --model.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

#include "model_file.hpp"

namespace vkrope::tools {

/// --layer and --tower, in addition to add_model_options().
void add_model_part(CLI::App& command, ModelOptions& options);

/// --pairing, for weights that were permuted.
void add_pairing(CLI::App& command, std::optional<Pairing>& pairing);

}  // namespace vkrope::tools
