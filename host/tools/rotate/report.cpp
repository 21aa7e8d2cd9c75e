// SPDX-License-Identifier: MIT
// The last step of vkrope rotate: reports the operation, its accuracy and its speed.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/meaning.hpp"
#include "cli/device_text.hpp"
#include "cli/ops_text.hpp"
#include "cli/terminal.hpp"
#include "rotate/rotate.hpp"

namespace vkrope::tools {
namespace {

std::uint64_t number_of_elements(const std::optional<TensorFile>& tensor) {
    return tensor ? elements_of(*tensor) : 0;
}

std::optional<double> bytes_per_second(const Measured& measured,
                                       std::optional<double> nanoseconds) {
    return nanoseconds && *nanoseconds > 0
               ? std::optional(double(measured.bytes) / *nanoseconds * 1e9)
               : std::nullopt;
}

std::optional<double> share_of_copy(const Measured& measured) {
    return measured.nanoseconds && measured.copy
               ? std::optional(measured.copy->nanoseconds / *measured.nanoseconds)
               : std::nullopt;
}

// The report as JSON.

template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

// Returns null if there is no scale.
nlohmann::ordered_json store_scale_json(const TensorOps& ops) {
    switch (ops.store_scale) {
        case VKROPE_STORE_SCALE_NONE: return nullptr;
        case VKROPE_STORE_SCALE_MADE: return "row";
        case VKROPE_STORE_SCALE_MADE_POWER_OF_TWO: return "row_power_of_two";
        case VKROPE_STORE_SCALE_GIVEN_HEAD: return ops.given_scales;
        case VKROPE_STORE_SCALE_GIVEN: return ops.given_scales.front();
    }
    return nullptr;
}

using OfTensor = std::optional<Verification::OfTensor>;

// Returns whether the verdict is on a tensor that was only rotated or moved, and not quantised.
bool is_plain(const OfTensor& of, const TensorOps& ops) {
    return of && !of->has_ops && !is_quantised(ops.stored);
}

nlohmann::ordered_json codes_json(const OfTensor& of, const TensorOps& ops) {
    if (!of || !is_quantised(ops.stored)) return nullptr;
    const oracle::CodesVerdict& codes = of->verdict.codes;
    return {{"compared", codes.codes},
            {"with_one_possible_value", codes.decided},
            {"scales", codes.scales},
            {"wrong", codes.wrong_codes + codes.wrong_scales}};
}

// Returns the largest error as a share of the contract's bound; infinite for wrong NaNs or bits.
std::optional<double> share_of_bound(const OfTensor& of, const TensorOps& ops) {
    return of && !is_quantised(ops.stored) ? std::optional(double(of->verdict.worst.share))
                                           : std::nullopt;
}

// Returns null if the tensor has one destination.
nlohmann::ordered_json second_json(const OfTensor& of, const TensorOps& ops) {
    if (!ops.has_second()) return nullptr;
    return {{"of", word_for(seconds, ops.second_of)},
            {"type", word_for(elements, ops.second)},
            {"share_of_bound", of && of->second
                                   ? nlohmann::ordered_json(double(of->second->worst.share))
                                   : nlohmann::ordered_json(nullptr)}};
}

nlohmann::ordered_json tensor_json(const OperationInputs& inputs, const Verification& verification,
                                   TensorIndex which) {
    const std::optional<TensorFile>& tensor = inputs.tensors[which];
    if (!tensor) return nullptr;
    const TensorOps& ops = inputs.ops[which];
    const OfTensor& verdict = verification.verdicts[which];
    const bool plain = is_plain(verdict, ops);
    nlohmann::ordered_json json = {{"shape", tensor->array.header.shape},
                                   {"dtype", word_for(stored_elements, tensor->element)},
                                   {"elements", number_of_elements(tensor)}};
    if (which == V) {
        json["unchanged"] = plain ? nlohmann::ordered_json(!verdict->verdict.bits_changed)
                                  : nlohmann::ordered_json(nullptr);
    } else {
        json["max_error_u"] = plain ? nlohmann::ordered_json(verdict->verdict.largest_error_u)
                                    : nlohmann::ordered_json(nullptr);
    }
    json.update({{"share_of_bound", or_null(share_of_bound(verdict, ops))},
                 {"codes", codes_json(verdict, ops)},
                 {"hadamard_of_input", ops.hadamard_of_input},
                 {"scales_in", ops.scales_in != 0},
                 {"bias", ops.bias != VKROPE_PARAMETER_NONE},
                 {"norm", norm_json(ops.norm)},
                 {"clip", ops.clip},
                 {"scale", which == Q ? inputs.q_scale : 1.0f},
                 {"scale_tokens", ops.scale_tokens != 0},
                 {"hadamard", ops.hadamard},
                 {"store", word_for(stored_elements, ops.stored)},
                 {"store_scale", store_scale_json(ops)},
                 {"scale_floor", ops.scale_floor},
                 {"store_scale_group", ops.store_scale_group},
                 {"scale_type", ops.has_scales()
                                    ? nlohmann::ordered_json(word_for(scale_types, ops.scale_type))
                                    : nlohmann::ordered_json(nullptr)},
                 {"second", second_json(verdict, ops)}});
    return json;
}

nlohmann::ordered_json copy_json(const Measured& measured) {
    if (!measured.copy) return nullptr;
    return {{"ns", measured.copy->nanoseconds},
            {"bytes_per_second", or_null(bytes_per_second(measured, measured.copy->nanoseconds))},
            {"share", or_null(share_of_copy(measured))},
            {"shader", measured.copy->shader}};
}

// Returns the source of the angles; null if nothing was rotated.
nlohmann::ordered_json source_json(const AngleTableLayout& angles) {
    return angles.source == VKROPE_ANGLES_AUTOMATIC
               ? nlohmann::ordered_json(nullptr)
               : nlohmann::ordered_json(word_for(angle_sources, angles.source));
}

nlohmann::ordered_json model_json(const RopeParams& rotation) {
    return {{"rope_type", rotation.rope_type},
            {"head_dim", rotation.head_dim},
            {"rotary_dim", rotation.rotary_dim},
            {"q_rotary_offset", rotation.q_rotary_offset},
            {"k_rotary_offset", rotation.k_rotary_offset},
            {"pairing", word_for(pairings, rotation.pairing)},
            {"attention_factor", rotation.attention_factor}};
}

nlohmann::ordered_json json_of(const RotateOptions& options, const OperationInputs& inputs,
                               const Measured& measured, const Verification& verification) {
    const char* verdict = verification.passed      ? "correct"
                          : verification.asked_for ? "wrong"
                                                   : "not_verified";
    return {
        {"device", device_json(measured.device)},
        {"model", model_json(inputs.rotation)},
        {"layout", word_for(layouts, options.layout)},
        {"direction", options.inverse ? "inverse" : "forward"},
        {"angles",
         {{"source", source_json(measured.angles)},
          {"positions", measured.angles.rows},
          {"bytes", measured.angles.bytes}}},
        {"positions", {{"lowest", inputs.positions.lowest}, {"highest", inputs.positions.highest}}},
        {"q", tensor_json(inputs, verification, Q)},
        {"k", tensor_json(inputs, verification, K)},
        {"v", tensor_json(inputs, verification, V)},
        {"bound_u", verification.bound_u},
        {"verified", verification.passed},
        {"verdict", verdict},
        {"gpu_ns", or_null(measured.nanoseconds)},
        {"repetitions", options.repetitions},
        {"bytes", measured.bytes},
        {"bytes_per_second", or_null(bytes_per_second(measured, measured.nanoseconds))},
        {"roof", copy_json(measured)}};
}

// The report as text.

// Formats a number with groups of digits: 20 971 520
std::string grouped(std::uint64_t number) {
    std::string digits = std::to_string(number);
    for (std::size_t at = digits.size(); at > 3;) {
        at -= 3;
        digits.insert(at, 1, ' ');
    }
    return digits;
}

// Returns "Q one, K other, V third" for the tensors that are present.
template <class Text>
std::string of_tensors(const OperationInputs& inputs, const Text& text_of) {
    std::string text;
    for (const TensorIndex which : every_tensor) {
        if (inputs.tensors[which]) {
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", tensor_names[which].name,
                                text_of(which));
        }
    }
    return text;
}

std::string row(const char* key, const std::string& value) {
    return fmt::format("{:<11} {}\n", key, value);
}

std::string speed_text(std::optional<double> speed) {
    return speed ? fmt::format("{:.2f} GB/s", *speed / 1e9) : "n/a";
}

std::string time_text(double nanoseconds, const RotateOptions& options) {
    return fmt::format("{:.3f} ms on the device ({})", nanoseconds / 1e6,
                       warms_up(options) ? fmt::format("median of {}", options.repetitions)
                                         : "a first, cold run; --repeat N times warm ones");
}

std::string verdict_text(const OperationInputs& inputs, const Measured& measured,
                         const Verification& verification) {
    const auto share = share_of_copy(measured);
    const std::string speed =
        share
            ? fmt::format(", at {:.0f} % of the speed of a plain copy on this device", 100 * *share)
            : "";
    if (verification.passed) {
        std::uint64_t count = 0;
        for (const TensorIndex which : every_tensor) {
            count += number_of_elements(inputs.tensors[which]) *
                     (inputs.ops[which].has_second() ? 2 : 1);
        }
        return fmt::format("{}: {} values within the contract{}", in_colour("32", "correct"),
                           grouped(count), speed);
    }
    return verification.asked_for
               ? fmt::format("{}: the output is not within the contract and was not written",
                             in_colour("31", "WRONG"))
               : fmt::format("{}not verified (add --verify){}",
                             inputs.rotation.no_rope ? "" : "rotated, ", speed);
}

// Returns "64 of 192 channels", or "64 of 192 channels of Q and of 64 of K".
std::string channels_text(const OperationInputs& inputs) {
    const std::optional<TensorFile>&q = inputs.tensors[Q], &k = inputs.tensors[K];
    const std::uint64_t first = (q ? q : k)->view.head_dim;
    const bool alike = !q || !k || k->view.head_dim == first;
    return fmt::format("{} of {} channels{}", inputs.rotation.rotary_dim, first,
                       alike ? "" : fmt::format(" of Q and of {} of K", k->view.head_dim));
}

std::string model_text(const OperationInputs& inputs) {
    const RopeParams& rotation = inputs.rotation;
    return fmt::format("{}, {}, {} rotated{}", rotation.rope_type,
                       word_for(pairings, rotation.pairing), channels_text(inputs),
                       rotation.attention_factor == 1.0
                           ? ""
                           : fmt::format(", attention factor {}", rotation.attention_factor));
}

std::string error_text(const OperationInputs& inputs, const Verification& verification) {
    bool in_u = false, in_f32 = true;
    const auto share_text = [](const oracle::Verdict& verdict) {
        return fmt::format("{:.3g} of what the contract allows", double(verdict.worst.share));
    };
    const auto first_error = [&](TensorIndex which) -> std::string {
        const Verification::OfTensor& of = *verification.verdicts[which];
        const oracle::Verdict& verdict = of.verdict;
        if (is_quantised(inputs.ops[which].stored)) {
            const oracle::CodesVerdict& codes = verdict.codes;
            return fmt::format("{} codes{} compared, {} with only one possible value", codes.codes,
                               codes.scales == 0 ? "" : fmt::format(" and {} scales", codes.scales),
                               codes.decided);
        }
        if (of.has_ops) return share_text(verdict);
        if (which == V || inputs.rotation.no_rope)
            return verdict.bits_changed ? "changed" : "unchanged";
        in_u = true;
        in_f32 = in_f32 && inputs.ops[which].stored == VKROPE_F32;
        return fmt::format("{:.3g} u", verdict.largest_error_u);
    };
    const auto error_of = [&](TensorIndex which) {
        const std::optional<oracle::Verdict>& second = verification.verdicts[which]->second;
        return first_error(which) +
               (second ? fmt::format(" (second destination: {})", share_text(*second)) : "");
    };
    const std::string errors = of_tensors(inputs, error_of);
    return !in_u
               ? errors
               : fmt::format("{}; the contract allows {} u{} (u = 2^-24 (|x0| + |x1|){})", errors,
                             verification.bound_u, in_f32 ? "" : " after rounding to nearest even",
                             inputs.rotation.attention_factor == 1.0 ? "" : " * attention factor");
}

std::string scaled_text(const TensorOps& ops) {
    return ops.store_scale_group == 0 ? "rows" : fmt::format("{} channels", ops.store_scale_group);
}

// Returns " from q8_0", " from int8 with scales of rows"; empty for elements that are not
// quantised.
std::string source_text(const TensorFile& tensor, const TensorOps& ops) {
    if (!is_quantised(tensor.element)) return "";
    return fmt::format(" from {}{}", word_for(stored_elements, tensor.element),
                       ops.scales_in != 0 ? " with scales of " + scaled_text(ops) : "");
}

// Returns the store as text: "q8_0", "int8 with scales of rows".
std::string store_text(const TensorOps& ops) {
    std::string type = word_for(stored_elements, ops.stored);
    switch (ops.store_scale) {
        case VKROPE_STORE_SCALE_NONE: return type;
        case VKROPE_STORE_SCALE_MADE: return type + " with scales of " + scaled_text(ops);
        case VKROPE_STORE_SCALE_MADE_POWER_OF_TWO:
            return type + " with powers of two as scales of " + scaled_text(ops);
        case VKROPE_STORE_SCALE_GIVEN_HEAD: return type + " times a scale of each head";
        case VKROPE_STORE_SCALE_GIVEN:
            return fmt::format("{} times {:g}", type, ops.given_scales.front());
    }
    return type;
}

// Returns ", and its input to f16"; empty if the tensor has one destination.
std::string second_text(const TensorOps& ops) {
    return !ops.has_second()
               ? ""
               : fmt::format(", {} to {}",
                             ops.second_of == VKROPE_SECOND_INPUT ? "and its input" : "and also",
                             word_for(elements, ops.second));
}

// Returns a line for each tensor that has ops other than rotating or moving.
std::string ops_lines(const OperationInputs& inputs) {
    std::string text;
    for (const TensorIndex which : every_tensor) {
        const std::optional<TensorFile>& tensor = inputs.tensors[which];
        const TensorOps& ops = inputs.ops[which];
        if (tensor && (ops.any() || ops.has_second() || ops.stored != tensor->element ||
                       is_quantised(ops.stored))) {
            text += row("ops",
                        fmt::format("{}{} to {}{}: {}", tensor_names[which].name,
                                    source_text(*tensor, ops), store_text(ops), second_text(ops),
                                    ops_text(ops, which != V && !inputs.rotation.no_rope)));
        }
    }
    return text;
}

// Returns at most ten lines, followed by the lines of the ops.
std::string text_of(const RotateOptions& options, const OperationInputs& inputs,
                    const Measured& measured, const Verification& verification) {
    std::string text = row("device", device_text(measured.device));
    const auto shape_of = [&inputs](TensorIndex which) {
        const TensorFile& tensor = *inputs.tensors[which];
        return fmt::format("{} of {}", npy::shape_text(tensor.array.header.shape),
                           word_for(stored_elements, tensor.element));
    };
    text += row("tensors", fmt::format("{}; layout {}", of_tensors(inputs, shape_of),
                                       word_for(layouts, options.layout)));
    text += row("model", model_text(inputs)) + ops_lines(inputs);
    if (!inputs.rotation.no_rope) {
        text += row("angles", fmt::format("{}, {} positions, {}",
                                          word_for(angle_sources, measured.angles.source),
                                          measured.angles.rows, bytes_text(measured.angles.bytes)));
    }
    text += row("positions",
                fmt::format("{} to {}{}", inputs.positions.lowest, inputs.positions.highest,
                            options.inverse ? ", inverse" : ""));
    if (verification.asked_for) text += row("error", error_text(inputs, verification));
    text += row("time", measured.nanoseconds ? time_text(*measured.nanoseconds, options) : "n/a");
    text += row("throughput", speed_text(bytes_per_second(measured, measured.nanoseconds)) +
                                  " (read and written; GB = 10^9 bytes)");
    if (measured.copy) {
        text += row("copy roof",
                    fmt::format("{} with shader {}; share {}",
                                speed_text(bytes_per_second(measured, measured.copy->nanoseconds)),
                                measured.copy->shader,
                                share_of_copy(measured)
                                    ? fmt::format("{:.0f} %", 100 * *share_of_copy(measured))
                                    : "n/a"));
    }
    return text + row("verdict", verdict_text(inputs, measured, verification));
}

}  // namespace

void report(const RotateOptions& options, const OperationInputs& inputs, const Measured& measured,
            const Verification& verification) {
    if (options.json)
        write_json(json_of(options, inputs, measured, verification));
    else
        write_output(text_of(options, inputs, measured, verification));
}

}  // namespace vkrope::tools
