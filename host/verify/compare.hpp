// SPDX-License-Identifier: MIT
// What a device has made of an operation, held against its definition.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "verify/definition.hpp"

namespace vkrope::verify {

inline constexpr vkrope_tensor_index every_tensor[] = {VKROPE_Q, VKROPE_K, VKROPE_V};

struct Verdict {
    std::string problem = {};  // the first that was found; empty: all is right
    /// Of tensors without steps beside the rotation, see oracle::Verdict; none: all have them.
    std::optional<double> largest_error_u = {};
};

/// Compares the memory after a call with the definition: every stored channel, code and scale is
/// within the contract, out_of_range has grown by what it should, and no other byte has changed. Of
/// channels with angles of a cos_sin_cache, only those that do not rotate, of a tensor without
/// further steps.
///
/// calls  what ran one after another, each with outputs of its own; empty: the call of `operation`
Verdict compare(const Operation& operation, const Bytes& after, bool flushes,
                std::span<const vkrope_call> calls = {});

/// Calls visit(row, byte) for each row of a tensor that is stored, see oracle::each_row().
void each_stored_row(const Operation& operation, vkrope_tensor_index which,
                     const std::function<void(std::uint64_t row, std::size_t byte)>& visit);

/// The stored rows, packed as [batch, tokens, heads, head_dim]; others are 0.
Bytes packed_rows(const Operation& operation, vkrope_tensor_index which, const Bytes& after);

/// Made scales, f32 [batch, tokens, heads]; 0 for rows that are not stored. Empty: none are made.
std::vector<float> made_scales(const Operation& operation, vkrope_tensor_index which,
                               const Bytes& after);

}  // namespace vkrope::verify
