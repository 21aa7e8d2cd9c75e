// SPDX-License-Identifier: MIT
#include "check/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "verify/oracle/turns.hpp"

namespace vkrope::tools {
namespace {

constexpr std::uint64_t glimpsed_elements = std::uint64_t{1} << 12,
                        seen_elements = std::uint64_t{1} << 14,
                        elements_for_positions = std::uint64_t{1} << 20;
constexpr std::size_t most_geometries = 6;
constexpr double poor_fit = 0.05;  // a larger misfit means that a hypothesis does not fit

bool is_of_geometry(const Row& row) {
    switch (row.part) {
        case Part::norm:
        case Part::bias:
        case Part::clip:
        case Part::scale:
        case Part::hadamard:
        case Part::rotation:
        case Part::pairing:
        case Part::window:
        case Part::layout: return true;
        default: return false;
    }
}

// Returns a predicate that selects the rows of one part.
auto part(Part chosen) {
    return [chosen](const Row& row) { return row.part == chosen; };
}

// Sorts those that fit about as well as the best by `cost`, and then the others by misfit. Returns
// the largest misfit that counts as good.
template <class Fitted, class Cost>
double put_best_first(std::vector<Fitted>& all, const Cost& cost) {
    double best = 1;
    for (const Fitted& one : all) best = std::min(best, one.misfit);
    const double good = std::max(64 * best, 1e-12);
    std::stable_sort(all.begin(), all.end(), [&](const Fitted& a, const Fitted& b) {
        const auto order = [&](const Fitted& one) {
            return std::tuple(one.misfit > good, one.misfit > good ? one.misfit : 0, cost(one));
        };
        return order(a) < order(b);
    });
    return good;
}

// Returns the parts that a mistake changes, as one bit each.
std::uint32_t parts_of(const Mistake& mistake) {
    std::uint32_t parts = 0;
    for (const Mistake::Named& named : mistake.named)
        parts |= std::uint32_t{1} << unsigned(named.row->part);
    return parts;
}

// Returns the candidates, likeliest first, without those that reach the same effect as another
// with more changes.
std::vector<Candidate> sorted(std::vector<Candidate> found) {
    std::stable_sort(found.begin(), found.end(),
                     [](const Candidate& a, const Candidate& b) { return a.misfit < b.misfit; });
    std::vector<Candidate> kept;
    for (std::size_t first = 0, end = 0; first < found.size(); first = end) {
        constexpr double same = 1 + 1e-9;
        std::map<std::uint32_t, std::size_t> least_cost;  // key: the set of parts
        while (end < found.size() && found[end].misfit <= same * found[first].misfit) {
            const Mistake& mistake = found[end++].mistake;
            const auto [at, is_new] = least_cost.emplace(parts_of(mistake), mistake.cost());
            at->second = std::min(at->second, mistake.cost());
        }
        for (Candidate& one : std::span(found).subspan(first, end - first)) {
            const auto changes_less = [parts = parts_of(one.mistake),
                                       cost = one.mistake.cost()](const auto& other) {
                return (other.first & ~parts) == 0 && other.first != parts && other.second < cost;
            };
            if (std::none_of(least_cost.begin(), least_cost.end(), changes_less))
                kept.push_back(std::move(one));
        }
    }
    put_best_first(kept,
                   [](const Candidate& one) { return std::tuple(one.mistake.cost(), one.misfit); });
    return kept;
}

// Calls visit(mistake) for the mistake and for the mistake with each chosen row.
template <class Choose, class Visit>
void each_with(const Mistake& mistake, const Observation& observation, const Choose& choose,
               const Visit& visit) {
    visit(mistake);
    for (const Row& row : all_rows()) {
        if (choose(row)) {
            if (const std::optional<Mistake> both = with(mistake, row, observation)) visit(*both);
        }
    }
}

// Calls visit(mistake) for the mistake in both directions, with cos and sin exchanged or not.
template <class Visit>
void each_direction(const Mistake& mistake, const Observation& observation, const Visit& visit) {
    each_with(
        mistake, observation, part(Part::direction),
        [&](const Mistake& turned) {
            each_with(turned, observation, part(Part::exchange), visit);
        });
}

// Returns whether a row computes cos and sin in another way.
bool is_arithmetic(const Row& row) {
    return row.part == Part::arithmetic;
}

// Two rows of a head: the difference of their positions on each axis, and how much farther the
// pairs of the second were turned. An offset common to both does not matter.
struct Step {
    std::size_t group = 0;
    std::vector<std::int64_t> axes;
    std::vector<std::complex<double>> turned;  // [pairs]
};

// Returns a few steps between neighbouring rows.
std::vector<Step> steps_of(const SeenPairs& seen, const Hypothesis& hypothesis) {
    constexpr std::size_t most = 4;
    const AxesOfPositions axes = axes_of(hypothesis);
    std::vector<Step> steps;
    for (std::size_t i = seen.rows.size(); i-- > 0 && steps.size() < most;) {
        const SeenPairs::Row& to = seen.rows[i];
        std::size_t before = i;
        while (before-- > 0) {
            const SeenPairs::Row& from = seen.rows[before];
            if (from.head == to.head && from.sequence == to.sequence && from.token != to.token)
                break;
        }
        if (before >= seen.rows.size()) continue;
        Step step = {.group = to.group, .axes = {}, .turned = {}};
        for (const Positions* positions : axes)
            step.axes.push_back((*positions)[to.token] - (*positions)[seen.rows[before].token]);
        for (std::size_t j = 0; j < seen.pairs; ++j) {
            step.turned.push_back(
                std::conj(seen.before_of(i)[j]) * seen.after_of(i)[j] *
                std::conj(std::conj(seen.before_of(before)[j]) * seen.after_of(before)[j]));
        }
        steps.push_back(std::move(step));
    }
    return steps;
}

// Returns the share of the steps, 0 to 1, that the frequencies explain in neither direction.
double misfit_of_steps(const std::vector<Step>& steps, const oracle::FurtherAxes& further,
                       const std::vector<double>& inv_freq) {
    double forward = 0, backward = 0, all = 0;
    for (const Step& step : steps) {
        for (std::size_t j = 0; j < step.turned.size(); ++j) {
            const std::size_t axis = further.positions.empty() ? 0 : further.axis(j);
            const std::complex<double> turn = std::polar(
                1.0, double(step.axes[std::min(axis, step.axes.size() - 1)]) *
                         inv_freq[step.group * step.turned.size() + j]);
            forward += (std::conj(turn) * step.turned[j]).real();
            backward += (turn * step.turned[j]).real();
            all += std::abs(step.turned[j]);
        }
    }
    return all > 0 ? std::clamp(1 - std::max(forward, backward) / all, 0.0, 1.0) : 0;
}

// Returns whether positions of a sequence differ from each other by other steps.
bool have_other_steps(const Hypothesis& a, const Hypothesis& b) {
    const Positions &one = a.operation.positions, &other = b.operation.positions;
    for (std::size_t token = 1; token < std::min(one.size(), other.size()); ++token)
        if (token % a.in.tokens != 0 &&
            one[token] - one[token - 1] != other[token] - other[token - 1])
            return true;
    return false;
}

bool same_pairs(const oracle::Operation& a, const oracle::Operation& b) {
    const std::vector<oracle::Pair> one = oracle::pairs_of(a), other = oracle::pairs_of(b);
    return a.head_groups == b.head_groups &&
           std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [](const oracle::Pair& x, const oracle::Pair& y) {
                          return x.in == y.in && x.out == y.out;
                      });
}

}  // namespace

