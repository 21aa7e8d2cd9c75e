// SPDX-License-Identifier: MIT
#include "check/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "check/measure.hpp"
#include "check/mistakes.hpp"
#include "check/sample.hpp"
#include "check/where.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::tools {
namespace {

constexpr double unit = 0x1p-24;

class Judge {
   public:
    Judge(const Evidence& evidence, const Limits& limits) : evidence_(evidence), limits_(limits) {}

    oracle::Verdict compare(Trial trial, const std::function<void(double)>& progress = {}) const {
        oracle::Operation operation = by_axis(std::move(trial.operation), trial.further);
        operation.limits_u = {limits_.bound_u, limits_.tolerance / unit};
        return oracle::compare(trial.in, trial.out, operation,
                               elements_from(evidence_.input, trial.first_in, trial.in.type),
                               elements_from(evidence_.output, trial.first_out, trial.out.type),
                               progress);
    }

    Match match(const Mistake& mistake) const {
        Match match = measured(compare(sampled(mistake.trial, limits_.sampled_elements)));
        if (match.explains || match.nearly) {
            match = measured(compare(mistake.trial));  // on all elements, before reporting it
        }
        return named(match, mistake);
    }

    /// Compares the mistake with the wrong rows; none if it does not explain all of them.
    std::optional<Match> match_of_rows(Mistake mistake, const std::vector<bool>& rows) const {
        for (const std::uint64_t most :
             {limits_.glimpsed_elements / mistake.trial.in.head_dim, rows.size()}) {
            mistake.trial.operation.rows = thinned(rows, std::max<std::uint64_t>(1, most));
            Match match = named(measured(compare(mistake.trial)), mistake);
            if (!match.explains) {
                return std::nullopt;
            }
            if (most == rows.size()) {
                return match;
            }
        }
        return std::nullopt;
    }

    /// There are many combinations of two mistakes; a small sample rejects nearly all of them. None
    /// if they do not explain everything.
    ///
    /// if_nearly  a match within the tolerance counts too
    std::optional<Match> match_of_two(const Mistake& mistake, bool if_nearly) const {
        const auto good = [if_nearly](const Match& match) {
            return match.explains || (if_nearly && match.nearly);
        };
        const Mistake chosen = with_turns_chosen(mistake, limits_.glimpsed_elements);
        if (!good(measured(compare(sampled(chosen.trial, limits_.glimpsed_elements))))) {
            return std::nullopt;
        }
        const Match found = match(with_turns_chosen(mistake, limits_.sampled_elements));
        return good(found) ? std::optional(found) : std::nullopt;
    }

    /// If the pairs have several candidate turns, chooses for each pair the one that leaves the
    /// fewest of its elements beyond the bound.
    Mistake with_turns_chosen(Mistake mistake, std::uint64_t elements) const {
        if (mistake.turns.empty()) {
            return mistake;
        }
        Trial trial = sampled(mistake.trial, elements);
        const oracle::Operation& operation = mistake.trial.operation;
        const std::vector<oracle::Pair> pairs = oracle::pairs_of(operation);
        std::vector<std::size_t> chosen(pairs.size());
        std::vector<std::uint64_t> fewest(pairs.size(), std::numeric_limits<std::uint64_t>::max());
        for (std::size_t turn = 0; turn < mistake.turns.size(); ++turn) {
            trial.operation.cos_sin = mistake.turns[turn];
            const std::vector<std::uint64_t> beyond = compare(trial).beyond_in;
            for (std::size_t j = 0; j < pairs.size(); ++j) {
                const std::uint64_t wrong = beyond[pairs[j].out[0]] + beyond[pairs[j].out[1]];
                if (wrong < fewest[j]) {
                    fewest[j] = wrong;
                    chosen[j] = turn;
                }
            }
        }
        mistake.trial.operation.cos_sin = [turns = mistake.turns, chosen](std::int64_t position,
                                                                          std::size_t pair) {
            return turns[chosen[pair % chosen.size()]](position, pair);
        };
        return mistake;
    }

