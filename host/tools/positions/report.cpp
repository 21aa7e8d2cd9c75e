// SPDX-License-Identifier: MIT
// vkrope positions, in words and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "positions/positions.hpp"

namespace vkrope::tools {
namespace {

constexpr std::uint64_t shown_tokens = 32;

std::string row_of(const TokenIds& found, std::uint64_t token) {
    std::string row = fmt::format("{:>10}", token);
    for (std::size_t axis = 0; axis < found.axes(); ++axis) {
        row += fmt::format("  {:>11}", found.ids[axis * found.tokens + token]);
    }
    return row + '\n';
}

}  // namespace

std::string text_of(const TokenIds& found, bool all) {
    std::string text = fmt::format("{} token{}, {} {} each\n", found.tokens,
                                   found.tokens == 1 ? "" : "s", found.axes(),
                                   found.axes() == 1 ? "id" : "ids");
    for (std::size_t axis = 0; axis < found.axes(); ++axis) {
        const auto first = found.ids.begin() + std::ptrdiff_t(axis * found.tokens);
        const auto [lowest, highest] = std::minmax_element(first,
                                                           first + std::ptrdiff_t(found.tokens));
        text += fmt::format("axis {}      {}", axis, found.reasons[axis]);
        text += found.tokens == 0 ? "\n" : fmt::format("; {} to {}\n", *lowest, *highest);
    }
    for (const std::string& note : found.notes) text += fmt::format("note        {}\n", note);
    text += fmt::format("\n{:>10}", "token");
    for (std::size_t axis = 0; axis < found.axes(); ++axis) {
        text += fmt::format("  {:>11}", fmt::format("axis {}", axis));
    }
    text += '\n';
    const bool whole = all || found.tokens <= shown_tokens;
    const std::uint64_t head = whole ? found.tokens : shown_tokens / 2;
    for (std::uint64_t token = 0; token < head; ++token) text += row_of(found, token);
    if (whole) return text;
    text += fmt::format("{:>10}  {} more; --all prints them\n", "...", found.tokens - shown_tokens);
    for (std::uint64_t token = found.tokens - shown_tokens / 2; token < found.tokens; ++token) {
        text += row_of(found, token);
    }
    return text;
}

nlohmann::ordered_json json_of(const TokenIds& found) {
    nlohmann::ordered_json axes = nlohmann::ordered_json::array();
    for (std::size_t axis = 0; axis < found.axes(); ++axis) {
        const auto first = found.ids.begin() + std::ptrdiff_t(axis * found.tokens);
        axes.push_back({{"reason", found.reasons[axis]},
                        {"ids", std::vector(first, first + std::ptrdiff_t(found.tokens))}});
    }
    return {{"tokens", found.tokens}, {"axes", axes}, {"notes", found.notes}};
}

}  // namespace vkrope::tools
