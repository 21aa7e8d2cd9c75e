// SPDX-License-Identifier: MIT
// The output files of vkrope rotate.
#include "cli/output_file.hpp"
#include "cli/system.hpp"
#include "io/array_file.hpp"
#include "rotate/rotate.hpp"

namespace vkrope::tools {
namespace {

// Rejects an output that replaces an input or another output: the run could not be repeated.
void check_distinct(const RotateOptions& options, const std::vector<OutputFile>& outputs) {
    for (auto output = outputs.begin(); output != outputs.end(); ++output) {
        output->check_distinct_from("--model", options.model.path);
        for (const TensorIndex which : every_tensor) {
            output->check_distinct_from(tensor_names[which].input_option,
                                        file_of(options.inputs[which]));
            output->check_distinct_from(input_scale_options[which],
                                        file_of(options.ops.input_scale_files[which]));
            for (const Parameter parameter : every_parameter) {
                output->check_distinct_from(parameter_options[which][parameter],
                                            file_of(options.ops.parameters[which][parameter]));
            }
        }
        output->check_distinct_from("--positions", file_of(options.positions));
        output->check_distinct_from("--q-scale-tokens", file_of(options.ops.q_scale_tokens));
        for (auto earlier = outputs.begin(); earlier != output; ++earlier) {
            std::error_code not_there_yet;
            if (same_path(output->target(), earlier->target()) ||
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
                                     const std::vector<OutputArray>& outputs) {
    std::vector<OutputFile> files;
    for (const OutputArray& output : outputs) {
        if (output.path.ends_with(".safetensors"))
            fail(ExitCode::usage, "{}: '{}': outputs are .npy files", output.option, output.path);
        files.emplace_back(output.option, output.path);
    }
    check_distinct(options, files);
    return files;
}

}  // namespace vkrope::tools