    Match measured(const oracle::Verdict& verdict) const {
        const auto share = [&verdict](std::size_t limit) {
            return verdict.elements == 0 ? 1
                                         : double(verdict.within[limit]) / double(verdict.elements);
        };
        Match match;
        match.max_error_u = verdict.nan_mismatch ? std::numeric_limits<double>::infinity()
                                                 : verdict.largest_error_u;
        match.changes_rest = verdict.bits_changed;
        match.share_within = share(0);
        match.share_close = share(1);
        // Uses the oracle's flags rather than the shares, which do not count NaN.
        const bool whole = !verdict.nan_mismatch && !verdict.bits_changed;
        match.explains = whole && verdict.largest_error_u <= limits_.bound_u;
        match.nearly = whole && verdict.largest_error_u * unit <= limits_.tolerance;
        return match;
    }

    std::string breach(const oracle::Verdict& verdict) const {
        const char* what = breach_of(verdict, limits_.bound_u);
        return what == nullptr ? "" : fmt::format("{}: {}", what, verdict.worst);
    }

   private:
    static Match named(Match match, const Mistake& mistake) {
        match.mistake = mistake.name;
        match.meaning = mistake.meaning;
        match.precision = mistake.precision;
        match.measured = mistake.measured;
        return match;
    }

    /// Keeps at most `most` of the set rows, evenly spread, including the last.
    static std::vector<bool> thinned(std::vector<bool> rows, std::uint64_t most) {
        const auto count = static_cast<std::uint64_t>(std::count(rows.begin(), rows.end(), true));
        const Every kept = at_most(most, std::max<std::uint64_t>(1, count));
        std::uint64_t number = 0;
        for (std::size_t row = 0; row < rows.size(); ++row) {
            if (rows[row]) {
                rows[row] = number++ % kept.step == kept.first;
            }
        }
        return rows;
    }

    const Evidence& evidence_;
    const Limits& limits_;
};

/// Whether a mistake explains, or nearly, none of whose values was read from the output.
bool any_named(const std::vector<Match>& matches, bool Match::*good) {
    return std::any_of(matches.begin(), matches.end(), [good](const Match& match) {
        return match.*good && !match.precision && !match.measured;
    });
}

/// A value that is read from the output fits it better than any other: it must explain what nothing
/// else does.
void keep_best_measured(std::vector<Match>& matches) {
    const bool explained = any_named(matches, &Match::explains),
               nearly = any_named(matches, &Match::nearly);
    std::erase_if(matches, [&](const Match& match) {
        return match.measured && (explained || !match.nearly || (nearly && !match.explains));
    });
}

/// no_rounding  the output is not the right one in other arithmetic
void put_best_first(std::vector<Match>& matches, const Match& right, bool no_rounding) {
    std::stable_sort(matches.begin(), matches.end(), [&](const Match& a, const Match& b) {
        const auto quality = [&](const Match& match) {
            // Elements that are correct anyway give no merit to other arithmetic.
            const bool has_merit = !match.precision ||
                                   (match.share_within > right.share_within && !no_rounding);
            return std::tuple(match.explains, match.nearly && (has_merit || !no_rounding),
                              has_merit, match.share_within, match.share_close, -match.max_error_u);
        };
        return quality(a) > quality(b);
    });
}

Outcome outcome_of(const Match& right, const std::vector<Match>& matches, const Limits& limits,
                   bool no_rounding) {
    if (right.explains) {
        return Outcome::pass;
    }
    const Match* best = matches.empty() ? nullptr : &matches.front();
    if (best != nullptr && best->explains) {
        return limits.accepts_close && best->precision && right.nearly ? Outcome::close
                                                                       : Outcome::mistake;
    }
    if (no_rounding && best != nullptr && best->precision) {
        return Outcome::unexplained;
    }
    // Two operations that differ little both come close; only a much better match justifies
    // reporting a mistake.
    const bool much_better = best != nullptr && best->nearly &&
                             4 * best->max_error_u <= right.max_error_u;
    if (right.nearly && !much_better) {
        return no_rounding ? Outcome::unexplained : Outcome::close;
    }
    return best != nullptr && best->nearly ? Outcome::mistake : Outcome::unexplained;
}

/// An engine may be wrong only for some heads, tokens or sequences: tries the mistakes on the wrong
/// rows alone. Leaves out other arithmetic, which may be slightly worse anywhere, and mistakes of
/// the layout, which affect all rows.
void add_matches_of_wrong_rows(const Judge& judge, const std::vector<Mistake>& mistakes,
                               const std::vector<bool>& rows, Judgement& judgement) {
    std::vector<Match> found;
    for (const Mistake& mistake : mistakes) {
        if (mistake.precision || mistake.measured || mistake.part == Part::layout) {
            continue;
        }
        if (std::optional<Match> match = judge.match_of_rows(mistake, rows)) {
            match->where = judgement.wrong_in.empty()
                               ? fmt::format("{} of {} rows", judgement.wrong_rows, judgement.rows)
                               : judgement.wrong_in;
            found.push_back(std::move(*match));
        }
    }
    judgement.matches.insert(judgement.matches.begin(), found.begin(), found.end());
}

void add_matches_of_two(const Judge& judge, const Evidence& evidence,
                        const std::vector<Mistake>& mistakes, std::vector<Match>& matches) {
    // If one mistake nearly explains the output, two that nearly explain it add nothing.
    const bool if_nearly = std::none_of(matches.begin(), matches.end(),
                                        [](const Match& match) { return match.nearly; });
    each_two(evidence, mistakes, [&](const Mistake& both) {
        if (std::optional<Match> match = judge.match_of_two(both, if_nearly)) {
            matches.push_back(std::move(*match));
        }
    });
}

}  // namespace

