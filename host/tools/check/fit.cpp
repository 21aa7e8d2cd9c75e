// SPDX-License-Identifier: MIT
#include "check/fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <span>
#include <utility>

#include "verify/oracle/turns.hpp"

namespace vkrope::tools {
namespace {

using Complex = std::complex<double>;

constexpr std::size_t first_pairs = 64;  // a comparison ends if this many pairs fit badly
constexpr double bad_fit = 0.1;

// Sums of products, from which fit() computes the best factor and its misfit.
struct Sums {
    double product = 0, expected = 0, actual = 0;

    void add(const Complex& is, const Complex& was) {
        product += is.real() * was.real() + is.imag() * was.imag();
        expected += std::norm(is);
        actual += std::norm(was);
    }

    Fit fit() const {
        const double all = expected * actual;
        if (!(all > 0)) return {actual > 0 ? 1.0 : 0.0, 1};
        return {product > 0 ? std::max(0.0, 1 - product * product / all) : 1.0, product / expected};
    }
};

// A pair of one token: its frequency, the angle by which the engine turned it farther than its
// position says, and a weight.
struct Hand {
    double frequency = 0, radians = 0, weight = 0;
};

// Returns the share of the additional angles that an offset of the position explains, at most 1.
double share_of(std::span<const Hand> hands, double offset) {
    double sum = 0, all = 0;
    for (const Hand& hand : hands) {
        sum += hand.weight * std::cos(hand.radians - offset * hand.frequency);
        all += hand.weight;
    }
    return all > 0 ? sum / all : 0;
}

// Computes share_of() to about 0.001, in a fifth of the time.
double rough_share_of(std::span<const Hand> hands, double offset) {
    double sum = 0, all = 0;
    for (const Hand& hand : hands) {
        constexpr double to_whole = 0x1.8p52;  // adding it rounds to a whole number
        const double turns = (hand.radians - offset * hand.frequency) / (2 * std::numbers::pi),
                     t = turns - ((turns + to_whole) - to_whole), s = t * t;
        // The Taylor series of cos(2 pi t) up to t^10, for |t| up to 1/2.
        sum += hand.weight *
               (1 + s * (-19.7392 + s * (64.9394 + s * (-85.4568 + s * (60.2446 - s * 26.4263)))));
        all += hand.weight;
    }
    return all > 0 ? sum / all : 0;
}

struct Guess {
    double position = 0, share = -1;
};

// Keeps the best of these guesses, which have ascending positions: those with a large share and,
// of neighbours, the better one.
void keep_best(std::vector<Guess>& guesses, double apart) {
    constexpr std::size_t most = 384;
    constexpr double least = 0.88;
    std::vector<Guess> kept;
    for (const Guess& guess : guesses) {
        if (guess.share < least) continue;
        if (!kept.empty() && guess.position - kept.back().position < apart)
            kept.back() = guess.share > kept.back().share ? guess : kept.back();
        else
            kept.push_back(guess);
    }
    if (kept.size() > most) {
        std::nth_element(kept.begin(), kept.begin() + most, kept.end(),
                         [](const Guess& a, const Guess& b) { return a.share > b.share; });
        kept.resize(most);
        std::sort(kept.begin(), kept.end(),
                  [](const Guess& a, const Guess& b) { return a.position < b.position; });
    }
    guesses = std::move(kept);
}

// Returns the best integer position near a guess.
Guess best_whole(std::span<const Hand> hands, double position, double reach) {
    Guess best;
    for (double p = std::round(position) - reach; p <= position + reach; ++p) {
        const double share = rough_share_of(hands, p);
        best = share > best.share ? Guess{p, share} : best;
    }
    best.share = best.share > 0.9 ? share_of(hands, best.position) : best.share;
    return best;
}

// Returns the integer offset from -length to length with the largest share. Slow pairs give a
// rough offset, and each faster pair a finer one, as the hands of a clock do.
//
// hands  ascending frequencies
Guess best_offset(std::span<const Hand> hands, double length) {
    // Small offsets are the likeliest, so they are tried first.
    constexpr double small = 256, clear = 0.999, points = 512;
    if (const Guess best = best_whole(hands, 0, small); best.share > clear) return best;
    // Tries the slowest pairs at steps of an eighth of a turn of the fastest of them.
    double limit = std::max(points * std::numbers::pi / (8 * length), 2 * hands[0].frequency);
    const auto slower_than = [hands](double frequency) {
        const auto end = std::find_if(hands.begin(), hands.end(), [frequency](const Hand& hand) {
            return hand.frequency > frequency;
        });
        return hands.first(std::size_t(std::max<std::ptrdiff_t>(2, end - hands.begin())));
    };
    double step = std::numbers::pi / 4 / limit;
    std::vector<Guess> guesses;
    std::span<const Hand> slow = slower_than(limit);
    for (double position = -length; position <= length; position += step)
        guesses.push_back({position, rough_share_of(slow, position)});
    keep_best(guesses, 1.5 * step);
    while (limit < hands.back().frequency && !guesses.empty()) {
        limit *= 4;
        step /= 4;
        slow = slower_than(limit);
        for (Guess& guess : guesses) {
            const double around = guess.position;
            guess.share = -1;
            for (int i = -5; i <= 5; ++i) {
                const double position = around + i * step, share = rough_share_of(slow, position);
                guess = share > guess.share ? Guess{position, share} : guess;
            }
        }
        keep_best(guesses, 1.5 * step);
    }
    Guess best;
    for (const Guess& guess : guesses) {
        const Guess whole = best_whole(hands, guess.position, std::ceil(std::max(1.0, step)));
        best = whole.share > best.share && std::fabs(whole.position) <= length ? whole : best;
    }
    return best;
}

// Returns how many pairs turn at different speeds.
std::size_t speeds_of(std::span<const Hand> hands) {
    std::size_t speeds = 0;
    double last = 0;
    for (const Hand& hand : hands) {
        speeds += hand.frequency > last * (1 + 1e-9) ? 1 : 0;
        last = hand.frequency;
    }
    return speeds;
}

// Returns whether no neighbour of the best position explains nearly as much.
bool is_clear(std::span<const Hand> hands, const Guess& best) {
    const double missed = std::max(1 - best.share, 1e-13);
    return 4 * missed < 1 - share_of(hands, best.position + 1) &&
           4 * missed < 1 - share_of(hands, best.position - 1);
}

// Iterates over tokens; the pairs of a token are those of each axis, and then all of them.
class Hands {
   public:
    Hands(const SeenPairs& seen, const Hypothesis& hypothesis)
        : seen_(seen), hypothesis_(hypothesis), turns_(hypothesis, axes_of(hypothesis)),
          hands_(hypothesis.operation.further.positions.size() + 2) {}

