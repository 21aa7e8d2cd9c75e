// SPDX-License-Identifier: MIT
// What the oracle says of a trial's output.
#pragma once

#include "conformance/builtin/trial_memory.hpp"

namespace vkrope::conformance {

/// Returns the position axis of pair j, as types.hpp defines it.
std::uint32_t axis_turning(const Sections& sections, std::uint32_t j);

/// The operation on Q or K.
reference::Operation operation_of(const Trial& trial, const HeadFormat& width, bool flushes);

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
