// SPDX-License-Identifier: MIT
// Judges another engine's norms, bias, clip and scale around the rotation: every known mistake is
// the definition of the steps with one change, and the output is compared with each.
#pragma once

#include "check/judge.hpp"
#include "reference/finish.hpp"

namespace vkrope::tools {

/// One tensor and the output of an engine.
struct StepsEvidence {
    Evidence rotation;        // V: the rotation that it must not have
    reference::Finish steps;  // the correct ones
    bool rotates = true;      // false: V
};

/// The comparison of an output with the definition, or with it and one change.
struct StepsMatch {
    std::string mistake, meaning;  // as Match; empty: the correct steps
    double share_within = 0;       // of the elements, within the error that f32 arithmetic may have
    /// Largest |actual - exact|, as a share of the largest |exact| of the same head row. Infinite
    /// if one of the two is NaN.
    double largest_error = 0;
    bool explains = false;  // all elements are within that error
    bool nearly = false;    // the largest error is within the tolerance
    std::string worst;      // as Verdict::worst; empty if it explains
};

struct StepsJudgement {
    Outcome outcome = Outcome::unexplained;
    StepsMatch right;
    std::uint64_t elements = 0;
    std::vector<StepsMatch> matches;  // best first
};

/// progress  called with the fraction done, 0 to 1
StepsJudgement judge_steps(const StepsEvidence& evidence, const Limits& limits,
                           const std::function<void(double)>& progress = {});

}  // namespace vkrope::tools