    // Moves to the next token; returns false after the last one.
    bool next() {
        if (row_ == seen_.rows.size()) return false;
        token_ = seen_.rows[row_].token;
        const oracle::Operation& operation = hypothesis_.operation;
        const std::vector<Complex>& turns = turns_.of(token_);
        std::vector<Complex> turned(operation.inv_freq.size());
        for (; row_ < seen_.rows.size() && seen_.rows[row_].token == token_; ++row_) {
            const std::size_t first = seen_.rows[row_].group * seen_.pairs;
            for (std::size_t j = 0; j < seen_.pairs; ++j)
                turned[first + j] += std::conj(seen_.before_of(row_)[j]) * seen_.after_of(row_)[j];
        }
        for (std::vector<Hand>& hands : hands_) hands.clear();
        for (std::size_t i = 0; i < turned.size(); ++i) {
            const Complex beyond = std::conj(turns[i]) * turned[i];
            const double radians = std::arg(beyond);
            const Hand hand = {operation.inv_freq[i], operation.inverse ? -radians : radians,
                               std::abs(beyond)};
            if (hand.frequency > 0) {
                hands_[axis_of_pair(i % seen_.pairs)].push_back(hand);
                hands_.back().push_back(hand);
            }
        }
        for (std::vector<Hand>& hands : hands_) {
            std::sort(
                hands.begin(), hands.end(),
                [](const Hand& a, const Hand& b) { return a.frequency < b.frequency; });
        }
        return true;
    }

