// SPDX-License-Identifier: MIT
// Compares the memory that a device has written with the definition of an operation.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "verify/definition.hpp"

namespace vkrope::verify {

inline constexpr vkrope_tensor_index every_tensor[] = {VKROPE_Q, VKROPE_K, VKROPE_V};

struct Verdict {
    std::string problem = {};  // the first error found; empty: there is none
    // Largest over tensors that are only rotated, see oracle::Verdict. None: there is no such one.
    std::optional<double> largest_error_u = {};
};

// Compares the memory after a call with the definition. Every channel, code and scale in both
// destinations must be within the contract, out_of_range must have grown by the right number, and
// no other byte may have changed. With the angles of a cos_sin_cache only channels that do not
// rotate are compared, and only in tensors without further ops.
//
// calls  the calls that ran one after another, each with its own outputs; empty: `operation.call`
Verdict compare(const Operation& operation, const Bytes& after, bool flushes,
                std::span<const vkrope_call> calls = {});

// Finds a row that nothing changes and that has other bytes, or other scales, than its source.
// Empty: there is none.
std::string change_of_kept(const Operation& operation, vkrope_tensor_index which,
                           const Bytes& after);

// Calls visit(row, byte) for each stored row of a tensor, see oracle::each_row().
void each_stored_row(const Operation& operation, vkrope_tensor_index which,
                     const std::function<void(std::uint64_t row, std::size_t byte)>& visit);

// Returns the stored rows packed as [batch, tokens, heads, head_dim]; other rows are 0.
Bytes packed_rows(const Operation& operation, vkrope_tensor_index which, const Bytes& after);

// Returns the rows of the second destination, [batch, tokens, heads, head_dim], 0 for tokens that
// are not among the token_count; empty without one.
Bytes second_rows(const Operation& operation, vkrope_tensor_index which, const Bytes& after);

// Returns the computed scales, [batch, tokens, heads, groups], 0 for rows not stored; empty without
// any.
std::vector<float> made_scales(const Operation& operation, vkrope_tensor_index which,
                               const Bytes& after);

}  // namespace vkrope::verify
