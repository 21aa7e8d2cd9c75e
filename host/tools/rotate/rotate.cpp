// SPDX-License-Identifier: MIT
// The command vkrope rotate, and the order of its steps.
#include "rotate/rotate.hpp"

#include <algorithm>
#include <memory>
#include <span>

#include "base/meaning.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/output_file.hpp"
#include "cli/terminal.hpp"
#include "io/element_type.hpp"

namespace vkrope::tools {
namespace {

bool has(const OperationInputs& inputs, TensorIndex which, Content content) {
    const TensorOps& ops = inputs.ops[which];
    return inputs.tensors[which] &&
           (content == Content::rows || (content == Content::scales && is_made(ops.store_scale)) ||
            (content == Content::second && ops.has_second()));
}

// Returns the outputs, followed by the scales and the second destinations.
std::vector<OutputArray> outputs_of(const RotateOptions& options, const OperationInputs& inputs) {
    std::vector<OutputArray> outputs;
    for (const Content content : {Content::rows, Content::scales, Content::second}) {
        for (const TensorIndex which : every_tensor) {
            if (!has(inputs, which, content)) continue;
            const TensorOps& ops = inputs.ops[which];
            OutputArray output = {options.output_options[which],
                                  options.outputs[which],
                                  npy_type(ops.stored),
                                  inputs.tensors[which]->array.header.shape,
                                  which,
                                  content};
            if (content == Content::scales) {
                output.option = options.ops.scale_options[which];
                output.path = options.ops.scale_files[which];
                output.type = npy_type(ops.scale_type);
                output.shape = ops.shape_of_scales(*inputs.tensors[which]);
            } else if (content == Content::second) {
                output.option = second_options[which];
                output.path = options.ops.second_files[which];
                output.type = npy_type(ops.second);
            } else {
                const std::uint64_t channels = inputs.tensors[which]->view.head_dim;
                output.shape.back() = is_quantised(ops.stored) ? ops.stored_bytes(channels)
                                                               : channels;
            }
            outputs.push_back(std::move(output));
        }
    }
    return outputs;
}

// Returns rows [batch, tokens, heads] of equal size in the order of the tensor's layout.
std::vector<std::byte> in_order_of(const oracle::Tensor& view, std::span<const std::byte> rows) {
    std::vector<std::byte> ordered(rows.size());
    const std::uint64_t count = view.batch * view.tokens * view.heads;
    const std::size_t bytes = rows.size() / std::max<std::uint64_t>(count, 1);
    for (std::uint64_t row = 0; row < count; ++row)
        std::copy_n(&rows[row * bytes], bytes, &ordered[row_in_file(view, row) * bytes]);
    return ordered;
}

// Writes the data of an output.
void write_data(const OutputArray& output, const OperationInputs& inputs,
                const verify::Operation& operation, OutputFile& file) {
    const oracle::Tensor& view = inputs.tensors[output.which]->view;
    if (output.content == Content::scales) {
        const std::uint64_t bytes = inputs.ops[output.which].scale_bytes(
            elements_of(*inputs.tensors[output.which]), view.head_dim);
        file.write(
            in_order_of(view, std::span(operation.memory)
                                  .subspan(operation.call.scales_out[output.which].offset, bytes)));
    } else if (output.content == Content::second) {
        file.write(
            in_order_of(view, verify::second_rows(operation, output.which, operation.memory)));
    } else {
        const VkDescriptorBufferInfo& part = operation.call.out[output.which].where;
        file.write(std::span(operation.memory).subspan(part.offset, part.range));
    }
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
        if (ops.has_second()) {
            fail(ExitCode::usage, "--roof: {} is stored twice by --second; a copy stores once",
                 tensor_names[which].name);
        }
        if (inputs.tensors[which] &&
            ops.stored_bytes(1024) != bytes_of(inputs.tensors[which]->element, 1024)) {
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
        files[i].write(npy::make_header(outputs[i].type, outputs[i].shape));
        write_data(outputs[i], inputs, measured.operation, files[i]);
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
        "rotation, scale, Hadamard transform, store. Or move keys of a cache: with the positions "
        "that are added to theirs, and --gain omit.");
    const auto options = std::make_shared<RotateOptions>();
    options->reads_caches = true;
    add_operation(command, *options);
    add_second(command, options->ops);
    add_run(command, *options);
    command.on_run([options] { return rotate(*options); });
}

}  // namespace vkrope::tools