    std::uint64_t token() const { return token_; }
    std::size_t axes() const { return hands_.size() - 1; }
    const std::vector<Hand>& of(std::size_t axis) const { return hands_[axis]; }
    const std::vector<Hand>& all() const { return hands_.back(); }

   private:
    std::size_t axis_of_pair(std::size_t pair) const {
        const std::size_t axis = axes() == 1 ? 0 : hypothesis_.operation.further.axis(pair);
        return std::min(axis, axes() - 1);
    }

    const SeenPairs& seen_;
    const Hypothesis& hypothesis_;
    Turns turns_;
    std::vector<std::vector<Hand>> hands_;
    std::size_t row_ = 0;
    std::uint64_t token_ = 0;
};

// Returns the position at which the slowest pair has made this many turns, refined by each faster
// pair.
double followed(std::span<const Hand> hands, int turns) {
    double position = (hands[0].radians + 2 * std::numbers::pi * turns) / hands[0].frequency;
    for (const Hand& hand : hands.subspan(1)) {
        position += std::remainder(hand.radians - position * hand.frequency, 2 * std::numbers::pi) /
                    hand.frequency;
    }
    return std::round(position);
}

constexpr std::size_t least_speeds = 6;

// Returns the offset of a position that explains the angles of these pairs. Returns none if too
// few pairs have different speeds, or if no offset is clearly the best.
//
// guesses  offsets to try first
// quickly  follows the pairs from the slowest to the fastest, and tries no others
std::optional<std::int64_t> offset_of(std::span<const Hand> hands, double length,
                                      std::initializer_list<std::int64_t> guesses, bool quickly) {
    constexpr double least_share = 0.98;
    if (speeds_of(hands) < least_speeds) return std::nullopt;
    Guess best;
    const auto add = [&](double guess) {
        const double share = share_of(hands, guess);
        best = share > best.share ? Guess{guess, share} : best;
    };
    for (const std::int64_t guess : guesses) add(double(guess));
    constexpr int most_turns = 3;
    for (int turns = -most_turns; quickly && turns <= most_turns; ++turns)
        add(followed(hands, turns));
    if (!quickly && (best.share < least_share || !is_clear(hands, best)))
        best = best_offset(hands, length);
    if (best.share < least_share || !is_clear(hands, best)) return std::nullopt;
    return std::int64_t(best.position);
}

}  // namespace

AxesOfPositions axes_of(const Hypothesis& hypothesis) {
    AxesOfPositions axes;
    each_axis(hypothesis, [&axes](const Positions& positions) { axes.push_back(&positions); });
    return axes;
}

Turns::Turns(const Hypothesis& hypothesis, AxesOfPositions axes)
    : hypothesis_(hypothesis),
      pairs_(hypothesis.operation.inv_freq.size() / hypothesis.operation.head_groups),
      axes_(std::move(axes)), axis_(pairs_), turns_(hypothesis.operation.inv_freq.size()) {
    const oracle::FurtherAxes& further = hypothesis.operation.further;
    for (std::size_t pair = 0; axes_.size() > 1 && pair < pairs_; ++pair)
        axis_[pair] = std::min(further.axis(pair), std::uint32_t(axes_.size() - 1));
}

const std::vector<Complex>& Turns::of(std::uint64_t token) {
    const oracle::Operation& operation = hypothesis_.operation;
    const std::vector<double>& summed = hypothesis_.operation.further.summed;
    std::vector<std::int64_t> at;
    for (const Positions* positions : axes_) at.push_back((*positions)[token]);
    if (std::exchange(at_, at) == at) return turns_;
    for (std::size_t i = 0; i < turns_.size(); ++i) {
        const std::size_t pair = i % pairs_;
        double angle = operation.phase.empty() || operation.cos_sin ? 0.0 : operation.phase[i];
        Complex turn;
        if (!summed.empty()) {
            for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
                angle += double(at[axis]) *
                         summed[(i / pairs_ * axes_.size() + axis) * pairs_ + pair];
            }
            turn = std::polar(1.0, angle);
        } else {
            const std::int64_t position = at[axis_[pair]];
            if (operation.cos_sin) {
                const oracle::CosSin exact = operation.cos_sin(position, i);
                turn = {double(exact.cos), double(exact.sin)};
            } else {
                turn = std::polar(1.0, angle + double(position) * operation.inv_freq[i]);
            }
        }
        turns_[i] = operation.inverse ? std::conj(turn) : turn;
    }
    return turns_;
}

