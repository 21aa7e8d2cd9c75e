// SPDX-License-Identifier: MIT
// The first step: reads each pair of channels before the rotation and in the engine's output, with
// the ops after the rotation undone. The engine turned the pair by the angle between the two.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <vector>

#include "check/compare.hpp"
#include "check/hypothesis.hpp"

namespace vkrope::tools {

// The pairs of some rows as complex numbers x0 + i x1, [rows, pairs].
struct SeenPairs {
    struct Row {
        std::uint64_t token = 0;  // index into [batch, tokens]
        std::uint64_t sequence = 0, head = 0;
        std::size_t group = 0;  // head group, see Operation::head_groups
    };
    std::vector<Row> rows;  // ascending tokens
    std::size_t pairs = 0;  // of a row
    std::vector<std::complex<double>> before, after;
    // Sums of squares over the channels that belong to no pair: of the output, and of its
    // distance from the input.
    double still = 0, still_distance = 0;

    const std::complex<double>* before_of(std::size_t row) const { return &before[row * pairs]; }
    const std::complex<double>* after_of(std::size_t row) const { return &after[row * pairs]; }
};

// Reads the pairs where the hypothesis places them, with its ops around the rotation; its angles
// do not matter. Returns none if the ops after the rotation cannot be undone.
//
// rows  as in compare()
std::optional<SeenPairs> see_pairs(const Observation& observation, const Hypothesis& hypothesis,
                                   const Sample& sample, const std::vector<bool>& rows = {});

// Returns the share of the output's energy that no rotation of these pairs by any angles, with any
// one factor, gives: 0 if they turn as pairs.
double misfit_of_pairs(const SeenPairs& seen);

}  // namespace vkrope::tools
