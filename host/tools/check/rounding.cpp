// SPDX-License-Identifier: MIT
// Decides whether the errors of an output may be rounding errors.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "check/compare.hpp"
#include "check/judge.hpp"
#include "verify/oracle/element.hpp"
#include "verify/oracle/rows.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::tools {
namespace {

/// One pair of one row: its index in Operation::inv_freq, the right values and the actual ones.
struct PairOfRow {
    std::size_t number = 0;
    std::array<oracle::Approximate, 2> right;
    std::array<std::uint32_t, 2> bits;
};

/// Calls visit(PairOfRow) for each pair of each row, after all ops.
template <class Visit>
void each_pair(const Observation& observation, const Hypothesis& hypothesis, const Sample& sample,
               const std::vector<bool>& rows, double bound_u, const Visit& visit) {
    const oracle::Tensor& out = hypothesis.out;
    const std::vector<oracle::Pair> pairs = oracle::pairs_of(hypothesis.operation);
    each_token(
        observation, hypothesis, sample, bound_u,
        [&](std::uint64_t batch, std::uint64_t token,
            std::span<const oracle::Approximate> channels) {
            for (std::uint64_t head = 0; head < out.heads; ++head) {
                if (!rows.empty() && !rows[(batch * out.tokens + token) * out.heads + head]) {
                    continue;
                }
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
        // Quarters of a turn are exact.
        reaches[i] += operation.phase.empty()
                          ? 0
                          : std::fabs(std::remainder(operation.phase[i], std::numbers::pi / 2));
    }
    return reaches;
}

constexpr double enough = 24;  // number of right values that excludes chance

constexpr std::uint64_t few = 12;  // so many values of a pair tell nothing about it

/// Returns the share of the values of a type that show an error of `u`: the values of a 16-bit
/// output hide an error that is smaller than the distance of two of them.
double visible(oracle::Type type, double u) {
    switch (type) {
        case oracle::Type::f16: return std::min(1.0, u * 0x1p-13);
        case oracle::Type::bf16: return std::min(1.0, u * 0x1p-16);
        default: return 1;
    }
}

/// Returns the pairs whose errors the other pairs do not have. Rounding errors are similar in all
/// pairs, or proportional to the angle for float32 products of position and frequency. Each
/// returned pair errs by far more, in both respects, than nearly all pairs that would show its
/// proportional error.
std::vector<Off> standing_apart(const std::vector<Off>& offs, double bound_u, std::uint64_t pairs,
                                oracle::Type type) {
    // float32 products alone differ by up to `far`, except for a few pairs by chance.
    constexpr double far = 12, alike = 3, nearly_all = 0.75;
    const std::uint64_t some = 2 + pairs / 16;
    std::vector<Off> apart;
    for (const Off& off : offs) {
        std::uint64_t can_show = 0, lack = 0;
        double values = 0;
        for (const Off& other : offs) {
            const double expected = off.reach > 0 ? off.u * other.reach / off.reach
                                                  : std::numeric_limits<double>::infinity(),
                         found = std::max(other.u, bound_u);
            if (&other == &off || other.reach == 0 || expected < far * bound_u ||
                double(other.checked) * visible(type, expected) < double(few)) {
                continue;
            }
            const bool lacks = expected >= far * found && off.u >= alike * found;
            ++can_show;
            lack += lacks ? 1 : 0;
            values += lacks ? double(other.checked) * visible(type, expected) : 0;
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
    std::vector<std::size_t> numbers(offs.size());
    std::transform(offs.begin(), offs.end(), numbers.begin(),
                   [](const Off& off) { return off.pair; });
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
}

}  // namespace

std::vector<std::size_t> odd_pairs(const Observation& observation, const Hypothesis& right,
                                   const std::vector<bool>& rows, double bound_u) {
    constexpr double far_u = 50, small_angle = 0.1;
    if (right.store || right.operation.inv_freq.empty()) {
        return {};
    }
    const std::size_t pairs = right.operation.inv_freq.size() / right.operation.head_groups;
    const std::vector<double> reaches = reaches_of(right);
    std::vector<Off> offs(reaches.size());
    for (std::size_t i = 0; i < offs.size(); ++i) {
        offs[i] = {.pair = i % pairs, .reach = reaches[i]};
    }
    const oracle::ElementTable& numbers = oracle::table_of(right.out.type);
    constexpr std::uint64_t enough_elements = std::uint64_t{1} << 20;
    each_pair(observation, right, sample_for(right, rows, enough_elements), rows, bound_u,
              [&](const PairOfRow& pair) {
                  Off& off = offs[pair.number];
                  for (std::size_t member = 0; member < 2; ++member) {
                      const oracle::Approximate& is = pair.right[member];
                      if (is.error > 0 && std::isfinite(is.value) && is.value != 0 &&
                          !std::isnan(numbers.widen(pair.bits[member]))) {
                          const double u = bound_u *
                                           double(numbers.distance(pair.bits[member], is.value) /
                                                  is.error);
                          ++off.checked;
                          off.wrong += u > bound_u ? 1 : 0;
                          off.u = std::max(off.u, u);
                      }
                  }
              });
    std::stable_sort(offs.begin(), offs.end(),
                     [](const Off& a, const Off& b) { return a.reach > b.reach; });
    if (std::vector<std::size_t> apart = numbers_of(
            standing_apart(offs, bound_u, pairs, right.out.type));
        !apart.empty()) {
        return apart;  // the rest may be rounding
    }
    std::uint64_t run = 0, in_run = 0, longest = 0, turn = 0, right_values = 0;
    const auto shown = [&right](std::uint64_t values, double u) {
        return double(values) * visible(right.out.type, u);
    };
    const long double factor = oracle::factor_of(right.operation);
    bool odd = false, larger = false;
    double largest = 0;
    std::vector<Off> wrong;
    for (const Off& off : offs) {
        const bool is_wrong = off.u > bound_u;
        if (is_wrong) {
            wrong.push_back(off);
            largest = std::max(largest, off.u);
            odd = odd || (off.u > far_u && shown(longest, off.u) >= enough);
            larger = larger || off.u > far_u * (1 + off.reach);
        }
        // A single right pair may be one whose products of position and frequency are exact. Pairs
        // that do not turn round only their product with the factor.
        run = is_wrong || (off.reach == 0 && factor != 1) ? 0 : run + 1;
        in_run = is_wrong ? 0 : in_run + off.checked;
        longest = run >= 2 ? std::max(longest, in_run) : longest;
        // A pair of few values may be right by chance.
        const bool turns_right = !is_wrong && off.reach > small_angle && off.checked >= few;
        turn += turns_right ? 1 : 0;
        right_values += turns_right ? off.checked : 0;
    }
    odd = odd || (larger && turn >= 2 && shown(right_values, largest) >= enough);
    return odd ? numbers_of(wrong) : std::vector<std::size_t>();
}

}  // namespace vkrope::tools
