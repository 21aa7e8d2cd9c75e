// SPDX-License-Identifier: MIT
// vkrope check: the command line and the evidence for the judgement.
#include "check/check.hpp"

#include <algorithm>
#include <memory>

#include "check/others.hpp"
#include "files/array_file.hpp"
#include "files/model_options.hpp"
#include "shell/command_line.hpp"
#include "shell/commands.hpp"
#include "shell/terminal.hpp"

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

/// The evidence that is common to both tensors.
Evidence evidence_of(const CheckOptions& options, const RotateInputs& inputs) {
    const Rotation& rotation = inputs.rotation;
    Evidence evidence;
    evidence.operation.interleaved = rotation.pairing == VKROPE_INTERLEAVED;
    evidence.operation.inverse = options.given.inverse;
    set_angles(rotation, evidence.operation);
    switch (options.given.gain) {
        case VKROPE_GAIN_APPLY: break;
        case VKROPE_GAIN_OMIT: evidence.operation.gain = reference::Gain::omit; break;
        case VKROPE_GAIN_DIVIDE_OUT: evidence.operation.gain = reference::Gain::divide_out; break;
    }
    evidence.operation.positions = expanded(inputs.positions, inputs.batch, inputs.tokens);
    evidence.further = further_axes(rotation, inputs.positions, inputs.batch, inputs.tokens);
    evidence.base = rotation.base;
    evidence.softmax_scale = rotation.softmax_scale;
    evidence.others = other_rotations(*inputs.model, options.given.model, rotation);
    evidence.yarn = yarn_scalings(*inputs.model, rotation);
    return evidence;
}

void judge_tensors(const CheckOptions& options, CheckResult& result) {
    Evidence evidence = evidence_of(options, result.inputs);
    const Rotation& rotation = result.inputs.rotation;
    const auto judged_by = [&](const char* option, const std::string& path, const TensorFile& input,
                               std::uint64_t offset, std::uint64_t other_offset) {
        Judged judged = {.actual = read_actual(option, path, input, options.given.layout),
                         .judgement = {}};
        evidence.in = input.view;
        evidence.out = judged.actual.view;
        evidence.input = input.array.data.data();
        evidence.output = judged.actual.array.data.data();
        evidence.operation.rotary_offset = offset;
        evidence.other_offset = other_offset;
        ProgressLine progress(fmt::format("checking {}", option));
        judged.judgement = judge(evidence, result.limits,
                                 [&progress](double fraction) { progress.update(fraction); });
        return judged;
    };
    const auto& tensors = result.inputs.tensors;
    if (tensors[Q]) {
        result.q = judged_by("--actual", options.actual[Q], *tensors[Q], rotation.q_rotary_offset,
                             rotation.k_rotary_offset);
    }
    if (tensors[K]) {
        result.k = judged_by("--actual-k", options.actual[K], *tensors[K], rotation.k_rotary_offset,
                             rotation.q_rotary_offset);
    }
}

StepsResult judge_steps_of(const CheckOptions& options, const RotateInputs& inputs,
                           const Limits& limits) {
    constexpr OfEachTensor<const char*> names = {"--actual", "--actual-k", "--actual-v"};
    const Rotation& rotation = inputs.rotation;
    StepsEvidence evidence;
    evidence.rotation = evidence_of(options, inputs);
    StepsResult result;
    for (const TensorIndex which : every_tensor) {
        const std::optional<TensorFile>& input = inputs.tensors[which];
        if (!input) {
            continue;
        }
        const StoreSteps& store = inputs.steps[which].store;
        const std::optional<Element> stored = options.given.steps.types.of(which);
        JudgedSteps judged = {
            .actual = is_quantised(store.type)
                          ? read_codes(names[which], options.actual[which], *input, store)
                          : read_actual(names[which], options.actual[which], *input,
                                        options.given.layout),
            .judgement = {}};
        if (stored && judged.actual.element != *stored) {
            fail(ExitCode::bad_file, "{}: '{}' has elements {}; --store has {}", names[which],
                 options.actual[which], word_for(stored_elements, judged.actual.element),
                 word_for(stored_elements, *stored));
        }
        evidence.stored.reset();
        if (is_quantised(store.type)) {
            const std::vector<std::byte>& codes = judged.actual.array.data;
            evidence.stored = {
                .store = quantised_store(store),
                .codes = {reinterpret_cast<const std::uint8_t*>(codes.data()), codes.size()},
                .scales = {}};
            if (is_made(store.scale)) {
                const StepOptions& given = options.given.steps;
                evidence.stored->scales = read_made_scales(given.scale_options.names[which],
                                                           given.scale_files[which], *input);
            }
        }
        evidence.rotation.in = input->view;
        evidence.rotation.out = judged.actual.view;
        evidence.rotation.input = input->array.data.data();
        evidence.rotation.output = judged.actual.array.data.data();
        evidence.rotation.operation.rotary_offset = which == Q ? rotation.q_rotary_offset
                                                               : rotation.k_rotary_offset;
        evidence.rotation.other_offset = which == Q ? rotation.k_rotary_offset
                                                    : rotation.q_rotary_offset;
        evidence.steps = steps_of(inputs, which);
        evidence.rotates = which != V;
        ProgressLine progress(fmt::format("checking {}", names[which]));
        judged.judgement = judge_steps(evidence, limits,
                                       [&progress](double fraction) { progress.update(fraction); });
        result[which] = std::move(judged);
    }
    return result;
}

