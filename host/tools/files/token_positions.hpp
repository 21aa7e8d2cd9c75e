// SPDX-License-Identifier: MIT
// Where the tokens are in their sequences, by --positions or --first-position.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vkrope::tools {

struct TokenPositions {
    std::vector<std::int32_t>
        ids;  // [tokens], [batch, tokens] or [axes, batch, tokens]; empty: first, first + 1, ...
    std::uint32_t axes = 0;  // 0: one axis
    std::int32_t first = 0;
    std::int32_t lowest = 0, highest = 0;  // of those in use; 0 without tokens
};

/// first, first + 1, ... for every sequence. Throws Failure where the last is no int32.
TokenPositions consecutive_positions(std::int32_t first, std::uint64_t tokens);

/// Reads P.npy, int32 or int64, [tokens], [batch, tokens] or [1, batch, tokens]; of a model whose
/// sections have so many `axes`, [axes, batch, tokens] too. Throws Failure.
TokenPositions read_positions(const std::string& path, std::uint64_t batch, std::uint64_t tokens,
                              std::uint32_t axes = 0);

/// One a token, [batch, tokens], on one of the axes, however they were given; given on one axis,
/// they are the same on all.
std::vector<std::int64_t> expanded(const TokenPositions& positions, std::uint64_t batch,
                                   std::uint64_t tokens, std::uint32_t axis = 0);

/// The largest |position|.
std::uint64_t largest_distance(const TokenPositions& positions) noexcept;

}  // namespace vkrope::tools
