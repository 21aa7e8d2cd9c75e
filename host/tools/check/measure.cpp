// SPDX-License-Identifier: MIT
// Measures each pair of channels of an output: the angle beyond the right one, the factor, and the
// error. Contains the mistakes whose values are read from the output, and the search for pairs
// whose errors rounding cannot explain, because both need the same sums over all rows.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <numeric>

#include "check/compare.hpp"
#include "check/mistakes.hpp"
#include "check/where.hpp"
#include "verify/oracle/element.hpp"
#include "verify/oracle/rows.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::tools {
namespace {

using Complex = std::complex<double>;

constexpr std::uint64_t measured_elements = std::uint64_t{1} << 14;

/// Pairs as complex numbers x0 + i x1, summed over rows.
struct Turned {
    Complex product;               // conjugate of the right pair times the actual one
    double right = 0, actual = 0;  // sums of squares
};

/// One pair of one row: its index in Operation::inv_freq, the right values and the actual ones.
struct PairOfRow {
    std::size_t number = 0;
    std::array<oracle::Approximate, 2> right;
    std::array<std::uint32_t, 2> bits;
};

/// Calls visit(PairOfRow) for each pair of each row, after all ops.
template <class Visit>
void each_pair(const Observation& observation, const Hypothesis& hypothesis, const Sample& sample,
               double bound_u, const Visit& visit) {
    const oracle::Tensor& out = hypothesis.out;
    const std::vector<oracle::Pair> pairs = oracle::pairs_of(hypothesis.operation);
    each_token(
        observation, hypothesis, sample, bound_u,
        [&](std::uint64_t batch, std::uint64_t token,
            std::span<const oracle::Approximate> channels) {
            for (std::uint64_t head = 0; head < out.heads; ++head) {
                const std::uint64_t group = head / (out.heads / hypothesis.operation.head_groups),
                                    row = hypothesis.first_out +
                                          oracle::row_of(out, {batch, token, head, 0});
                for (std::size_t j = 0; j < pairs.size(); ++j) {
                    PairOfRow pair = {.number = group * pairs.size() + j, .right = {}, .bits = {}};
                    for (std::size_t member = 0; member < 2; ++member) {
                        const std::uint64_t channel = pairs[j].out[member];
                        pair.right[member] = channels[head * out.head_dim + channel];
                        pair.bits[member] = oracle::load(observation.output,
                                                         oracle::bytes_of(out.type), row + channel);
                    }
                    visit(pair);
                }
            }
        });
}

/// Returns the angle in radians that one position adds to each pair.
std::vector<double> frequencies_of(const Hypothesis& hypothesis) {
    const std::vector<double>& inv_freq = hypothesis.operation.inv_freq;
    const std::vector<double>& summed = hypothesis.further.summed;
    if (summed.empty()) {
        return inv_freq;
    }
    const std::size_t groups = hypothesis.operation.head_groups, pairs = inv_freq.size() / groups,
                      axes = summed.size() / inv_freq.size();
    std::vector<double> all(inv_freq.size());
    for (std::size_t i = 0; i < summed.size(); ++i) {
        all[i / pairs / axes * pairs + i % pairs] += summed[i];
    }
    return all;
}

/// Returns how well one rotation of the right pairs gives the actual pairs: 0 to 1.
double coherence(const Turned& pair) {
    const double whole = std::sqrt(pair.right * pair.actual);
    return whole > 0 ? std::abs(pair.product) / whole : 0;
}

double nearest_turn(double radians) {
    return std::remainder(radians, 2 * std::numbers::pi);
}

/// A pair that was rotated too far by `radians` plus a whole number of turns.
struct TurnedToo {
    double frequency = 0, radians = 0, weight = 0;
};

/// Returns the share of the pairs that an offset explains: 1 if it explains all.
double explained(const std::vector<TurnedToo>& pairs, double offset) {
    double sum = 0, all = 0;
    for (const TurnedToo& pair : pairs) {
        sum += pair.weight * std::cos(pair.radians - offset * pair.frequency);
        all += pair.weight;
    }
    return all > 0 ? sum / all : 0;
}

/// Returns the whole number of positions that explains the excess angle of every pair. The slowest
/// pair gives a rough value, up to a whole number of its turns; each faster pair refines it.
std::optional<std::int64_t> offset_of(std::vector<TurnedToo> pairs) {
    constexpr double max_offset = 0x1p31, max_turns = 0x1p15, max_miss = 0.5, least = 0.98;
    std::sort(pairs.begin(), pairs.end(),
              [](const TurnedToo& a, const TurnedToo& b) { return a.frequency < b.frequency; });
    double best = 0, missed = 1 - least;  // the share that the best offset does not explain
    bool found = false;
    const auto attempt = [&](double turns) {
        double offset = (pairs[0].radians + 2 * std::numbers::pi * turns) / pairs[0].frequency;
        for (const TurnedToo& pair : pairs) {
            const double miss = nearest_turn(pair.radians - offset * pair.frequency);
            if (std::fabs(miss) > max_miss) {
                return;
            }
            offset += miss / pair.frequency;
        }
        offset = std::round(offset);
        const double share = std::fabs(offset) < max_offset ? explained(pairs, offset) : 0;
        // Among very many offsets, a distant offset may fit rounding errors by chance.
        if (1 - share < (found ? missed / 64 : missed)) {
            found = true;
            best = offset;
            missed = 1 - share;
        }
    };
    for (double turns = 0; !pairs.empty() && turns <= max_turns; ++turns) {
        attempt(turns);
        attempt(-turns);
    }
    return found ? std::optional(static_cast<std::int64_t>(best)) : std::nullopt;
}

/// The errors of one pair over all rows.
struct Off {
    std::size_t pair = 0;
    double reach = 0;           // largest angle in radians
    std::uint64_t checked = 0;  // number of values that can show an error
    std::uint64_t wrong = 0;    // number of values beyond the bound
    double u = 0;               // largest error, in u
};

/// Returns the largest angle of each pair.
std::vector<double> reaches_of(const Hypothesis& hypothesis) {
    const oracle::Operation& operation = hypothesis.operation;
    const std::vector<double> frequencies = frequencies_of(hypothesis);
    const std::size_t pairs = frequencies.size() / operation.head_groups;
    std::vector<double> reaches(frequencies.size());
    for (std::size_t i = 0; i < reaches.size(); ++i) {
        const std::uint32_t axis = hypothesis.further.axis(i % pairs);
        const Positions& positions = axis == 0 || axis > hypothesis.further.positions.size()
                                         ? operation.positions
                                         : hypothesis.further.positions[axis - 1];
        for (const std::int64_t position : positions) {
            reaches[i] = std::max(reaches[i], std::fabs(double(position)) * frequencies[i]);
        }
        reaches[i] += operation.phase.empty() ? 0 : std::fabs(operation.phase[i]);
    }
    return reaches;
}

constexpr std::uint64_t enough = 24;  // number of right values that excludes chance

/// Returns the pairs whose errors the other pairs do not have. Rounding errors are similar in all
/// pairs, or proportional to the angle for float32 products of position and frequency. Each
/// returned pair errs by far more, in both respects, than nearly all pairs that would show its
/// proportional error.
std::vector<Off> standing_apart(const std::vector<Off>& offs, double bound_u, std::uint64_t pairs) {
    // float32 products alone differ by up to `far`, except for a few pairs by chance.
    constexpr double far = 12, alike = 3, nearly_all = 0.75;
    const std::uint64_t some = 2 + pairs / 16;
    std::vector<Off> apart;
    for (const Off& off : offs) {
        std::uint64_t can_show = 0, lack = 0, values = 0;
        for (const Off& other : offs) {
            const double expected = off.reach > 0 ? off.u * other.reach / off.reach
                                                  : std::numeric_limits<double>::infinity(),
                         found = std::max(other.u, bound_u);
            if (&other == &off || other.checked == 0 || other.reach == 0 ||
                expected < far * bound_u) {
                continue;
            }
            const bool lacks = expected >= far * found && off.u >= alike * found;
            ++can_show;
            lack += lacks ? 1 : 0;
            values += lacks ? other.checked : 0;
        }
        // A single wrong value says nothing about its pair.
        if (off.wrong > 1 && lack >= some && values >= enough &&
            double(lack) >= nearly_all * double(can_show)) {
            apart.push_back(off);
        }
    }
    return apart;
}

/// Returns the number of each pair once, in order.
std::vector<std::size_t> numbers_of(const std::vector<Off>& offs) {
    std::vector<std::size_t> numbers;
    for (const Off& off : offs) {
        numbers.push_back(off.pair);
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
}

/// Returns an empty list if the output is not numbers.
std::vector<Turned> turned_pairs(const Observation& observation, const Hypothesis& hypothesis) {
    std::vector<Turned> turned(hypothesis.operation.inv_freq.size());
    if (hypothesis.store) {
        return {};
    }
    const oracle::ElementTable& numbers = oracle::table_of(hypothesis.out.type);
    each_pair(observation, hypothesis, sample_of(hypothesis, measured_elements), 1,
              [&](const PairOfRow& pair) {
                  const Complex is = {double(pair.right[0].value), double(pair.right[1].value)},
                                was = {numbers.widen(pair.bits[0]), numbers.widen(pair.bits[1])};
                  if (std::isfinite(std::norm(is)) && std::isfinite(std::norm(was))) {
                      Turned& sum = turned[pair.number];
                      sum.product += std::conj(is) * was;
                      sum.right += std::norm(is);
                      sum.actual += std::norm(was);
                  }
              });
    return turned;
}

/// Returns the sum of squared distances of the actual pairs from the right ones.
double distance(const Turned& pair) {
    return pair.right + pair.actual - 2 * pair.product.real();
}

/// Returns the number of positions by which the whole output was rotated beyond the hypothesis; 0
/// if none, or if no number explains it.
std::int64_t turned_beyond(const Observation& observation, const Hypothesis& hypothesis) {
    const std::vector<Turned> turned = turned_pairs(observation, hypothesis);
    const std::vector<double> frequencies = frequencies_of(hypothesis);
    std::vector<TurnedToo> pairs;
    std::size_t turning = 0;  // with proportional scaling, few pairs turn
    for (std::size_t i = 0; i < turned.size(); ++i) {
        turning += frequencies[i] > 0 ? 1 : 0;
        if (coherence(turned[i]) > 0.9 && frequencies[i] > 0) {
            const double radians = std::arg(turned[i].product);
            pairs.push_back({frequencies[i], hypothesis.operation.inverse ? -radians : radians,
                             std::abs(turned[i].product)});
        }
    }
    return 2 * pairs.size() < turning ? 0 : offset_of(pairs).value_or(0);
}

bool move_positions(const Observation& observation, Hypothesis& wrong) {
    const std::int64_t offset = turned_beyond(observation, wrong);
    wrong.detail = fmt::format("{} too {}", std::abs(offset), offset > 0 ? "large" : "small");
    return std::abs(offset) > 1 &&  // offsets of 1 and -1 are other mistakes
           replace_positions(wrong, [offset](std::uint64_t token, const Positions& right) {
               return right[token] + offset;
           });
}

bool stay_at_one_position(const Observation& observation, Hypothesis& wrong) {
    const Positions right = wrong.operation.positions;
    const auto stay_at = [&wrong](std::int64_t position) {
        return replace_positions(wrong,
                                 [position](std::uint64_t, const Positions&) { return position; });
    };
    // If the right positions are all equal, one position for all tokens is an offset.
    if (!stay_at(0) || std::equal(right.begin() + 1, right.end(), right.begin())) {
        return false;
    }
    const std::int64_t position = turned_beyond(observation, wrong);
    wrong.detail = position > 0
                       ? fmt::format("{}", position)
                       : fmt::format("{}, or {} in the other direction", position, -position);
    return stay_at(position) && wrong.operation.positions != right;
}

bool apply_another_factor(const Observation& observation, Hypothesis& wrong) {
    Turned all;
    for (const Turned& pair : turned_pairs(observation, wrong)) {
        all.product += pair.product;
        all.right += pair.right;
        all.actual += pair.actual;
    }
    const double ratio = all.right > 0 ? all.product.real() / all.right : 0;
    // The error that the factor leaves. If it is as large as before, the factor fitted rounding.
    const double rest = all.actual - ratio * all.product.real();
    if (!(ratio > 0x1p-20) || std::fabs(ratio - 1) < 0x1p-20 || coherence(all) < 0.99 ||
        rest > 0.25 * distance(all)) {
        return false;
    }
    const double right = double(oracle::factor_of(wrong.operation));
    wrong.operation.attention_factor = right * ratio;
    wrong.operation.gain = oracle::Gain::apply;
    wrong.detail = fmt::format("{:.7g}, not {:.7g}", right * ratio, right);
    return true;
}

bool move_pairs_to_other_axes(const Observation& observation, Hypothesis& wrong) {
    const FurtherAxes further = wrong.further;
    const std::size_t pairs = wrong.operation.inv_freq.size();
    if (further.positions.empty() || !further.summed.empty() || wrong.operation.head_groups != 1) {
        return false;
    }
    const std::size_t axes = 1 + further.positions.size();
    std::vector<std::vector<Turned>> on;  // [axes][pairs]
    std::vector<std::uint32_t>& chosen = wrong.further.axes;
    for (std::uint32_t axis = 0; axis < axes; ++axis) {
        chosen.assign(pairs, axis);
        on.push_back(turned_pairs(observation, wrong));
    }
    std::vector<std::vector<bool>> moved(axes, std::vector<bool>(pairs));
    for (std::size_t j = 0; !on[0].empty() && j < pairs; ++j) {
        const std::uint32_t right = further.axis(j);
        std::uint32_t best = right;
        for (std::uint32_t axis = 0; axis < axes; ++axis) {
            // Rounding errors alone must not decide between axes whose positions are equal.
            const bool better = distance(on[axis][j]) < 0.25 * distance(on[right][j]);
            best = better && distance(on[axis][j]) < distance(on[best][j]) ? axis : best;
        }
        chosen[j] = best;
        moved[best][j] = best != right;
    }
    for (std::size_t axis = 0; axis < axes; ++axis) {
        if (std::find(moved[axis].begin(), moved[axis].end(), true) != moved[axis].end()) {
            const std::string those = ranges_text("pair", moved[axis]);
            wrong.detail += fmt::format("{}{} on axis {}", wrong.detail.empty() ? "" : "; ",
                                        those.empty() ? "all" : those, axis);
        }
    }
    return !wrong.detail.empty();
}

Row row(const char* name, Part part, const char* meaning,
        bool (*change)(const Observation&, Hypothesis&)) {
    return {.name = name, .part = part, .meaning = meaning, .change = change, .measured = true};
}

}  // namespace

Rows measured_mistakes() {
    return {
        row("pairs_on_other_axes", Part::axes, "wrong axes: ", move_pairs_to_other_axes),
        row("position_offset", Part::positions,
            "every position is off by the same: ", move_positions),
        row("one_position", Part::positions,
            "every token was rotated at one position: ", stay_at_one_position),
        row("another_factor", Part::factor,
            "cos and sin have another factor: ", apply_another_factor),
    };
}

std::vector<std::size_t> odd_pairs(const Observation& observation, double bound_u,
                                   std::uint64_t& pairs) {
    constexpr double far_u = 50, small_angle = 0.1;
    const Hypothesis& right = observation.right;
    pairs = right.operation.inv_freq.size() / right.operation.head_groups;
    if (right.store || pairs == 0) {
        return {};
    }
    const std::vector<double> reaches = reaches_of(right);
    std::vector<Off> offs(reaches.size());
    for (std::size_t i = 0; i < offs.size(); ++i) {
        offs[i] = {.pair = i % pairs, .reach = reaches[i]};
    }
    const oracle::ElementTable& numbers = oracle::table_of(right.out.type);
    each_pair(observation, right, all_tokens(right), bound_u, [&](const PairOfRow& pair) {
        Off& off = offs[pair.number];
        for (std::size_t member = 0; member < 2; ++member) {
            const oracle::Approximate& is = pair.right[member];
            if (is.error > 0 && std::isfinite(is.value) && is.value != 0 &&
                !std::isnan(numbers.widen(pair.bits[member]))) {
                const double u = bound_u *
                                 double(numbers.distance(pair.bits[member], is.value) / is.error);
                ++off.checked;
                off.wrong += u > bound_u ? 1 : 0;
                off.u = std::max(off.u, u);
            }
        }
    });
    std::stable_sort(offs.begin(), offs.end(),
                     [](const Off& a, const Off& b) { return a.reach > b.reach; });
    if (std::vector<std::size_t> apart = numbers_of(standing_apart(offs, bound_u, pairs));
        !apart.empty()) {
        return apart;  // the rest may be rounding
    }
    std::uint64_t run = 0, in_run = 0, longest = 0, turn = 0, right_values = 0;
    bool odd = false, larger = false;
    std::vector<Off> wrong;
    for (const Off& off : offs) {
        const bool is_wrong = off.u > bound_u;
        if (is_wrong) {
            wrong.push_back(off);
            odd = odd || (off.u > far_u && longest >= enough);
            larger = larger || off.u > far_u * (1 + off.reach);
        }
        // A single right pair may be one whose products of position and frequency are exact.
        run = is_wrong ? 0 : run + 1;
        in_run = is_wrong ? 0 : in_run + off.checked;
        longest = run >= 2 ? std::max(longest, in_run) : longest;
        turn += !is_wrong && off.reach > small_angle ? 1 : 0;
        right_values += !is_wrong && off.reach > small_angle ? off.checked : 0;
    }
    odd = odd || (larger && turn >= 2 && right_values >= enough);
    return odd ? numbers_of(wrong) : std::vector<std::size_t>();
}

}  // namespace vkrope::tools
