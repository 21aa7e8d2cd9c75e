// SPDX-License-Identifier: MIT
// Names values that were read from the output: positions, and a base or a factor of scaling.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "check/search.hpp"
#include "check/where.hpp"

namespace vkrope::tools {
namespace {

constexpr std::size_t most_listed = 6;

std::string too(std::int64_t offset) {
    return fmt::format("{} too {}", std::abs(offset), offset > 0 ? "large" : "small");
}

// Consecutive tokens of a sequence whose positions are off by the same number.
struct Run {
    std::uint64_t sequence = 0, first = 0, last = 0;
    std::int64_t offset = 0;
};

// The positions on one axis, right and found, of the tokens that were seen.
class Axis {
   public:
    Axis(const Positions& right, const Positions& found, const std::vector<bool>& seen,
         std::uint64_t tokens)
        : right_(right), found_(found), tokens_(tokens) {
        for (std::uint64_t token = 0; token < seen.size(); ++token)
            if (seen[token]) seen_.push_back(token);
        for (const std::uint64_t token : seen_) {
            const std::int64_t offset = found[token] - right[token];
            const std::uint64_t sequence = token / tokens, of_sequence = token % tokens;
            if (runs_.empty() || runs_.back().sequence != sequence || runs_.back().offset != offset)
                runs_.push_back({sequence, of_sequence, of_sequence, offset});
            runs_.back().last = of_sequence;
        }
    }

    bool is_right() const {
        return std::all_of(
            runs_.begin(), runs_.end(), [](const Run& run) { return run.offset == 0; });
    }

    // Returns the name of the mistake, and its detail.
    std::pair<const char*, std::string> name() const {
        if (const std::int64_t offset = runs_.front().offset;
            std::all_of(runs_.begin(), runs_.end(),
                        [offset](const Run& run) { return run.offset == offset; }))
            return {"position_offset", "every position is " + too(offset)};
        if (const std::int64_t at = found_[seen_[0]];
            all([&](std::uint64_t token) { return found_[token] == at; })) {
            return {"one_position",
                    fmt::format("every token is at {}{}", at,
                                at > 0 ? "" : fmt::format(", or {} in the other direction", -at))};
        }
        if (const std::optional<std::int64_t> limit = upper_limit())
            return {"positions_clamped", fmt::format("no position is above {}", *limit)};
        if (runs_.size() <= std::max<std::size_t>(4, seen_.size() / 4))
            return {"position_offset", runs_text()};
        return {is_other_order() ? "positions_in_another_order" : other_positions, list_text()};
    }

   private:
    template <class Holds>
    bool all(const Holds& holds) const {
        return std::all_of(seen_.begin(), seen_.end(), holds);
    }

    std::optional<std::int64_t> upper_limit() const {
        std::int64_t limit = found_[seen_[0]];
        for (const std::uint64_t token : seen_) limit = std::max(limit, found_[token]);
        return all([&](std::uint64_t token) {
            return found_[token] == std::min(right_[token], limit);
        })
                   ? std::optional(limit)
                   : std::nullopt;
    }

    bool is_other_order() const {
        std::vector<std::int64_t> is, was;
        for (const std::uint64_t token : seen_) {
            is.push_back(found_[token]);
            was.push_back(right_[token]);
        }
        std::sort(is.begin(), is.end());
        std::sort(was.begin(), was.end());
        return is == was;
    }

    std::string token_text(std::uint64_t sequence, std::uint64_t first, std::uint64_t last) const {
        const std::string of = right_.size() > tokens_ ? fmt::format("sequence {} ", sequence) : "";
        return first == last ? fmt::format("{}token {}", of, first)
                             : fmt::format("{}tokens {}-{}", of, first, last);
    }

    std::string runs_text() const {
        std::string text;
        std::size_t listed = 0;
        for (const Run& run : runs_) {
            if (run.offset != 0 && listed++ < most_listed) {
                text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                                    token_text(run.sequence, run.first, run.last), too(run.offset));
            }
        }
        return listed > most_listed ? text + ", ..." : text;
    }

    std::string list_text() const {
        std::string text;
        std::size_t listed = 0;
        for (const std::uint64_t token : seen_) {
            if (found_[token] != right_[token] && listed++ < most_listed) {
                const std::uint64_t of_sequence = token % tokens_;
                text += fmt::format("{}{} is at {}, not {}", text.empty() ? "" : ", ",
                                    token_text(token / tokens_, of_sequence, of_sequence),
                                    found_[token], right_[token]);
            }
        }
        return listed > most_listed ? text + ", ..." : text;
    }

    const Positions &right_, &found_;
    const std::uint64_t tokens_;
    std::vector<std::uint64_t> seen_;
    std::vector<Run> runs_;
};

}  // namespace

