// SPDX-License-Identifier: MIT
// Judges another engine's norms, bias, clip and scale around the rotation, its Hadamard transform
// and its quantised store: every known mistake is the definition of the steps with one change, and
// the output is compared with each.
#pragma once

#include "check/codes.hpp"
#include "check/judge.hpp"
#include "verify/oracle/ops.hpp"

namespace vkrope::tools {

/// One tensor and the output of an engine.
struct StepsEvidence {
    Evidence rotation;                   // V: the rotation that it must not have
    oracle::Ops steps;                   // the correct ones
    bool rotates = true;                 // false: V
    std::optional<StoredOutput> stored;  // if it is quantised: instead of rotation.output
};

/// progress  called with the fraction done, 0 to 1
Judgement judge_steps(const StepsEvidence& evidence, const Limits& limits,
                      const std::function<void(double)>& progress = {});

}  // namespace vkrope::tools
