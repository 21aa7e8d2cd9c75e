// SPDX-License-Identifier: MIT
// The command line of vkrope rotate, and the order of its steps.
#include "rotate/rotate.hpp"

#include <memory>

#include "files/element_type.hpp"
#include "shell/command_line.hpp"
#include "shell/commands.hpp"
#include "shell/output_file.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

ExitCode rotate(const RotateOptions& options) {
    OfEachTensor<TensorPaths> paths;
    for (const TensorIndex which : every_tensor) {
        const auto& [name, input_option, output_option] = tensor_names[which];
        paths[which] = {input_option, options.inputs[which], output_option, options.outputs[which]};
    }
    check_tensors(paths);
    const RotateInputs inputs = read_inputs(options);
    std::vector<OutputArray> arrays;
    for (const TensorIndex which : every_tensor) {
        if (inputs.tensors[which]) {
            arrays.push_back({tensor_names[which].output_option, options.outputs[which],
                              npy_type(inputs.element), inputs.tensors[which]->array.header.shape});
        }
    }
    std::vector<OutputFile> outputs = open_outputs(options, arrays);
    const Measured measured = rotate_on_device(options, inputs);
    const Verification verification = verify(options, inputs, measured);
    if (verification.asked_for && !verification.passed) {
        report(options, inputs, measured, verification);
        fail(ExitCode::verification_failed, "verification failed, no output was written: {}",
             verification.failure);
    }
    auto output = outputs.begin();
    for (const TensorIndex which : every_tensor) {
        if (inputs.tensors[which]) {
            (output++)->write(measured.outputs[which]);
        }
    }
    OutputFile::publish(outputs);
    report(options, inputs, measured, verification);
    return ExitCode::success;
}

}  // namespace

void add_rotate(CommandLine& vkrope) {
    CommandLine& command = vkrope.add_command(
        "rotate", "Rotate query and key tensors of a model, and take its value tensor along.");
    const auto options = std::make_shared<RotateOptions>();
    add_tensor_files(command, *options, "File for the value tensor, copied bit for bit, .npy.");
    add_operation(command, *options);
    command.add_flag("--inverse", options->inverse, "Rotate back.");
    add_run(command, *options);
    command.add_flag("--roof", options->roof, "Time plain copies of the same bytes as well.");
    command.on_run([options] { return rotate(*options); });
}

}  // namespace vkrope::tools
