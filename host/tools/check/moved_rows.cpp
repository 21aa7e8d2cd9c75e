// SPDX-License-Identifier: MIT
// Finds rows of an output that hold the right values of other rows.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "check/compare.hpp"
#include "check/judge.hpp"
#include "check/mistakes.hpp"
#include "verify/oracle/element.hpp"
#include "verify/oracle/rows.hpp"

namespace vkrope::tools {
namespace {

constexpr std::uint64_t most_elements = std::uint64_t{1} << 21,
                        most_wrong_rows = std::uint64_t{1} << 14;

// The right values of all rows, [batch, tokens, heads, head_dim], and the output.
class AllRows {
   public:
    explicit AllRows(const Observation& observation)
        : observation_(observation), out_(observation.right.out),
          elements_(oracle::table_of(out_.type)) {
        each_token(
            observation, observation.right, all_tokens(observation.right),
            [this](std::uint64_t, std::uint64_t, const auto& channels) {
                right_.insert(right_.end(), channels.begin(), channels.end());
            });
    }

    // Returns whether a row of the output holds the right values of another one.
    bool holds(std::uint64_t row, std::uint64_t other) const {
        const std::uint64_t first = observation_.right.first_out +
                                    oracle::row_of(out_, place_of(row));
        for (std::uint64_t c = 0; c < out_.head_dim; ++c) {
            const oracle::Approximate& is = right_[other * out_.head_dim + c];
            const std::uint32_t bits = oracle::load(observation_.output,
                                                    oracle::bytes_of(out_.type), first + c);
            if (std::isnan(elements_.widen(bits)) || std::isnan(is.value) ||
                !(elements_.distance(bits, is.value) <= is.error))
                return false;
        }
        return true;
    }

    // Returns whether the right values of a row are all 0; such a row identifies nothing.
    bool is_empty(std::uint64_t row) const {
        const auto first = right_.begin() + std::ptrdiff_t(row * out_.head_dim);
        return std::all_of(first, first + std::ptrdiff_t(out_.head_dim),
                           [](const auto& channel) { return channel.value == 0; });
    }

    oracle::Place place_of(std::uint64_t row) const {
        return {row / out_.heads / out_.tokens, row / out_.heads % out_.tokens, row % out_.heads,
                0};
    }

    std::string text_of(std::uint64_t row, bool with_head) const {
        const oracle::Place at = place_of(row);
        return fmt::format("{}token {}{}",
                           out_.batch > 1 ? fmt::format("sequence {} ", at.batch) : "", at.token,
                           with_head ? fmt::format(" head {}", at.head) : "");
    }

   private:
    const Observation& observation_;
    const oracle::Tensor& out_;
    const oracle::ElementTable& elements_;
    std::vector<oracle::Approximate> right_;
};

}  // namespace

std::optional<Match> rows_of_others(const Observation& observation,
                                    const std::vector<bool>& wrong) {
    constexpr std::size_t most_listed = 6;
    const Hypothesis& right = observation.right;
    const std::uint64_t heads = right.in.heads, rows = wrong.size();
    const auto number = std::uint64_t(std::count(wrong.begin(), wrong.end(), true));
    if (right.store || rows * right.in.head_dim > most_elements || number > most_wrong_rows)
        return std::nullopt;
    const AllRows all(observation);
    std::vector<std::string> listed;
    bool other_heads = false;
    for (std::uint64_t row = 0; row < rows; ++row) {
        if (!wrong[row]) continue;
        // Tries the row of the same head first.
        std::uint64_t source = rows;
        for (const bool any_head : {false, true}) {
            for (std::uint64_t other = 0; other < rows && source == rows; ++other) {
                const bool candidate = any_head || other % heads == row % heads;
                source = candidate && !all.is_empty(other) && all.holds(row, other) ? other
                                                                                    : source;
            }
        }
        if (source == rows) return std::nullopt;
        const bool other_head = source % heads != row % heads;
        other_heads = other_heads || other_head;
        const auto token = wrong.begin() + std::ptrdiff_t(row - row % heads);
        const bool with_head = other_head || !std::all_of(token, token + std::ptrdiff_t(heads),
                                                          [](bool is_wrong) { return is_wrong; });
        const std::string text = fmt::format("{} that of {}", all.text_of(row, with_head),
                                             all.text_of(source, with_head));
        if (listed.empty() || listed.back() != text)  // once for all heads of a token
            listed.push_back(text);
    }
    std::string detail;
    for (std::size_t i = 0; i < std::min(most_listed, listed.size()); ++i)
        detail += (i == 0 ? "" : ", ") + listed[i];
    detail += listed.size() > most_listed ? ", ..." : "";
    Mistake moved;
    moved.add({&row_of(other_heads ? "rows_of_other_heads" : "rows_of_other_tokens"), detail});
    Match match;
    match.mistake = moved.name();
    match.meaning = moved.meaning();
    match.share_within = 1;
    match.explains = match.nearly = true;
    return match;
}

}  // namespace vkrope::tools
