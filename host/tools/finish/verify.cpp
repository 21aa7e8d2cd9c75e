// SPDX-License-Identifier: MIT
// The third step of vkrope finish: compares every value with the definition of the steps.
#include <fmt/format.h>

#include "files/element_type.hpp"
#include "finish/finish.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

constexpr reference::NormKind norm_kind(NormKind kind) noexcept {
    return kind == NormKind::rms     ? reference::NormKind::rms
           : kind == NormKind::layer ? reference::NormKind::layer
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

}  // namespace

reference::Finish steps_of(const FinishInputs& inputs, TensorIndex which) {
    const TensorSteps& given = inputs.steps[which];
    const Norm& norm = given.finish.norm;
    reference::Finish steps;
    steps.bias = given.bias.values();
    steps.norm.kind = norm_kind(norm.kind);
    steps.norm.over_token = norm.span == NormSpan::token;
    steps.norm.after = norm.place == NormPlace::after;
    steps.norm.eps = norm.eps;
    steps.norm.weight = given.weight.values();
    steps.norm.weight_offset = norm.weight_offset;
    steps.norm.bias = given.norm_bias.values();
    steps.clip = given.finish.clip;
    if (which == Q) {
        steps.scale = inputs.q_scale;
        steps.scale_tokens.assign(inputs.q_scale_tokens.begin(), inputs.q_scale_tokens.end());
    }
    return steps;
}

FinishVerification verify(const FinishOptions& options, const FinishInputs& inputs,
                          const Measured& measured) {
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
        reference::Tensor out = tensor->view;
        out.type = reference_type(inputs.store);
        ProgressLine progress(fmt::format("verifying {}", tensor_names[which].name));
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