Fit fit_of(const SeenPairs& seen, const Hypothesis& hypothesis, const AxesOfPositions& axes) {
    Turns turns(hypothesis, axes);
    Sums sums;
    const std::vector<Complex>* of_token = nullptr;
    const std::size_t rows = seen.rows.size();
    // The last rows come first, because token 0 at position 0 is not rotated.
    for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t row = rows - 1 - i;
        if (i == 0 || seen.rows[row].token != seen.rows[row + 1].token) {
            if (i * seen.pairs >= first_pairs && sums.fit().misfit > bad_fit) break;
            of_token = &turns.of(seen.rows[row].token);
        }
        const std::size_t first = seen.rows[row].group * seen.pairs;
        for (std::size_t j = 0; j < seen.pairs; ++j)
            sums.add((*of_token)[first + j] * seen.before_of(row)[j], seen.after_of(row)[j]);
    }
    return sums.fit();
}

std::optional<FoundPositions> find_positions(const SeenPairs& seen, const Hypothesis& hypothesis,
                                             std::int64_t length, bool quickly) {
    if (!hypothesis.operation.further.summed.empty() || hypothesis.operation.cos_sin ||
        seen.pairs == 0)
        return std::nullopt;
    FoundPositions found;
    each_axis(hypothesis, [&](const Positions& positions) { found.push_back(positions); });
    std::vector<std::int64_t> offset(found.size()), last(found.size());
    Hands hands(seen, hypothesis);
    while (hands.next()) {
        std::vector<std::optional<std::int64_t>> beyond;
        for (std::size_t axis = 0; axis < found.size(); ++axis) {
            const std::int64_t position = found[axis][hands.token()];
            beyond.push_back(
                hands.of(axis).empty()
                    ? std::optional<std::int64_t>(0)
                    : offset_of(hands.of(axis), double(length),
                                {0, offset[axis], last[axis] + 1 - position, last[axis] - position},
                                quickly));
        }
        // If an axis has too few pairs, all pairs together may show one offset of all axes.
        if (std::find(beyond.begin(), beyond.end(), std::nullopt) != beyond.end()) {
            std::fill(beyond.begin(), beyond.end(),
                      offset_of(hands.all(), double(length), {0, offset[0]}, quickly));
        }
        for (std::size_t axis = 0; axis < found.size(); ++axis) {
            std::int64_t& position = found[axis][hands.token()];
            if (!beyond[axis] || std::abs(position + *beyond[axis]) > length) return std::nullopt;
            offset[axis] = *beyond[axis];
            position += *beyond[axis];
            last[axis] = position;
        }
    }
    return found;
}