Judgement judge(const Evidence& evidence, const Limits& limits,
                const std::function<void(double)>& progress) {
    const Judge judge(evidence, limits);
    const auto report = [&progress](double fraction) {
        if (progress) {
            progress(fraction);
        }
    };
    const Trial right = {.in = evidence.in,
                         .out = evidence.out,
                         .operation = evidence.operation,
                         .further = evidence.further};
    const oracle::Verdict verdict = judge.compare(right,
                                                  [&](double fraction) { report(fraction / 2); });
    const Match of_right = judge.measured(verdict);
    Judgement judgement;
    judgement.right = of_right;
    judgement.elements = verdict.elements;
    judgement.breach = judge.breach(verdict);
    const Trial sample = sampled(right, limits.sampled_elements);
    judgement.sampled = sample.in.batch * sample.in.tokens * sample.in.heads * sample.in.head_dim;
    const Match right_in_sample = judgement.sampled == verdict.elements
                                      ? of_right
                                      : judge.measured(judge.compare(sample));
    const std::vector<Mistake> mistakes = mistakes_of(evidence);
    std::vector<Match>& matches = judgement.matches;
    for (std::size_t m = 0; m < mistakes.size(); ++m) {
        report(0.5 + 0.5 * double(m + 1) / double(mistakes.size()));
        if (mistakes[m].measured && (of_right.explains || any_named(matches, &Match::explains))) {
            continue;
        }
        Match match = judge.match(mistakes[m]);
        if (!of_right.explains && !match.explains && !mistakes[m].turns.empty()) {
            match = judge.match(judge.with_turns_chosen(mistakes[m], limits.sampled_elements));
        }
        matches.push_back(std::move(match));
    }
    keep_best_measured(matches);
    // Flushing differs from the correct operation in almost nothing, so a partial match would be
    // misleading.
    std::erase_if(matches, [](const Match& match) {
        return match.mistake == "subnormals_flushed" && !match.explains;
    });
    if (of_right.nearly && !of_right.explains) {
        judgement.odd_pairs = odd_pairs(evidence, limits.bound_u, judgement.pairs);
    }
    const bool no_rounding = !judgement.odd_pairs.empty();
    put_best_first(matches, right_in_sample, no_rounding);
    judgement.rows = verdict.rows_beyond.size();
    judgement.wrong_rows = static_cast<std::uint64_t>(
        std::count(verdict.rows_beyond.begin(), verdict.rows_beyond.end(), true));
    judgement.wrong_in = judgement.wrong_rows == 0 ? ""
                                                   : where_of(evidence.in, verdict.rows_beyond);
    const auto explained = [&matches] { return !matches.empty() && matches.front().explains; };
    if (!of_right.explains && !explained() && judgement.wrong_rows < judgement.rows) {
        add_matches_of_wrong_rows(judge, mistakes, verdict.rows_beyond, judgement);
    }
    if (!of_right.explains && (!of_right.nearly || no_rounding) && !explained()) {
        add_matches_of_two(judge, evidence, mistakes, matches);
        keep_best_measured(matches);
        put_best_first(matches, right_in_sample, no_rounding);
    }
    judgement.outcome = outcome_of(of_right, matches, limits, no_rounding);
    const bool in_part = !matches.empty() && !matches.front().where.empty();
    if (judgement.outcome == Outcome::close || judgement.outcome == Outcome::unexplained ||
        in_part) {
        judgement.lone = lone_of(evidence.in, verdict);
    }
    return judgement;
}

}  // namespace vkrope::tools
