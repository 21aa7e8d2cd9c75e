// SPDX-License-Identifier: MIT
// The trials of the group `values`, whose checks are in values.cpp and value_limits.cpp.
#pragma once

#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {

// Returns random bits, including values that a conversion to a number might change: zeros of
// either sign, subnormals, infinities, quiet and signalling NaNs with a payload.
Bytes values_of(Element element, std::size_t count, std::uint32_t seed);

// Returns Q and K with `head_dim` channels, of which `rotary_dim` from channel `offset` on are
// rotated, and V with the same head_dim.
Trial three_tensors(Element element, std::uint32_t head_dim, std::uint32_t rotary_dim,
                    std::uint32_t offset, Mapping mapping);

// Rotates every channel: on a GPU, each lane with a step of K also has a step of V.
Trial whole_rows(Element element, Mapping mapping);

// Gives V more steps than K has rotated steps, and an odd number of 16-byte units.
Trial partial_rows(Element element, Mapping mapping);

enum class Dispatch { of_k, of_its_own };

// Runs the trial with values_of() as V, and checks which dispatch moves V.
Rotated run_as(Test& test, Trial trial, Dispatch dispatch);

// Runs the trial with each kind of access.
void run_each_access(Test& test, Trial trial, Dispatch dispatch);

const char* device_of(Mapping mapping);

// Checks that V has a separate dispatch if the device binds few storage buffers, and that Q and K
// have separate dispatches too if it binds still fewer.
void add_few_storage_buffers(Checks& checks);

// Checks calls that the device can only run in parts.
void add_cuts(Checks& checks);

}  // namespace vkrope::conformance
