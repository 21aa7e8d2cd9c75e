// SPDX-License-Identifier: MIT
// The third step of vkrope finish: compares every value with the definition of the steps.
#include <fmt/format.h>

#include "files/element_type.hpp"
#include "finish/finish.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

constexpr reference::NormKind norm_kind(NormKind kind) noexcept {
    return kind == VKROPE_NORM_RMS     ? reference::NormKind::rms
           : kind == VKROPE_NORM_LAYER ? reference::NormKind::layer
                                       : reference::NormKind::none;
}

/// Says what breaks the contract; empty if nothing does.
std::string breach(TensorIndex which, const reference::FinishVerdict& verdict) {
    const char* what = verdict.nan_mismatch
                           ? "a value is NaN where the exact one is not, or the reverse"
                       : verdict.bits_changed ? "a value that no step touches changed"
                       : !verdict.right()     ? "a value is too far from the exact one"
                                              : nullptr;
    return what == nullptr
               ? ""
               : fmt::format("{}: {}: {}", tensor_names[which].name, what, verdict.worst);
}

std::string breach(TensorIndex which, const reference::CodesVerdict& verdict) {
    return verdict.right() ? ""
                           : fmt::format(
                                 "{}: {} of {} codes and {} of {} scales do not "
                                 "belong to any row within the error bound: {}",
                                 tensor_names[which].name, verdict.wrong_codes, verdict.codes,
                                 verdict.wrong_scales, verdict.scales, verdict.first_wrong);
}

reference::CodesVerdict compare_codes(const FinishOptions& options, const FinishInputs& inputs,
                                      const MeasuredFinish& measured, TensorIndex which,
                                      double bound_u, const std::function<void(double)>& progress) {
    const TensorFile& tensor = *inputs.rotate.tensors[which];
    const std::vector<std::byte>& output = measured.outputs[which];
    return reference::compare_codes(
        tensor.view, tensor.view, operation_of(options.given, inputs.rotate, which),
        steps_of(inputs, which), bound_u, tensor.array.data.data(),
        quantised_store(inputs.steps[which].store),
        {reinterpret_cast<const std::uint8_t*>(output.data()), output.size()},
        measured.scales[which], progress);
}

}  // namespace

reference::QuantisedStore quantised_store(const StoreSteps& steps) {
    return {.type = reference_store(steps.type),
            .given = steps.given_scales,
            .made = is_made(steps.scale),
            .floor = steps.scale_floor,
            .power_of_two = steps.scale == VKROPE_STORE_SCALE_MADE_POWER_OF_TWO};
}

reference::Finish steps_of(const FinishInputs& inputs, TensorIndex which) {
    const TensorSteps& given = inputs.steps[which];
    const Norm& norm = given.finish.norm;
    reference::Finish steps;
    steps.bias = given.bias.values();
    steps.norm.kind = norm_kind(norm.kind);
    steps.norm.over_token = norm.span == VKROPE_NORM_SPAN_TOKEN;
    steps.norm.after = norm.place == VKROPE_NORM_PLACE_AFTER;
    steps.norm.eps = norm.eps;
    steps.norm.weight = given.weight.values();
    steps.norm.weight_offset = norm.weight_offset;
    steps.norm.bias = given.norm_bias.values();
    steps.clip = given.finish.clip;
    steps.hadamard = given.finish.hadamard;
    if (inputs.first_set_tokens != 0) {
        steps.second = {.from_token = inputs.first_set_tokens,
                        .bias = given.second_bias.values(),
                        .weight = given.second_weight.values(),
                        .norm_bias = given.second_norm_bias.values()};
    }
    if (which == Q) {
        steps.scale = inputs.q_scale;
        steps.scale_tokens.assign(inputs.q_scale_tokens.begin(), inputs.q_scale_tokens.end());
    }
    return steps;
}

FinishVerification verify(const FinishOptions& options, const FinishInputs& inputs,
                          const MeasuredFinish& measured) {
    FinishVerification verification;
    if (!options.given.verify) {
        return verification;
    }
    const double bound_u = bound_of(options.given, inputs.rotate, measured.angles);
    for (const TensorIndex which : every_tensor) {
        const std::optional<TensorFile>& tensor = inputs.rotate.tensors[which];
        if (!tensor) {
            continue;
        }
        ProgressLine progress(fmt::format("verifying {}", tensor_names[which].name));
        if (is_quantised(inputs.steps[which].store.type)) {
            const reference::CodesVerdict verdict = compare_codes(
                options, inputs, measured, which, bound_u,
                [&progress](double fraction) { progress.update(fraction); });
            if (verification.failure.empty()) {
                verification.failure = breach(which, verdict);
            }
            verification.codes[which] = verdict;
            continue;
        }
        reference::Tensor out = tensor->view;
        out.type = reference_type(inputs.steps[which].store.type);
        const reference::FinishVerdict verdict = reference::compare(
            tensor->view, out, operation_of(options.given, inputs.rotate, which),
            steps_of(inputs, which), bound_u, tensor->array.data.data(),
            measured.outputs[which].data(),
            [&progress](double fraction) { progress.update(fraction); });
        if (verification.failure.empty()) {
            verification.failure = breach(which, verdict);
        }
        verification.verdicts[which] = verdict;
    }
    verification.passed = verification.failure.empty();
    return verification;
}

}  // namespace vkrope::tools
