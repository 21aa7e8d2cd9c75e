// SPDX-License-Identifier: MIT
#include "check/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "check/compare.hpp"
#include "check/mistakes.hpp"
#include "check/where.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::tools {
namespace {

/// Returns the largest code of a type, relative to the code of 0.
int largest_code(oracle::Store type) {
    switch (type) {
        case oracle::Store::e4m3fn: return 0x7e;
        case oracle::Store::e5m2: return 0x7b;
        case oracle::Store::int8:
        case oracle::Store::q8_0: return 127;
        case oracle::Store::q4_0: return 8;
        case oracle::Store::q4_1: return 15;
        case oracle::Store::q5_0: return 16;
        case oracle::Store::q5_1: return 31;
    }
    return 1;
}

double share_of(std::uint64_t some, std::uint64_t all) {
    return all == 0 ? 1 : double(some) / double(all);
}

Match match_of_codes(const oracle::CodesVerdict& verdict, oracle::Store type, double tolerance) {
    const std::uint64_t all = verdict.codes + verdict.scales;
    const int largest = largest_code(type);
    Match match;
    match.share_within = share_of(all - verdict.wrong_codes - verdict.wrong_scales, all);
    match.explains = verdict.right();
    match.largest_error = std::max(double(verdict.code_distance) / largest, verdict.scale_error);
    // An error of some share of the largest value moves a code by that share of the largest code,
    // so at most this share of the codes moves by one. Another rounding moves half of them.
    const double may_differ = std::min(0.25, tolerance * largest);
    match.nearly = verdict.code_distance <= 1 && verdict.scale_error <= tolerance &&
                   double(verdict.wrong_codes) <= may_differ * double(verdict.codes);
    return match;
}

class Judge {
   public:
    Judge(const Observation& observation, const Limits& limits)
        : observation_(observation), limits_(limits) {}

    Comparison compare(const Hypothesis& hypothesis,
                       const std::function<void(double)>& progress = {}) const {
        return tools::compare(observation_, hypothesis, limits_, all_tokens(hypothesis), {},
                              progress);
    }

    Match on_sample(const Hypothesis& hypothesis, std::uint64_t elements) const {
        return measured(
            tools::compare(observation_, hypothesis, limits_, sample_of(hypothesis, elements)),
            hypothesis);
    }

    Match match(const Mistake& mistake) const {
        Match match = on_sample(mistake.hypothesis, limits_.sampled_elements);
        if (match.explains || match.nearly) {  // compares all elements before reporting the match
            match = measured(compare(mistake.hypothesis), mistake.hypothesis);
        }
        return named(match, mistake);
    }

    /// Compares the mistake with the wrong rows. Returns none if it does not explain all of them.
    std::optional<Match> match_of_rows(const Mistake& mistake,
                                       const std::vector<bool>& rows) const {
        const oracle::Tensor& in = mistake.hypothesis.in;
        Match match;
        for (const std::uint64_t most :
             {limits_.glimpsed_elements / (in.heads * in.head_dim), rows.size()}) {
            const std::vector<bool> some = thinned(rows, std::max<std::uint64_t>(1, most));
            match = named(measured(tools::compare(observation_, mistake.hypothesis, limits_,
                                                  tokens_of(mistake.hypothesis, some), some),
                                   mistake.hypothesis),
                          mistake);
            if (!match.explains) {
                return std::nullopt;
            }
        }
        return match;
    }

    /// Compares a combination of two mistakes, first on a small sample, which rejects nearly all of
    /// the many combinations. Returns none if it does not explain everything.
    ///
    /// if_nearly  also accepts a match within the tolerance
    std::optional<Match> match_of_two(const Mistake& mistake, bool if_nearly) const {
        const auto good = [if_nearly](const Match& match) {
            return match.explains || (if_nearly && match.nearly);
        };
        const Mistake chosen = with_turns_chosen(mistake, limits_.glimpsed_elements);
        if (!good(on_sample(chosen.hypothesis, limits_.glimpsed_elements))) {
            return std::nullopt;
        }
        const Match found = match(with_turns_chosen(mistake, limits_.sampled_elements));
        return good(found) ? std::optional(found) : std::nullopt;
    }

