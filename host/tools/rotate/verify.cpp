// SPDX-License-Identifier: MIT
// The third step of vkrope rotate: compares every value with the definition of the operation.
#include <fmt/format.h>

#include "cli/terminal.hpp"
#include "rotate/rotate.hpp"

namespace vkrope::tools {

Verification verify(const RotateOptions& options, const OperationInputs& inputs,
                    const Measured& measured) {
    const verify::Operation& operation = measured.operation;
    Verification verification;
    verification.bound_u = inputs.rotation.no_rope ? 0 : verify::bound_of(operation);
    verification.asked_for = options.verify;
    if (!options.verify) return verification;
    const std::byte* memory = operation.memory.data();
    for (const TensorIndex which : every_tensor) {
        if (!inputs.tensors[which]) continue;
        if (elements_of(*inputs.tensors[which]) == 0) {
            verification.verdicts[which] = {{}, inputs.ops[which].any()};
            continue;
        }
        const auto compare = [&](const oracle::Definition& definition, std::size_t output,
                                 const std::vector<float>& scales, const char* what) {
            ProgressLine line(fmt::format("verifying {}{}", what, tensor_names[which].name));
            const oracle::Verdict verdict = oracle::compare(
                definition, memory + operation.call.in[which].where.offset, memory + output, scales,
                [&line](double fraction) { line.update(fraction); });
            if (verification.failure.empty() && !verdict.right())
                verification.failure = fmt::format("{}{}: {}", what, tensor_names[which].name,
                                                   oracle::problem_of(definition, verdict));
            return verdict;
        };
        // A device does not report whether it flushes subnormal numbers, so every device gets the
        // allowance for flushing.
        const oracle::Definition definition = verify::definition_of(operation, which, true);
        auto& verdicts = verification.verdicts[which];
        verdicts = {compare(definition, operation.call.out[which].where.offset,
                            verify::made_scales(operation, which, operation.memory), ""),
                    oracle::has_steps(definition.ops)};
        const std::string change = verify::change_of_kept(operation, which, operation.memory);
        if (verification.failure.empty() && !change.empty())
            verification.failure = fmt::format("{}: {}", tensor_names[which].name, change);
        if (verify::has_second(operation, which)) {
            verdicts->second = compare(verify::second_definition_of(operation, which, true),
                                       operation.call.second[which].offset, {},
                                       "second destination of ");
        }
    }
    verification.passed = verification.failure.empty();
    return verification;
}

}  // namespace vkrope::tools
