// SPDX-License-Identifier: MIT
// vkrope check: the command line, and what is observed of each tensor.
#include "check/check.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "check/others.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/terminal.hpp"
#include "io/array_file.hpp"
#include "meaning.hpp"

namespace vkrope::tools {
namespace {

/// Reads an output. It may have another element type than its input, but must have the same shape.
TensorFile read_actual(const char* option, const std::string& path, const TensorFile& input,
                       Layout layout) {
    TensorFile actual = read_tensor(option, path, layout, std::nullopt);
    if (actual.array.header.shape != input.array.header.shape) {
        fail(ExitCode::bad_file,
             "{}: '{}' has shape {}; {} '{}' has {}, and the output must have the shape of its "
             "input",
             option, path, npy::shape_text(actual.array.header.shape), input.option, input.path,
             npy::shape_text(input.array.header.shape));
    }
    return actual;
}

/// Reads a quantised output: its rows are the blocks of the input's rows.
TensorFile read_codes(const char* option, const std::string& path, const TensorFile& input,
                      const StoreSteps& store) {
    TensorFile actual = {.option = option,
                         .path = path,
                         .array = read_array(option, path),
                         .element = store.type,
                         .view = input.view};
    const npy::Header& header = actual.array.header;
    std::vector<std::uint64_t> shape = input.array.header.shape;
    shape.back() = store.bytes(shape.back());
    if (header.type != npy::Type::u1 || header.shape != shape) {
        fail(
            ExitCode::bad_file,
            "{}: '{}' has shape {} of {}; {} of {} '{}' needs {} of |u1, the bytes of a row on the "
            "last axis",
            option, path, npy::shape_text(header.shape), npy::name(header.type),
            word_for(stored_elements, store.type), input.option, input.path,
            npy::shape_text(shape));
    }
    return actual;
}

/// Reads made scales, as [batch, tokens, heads].
std::vector<float> read_made_scales(const char* option, const std::string& path,
                                    const TensorFile& input) {
    std::vector<std::uint64_t> shape = input.array.header.shape;
    shape.pop_back();
    const std::vector<float> in_file = read_floats(
        option, path, shape, fmt::format("{} '{}'", input.option, input.path), "row");
    std::vector<float> scales;
    for (std::uint64_t row = 0; row < in_file.size(); ++row) {
        scales.push_back(in_file[scale_in_file(input.view, row)]);
    }
    return scales;
}

/// Reads the output that the engine made of a tensor.
TensorFile read_output(const RotateOptions& options, const RotateInputs& inputs,
                       TensorIndex which) {
    const char* option = options.output_options[which];
    const std::string& path = options.outputs[which];
    const TensorFile& input = *inputs.tensors[which];
    const StoreSteps& store = inputs.steps[which].store;
    if (is_quantised(store.type)) {
        return read_codes(option, path, input, store);
    }
    TensorFile actual = read_actual(option, path, input, options.layout);
    const std::optional<Element> stored = options.steps.types.of(which);
    if (stored && actual.element != *stored) {
        fail(ExitCode::bad_file, "{}: '{}' has elements {}; --store has {}", option, path,
             word_for(stored_elements, actual.element), word_for(stored_elements, *stored));
    }
    return actual;
}

/// The right rotation of K, and what is common to all tensors.
Observation observation_of(const RotateOptions& options, const RotateInputs& inputs) {
    const RopeParams& rotation = inputs.rotation;
    Observation observation;
    oracle::Operation& operation = observation.right.operation;
    operation.interleaved = rotation.pairing == VKROPE_INTERLEAVED;
    operation.inverse = options.inverse;
    set_angles(rotation, operation);
    switch (options.gain) {
        case VKROPE_GAIN_APPLY: break;
        case VKROPE_GAIN_OMIT: operation.gain = oracle::Gain::omit; break;
        case VKROPE_GAIN_DIVIDE_OUT: operation.gain = oracle::Gain::divide_out; break;
    }
    operation.positions = expanded(inputs.positions, inputs.batch, inputs.tokens);
    operation.rotary_offset = rotation.k_rotary_offset;
    observation.right.further = further_axes(rotation, inputs.positions, inputs.batch,
                                             inputs.tokens);
    observation.with_steps = asks_for_steps(options.steps);
    observation.base = rotation.base;
    observation.softmax_scale = rotation.softmax_scale;
    observation.other_offset = rotation.q_rotary_offset;
    observation.others = other_rotations(*inputs.model, options.model, rotation);
    observation.yarn = yarn_scalings(*inputs.model, rotation);
    return observation;
}

/// V is not rotated: without windows, phases and head groups, too.
void leave_unrotated(Observation& observation) {
    observation.rotated = observation.right;
    observation.others.clear();
    oracle::Operation still;
    still.positions = observation.right.operation.positions;
    still.absolute_allowance = observation.right.operation.absolute_allowance;
    observation.right.operation = std::move(still);
    observation.right.further = {};
}

void judge_tensors(const RotateOptions& options, const RotateInputs& inputs, CheckResult& result) {
    const Observation of_all = observation_of(options, inputs);
    for (const TensorIndex which : every_tensor) {
        const std::optional<TensorFile>& input = inputs.tensors[which];
        if (!input) {
            continue;
        }
        Judged judged = {.actual = read_output(options, inputs, which), .judgement = {}};
        const std::vector<std::byte>& actual = judged.actual.array.data;
        Observation observation = of_all;
        Hypothesis& right = observation.right;
        right.in = input->view;
        right.out = judged.actual.view;
        observation.input = input->array.data.data();
        observation.output = actual.data();
        if (which == Q) {
            std::swap(right.operation.rotary_offset, observation.other_offset);
        } else if (which == V) {
            leave_unrotated(observation);
        }
        if (observation.with_steps) {
            right.steps = steps_of(inputs, which);
        }
        const StoreSteps& store = inputs.steps[which].store;
        if (is_quantised(store.type)) {
            observation.codes = {reinterpret_cast<const std::uint8_t*>(actual.data()),
                                 actual.size()};
            right.store = {.quantised = quantised_store(store)};
            if (is_made(store.scale)) {
                right.store->scales = read_made_scales(options.steps.scale_options[which],
                                                       options.steps.scale_files[which], *input);
            }
        }
        ProgressLine line(fmt::format("checking {}", options.output_options[which]));
        judged.judgement = judge(observation, result.limits,
                                 [&line](double fraction) { line.update(fraction); });
        result.tensors[which] = std::move(judged);
    }
}

ExitCode check_output(RotateOptions options, std::optional<double> tolerance) {
    // Read with the factor of the model, so that a missing one shows.
    const Gain gain = std::exchange(options.gain, VKROPE_GAIN_APPLY);
    options.steps.of_model = options.steps.of_model || !options.inputs[V].empty();
    const RotateInputs inputs = read_inputs(options);
    options.gain = gain;
    CheckResult result;
    result.limits.tolerance = tolerance.value_or(result.limits.tolerance);
    result.limits.accepts_close = tolerance.has_value();
    judge_tensors(options, inputs, result);
    report(result, options.json);
    const Judged& worst = *result.tensors[result.deciding()];
    const Outcome outcome = worst.judgement.outcome;
    if (outcome == Outcome::pass || (outcome == Outcome::close && tolerance)) {
        return ExitCode::success;
    }
    fail(ExitCode::verification_failed, "{}: {}", worst.actual.option, worst.judgement.breach);
}

}  // namespace

TensorIndex CheckResult::deciding() const {
    const auto outcome_of = [this](TensorIndex which) {
        return tensors[which] ? tensors[which]->judgement.outcome : Outcome::pass;
    };
    TensorIndex worst = tensors[Q] ? Q : K;
    for (const TensorIndex which : every_tensor) {
        worst = outcome_of(which) > outcome_of(worst) ? which : worst;
    }
    return worst;
}

void add_check(CommandLine& vkrope) {
    CommandLine& command = vkrope.add_command(
        "check",
        "Judge another engine's rotation, the norms and other steps around it, and its quantised "
        "store, and name the mistake that explains it; needs no device.");
    struct Options {
        RotateOptions given;  // what the engine was meant to do; the outputs are its own
        std::optional<double> tolerance;
    };
    const auto options = std::make_shared<Options>();
    RotateOptions& given = options->given;
    given.output_options = {"--actual", "--actual-k", "--actual-v"};
    given.output_help = "The engine's output of {}, .npy or .safetensors.";
    given.steps.scale_options = {"--actual-scales", "--actual-k-scales", "--actual-v-scales"};
    given.steps.scale_help = "The scales that the engine made for {}, .npy or .safetensors";
    add_operation(command, given);
    command.add_number(
        "--tolerance", options->tolerance, [](double x) { return x > 0 && x < 1; },
        "a number above 0 and below 1",
        "Tolerance, as a share of |x0| + |x1|: an output within it passes. Without it, an output "
        "within 0.01 is called close but does not pass. Of codes, this share times the largest "
        "code, at most a quarter, may be one off.");
    command.on_run([options] { return check_output(options->given, options->tolerance); });
}

}  // namespace vkrope::tools