/// Judges outputs of an engine that takes other steps beside the rotation.
ExitCode check_steps(const CheckOptions& options, const RotateInputs& inputs,
                     const Limits& limits) {
    const StepsResult result = judge_steps_of(options, inputs, limits);
    report(options, limits, result);
    const JudgedSteps* worst = nullptr;
    for (const std::optional<JudgedSteps>& judged : result) {
        if (judged && (worst == nullptr || judged->judgement.outcome > worst->judgement.outcome)) {
            worst = &*judged;
        }
    }
    const Outcome outcome = worst->judgement.outcome;
    if (outcome == Outcome::pass || (outcome == Outcome::close && options.tolerance)) {
        return ExitCode::success;
    }
    fail(ExitCode::verification_failed, "{}: {}", worst->actual.option,
         worst->judgement.right.worst);
}

ExitCode check_output(const CheckOptions& options) {
    const auto& files = options.given.inputs;
    check_tensors({{{"--q", files[Q], "--actual", options.actual[Q]},
                    {"--k", files[K], "--actual-k", options.actual[K]},
                    {"--v", files[V], "--actual-v", options.actual[V]}}});
    RotateOptions given = options.given;
    given.gain = VKROPE_GAIN_APPLY;  // the factor of the model, so that a missing one shows
    given.steps.of_model = given.steps.of_model || !files[V].empty();
    RotateInputs inputs = read_inputs(given);
    Limits limits;
    limits.tolerance = options.tolerance.value_or(limits.tolerance);
    limits.accepts_close = options.tolerance.has_value();
    if (asks_for_steps(given.steps)) {
        return check_steps(options, inputs, limits);
    }
    CheckResult result = {.inputs = std::move(inputs), .q = {}, .k = {}, .limits = limits};
    judge_tensors(options, result);
    report(options, result);
    const Judgement& worst = deciding(result).judgement;
    const bool tolerated = worst.outcome == Outcome::close && options.tolerance;
    if (worst.outcome == Outcome::pass || tolerated) {
        return ExitCode::success;
    }
    fail(ExitCode::verification_failed, "{}: {}", deciding(result).actual.option, worst.breach);
}

void add_files(CommandLine& command, CheckOptions& options) {
    RotateOptions& given = options.given;
    command.add_text("--q", "FILE", given.inputs[Q],
                     "The query tensor before the rotation: FILE.npy, or FILE.safetensors:NAME.");
    command.add_text("--k", "FILE", given.inputs[K], "The key tensor before the rotation.");
    command.add_text("--v", "FILE", given.inputs[V], "The value tensor.");
    command.add_text("--actual", "FILE", options.actual[Q],
                     "The engine's output for --q, .npy or .safetensors.");
    command.add_text("--actual-k", "FILE", options.actual[K], "The engine's output for --k.");
    command.add_text("--actual-v", "FILE", options.actual[V], "The engine's output for --v.");
    given.steps.scale_options = {
        .names = {"--actual-scales", "--actual-k-scales", "--actual-v-scales"},
        .help = "The scales that the engine made for {}, .npy or .safetensors"};
    add_positions(command, given);
}

void add_operation(CommandLine& command, CheckOptions& options) {
    RotateOptions& given = options.given;
    add_layout(command, given);
    command.add_choice("--dtype", given.dtype, elements,
                       "Element type that --q and --k must have (as in their files; <u2 is bf16).");
    command.add_flag("--inverse", given.inverse, "The engine was meant to rotate back (inverse).");
    command.add_choice(
        "--gain", given.gain, gains,
        "What the engine was meant to do with the model's attention factor (apply).");
    add_window(command, given);
}

}  // namespace

const Judged& deciding(const CheckResult& result) {
    if (!result.q || !result.k) {
        return result.q ? *result.q : *result.k;
    }
    return result.k->judgement.outcome > result.q->judgement.outcome ? *result.k : *result.q;
}

void add_check(CommandLine& vkrope) {
    CommandLine& command = vkrope.add_command(
        "check",
        "Judge another engine's rotation, the norms and other steps around it, and its quantised "
        "store, and name the mistake that explains it; needs no device.");
    const auto options = std::make_shared<CheckOptions>();
    add_model_options(command, options->given.model);
    add_files(command, *options);
    add_operation(command, *options);
    add_steps(command, options->given.steps);
    command.add_number(
        "--tolerance", options->tolerance, [](double x) { return x > 0 && x < 1; },
        "a number above 0 and below 1",
        "Tolerance, as a share of |x0| + |x1|: an output within it passes. Without it, an output "
        "within 0.01 is called close but does not pass. Of codes, this share times the largest "
        "code, at most a quarter, may be one off.");
    command.add_flag("--json", options->json, "Write JSON.");
    command.on_run([options] { return check_output(*options); });
}

}  // namespace vkrope::tools
