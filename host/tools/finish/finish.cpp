// SPDX-License-Identifier: MIT
// The command line of vkrope finish, and the order of its steps.
#include "finish/finish.hpp"

#include <cmath>
#include <filesystem>
#include <memory>

#include "files/array_file.hpp"
#include "files/element_type.hpp"
#include "shell/commands.hpp"
#include "shell/finish_text.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

bool is_float(double number) {
    return std::fabs(number) <= std::numeric_limits<float>::max();
}

bool makes_scales(const FinishInputs& inputs, TensorIndex which) {
    return inputs.rotate.tensors[which] && is_made(inputs.steps[which].store.scale);
}

/// The outputs, and behind them the scales.
std::vector<OutputArray> arrays_of(const FinishOptions& options, const FinishInputs& inputs) {
    std::vector<OutputArray> arrays;
    for (const TensorIndex which : every_tensor) {
        if (const std::optional<TensorFile>& tensor = inputs.rotate.tensors[which]) {
            const StoreSteps& store = inputs.steps[which].store;
            std::vector<std::uint64_t> shape = tensor->array.header.shape;
            if (is_quantised(store.type)) {
                shape.back() = store.bytes(shape.back());
            }
            arrays.push_back({tensor_names[which].output_option, options.given.outputs[which],
                              npy_type(store.type), std::move(shape)});
        }
    }
    for (const TensorIndex which : every_tensor) {
        if (makes_scales(inputs, which)) {
            std::vector<std::uint64_t> shape = inputs.rotate.tensors[which]->array.header.shape;
            shape.pop_back();
            arrays.push_back({options.store.scale_options.names[which],
                              options.store.scale_files[which], npy::Type::f4, std::move(shape)});
        }
    }
    return arrays;
}

/// Scales [batch, tokens, heads] in the order of the tensor's layout.
std::vector<float> in_order_of(const TensorFile& tensor, const std::vector<float>& scales) {
    std::vector<float> ordered(scales.size());
    for (std::uint64_t row = 0; row < scales.size(); ++row) {
        ordered[scale_in_file(tensor.view, row)] = scales[row];
    }
    return ordered;
}

/// Weights, biases and factors must not be replaced.
void check_parameters_stay(const FinishOptions& options, const std::vector<OutputArray>& arrays) {
    std::vector<std::string> parameters = {options.q_scale_tokens};
    for (const auto& paths :
         {options.biases, options.norm_weights, options.norm_biases, options.second_biases,
          options.second_norm_weights, options.second_norm_biases}) {
        parameters.insert(parameters.end(), paths.begin(), paths.end());
    }
    for (const std::string& parameter : parameters) {
        for (const OutputArray& array : arrays) {
            const std::string file = file_of(parameter);
            std::error_code not_there_yet;
            if (!file.empty() && (file == array.path ||
                                  std::filesystem::equivalent(file, array.path, not_there_yet))) {
                fail(ExitCode::usage, "{}: '{}' is an input as well; it would be replaced",
                     array.option, parameter);
            }
        }
    }
}

ExitCode finish(const FinishOptions& options) {
    OfEachTensor<TensorPaths> tensors;
    for (const TensorIndex which : every_tensor) {
        const auto& [name, input_option, output_option] = tensor_names[which];
        tensors[which] = {input_option, options.given.inputs[which], output_option,
                          options.given.outputs[which]};
    }
    check_tensors(tensors);
    const FinishInputs inputs = read_inputs(options);
    const std::vector<OutputArray> arrays = arrays_of(options, inputs);
    check_parameters_stay(options, arrays);
    std::vector<OutputFile> outputs = open_outputs(options.given, arrays);
    const MeasuredFinish measured = finish_on_device(options, inputs);
    const FinishVerification verification = verify(options, inputs, measured);
    if (options.given.verify && !verification.passed) {
        report(options, inputs, measured, verification);
        fail(ExitCode::verification_failed, "verification failed, no output was written: {}",
             verification.failure);
    }
    auto output = outputs.begin();
    for (const TensorIndex which : every_tensor) {
        if (inputs.rotate.tensors[which]) {
            (output++)->write(measured.outputs[which]);
        }
    }
    for (const TensorIndex which : every_tensor) {
        if (makes_scales(inputs, which)) {
            const std::vector<float> scales = in_order_of(*inputs.rotate.tensors[which],
                                                          measured.scales[which]);
            (output++)->write(std::as_bytes(std::span(scales)));
        }
    }
    OutputFile::publish(outputs);
    report(options, inputs, measured, verification);
    return ExitCode::success;
}

