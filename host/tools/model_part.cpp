// SPDX-License-Identifier: MIT
#include "model_part.hpp"

#include "options.hpp"

namespace vkrope::tools {
namespace {

constexpr Choice<std::string_view> towers[] = {{"text", "text"}, {"vision", "vision"}};

}  // namespace

void add_model_part(CLI::App& command, ModelOptions& options) {
    add_integer(command, "--layer", options.layer, std::uint32_t{0}, std::uint32_t{65535},
                "Which layer, where the model has layer types.")
        ->excludes("--layer-type");
    add_choice(command, "--tower", options.tower, towers,
               "Which part of a model that has several.");
}

void add_pairing(CLI::App& command, std::optional<Pairing>& pairing) {
    add_choice(command, "--pairing", pairing, pairings,
               "Which channels form a pair, instead of the model's.");
}

}  // namespace vkrope::tools
