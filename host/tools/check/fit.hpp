// SPDX-License-Identifier: MIT
// The second step: computes how well the angles of a hypothesis fit the pairs that were seen, and
// finds the integer positions that fit best.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <vector>

#include "check/hypothesis.hpp"
#include "check/observe.hpp"

namespace vkrope::tools {

using AxesOfPositions = std::vector<const Positions*>;
AxesOfPositions axes_of(const Hypothesis& hypothesis);

// Cos and sin of each pair of a token as complex numbers, without the attention factor.
class Turns {
   public:
    // axes  replace the positions of the hypothesis
    Turns(const Hypothesis& hypothesis, AxesOfPositions axes);

    // Returns [head_groups, pairs], valid until the next call.
    const std::vector<std::complex<double>>& of(std::uint64_t token);

   private:
    const Hypothesis& hypothesis_;
    std::size_t pairs_;
    AxesOfPositions axes_;
    std::vector<std::uint32_t> axis_;  // [pairs]
    std::vector<std::int64_t> at_;     // positions of turns_
    std::vector<std::complex<double>> turns_;
};

// misfit  the share of the output's energy in pairs that the angles and one factor do not explain
// factor  the factor that fits best
struct Fit {
    double misfit = 1, factor = 1;
};

// Gives up early, with a large misfit, where the first rows fit badly.
//
// axes  replace the positions of the hypothesis
Fit fit_of(const SeenPairs& seen, const Hypothesis& hypothesis, const AxesOfPositions& axes);

using FoundPositions = std::vector<Positions>;  // [axes][batch, tokens]

// Finds the integer position of every token on every axis; tokens that were not seen keep those of
// the hypothesis. Returns none if fewer than six pairs of different speed show a position, if a
// token fits no position of the model's length, or if neighbouring positions fit nearly as well.
//
// length   the positions of the model are below it
// quickly  refines the position that the slowest pairs show, and tries few others
using FindPositions = std::optional<FoundPositions>(const SeenPairs& seen,
                                                    const Hypothesis& hypothesis,
                                                    std::int64_t length, bool quickly);
FindPositions find_positions;

// The same with one offset of each axis for all tokens, which rounded outputs show, too.
FindPositions find_offset;

// The same with one position on each axis for all tokens.
FindPositions find_one_position;

// Finds the axis by which each pair turns. Returns none if there are not several axes, or if all
// pairs turn by the right ones.
std::optional<std::vector<std::uint32_t>> find_axes(const SeenPairs& seen,
                                                    const Hypothesis& hypothesis);

}  // namespace vkrope::tools