Search::Search(const Observation& observation, const std::vector<bool>& rows)
    : observation_(observation), rows_(rows) {
    geometries_ = geometries();
}

bool Search::see(Geometry& geometry, std::uint64_t wanted) const {
    const Hypothesis& hypothesis = geometry.mistake.hypothesis;
    const bool moved = geometry.mistake.changes(Part::layout);  // gives rows other numbers
    if (moved && !rows_.empty()) return false;
    std::optional<SeenPairs> seen = see_pairs(observation_, hypothesis,
                                              sample_for(hypothesis, rows_, wanted), rows_);
    if (!seen) return false;
    geometry.misfit = misfit_of_pairs(*seen);
    geometry.seen = std::make_shared<const SeenPairs>(std::move(*seen));
    return true;
}

std::vector<Search::Geometry> Search::geometries() const {
    constexpr std::size_t most_kept = 32;
    std::vector<Geometry> all;
    const auto add = [&](Geometry one) {
        if (see(one, glimpsed_elements)) all.push_back(std::move(one));
    };
    const Mistake right = {.hypothesis = observation_.right};
    std::vector<Mistake> starts = {right};
    for (const OtherRotation& other : observation_.others)
        if (std::optional<Mistake> start = with(right, other, observation_);
            start && !same_pairs(start->hypothesis.operation, right.hypothesis.operation))
            starts.push_back(std::move(*start));
    // Tries each row, and each two rows.
    const std::size_t count = all_rows().size();
    for (const Mistake& start : starts) {
        add({start, start, {}});
        for (std::size_t i = 0; i < count; ++i) {
            const Row& row = all_rows()[i];
            const std::optional<Mistake> one = is_of_geometry(row) ? with(start, row, observation_)
                                                                   : std::nullopt;
            if (!one) continue;
            add({*one, start, {&row}});
            for (std::size_t k = i + 1; k < count; ++k) {
                const Row& next = all_rows()[k];
                if (is_of_geometry(next)) {
                    if (std::optional<Mistake> two = with(*one, next, observation_))
                        add({std::move(*two), start, {&row, &next}});
                }
            }
        }
    }
    const auto best_first = [&](bool erase) {
        const double good = put_best_first(
            all, [](const Geometry& one) { return one.mistake.named.size(); });
        std::erase_if(all, [&](const Geometry& one) {
            return erase && one.misfit > good && one.misfit > poor_fit;
        });
        all.resize(std::min(all.size(), most_kept));
    };
    best_first(false);
    // Tries a third row, if two do not fit well or if it changes only the angles.
    constexpr double good_fit = 1e-3;
    const bool poor = !all.empty() && all[0].misfit > good_fit;
    for (std::size_t i = 0, kept = all.size(); i < kept; ++i) {
        for (const Row& row : all_rows()) {
            if (all[i].rows.size() == 2 && &row > all[i].rows[1] &&
                (poor ? is_of_geometry(row) : row.part == Part::window)) {
                if (std::optional<Mistake> three = with(all[i].mistake, row, observation_))
                    add({std::move(*three), all[i].start, {all[i].rows[0], all[i].rows[1], &row}});
            }
        }
    }
    best_first(true);
    for (Geometry& one : all) see(one, seen_elements);
    best_first(true);
    for (Geometry& one : all) {
        for (const Row& row : all_rows()) {
            if (row.part == Part::positions) {
                if (std::optional<Mistake> moved = with(one.mistake, row, observation_)) {
                    const bool other_steps = have_other_steps(one.mistake.hypothesis,
                                                              moved->hypothesis);
                    one.moved.push_back({&row, std::move(moved->hypothesis), other_steps});
                }
            }
        }
    }
    return all;
}

