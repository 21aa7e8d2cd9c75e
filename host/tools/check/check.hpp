// SPDX-License-Identifier: MIT
// Steps of vkrope check: read and check everything, judge, report.
#pragma once

#include <optional>
#include <string>

#include "check/judge.hpp"
#include "rotate/rotate.hpp"

namespace vkrope::tools {

struct CheckOptions {
    RotateOptions given;  // input of the other engine: model, tensors, positions, operation
    std::string actual, actual_k;  // paths of its Q and K outputs; empty: not given
    std::optional<double> tolerance;
    bool json = false;
};

/// Q or K: the output of the engine and its judgement.
struct Judged {
    TensorFile actual;
    Judgement judgement;
};

struct CheckResult {
    RotateInputs inputs;
    std::optional<Judged> q, k;
    Limits limits;
};

/// Returns the deciding tensor: the worse one, or Q if both are equally bad.
const Judged& deciding(const CheckResult& result);

/// Prints the report to stdout, as text or as JSON.
void report(const CheckOptions& options, const CheckResult& result);

}  // namespace vkrope::tools
