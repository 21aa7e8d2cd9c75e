// SPDX-License-Identifier: MIT
// vkrope check: the command line, and the observation of each tensor.
#include "check/check.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "base/meaning.hpp"
#include "check/others.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/terminal.hpp"
#include "io/array_file.hpp"

namespace vkrope::tools {
namespace {

constexpr double largest_bound_u = 6;  // that the contract promises for any source of angles

// Reads an output. It may have another element type than its input, but must have the same shape.
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

// Reads a quantised output. Its rows are the blocks of the input's rows.
TensorFile read_codes(const char* option, const std::string& path, const TensorFile& input,
                      const TensorOps& ops) {
    TensorFile actual = {.option = option,
                         .path = path,
                         .array = read_array(option, path),
                         .element = ops.stored,
                         .view = input.view};
    const npy::Header& header = actual.array.header;
    std::vector<std::uint64_t> shape = input.array.header.shape;
    shape.back() = ops.stored_bytes(shape.back());
    if (header.type != npy::Type::u1 || header.shape != shape) {
        fail(
            ExitCode::bad_file,
            "{}: '{}' has shape {} of {}; {} of {} '{}' needs {} of |u1, the bytes of a row on the "
            "last axis",
            option, path, npy::shape_text(header.shape), npy::name(header.type),
            word_for(stored_elements, ops.stored), input.option, input.path,
            npy::shape_text(shape));
    }
    return actual;
}

// Reads the scales that an engine computed, as [batch, tokens, heads, groups].
std::vector<float> read_made_scales(const char* option, const std::string& path,
                                    const TensorFile& input, const TensorOps& ops) {
    const std::vector<std::byte> rows = read_scales(option, path, input, ops);
    std::vector<float> scales;
    if (ops.scale_type == VKROPE_SCALE_TYPE_UE8M0) {
        for (const std::byte exponent : rows)
            scales.push_back(std::ldexp(1.0f, std::to_integer<int>(exponent) - 127));
    } else {
        scales.resize(rows.size() / sizeof(float));
        if (!rows.empty()) std::memcpy(scales.data(), rows.data(), rows.size());
    }
    return scales;
}

// Reads an engine's output of a tensor.
TensorFile read_output(const OperationOptions& options, const OperationInputs& inputs,
                       TensorIndex which) {
    const char* option = options.output_options[which];
    const std::string& path = options.outputs[which];
    const TensorFile& input = *inputs.tensors[which];
    const TensorOps& ops = inputs.ops[which];
    if (is_quantised(ops.stored)) return read_codes(option, path, input, ops);
    TensorFile actual = read_actual(option, path, input, options.layout);
    const std::optional<Element> stored = options.ops.types.of(which);
    if (stored && actual.element != *stored) {
        fail(ExitCode::bad_file, "{}: '{}' has elements {}; --store has {}", option, path,
             word_for(stored_elements, actual.element), word_for(stored_elements, *stored));
    }
    return actual;
}

// Returns the part of an observation that is the same for all tensors: what the model says.
Observation observation_of(const OperationOptions& options, const OperationInputs& inputs) {
    const RopeParams& rotation = inputs.rotation;
    Observation observation;
    observation.with_ops = asks_for_ops(options.ops);
    observation.base = rotation.base;
    observation.softmax_scale = rotation.softmax_scale;
    observation.others = other_rotations(*inputs.model, options.model, rotation);
    observation.yarn = yarn_scalings(*inputs.model, rotation);
    observation.max_position = std::int64_t(rotation.max_position);
    const auto read = std::make_shared<std::optional<std::vector<OtherRotation>>>();
    observation.variations = [&, read]() -> const std::vector<OtherRotation>& {
        if (!*read) *read = variations_of(*inputs.model, options.model, rotation);
        return **read;
    };
    return observation;
}

// Sets what is known about the other tensor: K for Q, Q for K.
void set_other(const OperationInputs& inputs, const verify::Operation& operation, TensorIndex which,
               const CheckResult& result, Observation& observation) {
    const TensorIndex other = which == Q ? K : Q;
    if (which == V || !inputs.tensors[other]) return;
    observation.other_input = operation.memory.data() + operation.call.in[other].where.offset;
    observation.other_in = inputs.tensors[other]->view;
    const oracle::Norm norm = verify::definition_of(operation, other, false).ops.norm,
                       own = observation.right.ops.norm;
    observation.other_weight = norm.weight;
    observation.other_norm_is_right = result.tensors[other] &&
                                      result.tensors[other]->judgement.outcome == Outcome::pass &&
                                      norm.kind == own.kind && norm.eps == own.eps &&
                                      norm.over_token == own.over_token;
}

void judge_tensors(const OperationOptions& options, OperationInputs& inputs, CheckResult& result) {
    const Observation of_all = observation_of(options, inputs);
    const verify::Operation operation = operation_of(options, inputs, false);
    const auto gain = oracle::Gain(options.gain);
    for (const TensorIndex which : {K, Q, V}) {  // if K's norm is right, Q's is not suspected
        if (!inputs.tensors[which]) continue;
        Judged judged = {.actual = read_output(options, inputs, which), .judgement = {}};
        const std::vector<std::byte>& actual = judged.actual.array.data;
        Observation observation = of_all;
        Hypothesis& right = observation.right;
        right = definition_for_engines(inputs, operation, which);
        right.operation.gain = gain;
        right.in = inputs.tensors[which]->view;
        right.out = judged.actual.view;
        observation.input = operation.memory.data() + operation.call.in[which].where.offset;
        observation.output = actual.data();
        observation.other_offset = which == Q ? inputs.rotation.k_rotary_offset
                                              : inputs.rotation.q_rotary_offset;
        if (which == V) {
            observation.others.clear();
            observation.rotated = definition_for_engines(inputs, operation, K);
            observation.rotated->operation.gain = gain;
        }
        set_other(inputs, operation, which, result, observation);
        if (right.store) {
            observation.codes = {reinterpret_cast<const std::uint8_t*>(actual.data()),
                                 actual.size()};
            if (right.store->made) {
                right.scales = read_made_scales(options.ops.scale_options[which],
                                                options.ops.scale_files[which],
                                                *inputs.tensors[which], inputs.ops[which]);
            }
        }
        ProgressLine line(fmt::format("checking {}", options.output_options[which]));
        judged.judgement = judge(observation, result.limits,
                                 [&line](double fraction) { line.update(fraction); });
        result.tensors[which] = std::move(judged);
    }
}

ExitCode check_output(OperationOptions options, std::optional<double> tolerance) {
    // Reads the model with its attention factor, so that a missing factor is detected.
    const Gain gain = std::exchange(options.gain, VKROPE_GAIN_APPLY);
    options.ops.of_model = options.ops.of_model || !options.inputs[V].empty();
    OperationInputs inputs = read_inputs(options);
    options.gain = gain;
    CheckResult result;
    result.limits.tolerance = tolerance.value_or(result.limits.tolerance);
    result.limits.accepts_close = tolerance.has_value();
    judge_tensors(options, inputs, result);
    report(result, options.json);
    const Judged& worst = *result.tensors[result.deciding()];
    const Outcome outcome = worst.judgement.outcome;
    if (outcome == Outcome::pass || (outcome == Outcome::close && tolerance))
        return ExitCode::success;
    fail(ExitCode::verification_failed, "{}: {}", worst.actual.option, worst.judgement.breach);
}

}  // namespace

Hypothesis definition_for_engines(const OperationInputs& inputs, const verify::Operation& operation,
                                  TensorIndex which) {
    Hypothesis right;
    static_cast<oracle::Definition&>(right) = verify::definition_of(operation, which, false);
    right.bound_u = largest_bound_u;
    right.operation.covered = {};
    if (inputs.rotation.no_rope) {  // the operation lacks what a mistake may rotate by
        oracle::Operation& rotation = right.operation;
        rotation.interleaved = inputs.rotation.pairing == VKROPE_INTERLEAVED;
        rotation.positions = expanded(inputs.positions, inputs.batch, inputs.tokens);
        for (std::uint32_t axis = 1; axis < inputs.positions.axes; ++axis) {
            rotation.further.positions.push_back(
                expanded(inputs.positions, inputs.batch, inputs.tokens, axis));
        }
    }
    if (which != V) {
        const Sections& sections = inputs.rotation.sections;
        if (sections.axes > 1) {
            // Positions on one axis are those on every axis.
            right.operation.further.positions.resize(sections.axes - 1, right.operation.positions);
            set_sections(right, sections);
        }
        right.operation.rotary_offset = which == Q ? inputs.rotation.q_rotary_offset
                                                   : inputs.rotation.k_rotary_offset;
    }
    return right;
}

TensorIndex CheckResult::deciding() const {
    const auto outcome_of = [this](TensorIndex which) {
        return tensors[which] ? tensors[which]->judgement.outcome : Outcome::pass;
    };
    TensorIndex worst = tensors[Q] ? Q : K;
    for (const TensorIndex which : every_tensor)
        worst = outcome_of(which) > outcome_of(worst) ? which : worst;
    return worst;
}

void add_check(CommandLine& vkrope) {
    CommandLine& command = vkrope.add_command(
        "check",
        "Judge another engine's rotation, the norms and other ops around it, and its quantised "
        "store, and name the mistake that explains it; needs no device.");
    struct Options {
        OperationOptions given;  // the intended operation; its outputs are the engine's
        std::optional<double> tolerance;
    };
    const auto options = std::make_shared<Options>();
    OperationOptions& given = options->given;
    given.output_options = {"--actual", "--actual-k", "--actual-v"};
    given.output_help = "The engine's output of {}, .npy or .safetensors.";
    given.ops.scale_options = {"--actual-scales", "--actual-k-scales", "--actual-v-scales"};
    given.ops.scale_help = "The scales that the engine made for {}, .npy or .safetensors";
    add_operation(command, given);
    command.add_number(
        "--tolerance", options->tolerance, [](double x) { return x > 0 && x < 1; },
        "a number above 0 and below 1",
        "Tolerance, as a share of |x0| + |x1|: an output within it passes. Without it, an output "
        "within 0.01 is called close but does not pass. Of codes, this share times the largest "
        "code, at most a quarter, may be one off.");
    command.add_action(
        "--list", [options] { list_mistakes(options->given.json); },
        "List the mistakes that it names, with an example where a report has values.");
    command.on_run([options] { return check_output(options->given, options->tolerance); });
}

}  // namespace vkrope::tools
