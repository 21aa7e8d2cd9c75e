// SPDX-License-Identifier: MIT
// What an output says of each pair of channels: how far it was turned beyond the right angle, by
// which factor, and how far it is off. (The mistakes whose values come from it: attempts.hpp.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "check/judge.hpp"

namespace vkrope::tools {

/// The pairs whose errors rounding cannot explain; empty if there are none. Rounding errors grow
/// with the angle: the products of position and frequency have them, and in pairs that hardly turn
/// cos is 1. So errors are no rounding
/// - in pairs that err by far more in proportion to their angle than the others do;
/// - in all wrong pairs if several pairs that turn farther are right, or if errors are larger than
///   rounding of f32 makes them and pairs are right that rounding of 16 bits would show.
///
/// pairs  receives the number of pairs of a row
std::vector<std::size_t> odd_pairs(const Evidence& evidence, double bound_u, std::uint64_t& pairs);

}  // namespace vkrope::tools
