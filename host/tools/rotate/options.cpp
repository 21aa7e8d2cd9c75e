// SPDX-License-Identifier: MIT
// The options of vkrope rotate, and its output files.
#include "files/array_file.hpp"
#include "files/model_options.hpp"
#include "rotate/rotate.hpp"
#include "shell/command_line.hpp"
#include "shell/output_file.hpp"

namespace vkrope::tools {
namespace {

/// Rejects an output that replaces an input or another output: the run could not be repeated.
void check_distinct(const RotateOptions& options, const std::vector<OutputFile>& outputs) {
    for (auto output = outputs.begin(); output != outputs.end(); ++output) {
        output->check_distinct_from("--model", options.model.path);
        for (const TensorIndex which : every_tensor) {
            output->check_distinct_from(tensor_names[which].input_option,
                                        file_of(options.inputs[which]));
        }
        output->check_distinct_from("--positions", file_of(options.positions));
        output->check_distinct_from("--q-scale-tokens", file_of(options.steps.q_scale_tokens));
        for (std::size_t set = 0; set < sets; ++set) {
            for (const TensorIndex which : every_tensor) {
                for (const Parameter parameter : every_parameter) {
                    output->check_distinct_from(
                        parameter_options[set][which][parameter],
                        file_of(options.steps.parameters[set][which][parameter]));
                }
            }
        }
        for (auto earlier = outputs.begin(); earlier != output; ++earlier) {
            std::error_code not_there_yet;
            if (output->target() == earlier->target() ||
                std::filesystem::equivalent(output->target(), earlier->target(), not_there_yet)) {
                fail(ExitCode::usage,
                     "{}: '{}' is also the file of {}; each output must be a separate file",
                     output->option(), output->target().string(), earlier->option());
            }
        }
    }
}

}  // namespace

std::vector<OutputFile> open_outputs(const RotateOptions& options,
                                     const std::vector<OutputArray>& arrays) {
    std::vector<OutputFile> outputs;
    for (const OutputArray& array : arrays) {
        if (array.path.ends_with(".safetensors")) {
            fail(ExitCode::usage, "{}: '{}': outputs are .npy files", array.option, array.path);
        }
        const std::string start = npy::make_header(array.type, array.shape);
        outputs.emplace_back(array.option, array.path,
                             start.size() + npy::data_bytes(array.type, array.shape));
        outputs.back().write(start);
    }
    check_distinct(options, outputs);
    return outputs;
}

void add_positions(CommandLine& command, RotateOptions& options) {
    const Option positions = command.add_text("--positions", "FILE", options.positions,
                                              "Positions, .npy: int32 or int64, [tokens], [batch, "
                                              "tokens] or [axes, batch, tokens].");
    command
        .add_integer("--first-position", options.first_position, INT32_MIN, INT32_MAX,
                     "Position of the first token of every sequence (0).")
        .excludes(positions);
}

void add_layout(CommandLine& command, RotateOptions& options) {
    command.add_choice(
        "--layout", options.layout, layouts,
        "Axes, slowest first: batch, sequence, heads, head_dim; t: packed tokens (bshd).");
}

void add_window(CommandLine& command, RotateOptions& options) {
    command.add_integer("--head-dim", options.head_dim, std::uint32_t{2}, std::uint32_t{65534},
                        "Channels of a head of Q and of K, instead of the model's.");
    command.add_integer("--rotary-offset", options.rotary_offset, std::uint32_t{0},
                        std::uint32_t{65532}, "First rotated channel, instead of the model's.");
}

namespace {

/// Adds --model and what belongs to it, --q, --k and --v, their outputs, and the positions.
void add_tensor_files(CommandLine& command, RotateOptions& options) {
    add_model_options(command, options.model);
    const OfEachTensor<const char*> what_goes_in = {
        "The query tensor: FILE.npy, or FILE.safetensors:NAME.",
        "The key tensor, .npy or .safetensors.",
        "The value tensor, .npy or .safetensors; it is never rotated, and its heads and head_dim "
        "are its own."};
    const OfEachTensor<const char*> what_comes_out = {"File for the rotated query tensor, .npy.",
                                                      "File for the rotated key tensor, .npy.",
                                                      "File for the value tensor, .npy."};
    for (const TensorIndex which : every_tensor) {
        command.add_text(tensor_names[which].input_option, "FILE", options.inputs[which],
                         what_goes_in[which]);
    }
    for (const TensorIndex which : every_tensor) {
        command.add_text(tensor_names[which].output_option, "FILE", options.outputs[which],
                         what_comes_out[which]);
    }
    add_positions(command, options);
}

/// Adds what says how the tensors are read and rotated.
void add_operation(CommandLine& command, RotateOptions& options) {
    add_layout(command, options);
    command.add_choice("--dtype", options.dtype, elements,
                       "Element type that all tensors must have (as in their files; <u2 is bf16).");
    command.add_choice("--gain", options.gain, gains,
                       "What to do with the model's attention factor (apply).");
    command.add_choice(
        "--angles", options.angles, angle_sources,
        "Where the shader takes cos and sin from (factored_texture; from position 2^22 on, "
        "computed).");
    command.add_flag("--float32-angles", options.float32_angles,
                     "Angles as float32 products, as Hugging Face transformers computes them; "
                     "--angles must be direct.");
    add_window(command, options);
    command.add_flag("--inverse", options.inverse, "Rotate back.");
}

/// Adds what says where and how often it runs, and what is reported.
void add_run(CommandLine& command, RotateOptions& options) {
    command
        .add_text("--device", "DEVICE", options.device,
                  "Index, UUID or part of the name of the device (the best one).")
        .from_environment("VKROPE_DEVICE");
    command
        .add_text("--pipeline-cache", "FOLDER", options.pipeline_cache,
                  "Keep compiled pipelines in this folder for later runs (none are kept).")
        .from_environment("VKROPE_PIPELINE_CACHE");
    command.add_flag("--verify", options.verify,
                     "Compare every value with the definition; write nothing if one is wrong.");
    command.add_integer(
        "--repeat", options.repetitions, std::uint32_t{1}, std::uint32_t{1000},
        "Runs to time after one warm-up run; the median is reported (1 without warm-up).");
    command.add_flag("--roof", options.roof, "Time plain copies of the same bytes as well.");
    command.add_flag("--json", options.json, "Write JSON.");
}

}  // namespace

void add_options(CommandLine& command, RotateOptions& options) {
    add_tensor_files(command, options);
    add_operation(command, options);
    add_steps(command, options.steps);
    add_run(command, options);
}

}  // namespace vkrope::tools
