// SPDX-License-Identifier: MIT
// vkrope check, in its steps: read and check everything, judge, report.
#pragma once

#include <optional>
#include <string>

#include "check/judge.hpp"
#include "rotate/rotate.hpp"

namespace vkrope::tools {

struct CheckOptions {
    RotateOptions given;  // what the other engine was given: model, tensors, positions, operation
    std::string actual, actual_k;  // what it made of Q and of K; paths; empty: not given
    std::optional<double> tolerance;
    bool json = false;
};

/// Q or K: what went in and what came out.
struct Judged {
    TensorFile actual;
    Judgement judgement;
};

struct CheckResult {
    RotateInputs inputs;
    std::optional<Judged> q, k;
    Limits limits;
};

/// The one that decides: what is worst, and Q where both are as bad.
const Judged& deciding(const CheckResult& result);

/// On stdout, as text or as JSON.
void report(const CheckOptions& options, const CheckResult& result);

}  // namespace vkrope::tools