    /// If the pairs have several candidate turns, chooses for each pair the turn that leaves the
    /// fewest elements beyond the bound. Codes and outputs of a Hadamard transform do not show
    /// single pairs, so for these the mistake stays unchanged.
    Mistake with_turns_chosen(Mistake mistake, std::uint64_t elements) const {
        Hypothesis tried = mistake.hypothesis;
        if (mistake.turns.empty() || tried.store || tried.ops.hadamard != 0) {
            return mistake;
        }
        const Sample sample = sample_of(tried, elements);
        const std::vector<oracle::Pair> pairs = oracle::pairs_of(tried.operation);
        std::vector<std::size_t> chosen(pairs.size());
        std::vector<std::uint64_t> fewest(pairs.size(), std::numeric_limits<std::uint64_t>::max());
        for (std::size_t turn = 0; turn < mistake.turns.size(); ++turn) {
            tried.operation.cos_sin = mistake.turns[turn];
            const std::vector<std::uint64_t> beyond =
                tools::compare(observation_, tried, limits_, sample).beyond_in;
            for (std::size_t j = 0; j < pairs.size(); ++j) {
                const std::uint64_t wrong = beyond[pairs[j].out[0]] + beyond[pairs[j].out[1]];
                if (wrong < fewest[j]) {
                    fewest[j] = wrong;
                    chosen[j] = turn;
                }
            }
        }
        mistake.hypothesis.operation.cos_sin = [turns = mistake.turns, chosen](
                                                   std::int64_t position, std::size_t pair) {
            return turns[chosen[pair % chosen.size()]](position, pair);
        };
        return mistake;
    }

    Match measured(const Comparison& comparison, const Hypothesis& hypothesis) const {
        if (hypothesis.store) {
            return match_of_codes(comparison.codes, hypothesis.store->quantised.type,
                                  limits_.tolerance);
        }
        Match match;
        match.largest_error = comparison.largest_error;
        match.changes_rest = comparison.bits_changed && !observation_.with_ops;
        match.share_within = share_of(comparison.within, comparison.elements);
        match.share_close = share_of(comparison.close, comparison.elements);
        match.explains = comparison.within == comparison.elements;
        match.nearly = !match.changes_rest && match.largest_error <= limits_.tolerance;
        return match;
    }

   private:
    static Match named(Match match, const Mistake& mistake) {
        match.mistake = mistake.name;
        match.meaning = mistake.meaning;
        match.precision = mistake.precision;
        match.measured = mistake.measured;
        return match;
    }

    /// Keeps at most `most` of the set rows, evenly spaced, including the last.
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

    const Observation& observation_;
    const Limits& limits_;
};

/// Returns true if a mistake explains, or nearly explains, without values read from the output.
bool any_named(const std::vector<Match>& matches, bool Match::*good) {
    return std::any_of(matches.begin(), matches.end(), [good](const Match& match) {
        return match.*good && !match.precision && !match.measured;
    });
}

/// A value read from the output always fits well, so such a match counts only if it explains what
/// no other mistake explains.
void keep_best_measured(std::vector<Match>& matches) {
    const bool explained = any_named(matches, &Match::explains),
               nearly = any_named(matches, &Match::nearly);
    std::erase_if(matches, [&](const Match& match) {
        return match.measured && (explained || !match.nearly || (nearly && !match.explains));
    });
}

/// Returns the misfit of a match: for codes the share of wrong codes, since most mistakes move some
/// code by one, else the largest error.
double missed(const Match& match, bool quantised) {
    return quantised ? 1 - match.share_within : match.largest_error;
}

/// right        the comparison of the same sample with the correct operation
/// no_rounding  rounding cannot explain the errors of some pairs
void put_best_first(std::vector<Match>& matches, const Match& right, bool quantised,
                    bool no_rounding) {
    std::stable_sort(matches.begin(), matches.end(), [&](const Match& a, const Match& b) {
        const auto quality = [&](const Match& match) {
            // Elements that are correct anyway do not count in favour of other arithmetic.
            const bool has_merit = !match.precision ||
                                   (match.share_within > right.share_within && !no_rounding),
                       near = match.nearly && (has_merit || !no_rounding);
            return std::tuple(match.explains, near, has_merit, near ? -missed(match, quantised) : 0,
                              match.share_within, match.share_close, -match.largest_error);
        };
        return quality(a) > quality(b);
    });
}

Outcome outcome_of(const Judgement& judgement, const Limits& limits) {
    const Match& right = judgement.right;
    const bool no_rounding = !judgement.odd_pairs.empty();
    if (right.explains) {
        return Outcome::pass;
    }
    const Match* best = judgement.matches.empty() ? nullptr : &judgement.matches.front();
    if (best != nullptr && best->explains) {
        return limits.accepts_close && best->precision && right.nearly ? Outcome::close
                                                                       : Outcome::mistake;
    }
    if (no_rounding && best != nullptr && best->precision) {
        return Outcome::unexplained;
    }
    // Two definitions that differ little both come close, so only a much better match justifies
    // reporting a mistake.
    const bool much_better = best != nullptr && best->nearly &&
                             4 * missed(*best, judgement.quantised) <=
                                 missed(right, judgement.quantised);
    if (right.nearly && !much_better) {
        return no_rounding ? Outcome::unexplained : Outcome::close;
    }
    return best != nullptr && best->nearly ? Outcome::mistake : Outcome::unexplained;
}

/// Tries the mistakes on the wrong rows alone, because an engine may be wrong only for some heads,
/// tokens or sequences. Leaves out other arithmetic, which may be slightly worse anywhere, and
/// mistakes of the layout, which affect all rows.
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

void add_matches_of_two(const Judge& judge, const Observation& observation,
                        const std::vector<Mistake>& mistakes, std::vector<Match>& matches) {
    // If one mistake nearly explains the output, combinations that nearly explain it add nothing.
    const bool if_nearly = std::none_of(matches.begin(), matches.end(),
                                        [](const Match& match) { return match.nearly; });
    each_two(observation, mistakes, [&](const Mistake& both) {
        if (std::optional<Match> match = judge.match_of_two(both, if_nearly)) {
            matches.push_back(std::move(*match));
        }
    });
}

/// Returns what is wrong with the output and where, or an empty text if it is right.
std::string breach_of(const Comparison& comparison) {
    if (comparison.beyond == 0) {
        return comparison.codes.first_wrong;
    }
    return fmt::format("{}: {}",
                       comparison.nan_mismatch
                           ? "a value is NaN but the exact one is not, or the reverse"
                       : comparison.bits_changed ? "a channel outside the rotated window changed"
                                                 : "a value is too far from the exact one",
                       comparison.worst);
}

}  // namespace

