// SPDX-License-Identifier: MIT
// Draws random operations from all that the library accepts.
#pragma once

#include "verify/unplaced.hpp"

namespace vkrope::verify {

// Operations whose seeds have the same quotient by this number share a kernel, because its
// compilation takes most of the time.
inline constexpr std::uint64_t operations_of_a_kernel = 16;

struct Bounds {
    std::uint32_t elements = 1500;  // approximate size of the largest tensor
    bool ops = true;                // norms and other ops, quantised outputs
    std::vector<Element> of_inputs = {VKROPE_F32, VKROPE_F16, VKROPE_BF16};
};

// Returns an operation that the library accepts, with rows and ids; the same seed and bounds give
// the same operation. A device may refuse it as not supported or beyond a limit, never as invalid.
Unplaced random_operation(std::uint64_t seed, const Bounds& bounds = {});

// Returns whether the arrangements, pages and slots follow the rules of random_operation(), which
// let no two rows overlap.
bool rows_are_apart(const Unplaced& operation);

// Returns the same operation in other memory: in other arrangements, in place or not. Every stored
// row has the same bits.
Unplaced rearranged(const Unplaced& operation, std::uint64_t seed);

}  // namespace vkrope::verify
