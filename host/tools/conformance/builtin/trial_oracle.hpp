// SPDX-License-Identifier: MIT
// What the oracle says of a trial's output.
#pragma once

#include "conformance/builtin/trial_memory.hpp"

namespace vkrope::conformance {

/// Returns the position axis of pair j, as vkrope.h defines it; 0 if axes are summed.
std::uint32_t axis_turning(const Sections& sections, std::uint32_t j);

/// cos and sin of a trial's angles by their definition, without the attention factor.
class ExactAngles {
   public:
    /// positions  [axes, batch, tokens]; both outlive it
    ExactAngles(const Trial& trial, const std::vector<std::int64_t>& positions);

    /// `pair` counts [head groups, pairs].
    reference::CosSin at(std::size_t token, std::size_t pair) const;

   private:
    const Trial& trial_;
    const std::vector<std::int64_t>& positions_;
    std::size_t pairs_;
    std::uint32_t summed_;
    std::vector<double> inv_freq_;
};

/// The operation on Q or K.
reference::Operation operation_of(const Trial& trial, const TensorInfo& width, bool flushes);

/// The operation on V, which rotates nothing.
reference::Operation move_of(const Trial& trial);

/// Holds an output to the bound of the contract, and adds to `outside` the tokens whose position or
/// slot is out of range. With one axis, the oracle runs once for all tokens; with several, once per
/// token, with the positions of each pair.
void hold_against_oracle(const Trial& trial, reference::Operation operation,
                         const std::vector<std::int64_t>& positions, const TensorRows& tensor,
                         const Memory& memory, char name, Findings& findings,
                         std::uint64_t& outside);

}  // namespace vkrope::conformance