Rows measured_mistakes() {
    const auto row = [](const char* name, Part part, const char* meaning, const char* example) {
        return Row{name, part, meaning, {}, example, false, true};
    };
    return {
        row("another_factor", Part::factor, "multiplied cos and sin by another factor",
            "1.5, not 1.277259"),
        row("another_base", Part::frequencies, "took another base", "20000, not 500000"),
        row("another_scaling", Part::frequencies, "took another number for the scaling",
            "every frequency is divided by 3"),
        row("position_offset", Part::positions, "shifted all or some positions by an offset",
            "every position is 5588 too large"),
        row("one_position", Part::positions, "rotated all tokens at one position",
            "every token is at 37"),
        row("positions_clamped", Part::positions, "cut positions off at a limit",
            "no position is above 4003"),
        row("positions_in_another_order", Part::positions,
            "gave tokens the right positions in another order",
            "sequence 0 token 0 is at 4003, not 4000"),
        row(other_positions, Part::positions, "took other positions, without a pattern",
            "sequence 0 token 0 is at 4007, not 4000"),
        row("pairs_on_other_axes", Part::axes, "rotated pairs by other axes",
            "pairs 58-59 on axis 0"),
        row("rows_of_other_tokens", Part::alone, "stored right rows in the places of other tokens",
            "sequence 0 token 0 that of sequence 0 token 1"),
        row("rows_of_other_heads", Part::alone, "stored right rows in the places of other heads",
            "sequence 0 token 0 head 0 that of sequence 0 token 0 head 1"),
    };
}

Mistake::Named name_of_positions(const Hypothesis& right, const FoundPositions& found,
                                 const std::vector<bool>& tokens) {
    Mistake::Named named;
    std::vector<std::pair<const char*, std::string>> wrong;
    std::vector<std::size_t> axes;
    for (std::size_t axis = 0; axis < found.size(); ++axis) {
        const Positions& positions = axis == 0 ? right.operation.positions
                                               : right.operation.further.positions[axis - 1];
        const Axis one(positions, found[axis], tokens, right.in.tokens);
        if (!one.is_right()) {
            wrong.push_back(one.name());
            axes.push_back(axis);
        }
    }
    if (wrong.empty()) return named;
    const bool alike = wrong.size() == found.size() &&
                       std::all_of(wrong.begin(), wrong.end(),
                                   [&](const auto& one) { return one == wrong[0]; });
    named.row = &row_of(wrong[0].first);
    if (alike) {
        named.detail = wrong[0].second;
        return named;
    }
    for (std::size_t i = 0; i < wrong.size(); ++i) {
        named.row = wrong[i].first == named.row->name ? named.row : &row_of(other_positions);
        named.detail += fmt::format("{}on axis {}, {}", i == 0 ? "" : "; ", axes[i],
                                    wrong[i].second);
    }
    return named;
}

Mistake::Named name_of_axes(const Hypothesis& right, const std::vector<std::uint32_t>& found) {
    Mistake::Named named = {&row_of("pairs_on_other_axes"), {}};
    for (std::uint32_t axis = 0; axis <= right.operation.further.positions.size(); ++axis) {
        std::vector<bool> moved(found.size());
        for (std::size_t j = 0; j < found.size(); ++j)
            moved[j] = found[j] == axis && right.operation.further.axis(j) != axis;
        if (std::find(moved.begin(), moved.end(), true) != moved.end()) {
            const std::string those = ranges_text("pair", moved);
            named.detail += fmt::format("{}{} on axis {}", named.detail.empty() ? "" : "; ",
                                        those.empty() ? "all" : those, axis);
        }
    }
    return named;
}

std::vector<OtherFrequencies> other_frequencies(const Observation& observation) {
    std::vector<OtherFrequencies> all;
    const oracle::Operation& right = observation.right.operation;
    const std::vector<double> unscaled = powers(observation.base, 2 * right.inv_freq.size());
    if (!unscaled.empty()) {
        const bool scaled = differ(unscaled, right.inv_freq);
        each_round_number(least_base, most_base, [&](double base) {
            if (base == observation.base) return;
            all.push_back({.name = "another_base",
                           .detail = fmt::format("{:.10g}, not {:.10g}{}", base, observation.base,
                                                 scaled ? ", and frequencies are unscaled" : ""),
                           .base = base});
        });
        const double model = factor_of_scaling(observation, observation.right);
        each_round_number(0.01, 100, [&](double divisor) {
            std::vector<double> inv_freq = unscaled;
            for (double& frequency : inv_freq) frequency /= divisor;
            if (divisor == 1 || !differ(inv_freq, right.inv_freq)) return;
            all.push_back({.name = "another_scaling",
                           .detail = fmt::format(
                               "every frequency is divided by {:.10g}, where the factor of the "
                               "model's scaling is {:.10g}",
                               divisor, model),
                           .base = observation.base,
                           .divisor = divisor});
        });
    }
    if (observation.variations)
        for (const OtherRotation& other : observation.variations())
            all.push_back({.name = other.mistake, .detail = other.detail, .of_file = other});
    return all;
}

std::optional<Mistake> with(const Mistake& mistake, const OtherFrequencies& other,
                            const Observation& observation) {
    if (mistake.changes(Part::frequencies) || mistake.hypothesis.operation.inv_freq.empty())
        return std::nullopt;
    Mistake both = mistake;
    if (other.of_file) {
        const std::optional<Mistake> read = with(mistake, *other.of_file, observation);
        if (!read) return std::nullopt;
        both.hypothesis = read->hypothesis;
    } else {
        std::vector<double> inv_freq = powers(other.base, rotary_dim(both.hypothesis));
        for (double& frequency : inv_freq) frequency /= other.divisor;
        if (!replace_frequencies(both.hypothesis, inv_freq)) return std::nullopt;
    }
    both.add({&row_of(other.name), other.detail});
    return both;
}

}  // namespace vkrope::tools
