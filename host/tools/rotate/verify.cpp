// SPDX-License-Identifier: MIT
// The third step of vkrope rotate: compares every value with the definition of the operation.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "cli/terminal.hpp"
#include "io/element_type.hpp"
#include "meaning.hpp"
#include "rotate/rotate.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::tools {
namespace {

constexpr oracle::NormKind norm_kind(NormKind kind) noexcept {
    return kind == VKROPE_NORM_RMS     ? oracle::NormKind::rms
           : kind == VKROPE_NORM_LAYER ? oracle::NormKind::layer
                                       : oracle::NormKind::none;
}

/// Returns what breaks the contract; empty if nothing does.
std::string breach(TensorIndex which, const oracle::Verdict& verdict, double bound_u) {
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

std::string breach(TensorIndex which, const oracle::OpsVerdict& verdict) {
    const char* what = verdict.nan_mismatch
                           ? "a value is NaN where the exact one is not, or the reverse"
                       : verdict.bits_changed ? "a value that no step touches changed"
                       : !verdict.right()     ? "a value is too far from the exact one"
                                              : nullptr;
    return what == nullptr
               ? ""
               : fmt::format("{}: {}: {}", tensor_names[which].name, what, verdict.worst);
}

std::string breach(TensorIndex which, const oracle::CodesVerdict& verdict) {
    return verdict.right() ? ""
                           : fmt::format(
                                 "{}: {} of {} codes and {} of {} scales do not "
                                 "belong to any row within the error bound: {}",
                                 tensor_names[which].name, verdict.wrong_codes, verdict.codes,
                                 verdict.wrong_scales, verdict.scales, verdict.first_wrong);
}

}  // namespace

oracle::Operation operation_of(const RotateOptions& options, const RotateInputs& inputs,
                               TensorIndex which) {
    oracle::Operation operation;
    operation.positions = expanded(inputs.positions, inputs.batch, inputs.tokens);
    if (which == V) {
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
            return oracle::CosSin{std::cos(angle), std::sin(angle)};
        };
    }
    return operation;
}

FurtherAxes further_of(const RotateInputs& inputs, TensorIndex which) {
    return which == V
               ? FurtherAxes{}
               : further_axes(inputs.rotation, inputs.positions, inputs.batch, inputs.tokens);
}

double bound_of(const RotateOptions& options, const RotateInputs& inputs,
                const AngleTableLayout& angles) {
    const double factor = inputs.rotation.attention_factor;
    return error_bound(angles.source, factor) + (options.float32_angles && factor != 1 ? 1.5 : 0);
}

oracle::Ops ops_of(const RotateInputs& inputs, TensorIndex which) {
    const TensorOps& given = inputs.ops[which];
    const Norm& norm = given.norm;
    const auto& [first, second] = given.parameters;
    oracle::Ops ops;
    ops.bias = first[parameter_bias].values();
    ops.norm.kind = norm_kind(norm.kind);
    ops.norm.over_token = norm.span == VKROPE_NORM_SPAN_TOKEN;
    ops.norm.after = norm.place == VKROPE_NORM_PLACE_AFTER;
    ops.norm.eps = norm.eps;
    ops.norm.weight = first[parameter_weight].values();
    ops.norm.weight_offset = norm.weight_offset;
    ops.norm.bias = first[parameter_norm_bias].values();
    ops.clip = given.clip;
    ops.hadamard = given.hadamard;
    if (inputs.first_set_tokens != 0) {
        ops.second = {.from_token = inputs.first_set_tokens,
                      .bias = second[parameter_bias].values(),
                      .weight = second[parameter_weight].values(),
                      .norm_bias = second[parameter_norm_bias].values()};
    }
    if (which == Q) {
        ops.scale = inputs.q_scale;
        ops.scale_tokens.assign(inputs.q_scale_tokens.begin(), inputs.q_scale_tokens.end());
    }
    return ops;
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
        if (!inputs.tensors[which]) {
            continue;
        }
        const TensorFile& tensor = *inputs.tensors[which];
        const TensorOps& ops = inputs.ops[which];
        const std::vector<std::byte>& output = measured.outputs[which];
        oracle::Operation operation = by_axis(operation_of(options, inputs, which),
                                              further_of(inputs, which));
        // A device does not report whether it flushes subnormal numbers, so every device gets the
        // allowance for flushing.
        operation.absolute_allowance = oracle::flushing_allowance(operation);
        const void* input = tensor.array.data.data();
        ProgressLine line(fmt::format("verifying {}", tensor_names[which].name));
        const auto progress = [&line](double fraction) { line.update(fraction); };
        const auto keep = [&verification, which](auto& verdicts, const auto& verdict,
                                                 const std::string& failure) {
            verdicts[which] = verdict;
            if (verification.failure.empty()) {
                verification.failure = failure;
            }
        };
        if (is_quantised(ops.stored)) {
            const oracle::CodesVerdict verdict = oracle::compare_codes(
                tensor.view, tensor.view, operation, ops_of(inputs, which), verification.bound_u,
                input, quantised_store(ops),
                {reinterpret_cast<const std::uint8_t*>(output.data()), output.size()},
                measured.scales[which], progress);
            keep(verification.codes, verdict, breach(which, verdict));
            continue;
        }
        oracle::Tensor out = tensor.view;
        out.type = verify::type_of(ops.stored);
        if (inputs.ops[which].any()) {
            const oracle::OpsVerdict verdict = oracle::compare(
                tensor.view, out, operation, ops_of(inputs, which), verification.bound_u, input,
                output.data(), progress);
            keep(verification.ops, verdict, breach(which, verdict));
        } else {
            const oracle::Verdict verdict = oracle::compare(tensor.view, out, operation, input,
                                                            output.data(), progress);
            keep(verification.verdicts, verdict, breach(which, verdict, verification.bound_u));
        }
    }
    verification.passed = verification.failure.empty();
    return verification;
}

}  // namespace vkrope::tools