std::optional<FoundPositions> find_offset(const SeenPairs& seen, const Hypothesis& hypothesis,
                                          std::int64_t length, bool quickly) {
    if (!hypothesis.operation.further.summed.empty() || hypothesis.operation.cos_sin ||
        seen.pairs == 0)
        return std::nullopt;
    // Adds up over all rows how much farther each pair was turned, as if there were one token.
    SeenPairs all;
    all.pairs = seen.pairs;
    Hypothesis at_zero = hypothesis;
    each_axis(at_zero, [](Positions& positions) { positions.assign(1, 0); });
    std::vector<Complex> turned(hypothesis.operation.inv_freq.size());
    Turns turns(hypothesis, axes_of(hypothesis)), none(at_zero, axes_of(at_zero));
    for (std::size_t row = 0; row < seen.rows.size(); ++row) {
        const std::size_t first = seen.rows[row].group * seen.pairs;
        const std::vector<Complex>& of_token = turns.of(seen.rows[row].token);
        for (std::size_t j = 0; j < seen.pairs; ++j) {
            turned[first + j] += std::conj(of_token[first + j] * seen.before_of(row)[j]) *
                                 seen.after_of(row)[j];
        }
    }
    for (std::size_t group = 0; group < hypothesis.operation.head_groups; ++group)
        all.rows.push_back({0, 0, group, group});
    for (std::size_t i = 0; i < turned.size(); ++i) {
        all.before.push_back(1);
        all.after.push_back(turned[i] * none.of(0)[i]);
    }
    const std::optional<FoundPositions> offsets = find_positions(all, at_zero, length, quickly);
    if (!offsets) return std::nullopt;
    FoundPositions found;
    each_axis(hypothesis, [&](const Positions& positions) {
        found.push_back(positions);
        for (std::int64_t& position : found.back()) position += (*offsets)[found.size() - 1][0];
    });
    return found;
}

std::optional<FoundPositions> find_one_position(const SeenPairs& seen, const Hypothesis& hypothesis,
                                                std::int64_t length, bool quickly) {
    Hypothesis at_zero = hypothesis;
    each_axis(at_zero, [](Positions& positions) { positions.assign(positions.size(), 0); });
    return find_offset(seen, at_zero, length, quickly);
}

std::optional<std::vector<std::uint32_t>> find_axes(const SeenPairs& seen,
                                                    const Hypothesis& hypothesis) {
    const oracle::FurtherAxes& further = hypothesis.operation.further;
    if (further.positions.empty() || !further.summed.empty() || hypothesis.operation.cos_sin ||
        hypothesis.operation.head_groups != 1)
        return std::nullopt;
    const auto axes = std::uint32_t(1 + further.positions.size());
    std::vector<std::uint32_t> chosen(seen.pairs), right(seen.pairs);
    std::vector<double> least(seen.pairs), of_right;
    for (std::size_t j = 0; j < seen.pairs; ++j) right[j] = further.axis(j);
    // Tries the right axis first, because rounding errors alone must not decide between axes whose
    // positions are equal.
    for (std::uint32_t next = 0; next <= axes; ++next) {
        Hypothesis tried = hypothesis;
        tried.operation.further.axes = next == 0 ? right
                                                 : std::vector<std::uint32_t>(seen.pairs, next - 1);
        Turns turns(tried, axes_of(tried));
        std::vector<double> distance(seen.pairs);
        const auto factor = double(oracle::factor_of(hypothesis.operation));
        for (std::size_t row = 0; row < seen.rows.size(); ++row) {
            const std::vector<Complex>& of_token = turns.of(seen.rows[row].token);
            for (std::size_t j = 0; j < seen.pairs; ++j) {
                const Complex is = factor * of_token[j] * seen.before_of(row)[j];
                distance[j] += std::norm(is - seen.after_of(row)[j]);
            }
        }
        of_right = next == 0 ? distance : of_right;
        for (std::size_t j = 0; j < seen.pairs; ++j) {
            if (next == 0 || (distance[j] < 0.25 * of_right[j] && distance[j] < least[j])) {
                least[j] = distance[j];
                chosen[j] = tried.operation.further.axes[j];
            }
        }
    }
    return chosen == right ? std::nullopt : std::optional(chosen);
}

}  // namespace vkrope::tools
