// SPDX-License-Identifier: MIT
// Computes the numbers at which the code of a quantised type changes, for tests of devices.
#pragma once

#include "verify/oracle/quantise.hpp"

namespace vkrope::oracle {

// Returns the largest magnitude of a row, or of a block, for which codes stand for integers, so
// that ties are exact. For 8-bit floats it gives a scale of 1.
float largest_for_ties(Store store);

// Returns whole rows of 32 channels. The first two channels are -largest and largest, which fix
// the scale of a block or of a row. The other channels are, for each code in turn, the least float
// with this code, the greatest float, and one halfway between the two. -0 is not included.
//
// made  for types without blocks: use the codes of x / scale, with a computed scale, instead of x
std::vector<float> code_edges(Store store, float largest, bool made);

}  // namespace vkrope::oracle