void add_norm(CommandLine& command, FinishOptions& options) {
    command.add_text(
        "--q-norm", "FILE", options.norm_weights[Q],
        "Weight of Q's norm, .npy or .safetensors: [head_dim], [heads, head_dim] or [heads * "
        "head_dim]; f32, f16 or bf16.");
    command.add_text("--k-norm", "FILE", options.norm_weights[K], "Weight of K's norm.");
    command.add_flag("--v-norm", options.v_norm, "Give V a norm without a weight.");
    command.add_text("--q-norm-bias", "FILE", options.norm_biases[Q],
                     "Bias of Q's layer norm, shaped as a weight.");
    command.add_text("--k-norm-bias", "FILE", options.norm_biases[K], "Bias of K's layer norm.");
    command.add_choice("--norm-kind", options.norm_kind, norm_kinds,
                       "Kind of the norms (the model's, or rms).");
    command.add_choice("--norm-span", options.norm_span, norm_spans,
                       "What is one row: a head, or all heads of a token (the model's, or head).");
    command.add_choice("--norm-place", options.norm_place, norm_places,
                       "Before or after the rotation (the model's, or before).");
    command.add_number(
        "--norm-eps", options.norm_eps, [](double x) { return x >= 1e-20 && x <= 1; },
        "a number from 1e-20 to 1", "Added inside the root (the model's).");
    command.add_integer("--norm-offset", options.norm_offset, std::uint32_t{0}, std::uint32_t{1},
                        "Added to every weight: 1 for Gemma (the model's, or 0).");
}

void add_second_set(CommandLine& command, FinishOptions& options) {
    command.add_integer(
        "--first-set-tokens", options.first_set_tokens, std::uint32_t{1},
        std::numeric_limits<std::uint32_t>::max(),
        "Tokens of each sequence that take the weights and biases above; the others take the "
        "second ones, and where there is no second one the same.");
    command.add_text("--second-q-norm", "FILE", options.second_norm_weights[Q],
                     "Weight of Q's norm for these tokens, shaped as --q-norm.");
    command.add_text("--second-k-norm", "FILE", options.second_norm_weights[K],
                     "Weight of K's norm for these tokens.");
    command.add_text("--second-q-norm-bias", "FILE", options.second_norm_biases[Q],
                     "Bias of Q's layer norm for these tokens.");
    command.add_text("--second-k-norm-bias", "FILE", options.second_norm_biases[K],
                     "Bias of K's layer norm for these tokens.");
    command.add_text("--second-q-bias", "FILE", options.second_biases[Q],
                     "Bias of Q for these tokens.");
    command.add_text("--second-k-bias", "FILE", options.second_biases[K],
                     "Bias of K for these tokens.");
    command.add_text("--second-v-bias", "FILE", options.second_biases[V],
                     "Bias of V for these tokens.");
}

}  // namespace

void add_steps(CommandLine& command, FinishOptions& options) {
    add_norm(command, options);
    constexpr OfEachTensor<const char*> bias_options = {"--q-bias", "--k-bias", "--v-bias"};
    for (const TensorIndex which : every_tensor) {
        command.add_text(bias_options[which], "FILE", options.biases[which],
                         std::string("Added to ") + tensor_names[which].name +
                             " before everything else, shaped as a weight.");
    }
    add_second_set(command, options);
    command.add_number(
        "--clip", options.clip, [](double x) { return x > 0 && is_float(x); },
        "a number above 0 that a float holds",
        "Clamp to -X to X, after a norm before the rotation (the model's).");
    command.add_number(
        "--q-scale", options.q_scale, [](double x) { return x != 0 && is_float(x); },
        "a number other than 0 that a float holds", "Factor of Q, after rotation and norms (1).");
    command.add_text("--q-scale-tokens", "FILE", options.q_scale_tokens,
                     "A factor for each token of Q, .npy: float32 [tokens] or [batch, tokens] (by "
                     "position, where the model has a formula).");
}

void add_finish(CommandLine& vkrope) {
    CommandLine& command = vkrope.add_command("finish",
                                              "Do all that a model does to Q, K and V between "
                                              "projection and attention: bias, norm, clip, "
                                              "rotation, scale, Hadamard transform, store.");
    const auto options = std::make_shared<FinishOptions>();
    add_tensor_files(command, options->given, "File for the value tensor, .npy.");
    add_steps(command, *options);
    add_store(command, options->store);
    add_operation(command, options->given);
    add_run(command, options->given);
    command.on_run([options] { return finish(*options); });
}

}  // namespace vkrope::tools
