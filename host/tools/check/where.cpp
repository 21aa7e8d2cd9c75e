// SPDX-License-Identifier: MIT
#include "check/where.hpp"

#include <fmt/format.h>

#include <cstddef>

namespace vkrope::tools {

std::string ranges_text(const char* one, const std::vector<bool>& those) {
    constexpr int max_ranges = 8;
    std::string text;
    int ranges = 0;
    std::size_t number = 0;
    for (std::size_t i = 0; i < those.size(); ++i) {
        if (!those[i]) continue;
        const std::size_t first = i;
        while (i + 1 < those.size() && those[i + 1]) ++i;
        number += i - first + 1;
        if (++ranges <= max_ranges) {
            text += (ranges > 1 ? ", " : "") +
                    (first == i ? fmt::format("{}", i) : fmt::format("{}-{}", first, i));
        }
    }
    text += ranges > max_ranges ? ", ..." : "";
    return number == those.size() ? "" : fmt::format("{}{} {}", one, number == 1 ? "" : "s", text);
}

std::optional<Lone> lone_of(const Hypothesis& right, const Comparison& comparison,
                            const Judgement& judgement) {
    const oracle::Tensor& tensor = right.in;
    const oracle::Verdict& verdict = comparison.verdict;
    const oracle::Place &first = comparison.first_beyond, &last = comparison.last_beyond;
    const bool one_batch = first.batch == last.batch, one_token = first.token == last.token,
               one_head = first.head == last.head;
    Lone lone = {.worst = verdict.worst.place,
                 .expected = double(verdict.worst.exact.value),
                 .actual = oracle::widen(right.out.type, verdict.worst.got),
                 .error_u = {},
                 .wrong = comparison.beyond()};
    if (!verdict.nan_mismatch && !verdict.bits_changed && !judgement.with_ops)
        lone.error_u = judgement.right.error_u();
    const bool several_rows = tensor.batch * tensor.tokens * tensor.heads > 1;
    if (right.store || comparison.beyond() == 0) return std::nullopt;
    if (comparison.beyond() == 1)
        lone.region = Region::element;
    else if (one_batch && one_token && one_head && several_rows)
        lone.region = Region::row;
    else if (one_batch && one_token && tensor.batch * tensor.tokens > 1)
        lone.region = Region::token;
    else if (one_head && tensor.heads > 1)
        lone.region = Region::head;
    else if (one_batch && tensor.batch > 1)
        lone.region = Region::sequence;
    else
        return std::nullopt;
    return lone;
}

std::string where_of(const oracle::Tensor& tensor, const std::vector<bool>& rows) {
    std::vector<bool> sequences(tensor.batch), tokens(tensor.tokens), heads(tensor.heads);
    for (std::size_t row = 0; row < rows.size(); ++row) {
        if (rows[row]) {
            sequences[row / tensor.heads / tensor.tokens] = true;
            tokens[row / tensor.heads % tensor.tokens] = true;
            heads[row % tensor.heads] = true;
        }
    }
    std::string where;
    for (const std::string& axis : {ranges_text("sequence", sequences),
                                    ranges_text("token", tokens), ranges_text("head", heads)})
        where += (where.empty() || axis.empty() ? "" : ", ") + axis;
    return where;
}

}  // namespace vkrope::tools
