// SPDX-License-Identifier: MIT
// The last step of vkrope finish: reports what was done, how accurately and how fast.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "finish/finish.hpp"
#include "shell/device_text.hpp"
#include "shell/finish_text.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

/// null: none.
nlohmann::ordered_json store_scale_json(const StoreSteps& store) {
    switch (store.scale) {
        case VKROPE_STORE_SCALE_NONE: return nullptr;
        case VKROPE_STORE_SCALE_MADE: return "row";
        case VKROPE_STORE_SCALE_MADE_POWER_OF_TWO: return "row_power_of_two";
        case VKROPE_STORE_SCALE_GIVEN_HEAD: return store.given_scales;
        case VKROPE_STORE_SCALE_GIVEN: return store.given_scales.front();
    }
    return nullptr;
}

nlohmann::ordered_json codes_json(const std::optional<reference::CodesVerdict>& verdict) {
    if (!verdict) {
        return nullptr;
    }
    return {{"compared", verdict->codes},
            {"with_one_possible_value", verdict->decided},
            {"scales", verdict->scales},
            {"wrong", verdict->wrong_codes + verdict->wrong_scales}};
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
            {"store", word_for(stored_elements, inputs.steps[which].store.type)},
            {"bias", finish.bias != VKROPE_PARAMETER_NONE},
            {"norm", norm_json(finish.norm)},
            {"clip", finish.clip},
            {"scale", which == Q ? inputs.q_scale : 1.0f},
            {"scale_tokens", finish.scale_tokens != 0},
            {"hadamard", finish.hadamard},
            {"store_scale", store_scale_json(inputs.steps[which].store)},
            {"scale_floor", finish.scale_floor},
            {"share_of_bound", verdict ? nlohmann::ordered_json(verdict->largest_share)
                                       : nlohmann::ordered_json(nullptr)},
            {"codes", codes_json(verification.codes[which])}};
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
        {"first_set_tokens", inputs.first_set_tokens},
        {"verified", verification.passed},
        {"verdict", verdict_word(options, verification)},
        {"gpu_ns", measured.nanoseconds ? nlohmann::ordered_json(*measured.nanoseconds)
                                        : nlohmann::ordered_json(nullptr)},
        {"repetitions", options.given.repetitions},
        {"bytes", measured.bytes}};
}

std::string row(const std::string& key, const std::string& value) {
    return fmt::format("{:<11} {}\n", key, value);
}

/// "q8_0", "int8 with scales of rows".
std::string store_text(const StoreSteps& store) {
    const std::string type = word_for(stored_elements, store.type);
    switch (store.scale) {
        case VKROPE_STORE_SCALE_NONE: return type;
        case VKROPE_STORE_SCALE_MADE: return type + " with scales of rows";
        case VKROPE_STORE_SCALE_MADE_POWER_OF_TWO:
            return type + " with powers of two as scales of rows";
        case VKROPE_STORE_SCALE_GIVEN_HEAD: return type + " times a scale of each head";
        case VKROPE_STORE_SCALE_GIVEN:
            return fmt::format("{} times {:g}", type, store.given_scales.front());
    }
    return type;
}

std::string text_of(const FinishOptions& options, const FinishInputs& inputs,
                    const Measured& measured, const FinishVerification& verification) {
    std::string text = row("device", device_text(measured.device));
    for (const TensorIndex which : every_tensor) {
        const std::optional<TensorFile>& tensor = inputs.rotate.tensors[which];
        if (!tensor) {
            continue;
        }
        text += row(
            tensor_names[which].name,
            fmt::format("{} {} to {}: {}", npy::shape_text(tensor->array.header.shape),
                        word_for(elements, tensor->element), store_text(inputs.steps[which].store),
                        steps_text(inputs.steps[which].finish,
                                   which != V && !inputs.rotate.rotation.no_rope)));
        if (const auto& verdict = verification.verdicts[which]) {
            text += row("  error",
                        fmt::format("{:.3g} of what the contract allows", verdict->largest_share));
        }
        if (const auto& verdict = verification.codes[which]) {
            text += row(
                "  codes",
                fmt::format(
                    "{} compared, {} of them with only one possible value{}", verdict->codes,
                    verdict->decided,
                    verdict->scales == 0 ? "" : fmt::format("; {} scales", verdict->scales)));
        }
    }
    text += row("angles",
                fmt::format("{}, {} positions, {}", word_for(angle_sources, measured.angles.source),
                            measured.angles.rows, bytes_text(measured.angles.bytes)));
    text += row("positions", fmt::format("{} to {}", inputs.rotate.positions.lowest,
                                         inputs.rotate.positions.highest));
    if (inputs.first_set_tokens != 0) {
        text += row("weights", fmt::format("of the first {} tokens, and of the others",
                                           inputs.first_set_tokens));
    }
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
