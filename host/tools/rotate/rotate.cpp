// SPDX-License-Identifier: MIT
// The command vkrope rotate, and the order of its steps.
#include "rotate/rotate.hpp"

#include <memory>

#include "base/meaning.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/output_file.hpp"
#include "cli/terminal.hpp"
#include "io/element_type.hpp"

namespace vkrope::tools {
namespace {

// Returns the outputs, followed by the scales.
std::vector<OutputArray> outputs_of(const RotateOptions& options, const OperationInputs& inputs) {
    std::vector<OutputArray> outputs;
    for (const bool of_scales : {false, true}) {
        for (const TensorIndex which : every_tensor) {
            const TensorOps& ops = inputs.ops[which];
            if (!inputs.tensors[which] || (of_scales && !is_made(ops.store_scale))) continue;
            OutputArray output = {options.output_options[which],
                                  options.outputs[which],
                                  npy_type(ops.stored),
                                  inputs.tensors[which]->array.header.shape,
                                  which,
                                  of_scales};
            if (of_scales) {
                output.option = options.ops.scale_options[which];
                output.path = options.ops.scale_files[which];
                output.type = npy::Type::f4;
                output.shape.pop_back();
            } else if (is_quantised(ops.stored)) {
                output.shape.back() = ops.stored_bytes(output.shape.back());
            }
            outputs.push_back(std::move(output));
        }
    }
    return outputs;
}

// Returns scales [batch, tokens, heads] in the order of the tensor's layout.
std::vector<float> in_order_of(const TensorFile& tensor, const std::vector<float>& scales) {
    std::vector<float> ordered(scales.size());
    for (std::uint64_t row = 0; row < scales.size(); ++row)
        ordered[scale_in_file(tensor.view, row)] = scales[row];
    return ordered;
}

// Adds the options of the source of angles, the device, the repetitions and the report.
void add_run(CommandLine& command, RotateOptions& options) {
    command.add_choice(
        "--angles", options.angles, angle_sources,
        "Where the shader takes cos and sin from (factored_texture; from position 2^22 on, "
        "computed).");
    command.add_flag("--float32-angles", options.float32_angles,
                     "Angles as float32 products, as Hugging Face transformers computes them; "
                     "--angles must be direct.");
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
}

// Rejects --roof where a copy would not move as many bytes as it writes.
void check_roof(const OperationInputs& inputs) {
    for (const TensorIndex which : every_tensor) {
        const TensorOps& ops = inputs.ops[which];
        if (inputs.tensors[which] &&
            ops.stored_bytes(1024) != element_bytes(inputs.element) * 1024) {
            fail(ExitCode::usage,
                 "--roof: {} is stored as {}; a copy is of outputs that are as large as their "
                 "inputs",
                 tensor_names[which].name, word_for(stored_elements, ops.stored));
        }
    }
}

ExitCode rotate(const RotateOptions& options) {
    OperationInputs inputs = read_inputs(options);
    if (options.roof) check_roof(inputs);
    const std::vector<OutputArray> outputs = outputs_of(options, inputs);
    std::vector<OutputFile> files = open_outputs(options, outputs);
    const Measured measured = rotate_on_device(options, inputs);
    const Verification verification = verify(options, inputs, measured);
    if (verification.asked_for && !verification.passed) {
        report(options, inputs, measured, verification);
        fail(ExitCode::verification_failed, "verification failed, no output was written: {}",
             verification.failure);
    }
    for (std::size_t i = 0; i < files.size(); ++i) {
        const TensorIndex which = outputs[i].which;
        const verify::Operation& operation = measured.operation;
        files[i].write(npy::make_header(outputs[i].type, outputs[i].shape));
        if (outputs[i].of_scales) {
            const std::vector<float> scales = in_order_of(
                *inputs.tensors[which], verify::made_scales(operation, which, operation.memory));
            files[i].write(std::as_bytes(std::span(scales)));
        } else {
            const VkDescriptorBufferInfo& part = operation.call.out[which].where;
            files[i].write(std::span(operation.memory).subspan(part.offset, part.range));
        }
    }
    OutputFile::publish(files);
    report(options, inputs, measured, verification);
    return ExitCode::success;
}

}  // namespace

void add_rotate(CommandLine& vkrope) {
    CommandLine& command = vkrope.add_command(
        "rotate",
        "Rotate query and key tensors of a model, and take its value tensor along. On request, do "
        "all that a model does to them between projection and attention: bias, norm, clip, "
        "rotation, scale, Hadamard transform, store.");
    const auto options = std::make_shared<RotateOptions>();
    add_operation(command, *options);
    add_run(command, *options);
    command.on_run([options] { return rotate(*options); });
}

}  // namespace vkrope::tools
