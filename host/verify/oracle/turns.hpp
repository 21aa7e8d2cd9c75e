// SPDX-License-Identifier: MIT
// Computes the channels and the rotation of each pair.
#pragma once

#include <array>

#include "verify/oracle/oracle.hpp"

namespace vkrope::oracle {

// The channels of one pair in the input and in the output.
struct Pair {
    std::array<std::uint64_t, 2> in, out;
};

std::vector<Pair> pairs_of(const Operation& operation);

// Returns the factor that `gain` selects.
long double factor_of(const Operation& operation);

// Returns the contract's absolute term on a device that flushes subnormals: inputs of at most
// 2^-126 become 0 before the factor multiplies them, and so do products and sums.
double flushing_allowance(const Operation& operation);

// Returns whether a token, an index into [batch, tokens], is rotated.
bool is_covered(const Operation& operation, std::size_t token);

// Returns cos and sin of a pair, an index into inv_freq, without factor and direction.
CosSin cos_sin_of(const Operation& operation, std::size_t token, std::size_t pair);

// Computes cos and sin of every pair, with factor and direction: [head_groups, pairs].
void turn_to(const Operation& operation, std::size_t token, std::vector<CosSin>& turns);

// Throws std::invalid_argument unless the windows ascend and fit into head_dim, each pair has a
// frequency and each token has a position.
void check_operation(const Operation& operation, const Tensor& in);

}  // namespace vkrope::oracle
