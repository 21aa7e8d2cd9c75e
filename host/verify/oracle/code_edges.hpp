// SPDX-License-Identifier: MIT
// The numbers at which the code of a quantised type changes, for tests of devices.
#pragma once

#include "verify/oracle/quantise.hpp"

namespace vkrope::oracle {

/// The largest magnitude of a row, or of a block, whose codes stand for integers: ties are then
/// exact. Of 8-bit floats it makes a scale of 1.
float largest_for_ties(Store store);

/// Whole rows of 32 channels. The first two are -largest and largest, which fix the scale of a
/// block, or the one that is made for a row. The others are, for each code in turn, the least float
/// that has it, the greatest one, and one halfway between them. -0 is not among them.
///
/// made  types without blocks: codes of x / scale, where the scale is made for the row; else of x
std::vector<float> code_edges(Store store, float largest, bool made);

}  // namespace vkrope::oracle
