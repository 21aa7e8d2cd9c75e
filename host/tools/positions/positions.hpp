// SPDX-License-Identifier: MIT
// The ids that a grid, a video or a ragged batch gets, and why.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "vkrope/positions.hpp"

namespace vkrope::tools {

/// Ids by axis, with a sentence for each axis.
struct TokenIds {
    std::uint64_t tokens = 0;
    std::vector<std::int32_t> ids;     // [axes, tokens]
    std::vector<std::string> reasons;  // [axes]
    std::vector<std::string> notes;    // of the whole

    std::size_t axes() const { return reasons.size(); }
};

/// Maximum number of ids: a mistyped grid must not fill the memory.
inline constexpr std::uint64_t max_ids = std::uint64_t{1} << 26;

/// Throws Failure if the grid is too large, or if an id leaves int32.
TokenIds ids_of_grid(const std::vector<GridAxis>& axes, std::vector<std::string> reasons);

/// A video of frames, rows and columns; times[i] is the id of frame i.
TokenIds ids_of_video(const std::vector<std::int32_t>& times, std::uint32_t rows,
                      std::uint32_t columns, std::string reason);

/// Sequences one after the other. Throws Failure.
TokenIds ids_of_batch(const std::vector<std::int64_t>& cu_seqlens,
                      const std::vector<std::int64_t>& offsets);

/// Lines of at most 120 columns. A table of more than 32 tokens shows the first and the last.
///
/// all  one line per token, however many there are
std::string text_of(const TokenIds& found, bool all);

nlohmann::ordered_json json_of(const TokenIds& found);

}  // namespace vkrope::tools
