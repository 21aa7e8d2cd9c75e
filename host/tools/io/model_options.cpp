// SPDX-License-Identifier: MIT
#include "io/model_options.hpp"

#include "vkrope/vkrope.hpp"

namespace vkrope::tools {
namespace {

constexpr Choice<std::string_view> towers[] = {{"text", "text"}, {"vision", "vision"}};

}  // namespace

void add_model_options(CommandLine& command, ModelOptions& options) {
    command
        .add_text("--model", "FILE", options.path,
                  "The model's config.json (Hugging Face), a pipe with one (- is stdin), or a GGUF "
                  "file.")
        .required();
    command.add_integer("--seq-len", options.sequence_length, std::uint64_t{1}, max_positions,
                        "Length of the sequence, for scalings that depend on it.");
    const Option layer_type = command.add_text(
        "--layer-type", "NAME", options.layer_type,
        "Which of the model's layer types, if it has several.");
    command
        .add_integer("--layer", options.layer, std::uint32_t{0}, std::uint32_t{65535},
                     "Which layer, if the model has layer types.")
        .excludes(layer_type);
    command.add_choice("--tower", options.tower, towers,
                       "Which part of a model, if it has several.");
    command.add_choice("--pairing", options.pairing, pairings,
                       "Which channels form a pair, instead of the model's.");
}

}  // namespace vkrope::tools
