// SPDX-License-Identifier: MIT
// Turns a tuple into pieces of memory, a call, and an operation of the oracle.
#pragma once

#include "runner.hpp"

namespace vkrope::test {

/// Takes what the call needs from `memory` and fills its inputs.
PreparedCall prepare(const Numbers& numbers, const Tuple& tuple, Memory& memory, Random& random);

Call call_of(const Numbers& numbers, const PreparedCall& prepared,
             const VkDescriptorBufferInfo& buffer, const AngleTable& table);

oracle::Operation operation_of(const Numbers& numbers, const PreparedCall& prepared,
                               const AngleTableLayout& plan, bool key);

/// What an element may be off absolutely: some of the devices flush subnormals.
inline constexpr double flushed_allowance = 0x1p-148 + 0x1p-123;

/// The attention factor of tuples that have one.
inline constexpr double some_factor = 1.2079441541679836;  // 0.1 ln 8 + 1: YaRN's for a factor of 8

/// The rotation that the angle tables of the sweep are filled for.
RopeParams rotation_of(const Numbers& numbers, bool factor);

}  // namespace vkrope::test
