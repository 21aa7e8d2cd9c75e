// SPDX-License-Identifier: MIT
// The trials of the group values, which is in two files: values.cpp and value_limits.cpp.
#pragma once

#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {

/// Random bits, including values that a conversion to a number might change: zeros of either sign,
/// subnormals, infinities, quiet and signalling NaNs with a payload.
Bytes values_of(Element element, std::size_t count, std::uint32_t seed);

/// Q and K with `head_dim` channels, `rotary_dim` of them rotated from channel `offset` on, and V
/// with the same head_dim.
Trial three_tensors(Element element, std::uint32_t head_dim, std::uint32_t rotary_dim,
                    std::uint32_t offset, Mapping mapping);

/// Every channel is rotated: on a GPU each lane that has a step of K also has one of V.
Trial whole_rows(Element element, Mapping mapping);

/// V has more steps than the rotated ones of K, and an odd number of 16-byte units.
Trial partial_rows(Element element, Mapping mapping);

enum class Dispatch { of_k, of_its_own };

/// Runs the trial with values_of() as V, and checks which dispatch moves V.
Rotated run_as(Test& test, Trial trial, Dispatch dispatch);

/// Runs the trial with each kind of access.
void run_each_access(Test& test, Trial trial, Dispatch dispatch);

const char* device_of(Mapping mapping);

/// If the device binds few storage buffers, V has its own dispatch; with still fewer, Q and K have
/// separate ones too.
void add_few_storage_buffers(Checks& checks);

/// Calls that the device can only run in parts.
void add_cuts(Checks& checks);

}  // namespace vkrope::conformance