void Search::add_fit(const Geometry& geometry, const Mistake& mistake,
                     std::vector<Candidate>& found) {
    const Hypothesis& hypothesis = mistake.hypothesis;
    if (geometry.seen->pairs == 0) {
        found.push_back({mistake, geometry.misfit});
        return;
    }
    const Fit fit = fit_of(*geometry.seen, hypothesis, axes_of(hypothesis));
    best_angles_ = std::min(best_angles_, fit.misfit);
    if (fit.misfit > poor_fit || !(fit.factor > 0)) return;
    // Rounding of the pairs limits the precision of their factor.
    const double misfit = std::max(fit.misfit, geometry.misfit),
                 near = 1e-6 + 4 * std::sqrt(misfit);
    const auto fits_factor = [&](const Hypothesis& tried) {
        return std::fabs(fit.factor / double(oracle::factor_of(tried.operation)) - 1) <= near;
    };
    if (fits_factor(hypothesis)) {
        found.push_back({mistake, misfit});
        return;
    }
    bool stated = mistake.changes(Part::factor);
    each_with(mistake, observation_, part(Part::factor), [&](const Mistake& both) {
        if (both.changes(Part::factor) && fits_factor(both.hypothesis)) {
            found.push_back({both, misfit});
            stated = true;
        }
    });
    const double right = double(oracle::factor_of(hypothesis.operation));
    if (stated || std::fabs(fit.factor / right - 1) < 3 * near) return;
    // Tries the factor that was read from the output, rounded to few digits or as it is.
    double last = 0;
    for (const int digits : {2, 3, 5, 9}) {
        const double factor = std::stod(fmt::format("{:.{}g}", fit.factor, digits));
        if (std::fabs(factor / fit.factor - 1) > near || factor == last) continue;
        last = factor;
        Mistake both = mistake;
        both.hypothesis.operation.attention_factor = factor;
        both.hypothesis.operation.gain = oracle::Gain::apply;
        const bool whole_row = 2 * geometry.seen->pairs == hypothesis.in.head_dim;
        both.add({&row_of("another_factor"), fmt::format("{:.7g}, not {:.7g}{}", factor, right,
                                                         whole_row ? ", or scaled the rows" : "")});
        found.push_back({both, misfit});
    }
}

