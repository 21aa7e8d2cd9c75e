// SPDX-License-Identifier: MIT
// Operations drawn at random from all that the library accepts.
#pragma once

#include "verify/unplaced.hpp"

namespace vkrope::verify {

/// Operations whose seeds have the same quotient by this number have one kernel, whose compilation
/// takes most of the time.
inline constexpr std::uint64_t operations_of_a_kernel = 16;

struct Bounds {
    std::uint32_t elements = 1500;  // of the largest tensor, about
    bool ops = true;                // norms and other steps, quantised outputs
    std::vector<Element> of_inputs = {VKROPE_F32, VKROPE_F16, VKROPE_BF16};
};

/// An operation that the library accepts, the same for the same seed and bounds, with rows and ids
/// of its own. A device may refuse it as not supported or beyond a limit, never as invalid.
Unplaced random_operation(std::uint64_t seed, const Bounds& bounds = {});

/// The same operation in other memory: in other arrangements, in place or not. Every stored row has
/// the same bits.
Unplaced rearranged(const Unplaced& operation, std::uint64_t seed);

}  // namespace vkrope::verify
