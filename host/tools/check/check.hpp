// SPDX-License-Identifier: MIT
// Steps of vkrope check: read and check everything, judge, report.
#pragma once

#include <optional>

#include "check/judge.hpp"
#include "rotate/rotate.hpp"

namespace vkrope::tools {

/// A tensor's output of the engine, and its judgement.
struct Judged {
    TensorFile actual;
    Judgement judgement;
};

struct CheckResult {
    OfEachTensor<std::optional<Judged>> tensors;
    Limits limits;

    /// The tensor that decides: the worst one, the first of those that are equally bad.
    TensorIndex deciding() const;
};

/// Prints the report to stdout, as text or as JSON.
void report(const CheckResult& result, bool as_json);

}  // namespace vkrope::tools