void Search::add_angles(const Geometry& geometry, const Mistake& base,
                        std::vector<Candidate>& found) {
    if (geometry.seen->pairs == 0) {
        add_fit(geometry, base, found);
        return;
    }
    const auto add_moved = [&](const Mistake& mistake) {
        add_fit(geometry, mistake, found);
        for (const Moved& moved : geometry.moved) {
            // A mistake in the axes may itself change positions.
            if (mistake.changes(Part::axes) ||
                fit_of(*geometry.seen, mistake.hypothesis, axes_of(moved.positions)).misfit <=
                    poor_fit) {
                if (const std::optional<Mistake> both = with(mistake, *moved.row, observation_))
                    add_fit(geometry, *both, found);
            }
        }
    };
    const auto add_turned = [&](const Mistake& mistake) {
        each_direction(mistake, observation_, add_moved);
    };
    if (base.hypothesis.operation.further.positions.empty())
        add_turned(base);
    else
        each_with(base, observation_, part(Part::axes), add_turned);
}

void Search::each_changed(const Geometry& geometry, const Change& change,
                          const Visit& visit) const {
    const oracle::Operation& right = geometry.mistake.hypothesis.operation;
    // Applies the change before the rows of the geometry, some of which remove frequencies, and
    // after them, because others replace frequencies.
    std::optional<Mistake> before = change(geometry.start);
    for (const Row* row : geometry.rows)
        before = before ? with(*before, *row, observation_) : before;
    const auto is_other = [&right](const std::optional<Mistake>& mistake) {
        return mistake && same_pairs(mistake->hypothesis.operation, right) &&
               (differ(mistake->hypothesis.operation.inv_freq, right.inv_freq) ||
                mistake->hypothesis.operation.attention_factor != right.attention_factor);
    };
    if (is_other(before)) visit(*before);
    if (!geometry.rows.empty()) {
        const std::optional<Mistake> after = change(geometry.mistake);
        if (is_other(after) && !(is_other(before) && !differ(before->hypothesis.operation.inv_freq,
                                                             after->hypothesis.operation.inv_freq)))
            visit(*after);
    }
}

void Search::each_frequencies(const Geometry& geometry, const Visit& visit) const {
    visit(geometry.mistake);
    for (const Row& row : all_rows()) {
        if (row.part == Part::frequencies) {
            each_changed(
                geometry, [&](const Mistake& base) { return with(base, row, observation_); },
                visit);
        }
    }
    for (const OtherRotation& other : observation_.others) {
        each_changed(
            geometry, [&](const Mistake& base) { return with(base, other, observation_); }, visit);
    }
}

// Calls visit(mistake), or visits it with its frequencies rounded to each 16-bit type.
void Search::each_rounding(const Mistake& mistake, bool rounded, const Visit& visit) const {
    if (!rounded) {
        visit(mistake);
        return;
    }
    each_with(mistake, observation_, part(Part::rounding), [&](const Mistake& both) {
        if (both.changes(Part::rounding)) visit(both);
    });
}

std::vector<Candidate> Search::stated() {
    std::vector<Candidate> found;
    for (const Geometry& geometry : geometries_) {
        each_frequencies(
            geometry, [&](const Mistake& mistake) { add_angles(geometry, mistake, found); });
    }
    return sorted(std::move(found));
}

