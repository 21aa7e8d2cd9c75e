// SPDX-License-Identifier: MIT
// The third step of vkrope rotate: compares every value with the definition of the operation.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "rotate/definition.hpp"
#include "rotate/rotate.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

/// Says what breaks the contract; empty if nothing does.
std::string breach(TensorIndex which, const reference::Verdict& verdict, double bound_u) {
    const char* name = tensor_names[which].name;
    if (which == V) {
        return verdict.bits_changed
                   ? fmt::format("{}: a value differs from its input: {}", name, verdict.worst)
                   : "";
    }
    const char* what = breach_of(verdict, bound_u);
    return what == nullptr ? ""
                           : fmt::format("{}: {} ({:.3g} u, allowed {} u): {}", name, what,
                                         verdict.largest_error_u, bound_u, verdict.worst);
}

}  // namespace

reference::Operation operation_of(const RotateOptions& options, const RotateInputs& inputs,
                                  TensorIndex which) {
    reference::Operation operation;
    // A device does not report whether it flushes subnormal numbers, so every device gets the
    // allowance for flushing.
    operation.absolute_allowance = 0x1p-123 + 0x1p-148;
    if (which == V) {
        operation.positions.assign(std::size_t{inputs.batch} * inputs.tokens, 0);
        return operation;
    }
    operation.interleaved = inputs.rotation.pairing == VKROPE_INTERLEAVED;
    operation.inverse = options.inverse;
    operation.rotary_offset = which == Q ? inputs.rotation.q_rotary_offset
                                         : inputs.rotation.k_rotary_offset;
    set_angles(inputs.rotation, operation);
    if (options.float32_angles) {
        operation.cos_sin = [&inv_freq = inputs.rotation.inv_freq](std::int64_t position,
                                                                   std::size_t pair) {
            const long double angle = static_cast<float>(position) *
                                      static_cast<float>(inv_freq[pair]);
            return reference::CosSin{std::cos(angle), std::sin(angle)};
        };
    }
    operation.positions = expanded(inputs.positions, inputs.batch, inputs.tokens);
    return by_axis(std::move(operation),
                   further_axes(inputs.rotation, inputs.positions, inputs.batch, inputs.tokens));
}

double bound_of(const RotateOptions& options, const RotateInputs& inputs, const AnglePlan& angles) {
    const double factor = inputs.rotation.attention_factor;
    return error_bound(angles.source, factor) + (options.float32_angles && factor != 1 ? 1.5 : 0);
}

Verification verify(const RotateOptions& options, const RotateInputs& inputs,
                    const Measured& measured) {
    Verification verification;
    verification.bound_u = bound_of(options, inputs, measured.angles);
    verification.asked_for = options.verify;
    if (!options.verify) {
        return verification;
    }
    for (const TensorIndex which : every_tensor) {
        const std::optional<TensorFile>& tensor = inputs.tensors[which];
        if (!tensor) {
            continue;
        }
        ProgressLine progress(fmt::format("verifying {}", tensor_names[which].name));
        const reference::Verdict verdict = reference::compare(
            tensor->view, operation_of(options, inputs, which), tensor->array.data.data(),
            measured.outputs[which].data(),
            [&progress](double fraction) { progress.update(fraction); });
        if (verification.failure.empty()) {
            verification.failure = breach(which, verdict, verification.bound_u);
        }
        verification.verdicts[which] = verdict;
    }
    verification.passed = verification.failure.empty();
    return verification;
}

}  // namespace vkrope::tools
