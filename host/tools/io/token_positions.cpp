// SPDX-License-Identifier: MIT
#include "io/token_positions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "cli/failure.hpp"
#include "io/array_file.hpp"

namespace vkrope::tools {
namespace {

constexpr std::int64_t lowest_id = std::numeric_limits<std::int32_t>::min(),
                       highest_id = std::numeric_limits<std::int32_t>::max();

// Returns true if a token has one position on each of `axes` axes, false if it has a single one.
bool check_header(const npy::Header& header, const std::string& path, std::uint64_t batch,
                  std::uint64_t tokens, std::uint32_t axes) {
    if (header.type != npy::Type::i4 && header.type != npy::Type::i8) {
        fail(ExitCode::bad_file, "--positions: '{}' has type {}; it must be <i4 or <i8", path,
             npy::name(header.type));
    }
    std::vector<std::uint64_t> shape = header.shape;
    bool several = false;
    if (shape.size() == 3) {
        several = axes != 0 && shape.front() == axes;
        if (shape.front() != 1 && !several) {
            fail(ExitCode::bad_file,
                 "--positions: '{}' has shape {}, {} position axes; the model has {}", path,
                 npy::shape_text(shape), shape.front(),
                 axes == 0 ? "one position axis" : fmt::format("{}", axes));
        }
        shape.erase(shape.begin());
    }
    const bool one_row = shape.size() == 1 && shape[0] == tokens;
    const bool row_each = shape.size() == 2 && shape[0] == batch && shape[1] == tokens;
    if (!one_row && !row_each) {
        fail(ExitCode::bad_file,
             "--positions: '{}' has shape {}; the tensors need ({},) or ({}, {})", path,
             npy::shape_text(header.shape), tokens, batch, tokens);
    }
    return several;
}

std::int64_t element(const npy::Array& array, std::size_t index) {
    std::int32_t narrow = 0;
    std::int64_t wide = 0;
    if (array.header.type == npy::Type::i4) {
        std::memcpy(&narrow, array.data.data() + index * sizeof narrow, sizeof narrow);
        return narrow;
    }
    std::memcpy(&wide, array.data.data() + index * sizeof wide, sizeof wide);
    return wide;
}

}  // namespace

TokenPositions consecutive_positions(std::int32_t first, std::uint64_t tokens) {
    if (tokens == 0) return {.ids = {}, .first = first};
    const auto room = std::uint64_t(highest_id - first);
    if (tokens - 1 > room) {
        fail(ExitCode::usage,
             "--first-position: {} leaves room for {} tokens below 2^31; the tensors have {}",
             first, room + 1, tokens);
    }
    const auto last = std::int32_t(first + std::int64_t(tokens - 1));
    return {.ids = {}, .first = first, .lowest = first, .highest = last};
}

TokenPositions read_positions(const std::string& path, std::uint64_t batch, std::uint64_t tokens,
                              std::uint32_t axes) {
    const npy::Array array = read_array("--positions", path);
    TokenPositions positions;
    positions.axes = check_header(array.header, path, batch, tokens, axes) ? axes : 0;
    const std::size_t count = array.data.size() / npy::item_bytes(array.header.type);
    positions.ids.reserve(count);
    for (std::size_t index = 0; index < count; ++index) {
        const std::int64_t id = element(array, index);
        if (id < lowest_id || id > highest_id) {
            fail(ExitCode::bad_file, "--positions: '{}' has {} at index {}; it must fit in 32 bits",
                 path, id, index);
        }
        positions.ids.push_back(std::int32_t(id));
    }
    if (count > 0) {
        const auto [lowest, highest] = std::minmax_element(positions.ids.begin(),
                                                           positions.ids.end());
        positions.lowest = *lowest;
        positions.highest = *highest;
    }
    return positions;
}

std::vector<std::int64_t> expanded(const TokenPositions& positions, std::uint64_t batch,
                                   std::uint64_t tokens, std::uint64_t axis) {
    std::vector<std::int64_t> all(batch * tokens);
    for (std::size_t index = 0; index < all.size(); ++index) {
        // A row shared by all sequences is reused for each of them.
        all[index] = positions.ids.empty()
                         ? positions.first + std::int64_t(index % tokens)
                         : positions.ids[(axis * all.size() + index) % positions.ids.size()];
    }
    return all;
}

void give_each_axis(TokenPositions& positions, std::uint64_t batch, std::uint64_t tokens,
                    std::uint32_t axes) {
    const std::vector<std::int64_t> one = expanded(positions, batch, tokens);
    positions.ids.clear();
    for (std::uint32_t axis = 0; axis < axes; ++axis)
        for (const std::int64_t id : one) positions.ids.push_back(std::int32_t(id));
    positions.axes = axes;
}

std::uint64_t largest_distance(const TokenPositions& positions) noexcept {
    const std::int64_t lowest = positions.lowest, highest = positions.highest;
    return std::uint64_t(std::max(std::abs(lowest), std::abs(highest)));
}

}  // namespace vkrope::tools
