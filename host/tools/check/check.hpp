// SPDX-License-Identifier: MIT
// Steps of vkrope check: read and check everything, judge, report.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "check/judge.hpp"
#include "check/steps.hpp"
#include "rotate/rotate.hpp"

namespace vkrope::tools {

struct CheckOptions {
    RotateOptions given;  // what the other engine was meant to do: model, tensors, operation, steps
    OfEachTensor<std::string> actual;  // paths of its outputs; empty: not given
    std::optional<double> tolerance;
    bool json = false;
};

/// Q or K: the output of the engine and its judgement.
struct Judged {
    TensorFile actual;
    Judgement judgement;
};

/// The judgement of a tensor with steps around its rotation.
struct JudgedSteps {
    TensorFile actual;
    StepsJudgement judgement;
};
using StepsResult = OfEachTensor<std::optional<JudgedSteps>>;

struct CheckResult {
    RotateInputs inputs;
    std::optional<Judged> q, k;
    Limits limits;
};

/// Returns the deciding tensor: the worse one, or Q if both are equally bad.
const Judged& deciding(const CheckResult& result);

/// Returns the word of the report, "pass".
const char* word_of(Outcome outcome);

/// Returns a share as text, rounded down: only 1 is "100.00 %".
std::string percent(double share);

/// The pairs that hold everything wrong, or null.
nlohmann::ordered_json pairs_json(const std::vector<std::size_t>& odd_pairs);

/// Says in a line that they do; empty if there are none.
std::string odd_text(const std::vector<std::size_t>& odd_pairs, std::uint64_t pairs);

/// Prints the report on steps to stdout, as text or as JSON.
void report(const CheckOptions& options, const Limits& limits, const StepsResult& result);

/// Prints the report to stdout, as text or as JSON.
void report(const CheckOptions& options, const CheckResult& result);

}  // namespace vkrope::tools