std::vector<Search::Geometry> Search::likeliest(std::size_t most) const {
    std::vector<Geometry> chosen;
    for (const Geometry& geometry : geometries_) {
        const bool known = std::any_of(chosen.begin(), chosen.end(), [&](const Geometry& other) {
            const oracle::Operation &one = geometry.mistake.hypothesis.operation,
                                    &two = other.mistake.hypothesis.operation;
            return same_pairs(one, two) && !differ(one.inv_freq, two.inv_freq);
        });
        if (chosen.size() < most && !known) chosen.push_back(geometry);
    }
    return chosen;
}

std::vector<Candidate> Search::with_arithmetic() {
    std::vector<Candidate> found;
    for (const Geometry& geometry : likeliest(most_geometries)) {
        each_frequencies(
            geometry,
            [&](const Mistake& frequencies) {
                each_with(
                    frequencies, observation_, part(Part::rounding),
                    [&](const Mistake& rounded) {
                        each_with(
                            rounded, observation_, is_arithmetic,
                            [&](const Mistake& mistake) {
                                if (mistake.changes(Part::rounding) ||
                                    mistake.changes(Part::arithmetic))
                                    add_angles(geometry, mistake, found);
                            });
                    });
            });
    }
    return sorted(std::move(found));
}

void Search::add_positions(const Geometry& geometry, const Mistake& base,
                           std::initializer_list<FindPositions*> ways, bool quickly,
                           std::vector<Candidate>& found) {
    const Hypothesis& right = base.hypothesis;
    std::int64_t largest = 0;
    each_axis(right, [&largest](const Positions& positions) {
        for (const std::int64_t position : positions)
            largest = std::max(largest, std::abs(position));
    });
    const std::int64_t length = observation_.max_position != 0
                                    ? std::max(observation_.max_position, largest + 1)
                                    : std::max<std::int64_t>(4 * largest, 1 << 17);
    for (FindPositions* const find : ways) {
        const std::optional<FoundPositions> at = find(*geometry.seen, right, length, quickly);
        if (!at) continue;
        Mistake mistake = base;
        std::size_t axis = 0;
        each_axis(mistake.hypothesis, [&](Positions& positions) { positions = (*at)[axis++]; });
        std::vector<bool> seen(right.operation.positions.size());
        for (const SeenPairs::Row& row : geometry.seen->rows) seen[row.token] = true;
        Mistake::Named named = name_of_positions(right, *at, seen);
        if (named.row != nullptr &&
            !positions_hide_another(observation_, base, mistake.hypothesis)) {
            mistake.add(std::move(named));
            add_fit(geometry, mistake, found);
        }
    }
}

std::vector<Candidate> Search::with_positions(bool rounded) {
    std::vector<Candidate> found;
    for (const Geometry& coarse : likeliest(rounded ? 1 : most_geometries)) {
        if (coarse.seen->pairs == 0 || coarse.mistake.changes(Part::positions)) continue;
        Geometry fine = coarse;
        see(fine, elements_for_positions);
        const auto add_directions = [&](const Mistake& base) {
            each_direction(
                base, observation_,
                [&](const Mistake& turned) {
                    const auto add = [&](const Mistake& axes) {
                        add_positions(fine, axes, {find_offset, find_positions}, rounded, found);
                        add_positions(fine, axes, {find_one_position}, true, found);
                    };
                    if (turned.hypothesis.operation.further.positions.empty()) {
                        add(turned);
                        return;
                    }
                    each_with(turned, observation_, part(Part::axes), add);
                    if (const auto axes = find_axes(*coarse.seen, turned.hypothesis)) {
                        Mistake moved = turned;
                        moved.add(name_of_axes(turned.hypothesis, *axes));
                        moved.hypothesis.operation.further.axes = *axes;
                        add_fit(coarse, moved, found);
                    }
                });
        };
        each_frequencies(
            coarse, [&](const Mistake& base) { each_rounding(base, rounded, add_directions); });
    }
    return sorted(std::move(found));
}