Judgement judge(const Observation& observation, const Limits& limits,
                const std::function<void(double)>& progress) {
    const Judge judge(observation, limits);
    const auto report = [&progress](double fraction) {
        if (progress) {
            progress(fraction);
        }
    };
    const Hypothesis& right = observation.right;
    const Comparison comparison = judge.compare(right,
                                                [&](double fraction) { report(fraction / 2); });
    const Match of_right = judge.measured(comparison, right);
    Judgement judgement;
    judgement.right = of_right;
    judgement.with_ops = observation.with_ops;
    judgement.quantised = right.store.has_value();
    judgement.elements = elements_of(right, all_tokens(right));
    judgement.breach = breach_of(comparison);
    judgement.sampled = elements_of(right, sample_of(right, limits.sampled_elements));
    const Match right_in_sample = judgement.sampled == judgement.elements
                                      ? of_right
                                      : judge.on_sample(right, limits.sampled_elements);
    const std::vector<Mistake> mistakes = mistakes_of(observation);
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
    // Flushing differs from the correct operation in almost no element, so a partial match would be
    // misleading.
    std::erase_if(matches, [](const Match& match) {
        return match.mistake == "subnormals_flushed" && !match.explains;
    });
    if (of_right.nearly && !of_right.explains) {
        judgement.odd_pairs = odd_pairs(observation, limits.bound_u, judgement.pairs);
    }
    const bool no_rounding = !judgement.odd_pairs.empty();
    put_best_first(matches, right_in_sample, judgement.quantised, no_rounding);
    judgement.rows = comparison.rows_beyond.size();
    judgement.wrong_rows = static_cast<std::uint64_t>(
        std::count(comparison.rows_beyond.begin(), comparison.rows_beyond.end(), true));
    judgement.wrong_in = judgement.wrong_rows == 0 ? ""
                                                   : where_of(right.in, comparison.rows_beyond);
    const auto explained = [&matches] { return !matches.empty() && matches.front().explains; };
    if (!of_right.explains && !explained() && judgement.wrong_rows < judgement.rows) {
        add_matches_of_wrong_rows(judge, mistakes, comparison.rows_beyond, judgement);
    }
    // Skips quantised outputs, because finding the codes that a row may have takes too long for
    // thousands of combinations.
    if (!of_right.explains && (!of_right.nearly || no_rounding) && !explained() &&
        !judgement.quantised) {
        add_matches_of_two(judge, observation, mistakes, matches);
        keep_best_measured(matches);
        put_best_first(matches, right_in_sample, judgement.quantised, no_rounding);
    }
    judgement.outcome = outcome_of(judgement, limits);
    const bool in_part = !matches.empty() && !matches.front().where.empty();
    if (judgement.outcome == Outcome::close || judgement.outcome == Outcome::unexplained ||
        in_part) {
        judgement.lone = lone_of(right.in, comparison, judgement);
    }
    return judgement;
}

}  // namespace vkrope::tools
