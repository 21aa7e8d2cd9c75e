// SPDX-License-Identifier: MIT
// The trials of the group `variants`, whose checks are in variants.cpp and mappings.cpp.
#pragma once

#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {

// Runs the trial with each kind of access, out of place and, if allowed, in place.
void run_each_access(Test& test, Trial trial);

// Returns Q and K with the same window and `around` more channels, half of them before it.
Trial two_tensors(Element element, std::uint32_t rotary_dim, std::uint32_t around = 0,
                  Pairing pairing = VKROPE_HALF_SPLIT);

enum class Turn { interleaved, unaligned, whole_units };

void turn_by_axes(Trial& trial, Turn turn);

// Adds the checks of mappings.cpp.
void add_mappings(Checks& checks);

}  // namespace vkrope::conformance