std::vector<Candidate> Search::with_frequencies(bool rounded) {
    std::vector<Candidate> found;
    const std::vector<OtherFrequencies> others = other_frequencies(observation_);
    for (const Geometry& geometry : likeliest(rounded ? 1 : most_geometries)) {
        if (geometry.seen->pairs == 0) continue;
        constexpr double good_steps = 0.01;
        constexpr std::size_t most = 32;
        const std::vector<Step> steps = steps_of(*geometry.seen, geometry.mistake.hypothesis);
        std::vector<std::pair<double, Mistake>> with_steps;
        Hypothesis tried = geometry.mistake.hypothesis;
        const bool turned_alike =
            !steps.empty() &&
            misfit_of_steps(steps, tried.operation.further,
                            std::vector<double>(tried.operation.inv_freq.size())) <= good_steps;
        const auto fits_moved = [&](const std::vector<double>& inv_freq) {
            tried.operation.inv_freq = inv_freq;
            for (const bool other_direction : {false, true}) {
                tried.operation.inverse = geometry.mistake.hypothesis.operation.inverse !=
                                          other_direction;
                for (const Moved& moved : geometry.moved) {
                    if (moved.other_steps &&
                        fit_of(*geometry.seen, tried, axes_of(moved.positions)).misfit <=
                            poor_fit) {
                        return true;
                    }
                }
            }
            return false;
        };
        const auto add = [&](const Mistake& mistake) {
            const std::vector<double>& inv_freq = mistake.hypothesis.operation.inv_freq;
            const double misfit = std::min(
                misfit_of_steps(steps, tried.operation.further, inv_freq),
                misfit_of_steps(steps, {}, inv_freq));
            if (misfit <= good_steps || fits_moved(inv_freq)) {
                add_angles(geometry, mistake, found);
            }
            // Pairs that hardly turn cannot show both a base and a position.
            if (turned_alike) {
                each_with(mistake, observation_, part(Part::exchange), [&](const Mistake& turned) {
                    add_positions(geometry, turned, {find_one_position}, true, found);
                });
            } else if (!steps.empty() && misfit <= good_steps) {
                with_steps.emplace_back(misfit, mistake);
            }
        };
        for (const OtherFrequencies& other : others) {
            each_changed(
                geometry, [&](const Mistake& base) { return with(base, other, observation_); },
                [&](const Mistake& changed) { each_rounding(changed, rounded, add); });
        }
        std::stable_sort(with_steps.begin(), with_steps.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        with_steps.resize(std::min(with_steps.size(), most));
        for (const auto& [misfit, mistake] : with_steps) {
            each_direction(
                mistake, observation_,
                [&](const Mistake& turned) {
                    add_positions(geometry, turned, {find_offset, find_positions}, false, found);
                });
        }
    }
    found = sorted(std::move(found));
    // If a rounded output fits several values about equally well, none is named unless it is exact.
    constexpr double exact = 1e-11, alike = 4;
    const auto value_of = [](const Candidate& one) {
        for (const Mistake::Named& named : one.mistake.named)
            if (named.row->measured && named.row->part == Part::frequencies) return named.detail;
        return std::string();
    };
    if (!found.empty() && found[0].misfit > exact &&
        std::any_of(found.begin(), found.end(), [&](const Candidate& other) {
            return other.misfit <= alike * found[0].misfit && value_of(other) != value_of(found[0]);
        }))
        for (Candidate& one : found) one.is_ambiguous = true;
    return found;
}

std::vector<std::string> Search::findings() const {
    std::vector<std::string> sentences;
    if (geometries_.empty() || observation_.right.operation.inv_freq.empty()) return sentences;
    // Takes the right pairs unless others fit much better.
    constexpr double alike = 4;
    const auto right = std::find_if(geometries_.begin(), geometries_.end(),
                                    [](const Geometry& one) { return one.mistake.named.empty(); });
    const Geometry& first = geometries_.front();
    const Geometry& best = right != geometries_.end() && right->misfit <= alike * first.misfit
                               ? *right
                               : first;
    if (best.misfit > poor_fit) {
        sentences.push_back("in no known layout do two channels turn together as a pair");
        return sentences;
    }
    sentences.push_back(best.mistake.named.empty()
                            ? "the channels turn in the pairs that the model says"
                            : fmt::format("the channels turn in the pairs of this mistake: {}: {}",
                                          best.mistake.name(), best.mistake.meaning()));
    if (best_angles_ > poor_fit) {
        sentences.push_back(
            "no frequencies and positions that were tried give the angles of these pairs");
    }
    return sentences;
}

}  // namespace vkrope::tools
