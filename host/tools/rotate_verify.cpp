// SPDX-License-Identifier: MIT
// The third step of vkrope rotate: every value against the definition of the operation.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "definition.hpp"
#include "rotate.hpp"
#include "terminal.hpp"

namespace vkrope::tools {
namespace {

reference::Operation operation_of(const RotateOptions& options, const RotateInputs& inputs) {
    reference::Operation operation;
    operation.interleaved = inputs.rotation.pairing == Pairing::interleaved;
    operation.inverse = options.inverse;
    operation.inv_freq = inputs.rotation.inv_freq;
    operation.attention_factor = inputs.rotation.attention_factor;
    // A device does not say whether it flushes subnormal numbers, so all get the allowance of one that does.
    operation.absolute_allowance = 0x1p-123 + 0x1p-148;
    if (options.float32_angles) {
        operation.cos_sin = [&inv_freq = inputs.rotation.inv_freq](std::int64_t position, std::size_t pair) {
            const long double angle = static_cast<float>(position) * static_cast<float>(inv_freq[pair]);
            return reference::CosSin{std::cos(angle), std::sin(angle)};
        };
    }
    operation.positions = expanded(inputs.positions, inputs.batch, inputs.tokens);
    return by_axis(std::move(operation), further_axes(inputs.rotation.sections, inputs.positions, inputs.batch, inputs.tokens));
}

/// What breaks the contract, or nothing.
std::string breach(const char* name, const reference::Verdict& verdict, double bound_u) {
    const char* what = breach_of(verdict, bound_u);
    return what == nullptr
               ? ""
               : fmt::format("{}: {} ({:.3g} u, allowed {} u): {}", name, what, verdict.largest_error_u, bound_u, verdict.worst);
}

}  // namespace

Verification verify(const RotateOptions& options, const RotateInputs& inputs, const Measured& measured) {
    Verification verification;
    const double factor = inputs.rotation.attention_factor;
    verification.bound_u = error_bound(measured.angles.source, factor) + (options.float32_angles && factor != 1 ? 1.5 : 0);
    verification.asked_for = options.verify;
    if (!options.verify) {
        return verification;
    }
    reference::Operation operation = operation_of(options, inputs);
    const auto compare = [&](const char* name, const TensorFile& tensor, std::uint64_t offset,
                             const std::vector<std::byte>& output) {
        ProgressLine progress(fmt::format("verifying {}", name));
        operation.rotary_offset = offset;
        const reference::Verdict verdict = reference::compare(tensor.view, operation, tensor.array.data.data(), output.data(),
                                                              [&progress](double fraction) { progress.update(fraction); });
        if (verification.failure.empty()) {
            verification.failure = breach(name, verdict, verification.bound_u);
        }
        return verdict;
    };
    if (inputs.q) {
        verification.q = compare("Q", *inputs.q, inputs.rotation.q_rotary_offset, measured.q);
    }
    if (inputs.k) {
        verification.k = compare("K", *inputs.k, inputs.rotation.k_rotary_offset, measured.k);
    }
    verification.passed = verification.failure.empty();
    return verification;
}

}  // namespace vkrope::tools
