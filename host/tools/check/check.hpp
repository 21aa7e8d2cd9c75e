// SPDX-License-Identifier: MIT
// The steps of vkrope check: read and check everything, compare, report.
#pragma once

#include <optional>

#include "check/judge.hpp"
#include "operation/operation.hpp"

namespace vkrope::tools {

// An engine's output of a tensor, and the verdict on it.
struct Judged {
    TensorFile actual;
    Judgement judgement;
};

struct CheckResult {
    OfEachTensor<std::optional<Judged>> tensors;
    Limits limits;

    // The tensor that decides the verdict: the worst tensor, or the first of equally bad ones.
    TensorIndex deciding() const;
};

// Returns the definition of a tensor for any engine, which may take its angles from any source.
// Q and K need not be given.
//
// operation  from operation_of() of the inputs
Hypothesis definition_for_engines(const OperationInputs& inputs, const verify::Operation& operation,
                                  TensorIndex which);

// Prints the report to stdout, as text or as JSON.
void report(const CheckResult& result, bool as_json);

// Prints each mistake that check names, in the order of reports.
void list_mistakes(bool as_json);

}  // namespace vkrope::tools
