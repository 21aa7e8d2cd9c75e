// SPDX-License-Identifier: MIT
#include "check/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "check/compare.hpp"
#include "check/search.hpp"
#include "check/where.hpp"
#include "verify/oracle/rows.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::tools {
namespace {

// Returns the largest code of a type, relative to the code of 0.
int largest_code(oracle::Store type) {
    switch (type) {
        case oracle::Store::e4m3fn: return 0x7e;
        case oracle::Store::e5m2: return 0x7b;
        case oracle::Store::int8:
        case oracle::Store::q8_0: return 127;
        case oracle::Store::int4: return 7;
        case oracle::Store::iq4_nl:
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

// Compares the output of one tensor with hypotheses.
class Judge {
   public:
    Judge(const Observation& observation, const Limits& limits)
        : observation_(observation), limits_(limits) {}

    // From now on, ends the comparison with a mistake at an element beyond the bound.
    void match_only_exactly() { until_ = Until::beyond; }

    Match measured(const Comparison& comparison, const Hypothesis& hypothesis) const {
        if (hypothesis.store) {
            return match_of_codes(comparison.verdict.codes, hypothesis.store->type,
                                  limits_.tolerance);
        }
        const oracle::Verdict& verdict = comparison.verdict;
        Match match;
        match.largest_error = comparison.largest_error;
        match.changes_rest = verdict.bits_changed && !observation_.with_ops;
        match.share_within = share_of(verdict.within, verdict.elements);
        match.explains = verdict.right();
        match.nearly = !match.changes_rest && !verdict.nan_mismatch &&
                       match.largest_error <= limits_.tolerance;
        return match;
    }

    // Compares a mistake with some elements, and if they fit with all.
    //
    // rows  the rows to explain; empty: all
    Match match(const Mistake& mistake, const std::vector<bool>& rows = {}) const {
        const Hypothesis& hypothesis = mistake.hypothesis;
        Match match;
        for (const std::uint64_t elements :
             {limits_.sampled_elements, std::numeric_limits<std::uint64_t>::max()}) {
            match = measured(tools::compare(observation_, hypothesis, limits_,
                                            sample_for(hypothesis, rows, elements), rows, until_),
                             hypothesis);
            if (!match.explains && !(match.nearly && until_ == Until::wrong)) break;
        }
        match.mistake = mistake.name();
        match.meaning = mistake.meaning();
        match.precision = mistake.precision;
        match.of_norm = mistake.changes(Part::norm);
        return match;
    }

    // If the pairs have several candidate turns, chooses for each pair the turn that leaves the
    // fewest elements beyond the bound. Codes and outputs of a Hadamard transform do not show
    // single pairs, so for these the mistake stays unchanged.
    Mistake with_turns_chosen(Mistake mistake, const std::vector<bool>& rows = {}) const {
        Hypothesis tried = mistake.hypothesis;
        if (mistake.turns.empty() || tried.store || tried.ops.hadamard != 0) return mistake;
        const Sample sample = sample_for(tried, rows, limits_.sampled_elements);
        const std::vector<oracle::Pair> pairs = oracle::pairs_of(tried.operation);
        std::vector<std::size_t> chosen(pairs.size());
        std::vector<std::uint64_t> fewest(pairs.size(), std::numeric_limits<std::uint64_t>::max());
        for (std::size_t turn = 0; turn < mistake.turns.size(); ++turn) {
            tried.operation.cos_sin = mistake.turns[turn];
            const std::vector<std::uint64_t> beyond =
                tools::compare(observation_, tried, limits_, sample, rows).beyond_in;
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

    // Returns the match of a mistake. If its pairs have several candidate turns, takes the best
    // turns.
    Match best_match(const Mistake& mistake, const std::vector<bool>& rows = {}) const {
        Match match = this->match(mistake, rows);
        return match.explains || mistake.turns.empty()
                   ? match
                   : this->match(with_turns_chosen(mistake, rows), rows);
    }

    // Returns whether the remaining error of a nearly right hypothesis may be rounding by an
    // engine that computes in 16 bits, because its output has only 16 bits.
    bool leaves_rounding(const Mistake& mistake, const Match& match,
                         const std::vector<bool>& rows) const {
        constexpr double most_of_f16 = 0x1p-8;  // the error of eight roundings
        return is_in_16_bits() &&
               (observation_.right.out.type != oracle::Type::f16 || observation_.right.store ||
                match.largest_error <= most_of_f16) &&
               odd_pairs(observation_, mistake.hypothesis, rows).empty();
    }

    bool is_in_16_bits() const {
        const Hypothesis& right = observation_.right;
        if (right.store || right.out.type != oracle::Type::f32) return true;
        // The channels that were computed: those of the pairs, or with other ops all channels.
        std::vector<std::uint64_t> channels;
        for (const oracle::Pair& pair : oracle::pairs_of(right.operation))
            channels.push_back(pair.out[1]);
        if (channels.empty()) {
            channels.resize(right.out.head_dim);
            std::iota(channels.begin(), channels.end(), std::uint64_t{0});
        }
        return std::any_of(std::begin(in_16_bits), std::end(in_16_bits), [&](const Rounded& in) {
            for (const Tokens& tokens : sample_of(right, limits_.sampled_elements)) {
                for (std::uint64_t i = 0; i < right.out.heads * channels.size(); ++i) {
                    const std::uint64_t row = oracle::row_of(
                        right.out, {tokens.batch, tokens.first, i / channels.size(), 0});
                    const double x = oracle::widen(
                        oracle::Type::f32,
                        oracle::load(observation_.output, 4,
                                     right.first_out + row + channels[i % channels.size()]));
                    if (x == x && rounded_to(in.type, x) != x) return false;
                }
            }
            return true;
        });
    }

    const Observation& observation() const { return observation_; }

   private:
    const Observation& observation_;
    const Limits& limits_;
    Until until_ = Until::wrong;
};

// Returns the misfit of a match: for codes the share of wrong codes, because most mistakes move
// some code by one; otherwise the largest error.
double missed(const Match& match, bool quantised) {
    return quantised            ? 1 - match.share_within
           : match.changes_rest ? std::numeric_limits<double>::infinity()
                                : match.largest_error;
}

// Calls visit(mistake) for each mistake that is one row of a table or another RoPE of the model.
template <class Visit>
void each_single(const Observation& observation, const Visit& visit) {
    const Mistake right = {.hypothesis = observation.right};
    // The other RoPEs of the model come first, because if they explain an output they are likelier
    // than a base that happens to match. A RoPE without scaling is reported as scaling_ignored.
    for (const OtherRotation& other : observation.others)
        if (const std::optional<Mistake> mistake = with(right, other, observation)) visit(*mistake);
    for (const Row& row : all_rows())
        if (const std::optional<Mistake> mistake = with(right, row, observation)) visit(*mistake);
}

// Searches for an explanation of some rows, and keeps it.
class Explanation {
   public:
    // rows   the rows to explain; empty: all
    // right  the comparison with the definition
    Explanation(const Judge& judge, const std::vector<bool>& rows, const Match& right)
        : judge_(judge), rows_(rows), right_(right),
          quantised_(judge.observation().right.store.has_value()) {}

    // Tries each mistake that is one row of a table, and each other RoPE of the model.
    void try_singles() {
        each_single(
            judge_.observation(),
            [this](const Mistake& mistake) {
                // Other arithmetic and a wrong layout affect all rows, so they are tried only on
                // all.
                if (rows_.empty() || (!mistake.precision && !mistake.changes(Part::layout)))
                    add(judge_.best_match(mistake, rows_), mistake);
            });
    }

    static constexpr int phases = 6;

    // Builds hypotheses that fit the rows: with stated values, with measured positions, with other
    // arithmetic, with measured frequencies, or with measured values and rounded frequencies.
    void search(int phase) {
        Search& pairs = the_search();
        switch (phase) {
            case 0: confirm(pairs.stated()); break;
            case 1: confirm(pairs.with_positions(false)); break;
            case 2: confirm(pairs.with_arithmetic()); break;
            case 3: confirm(pairs.with_frequencies(false)); break;
            case 4: confirm(pairs.with_positions(true)); break;
            default: confirm(pairs.with_frequencies(true));
        }
        add_arithmetic();
    }

    std::vector<std::string> findings() const {
        return search_ ? search_->findings() : std::vector<std::string>();
    }

    bool is_found() const { return !exact.empty() || !near.empty(); }

    // Returns whether only positions without a pattern, which fit any output, explain the rows.
    bool is_vague() const { return !exact.empty() && exact.size() == vague_; }

    // Twice the angles may also mean other frequencies. Adds a single number that explains the
    // rows as well, because it is likelier than two mistakes.
    void add_other_frequencies() {
        if (exact.empty() || exact.front().mistake.find("rotated_twice") == std::string::npos)
            return;
        const auto is_combined = [](const Match& match) {
            return match.mistake.find(" + ") != std::string::npos;
        };
        std::vector<Match> stated = std::exchange(exact, {});
        confirm(the_search().with_frequencies(false));
        std::erase_if(exact, is_combined);
        const bool is_likelier = is_combined(stated.front());
        exact.insert(is_likelier ? exact.end() : exact.begin(), stated.begin(), stated.end());
    }

    // Adds rounding of tables and other arithmetic to the mistakes that come nearest.
    void add_arithmetic() {
        const std::vector<Nearly> nearest = nearest_;
        for (const Nearly& one : nearest) add_arithmetic(one.mistake, 1);
    }

    // Adds up to two changes of the arithmetic to the definition.
    void add_arithmetic_to_right() {
        for (const int number : {1, 2})
            add_arithmetic({.hypothesis = judge_.observation().right}, number);
    }

    std::vector<Match> exact;  // mistakes that explain every value, likeliest first
    std::vector<Match> near;   // mistakes that explain all but rounding, best first

   private:
    struct Nearly {
        Mistake mistake;
        double missed = 0;
    };

    Search& the_search() {
        return search_ ? *search_ : search_.emplace(judge_.observation(), rows_);
    }

    void add_arithmetic(const Mistake& mistake, int number) {
        for (const Row& row : all_rows()) {
            if (!row.precision || row.part == Part::alone || !exact.empty()) continue;
            const std::optional<Mistake> both = with(mistake, row, judge_.observation());
            if (both && number > 1) {
                add_arithmetic(*both, number - 1);
            } else if (both) {
                if (Match match = judge_.best_match(*both, rows_); match.explains)
                    add(std::move(match), *both);
            }
        }
    }

    // Has the oracle confirm candidates, likeliest first, until one explains the rows and no
    // remaining candidate has as few changes.
    void confirm(const std::vector<Candidate>& candidates) {
        constexpr std::size_t most = 96;
        std::size_t fewest = 0;
        for (std::size_t i = 0; i < std::min(most, candidates.size()); ++i) {
            const Mistake& mistake = candidates[i].mistake;
            if (mistake.named.empty() || (fewest != 0 && mistake.cost() > fewest)) continue;
            Match match = judge_.best_match(mistake, rows_);
            if (match.explains || !candidates[i].is_ambiguous) add(std::move(match), mistake);
            fewest = exact.empty() ? 0 : mistake.cost();
        }
    }

    void add(Match match, const Mistake& mistake) {
        if (match.explains) {
            const bool known = std::any_of(exact.begin(), exact.end(), [&](const Match& other) {
                return other.mistake == match.mistake;
            });
            const bool vague = mistake.is_vague();
            if (exact.size() == vague_ && !vague && !known) {
                exact.clear();  // a mistake with a pattern is likelier
                vague_ = 0;
            }
            if (!known && (!vague || exact.size() == vague_)) {
                exact.push_back(std::move(match));
                vague_ += vague ? 1 : 0;
            }
            return;
        }
        // Similar definitions come equally close, so only a much better match counts.
        const double left = missed(match, quantised_);
        if (!match.nearly || 4 * left > missed(right_, quantised_) || mistake.is_vague()) return;
        constexpr std::size_t most = 6;
        if (std::any_of(nearest_.begin(), nearest_.end(), [&](const Nearly& other) {
                return other.mistake.name() == mistake.name();
            }))
            return;
        // Of mistakes that come about as close, the one with the fewest changes comes first.
        const auto order = [](const Nearly& one) {
            return std::tuple(std::ilogb(one.missed), one.mistake.cost());
        };
        const Nearly nearly = {mistake, left};
        const auto at = std::upper_bound(
            nearest_.begin(), nearest_.end(), nearly,
            [&](const Nearly& a, const Nearly& b) { return order(a) < order(b); });
        nearest_.insert(at, nearly);
        nearest_.resize(std::min(most, nearest_.size()));
        // A mistake is no explanation if one with fewer changes comes closer, even beyond rounding.
        const bool is_simpler_closer = std::any_of(
            nearest_.begin(), nearest_.end(), [&](const Nearly& other) {
                return other.missed <= left && other.mistake.cost() < mistake.cost();
            });
        if (is_simpler_closer || (mistake.precision && right_.nearly) ||
            !judge_.leaves_rounding(mistake, match, rows_))
            return;
        constexpr double better = 2, alike = 1.25;
        const double least = near.empty() ? 0 : missed(near.front(), quantised_);
        if (near.empty() || better * left < least) {
            near = {std::move(match)};
            cost_of_near_ = mistake.cost();
        } else if (left <= alike * least && mistake.cost() == cost_of_near_ &&
                   near.size() < shown_matches) {
            near.push_back(std::move(match));
            std::stable_sort(near.begin(), near.end(), [](const Match& a, const Match& b) {
                return a.share_within > b.share_within;
            });
        }
    }

    const Judge& judge_;
    const std::vector<bool>& rows_;
    const Match& right_;
    const bool quantised_;
    std::optional<Search> search_;
    std::size_t cost_of_near_ = 0;
    std::size_t vague_ = 0;        // number of mistakes in `exact` whose positions have no pattern
    std::vector<Nearly> nearest_;  // the mistakes that come closest, closest first
};

// Returns the rows with a wrong element, unless all rows have one, and the rows with an element
// beyond the tolerance.
std::vector<std::vector<bool>> wrong_rows_of(const Comparison& comparison) {
    std::vector<std::vector<bool>> parts;
    for (const std::vector<bool>* rows : {&comparison.rows_beyond, &comparison.rows_far}) {
        const auto wrong = std::count(rows->begin(), rows->end(), true);
        if (wrong != 0 && std::size_t(wrong) < rows->size() &&
            (parts.empty() || parts.back() != *rows))
            parts.push_back(*rows);
    }
    return parts;
}

// Searches explanations of all rows, or of the wrong ones: tries values that the model states
// before values that are read from the output.
void explain(std::vector<Explanation>& explanations) {
    const auto is_found = [](const Explanation& one) { return one.is_found(); };
    const auto is_clear = [](const Explanation& one) { return one.is_found() && !one.is_vague(); };
    for (std::size_t i = 1; i < explanations.size() &&
                            std::none_of(explanations.begin(), explanations.end(), is_found);
         ++i)
        explanations[i].try_singles();
    for (int phase = 0; phase < Explanation::phases; ++phase) {
        for (Explanation& one : explanations) {
            const auto clear = std::find_if(explanations.begin(), explanations.end(), is_clear);
            if (clear != explanations.end()) {
                clear->add_other_frequencies();
                return;
            }
            one.search(phase);
        }
    }
}

// Returns a sentence about the wrong channels if they are fewer than half of all.
std::string wrong_channels(const std::vector<std::uint64_t>& beyond_in) {
    std::vector<bool> wrong(beyond_in.size());
    std::transform(beyond_in.begin(), beyond_in.end(), wrong.begin(),
                   [](std::uint64_t number) { return number != 0; });
    const auto number = std::count(wrong.begin(), wrong.end(), true);
    return number != 0 && 2 * std::size_t(number) < wrong.size()
               ? "only these channels are wrong: " + ranges_text("channel", wrong)
               : "";
}

// Returns a sentence if all wrong rows contain only zeros, or only NaN, and cannot be measured.
std::string empty_rows(const Observation& observation, const std::vector<bool>& wrong) {
    const Hypothesis& right = observation.right;
    if (right.store || std::find(wrong.begin(), wrong.end(), true) == wrong.end()) return {};
    bool zeros = true, nans = true;
    for (std::uint64_t row = 0; row < wrong.size() && (zeros || nans); ++row) {
        const std::uint64_t heads = right.out.heads, tokens = right.out.tokens,
                            first = right.first_out +
                                    oracle::row_of(right.out,
                                                   {row / heads / tokens, row / heads % tokens,
                                                    row % heads, 0});
        bool is_zero = true, has_nan = false;
        for (std::uint64_t c = 0; wrong[row] && c < right.out.head_dim; ++c) {
            const double x = oracle::widen(
                right.out.type,
                oracle::load(observation.output, oracle::bytes_of(right.out.type), first + c));
            is_zero = is_zero && x == 0;
            has_nan = has_nan || std::isnan(x);
        }
        zeros = zeros && (is_zero || !wrong[row]);
        nans = nans && (has_nan || !wrong[row]);
    }
    return zeros  ? "every wrong row is 0: it was not written, or it is padding"
           : nans ? "every wrong row has a NaN"
                  : "";
}

}  // namespace

Judgement judge(const Observation& observation, const Limits& limits,
                const std::function<void(double)>& progress) {
    Judge judge(observation, limits);
    const Hypothesis& right = observation.right;
    const Comparison comparison = compare(observation, right, limits, all_tokens(right), {},
                                          Until::end, progress);
    Judgement judgement;
    judgement.right = judge.measured(comparison, right);
    judgement.with_ops = observation.with_ops;
    judgement.quantised = right.store.has_value();
    judgement.elements = elements_of(right, all_tokens(right));
    judgement.breach = oracle::problem_of(right, comparison.verdict);
    judgement.bound_u = right.bound_u;
    judgement.sampled = elements_of(right, sample_of(right, limits.sampled_elements));
    judgement.pairs = right.operation.inv_freq.size() / right.operation.head_groups;
    if (judgement.elements == 0) {
        judgement.outcome = Outcome::pass;
        return judgement;
    }
    const Match& of_right = judgement.right;
    if (of_right.nearly && !of_right.explains)
        judgement.odd_pairs = odd_pairs(observation, right, {});
    judgement.rows = comparison.rows_beyond.size();
    judgement.wrong_rows = std::uint64_t(
        std::count(comparison.rows_beyond.begin(), comparison.rows_beyond.end(), true));
    judgement.wrong_in = judgement.wrong_rows == 0 ? ""
                                                   : where_of(right.in, comparison.rows_beyond);
    if (std::string empty = empty_rows(observation, comparison.rows_beyond); !empty.empty()) {
        judgement.findings.push_back(std::move(empty));
        judgement.lone = lone_of(right, comparison, judgement);
        return judgement;
    }
    std::vector<std::vector<bool>> scopes = wrong_rows_of(comparison);
    scopes.insert(scopes.begin(), std::vector<bool>());  // all rows
    std::vector<Explanation> explanations;
    explanations.reserve(scopes.size());
    for (const std::vector<bool>& rows : scopes) explanations.emplace_back(judge, rows, of_right);
    if (of_right.explains) judge.match_only_exactly();
    explanations.front().try_singles();
    if (of_right.explains) {
        judgement.outcome = Outcome::pass;
        judgement.matches = std::move(explanations.front().exact);
        return judgement;
    }
    const bool no_rounding = !judgement.odd_pairs.empty();
    if (!explanations.front().is_found()) {
        if (std::optional<Match> moved = rows_of_others(observation, comparison.rows_beyond))
            explanations.front().exact.push_back(std::move(*moved));
    }
    if (of_right.nearly && !no_rounding) {
        explanations.front().add_arithmetic_to_right();
        if (!explanations.front().is_found() && !judge.is_in_16_bits())
            explanations.front().search(0);
    } else {
        explain(explanations);
    }
    auto best = std::find_if(
        explanations.begin(), explanations.end(),
        [](const Explanation& one) { return one.is_found() && !one.is_vague(); });
    best = best != explanations.end()
               ? best
               : std::find_if(explanations.begin(), explanations.end(),
                              [](const Explanation& one) { return one.is_found(); });
    Explanation& found = best == explanations.end() ? explanations.front() : *best;
    std::string where;
    if (&found != &explanations.front()) {
        const std::vector<bool>& rows = scopes[std::size_t(&found - &explanations.front())];
        where = where_of(right.in, rows);
        where = where.empty()
                    ? fmt::format("{} of {} rows", std::count(rows.begin(), rows.end(), true),
                                  judgement.rows)
                    : where;
    }
    if (!found.is_found()) {
        judgement.findings = found.findings();
        if (const std::string channels = wrong_channels(comparison.beyond_in); !channels.empty())
            judgement.findings.push_back(channels);
    }
    // A forgotten scale is likelier than a norm that is off by the same factor, and a norm that is
    // right in the other tensor is probably right here.
    std::stable_partition(found.exact.begin(), found.exact.end(),
                          [](const Match& match) { return !match.of_norm; });
    if (observation.other_norm_is_right && !found.exact.empty() && !found.exact.front().of_norm)
        std::erase_if(found.exact, [](const Match& match) { return match.of_norm; });
    judgement.matches = std::move(found.exact);
    if (judgement.matches.empty()) judgement.matches = std::move(found.near);
    for (Match& match : judgement.matches) match.where = where;
    if (judgement.matches.empty()) {
        judgement.outcome = of_right.nearly && !no_rounding ? Outcome::close : Outcome::unexplained;
    } else {
        const bool accepted = limits.accepts_close && judgement.matches.front().precision &&
                              of_right.nearly;
        judgement.outcome = accepted ? Outcome::close : Outcome::mistake;
    }
    if (judgement.matches.empty() || !where.empty())
        judgement.lone = lone_of(right, comparison, judgement);
    return judgement;
}

}  // namespace vkrope::tools
