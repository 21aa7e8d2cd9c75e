// SPDX-License-Identifier: MIT
// The options of an operation.
#include "cli/command_line.hpp"
#include "io/model_file.hpp"
#include "operation/operation.hpp"

namespace vkrope::tools {

void add_operation(CommandLine& command, OperationOptions& options) {
    add_model_options(command, options.model);
    const OfEachTensor<const char*> what_goes_in = {
        "The query tensor before the rotation: FILE.npy, or FILE.safetensors:NAME.",
        "The key tensor before the rotation, .npy or .safetensors.",
        "The value tensor, .npy or .safetensors; it is never rotated, and its heads and head_dim "
        "are its own."};
    for (const TensorIndex which : every_tensor) {
        command.add_text(tensor_names[which].input_option, "FILE", options.inputs[which],
                         what_goes_in[which]);
    }
    for (const TensorIndex which : every_tensor) {
        command.add_text(options.output_options[which], "FILE", options.outputs[which],
                         fmt::format(fmt::runtime(options.output_help), tensor_names[which].name));
    }
    const Option positions = command.add_text("--positions", "FILE", options.positions,
                                              "Positions, .npy: int32 or int64, [tokens], [batch, "
                                              "tokens] or [axes, batch, tokens].");
    command
        .add_integer("--first-position", options.first_position, INT32_MIN, INT32_MAX,
                     "Position of the first token of every sequence (0).")
        .excludes(positions);
    command.add_choice(
        "--layout", options.layout, layouts,
        "Axes, slowest first: batch, sequence, heads, head_dim; t: packed tokens (bshd).");
    add_dtype(command, options.dtype, options.reads_caches);
    command.add_integer("--head-dim", options.head_dim, std::uint32_t{2}, std::uint32_t{65534},
                        "Channels of a head of Q and of K, instead of the model's.");
    command.add_integer("--rotary-offset", options.rotary_offset, std::uint32_t{0},
                        std::uint32_t{65532}, "First rotated channel, instead of the model's.");
    command.add_flag("--inverse", options.inverse, "Rotate back.");
    command.add_choice("--gain", options.gain, gains,
                       "What to do with the model's attention factor (apply).");
    add_ops(command, options.ops);
    if (options.reads_caches) add_cache(command, options.ops);
    command.add_flag("--json", options.json, "Write JSON.");
}

}  // namespace vkrope::tools
