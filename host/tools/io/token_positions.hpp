// SPDX-License-Identifier: MIT
// Token positions within their sequences, from --positions or --first-position.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vkrope::tools {

struct TokenPositions {
    std::vector<std::int32_t>
        ids;  // [tokens], [batch, tokens] or [axes, batch, tokens]; empty: first, first + 1, ...
    std::uint32_t axes = 0;  // number of axes; 0: one axis
    std::int32_t first = 0;
    std::int32_t lowest = 0, highest = 0;  // range of the positions in use; 0 without tokens
};

// Returns first, first + 1, ... for every sequence. Throws Failure if the last one does not fit in
// int32.
TokenPositions consecutive_positions(std::int32_t first, std::uint64_t tokens);

// Reads P.npy, int32 or int64, [tokens], [batch, tokens] or [1, batch, tokens]; if the sections of
// the model have `axes` axes, also [axes, batch, tokens]. Throws Failure.
TokenPositions read_positions(const std::string& path, std::uint64_t batch, std::uint64_t tokens,
                              std::uint32_t axes = 0);

// Expands the positions on an axis to [batch, tokens].
std::vector<std::int64_t> expanded(const TokenPositions& positions, std::uint64_t batch,
                                   std::uint64_t tokens, std::uint64_t axis = 0);

// Gives each of `axes` axes the positions that were given on one.
void give_each_axis(TokenPositions& positions, std::uint64_t batch, std::uint64_t tokens,
                    std::uint32_t axes);

// Returns the largest |position|.
std::uint64_t largest_distance(const TokenPositions& positions) noexcept;

}  // namespace vkrope::tools
