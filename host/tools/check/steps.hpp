// SPDX-License-Identifier: MIT
// Judges another engine's norms, bias, clip and scale around the rotation, its Hadamard transform
// and its quantised store: every known mistake is the definition of the steps with one change, and
// the output is compared with each.
#pragma once

#include "check/codes.hpp"
#include "check/judge.hpp"
#include "reference/finish.hpp"

namespace vkrope::tools {

/// One tensor and the output of an engine.
struct StepsEvidence {
    Evidence rotation;                   // V: the rotation that it must not have
    reference::Finish steps;             // the correct ones
    bool rotates = true;                 // false: V
    std::optional<StoredOutput> stored;  // if it is quantised: instead of rotation.output
};

/// The comparison of an output with the definition, or with it and one change.
struct StepsMatch {
    std::string mistake, meaning;  // as Match; empty: the correct steps
    /// Share of the elements that are within the error that f32 arithmetic may have; of a quantised
    /// output, of the codes and scales that a row within this error can have.
    double share_within = 0;
    /// Largest |actual - exact|, as a share of the largest |exact| of the same head row. Infinite
    /// if one of the two is NaN. Of a quantised output, the largest distance of a code from what it
    /// may be, as a share of the largest code, or of a scale, as a share of the scale.
    double largest_error = 0;
    bool explains = false;  // all elements are within that error
    /// The largest error is within the tolerance. Of a quantised output: scales are, no code is
    /// more than one off, and the share of codes that are is at most min(0.25, tolerance * the
    /// largest code).
    bool nearly = false;
    std::string worst;                         // as Verdict::worst; empty if it explains
    bool precision = false, measured = false;  // as Match
};

struct StepsJudgement {
    Outcome outcome = Outcome::unexplained;
    StepsMatch right;
    std::uint64_t elements = 0;
    bool quantised = false;
    std::vector<std::size_t> odd_pairs;  // as Judgement
    std::uint64_t pairs = 0;
    std::vector<StepsMatch> matches;  // best first
};

/// progress  called with the fraction done, 0 to 1
StepsJudgement judge_steps(const StepsEvidence& evidence, const Limits& limits,
                           const std::function<void(double)>& progress = {});

}  // namespace vkrope::tools
