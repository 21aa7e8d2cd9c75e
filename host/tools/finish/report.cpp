// SPDX-License-Identifier: MIT
// The last step of vkrope finish: reports what was done, how accurately and how fast.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "finish/finish.hpp"
#include "shell/device_text.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

const char* kind_word(NormKind kind) {
    return kind == NormKind::layer ? "layer" : "rms";
}
const char* span_word(NormSpan span) {
    return span == NormSpan::token ? "token" : "head";
}
const char* place_word(NormPlace place) {
    return place == NormPlace::after ? "after" : "before";
}

nlohmann::ordered_json norm_json(const Norm& norm) {
    if (norm.kind == NormKind::none) {
        return nullptr;
    }
    return {{"kind", kind_word(norm.kind)},
            {"span", span_word(norm.span)},
            {"place", place_word(norm.place)},
            {"eps", norm.eps},
            {"weight", norm.weight != ParameterShape::none},
            {"weight_offset", norm.weight_offset},
            {"bias", norm.bias != ParameterShape::none}};
}

nlohmann::ordered_json tensor_json(const FinishInputs& inputs,
                                   const FinishVerification& verification, TensorIndex which) {
    const std::optional<TensorFile>& tensor = inputs.rotate.tensors[which];
    if (!tensor) {
        return nullptr;
    }
    const Finish& finish = inputs.steps[which].finish;
    const std::optional<reference::FinishVerdict>& verdict = verification.verdicts[which];
    return {{"shape", tensor->array.header.shape},
            {"dtype", word_for(elements, tensor->element)},
            {"store", word_for(elements, inputs.store)},
            {"bias", finish.bias != ParameterShape::none},
            {"norm", norm_json(finish.norm)},
            {"clip", finish.clip},
            {"scale", which == Q ? inputs.q_scale : 1.0f},
            {"scale_tokens", finish.scale_tokens},
            {"share_of_bound", verdict ? nlohmann::ordered_json(verdict->largest_share)
                                       : nlohmann::ordered_json(nullptr)}};
}

const char* verdict_word(const FinishOptions& options, const FinishVerification& verification) {
    return verification.passed ? "correct" : options.given.verify ? "wrong" : "not_verified";
}

nlohmann::ordered_json json_of(const FinishOptions& options, const FinishInputs& inputs,
                               const Measured& measured, const FinishVerification& verification) {
    const RotateInputs& given = inputs.rotate;
    return {
        {"device", device_json(measured.device)},
        {"layout", word_for(layouts, options.given.layout)},
        {"angles",
         {{"source", word_for(angle_sources, measured.angles.source)},
          {"positions", measured.angles.rows},
          {"bytes", measured.angles.bytes}}},
        {"positions", {{"lowest", given.positions.lowest}, {"highest", given.positions.highest}}},
        {"q", tensor_json(inputs, verification, Q)},
        {"k", tensor_json(inputs, verification, K)},
        {"v", tensor_json(inputs, verification, V)},
        {"verified", verification.passed},
        {"verdict", verdict_word(options, verification)},
        {"gpu_ns", measured.nanoseconds ? nlohmann::ordered_json(*measured.nanoseconds)
                                        : nlohmann::ordered_json(nullptr)},
        {"repetitions", options.given.repetitions},
        {"bytes", measured.bytes}};
}

/// "bias, rms norm of each head (eps 1e-06, weight), rotation, scale 0.125".
std::string steps_text(const FinishInputs& inputs, TensorIndex which) {
    const Finish& finish = inputs.steps[which].finish;
    const Norm& norm = finish.norm;
    std::string text;
    const auto add = [&text](const std::string& step) {
        text += (text.empty() ? "" : ", ") + step;
    };
    const std::string normed = fmt::format("{} norm of each {} (eps {:g}{}{})",
                                           kind_word(norm.kind), span_word(norm.span), norm.eps,
                                           norm.weight == ParameterShape::none ? ""
                                           : norm.weight_offset == 1           ? ", 1 + weight"
                                                                               : ", weight",
                                           norm.bias == ParameterShape::none ? "" : ", bias");
    const bool has_norm = norm.kind != NormKind::none;
    if (finish.bias != ParameterShape::none) {
        add("bias");
    }
    if (has_norm && norm.place == NormPlace::before) {
        add(normed);
    }
    if (finish.clip != 0) {
        add(fmt::format("clip to {:g}", finish.clip));
    }
    if (which != V) {
        add("rotation");
    }
    if (has_norm && norm.place == NormPlace::after) {
        add(normed);
    }
    if (finish.scale_call) {
        add(fmt::format("scale {:g}", inputs.q_scale));
    }
    if (finish.scale_tokens) {
        add("scale by position");
    }
    return text.empty() ? "none" : text;
}

std::string row(const std::string& key, const std::string& value) {
    return fmt::format("{:<11} {}\n", key, value);
}

std::string text_of(const FinishOptions& options, const FinishInputs& inputs,
                    const Measured& measured, const FinishVerification& verification) {
    std::string text = row("device", device_text(measured.device));
    for (const TensorIndex which : every_tensor) {
        const std::optional<TensorFile>& tensor = inputs.rotate.tensors[which];
        if (!tensor) {
            continue;
        }
        text += row(tensor_names[which].name,
                    fmt::format("{} {} to {}: {}", npy::shape_text(tensor->array.header.shape),
                                word_for(elements, tensor->element),
                                word_for(elements, inputs.store), steps_text(inputs, which)));
        if (const auto& verdict = verification.verdicts[which]) {
            text += row("  error",
                        fmt::format("{:.3g} of what the contract allows", verdict->largest_share));
        }
    }
    text += row("angles",
                fmt::format("{}, {} positions, {}", word_for(angle_sources, measured.angles.source),
                            measured.angles.rows, bytes_text(measured.angles.bytes)));
    text += row("positions", fmt::format("{} to {}", inputs.rotate.positions.lowest,
                                         inputs.rotate.positions.highest));
    text += row("time", measured.nanoseconds
                            ? fmt::format("{:.3f} ms on the device", *measured.nanoseconds / 1e6)
                            : "n/a");
    return text + row("verdict", verdict_word(options, verification));
}

}  // namespace

void report(const FinishOptions& options, const FinishInputs& inputs, const Measured& measured,
            const FinishVerification& verification) {
    if (options.given.json) {
        write_json(json_of(options, inputs, measured, verification));
    } else {
        write_output(text_of(options, inputs, measured, verification));
    }
}

}  // namespace vkrope::tools
