// SPDX-License-Identifier: MIT
// Makes the ids of vkrope positions, through the library's own functions.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "positions/positions.hpp"
#include "shell/failure.hpp"

namespace vkrope::tools {
namespace {

void require(const Status& status, const char* option) {
    if (!status) fail(ExitCode::usage, "{}: {}", option, status.what);
}

void require_room(const char* option, std::uint64_t tokens, std::uint64_t axes) {
    if (tokens > max_ids / std::max<std::uint64_t>(axes, 1)) {
        fail(ExitCode::usage, "{}: {} tokens on {} axes; at most {} ids are made", option, tokens,
             axes, max_ids);
    }
}

}  // namespace

TokenIds ids_of_grid(const std::vector<GridAxis>& axes, std::vector<std::string> reasons) {
    TokenIds found;
    const auto count = static_cast<std::uint32_t>(axes.size());
    found.tokens = grid_tokens(axes.data(), count);
    if (found.tokens == 0) {
        fail(ExitCode::usage, "--grid: it has 2^64 tokens or more; at most {} ids are made",
             max_ids);
    }
    require_room("--grid", found.tokens, count);
    found.ids.resize(count * found.tokens);
    require(grid_ids(axes.data(), count, found.ids.data(), found.tokens), "--grid");
    found.reasons = std::move(reasons);
    found.notes.push_back(
        "tokens are in the order of the grid, row by row: the last axis changes first");
    return found;
}

TokenIds ids_of_video(const std::vector<std::int32_t>& times, std::uint32_t rows,
                      std::uint32_t columns, std::string reason) {
    const std::vector<GridAxis> axes = {
        {.count = static_cast<std::uint32_t>(times.size())}, {.count = rows}, {.count = columns}};
    require_room("--video", grid_tokens(axes.data(), 3), 3);
    TokenIds found = ids_of_grid(
        axes, {std::move(reason), fmt::format("{} rows: the index of the row", rows),
               fmt::format("{} columns: the index of the column", columns)});
    for (std::uint64_t token = 0; token < found.tokens; ++token) {
        found.ids[token] = times[static_cast<std::size_t>(found.ids[token])];
    }
    return found;
}

TokenIds ids_of_batch(const std::vector<std::int64_t>& cu_seqlens,
                      const std::vector<std::int64_t>& offsets) {
    TokenIds found;
    const std::size_t sequences = cu_seqlens.size() - 1;
    if (!offsets.empty() && offsets.size() != sequences) {
        fail(ExitCode::usage, "--offsets: it has {} numbers; --cu-seqlens has {} sequences",
             offsets.size(), sequences);
    }
    if (cu_seqlens.back() < 0) {
        fail(ExitCode::usage, "--cu-seqlens: its last number is {}; it must be at least 0",
             cu_seqlens.back());
    }
    found.tokens = static_cast<std::uint64_t>(cu_seqlens.back());
    require_room("--cu-seqlens", found.tokens, 1);
    found.ids.resize(found.tokens);
    require(ragged_ids(cu_seqlens.data(), sequences, offsets.empty() ? nullptr : offsets.data(),
                       found.ids.data(), found.tokens),
            "--cu-seqlens");
    found.reasons.push_back("the index of the token in its sequence" +
                            std::string(offsets.empty() ? "" : ", plus the sequence's offset"));
    for (std::size_t s = 0; s < std::min<std::size_t>(sequences, 16); ++s) {
        const std::int64_t length = cu_seqlens[s + 1] - cu_seqlens[s];
        const std::int64_t first = offsets.empty() ? 0 : offsets[s];
        found.notes.push_back(length == 0
                                  ? fmt::format("sequence {} is empty", s)
                                  : fmt::format("sequence {} is tokens {} to {}: ids {} to {}", s,
                                                cu_seqlens[s], cu_seqlens[s + 1] - 1, first,
                                                first + length - 1));
    }
    if (sequences > 16) found.notes.push_back(fmt::format("and {} more sequences", sequences - 16));
    return found;
}

}  // namespace vkrope::tools
