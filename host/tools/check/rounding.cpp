// SPDX-License-Identifier: MIT
// Decides whether the errors of an output may be rounding errors.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "check/compare.hpp"
#include "check/judge.hpp"
#include "verify/oracle/rows.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::tools {
namespace {

// Calls visit(pair, element) for each element of a pair; `pair` is an index into inv_freq.
template <class Visit>
void each_of_pairs(const Observation& observation, const Hypothesis& hypothesis,
                   const Sample& sample, const std::vector<bool>& rows, const Visit& visit) {
    const oracle::Tensor& out = hypothesis.out;
    const std::vector<oracle::Pair> pairs = oracle::pairs_of(hypothesis.operation);
    std::vector<std::size_t> pair_of(out.head_dim, pairs.size());
    for (std::size_t j = 0; j < pairs.size(); ++j)
        pair_of[pairs[j].out[0]] = pair_of[pairs[j].out[1]] = j;
    const oracle::ElementJudge judge(hypothesis, input_of(observation, hypothesis),
                                     output_of(observation, hypothesis));
    each_token(
        observation, hypothesis, sample,
        [&](std::uint64_t batch, std::uint64_t token,
            std::span<const oracle::Approximate> channels) {
            judge.token(batch, token, channels, [&](const oracle::Compared& one) {
                const std::uint64_t head = one.place.head,
                                    row = (batch * out.tokens + token) * out.heads + head;
                const std::size_t j = pair_of[one.place.channel];
                if (j < pairs.size() && (rows.empty() || rows[row])) {
                    visit(head / (out.heads / hypothesis.operation.head_groups) * pairs.size() + j,
                          one);
                }
            });
        });
}

// Returns the angle in radians that one position adds to each pair.
std::vector<double> frequencies_of(const Hypothesis& hypothesis) {
    const std::vector<double>& inv_freq = hypothesis.operation.inv_freq;
    const std::vector<double>& summed = hypothesis.operation.further.summed;
    if (summed.empty()) return inv_freq;
    const std::size_t groups = hypothesis.operation.head_groups, pairs = inv_freq.size() / groups,
                      axes = summed.size() / inv_freq.size();
    std::vector<double> all(inv_freq.size());
    for (std::size_t i = 0; i < summed.size(); ++i)
        all[i / pairs / axes * pairs + i % pairs] += summed[i];
    return all;
}

// The errors of one pair over all rows.
struct Off {
    std::size_t pair = 0;
    double reach = 0;           // largest angle in radians
    std::uint64_t checked = 0;  // number of values that can show an error
    std::uint64_t wrong = 0;    // number of values beyond the bound
    double u = 0;               // largest error, in u
};

// Returns the largest angle of each pair.
std::vector<double> reaches_of(const Hypothesis& hypothesis) {
    const oracle::Operation& operation = hypothesis.operation;
    const std::vector<double> frequencies = frequencies_of(hypothesis);
    const std::size_t pairs = frequencies.size() / operation.head_groups;
    std::vector<double> reaches(frequencies.size());
    for (std::size_t i = 0; i < reaches.size(); ++i) {
        const std::uint32_t axis = hypothesis.operation.further.axis(i % pairs);
        const Positions& positions = axis == 0 ||
                                             axis > hypothesis.operation.further.positions.size()
                                         ? operation.positions
                                         : hypothesis.operation.further.positions[axis - 1];
        for (const std::int64_t position : positions)
            reaches[i] = std::max(reaches[i], std::fabs(double(position)) * frequencies[i]);
        // A phase of whole quarter turns adds no error.
        reaches[i] += operation.phase.empty()
                          ? 0
                          : std::fabs(std::remainder(operation.phase[i], std::numbers::pi / 2));
    }
    return reaches;
}

constexpr double enough = 24;  // with so many right values, chance is excluded

constexpr std::uint64_t few = 12;  // fewer values say nothing about their pair

// Returns the share of the values of a type that show an error of `u`: a 16-bit output hides an
// error smaller than the distance between two of its values.
double visible(oracle::Type type, double u) {
    switch (type) {
        case oracle::Type::f16: return std::min(1.0, u * 0x1p-13);
        case oracle::Type::bf16: return std::min(1.0, u * 0x1p-16);
        default: return 1;
    }
}

// Returns the pairs whose errors the other pairs do not have. Rounding errors are similar in all
// pairs, or proportional to the angle for float32 products of position and frequency. Each
// returned pair errs by far more, in both respects, than nearly all pairs that would show its
// proportional error.
std::vector<Off> standing_apart(const std::vector<Off>& offs, double bound_u, std::uint64_t pairs,
                                oracle::Type type) {
    // float32 products differ by at most the factor `far`, except for a few pairs by chance.
    constexpr double far = 12, alike = 3, nearly_all = 0.75;
    const std::uint64_t some = 2 + pairs / 16;
    std::vector<Off> outliers;
    for (const Off& off : offs) {
        std::uint64_t can_show = 0, lack = 0;
        double values = 0;
        for (const Off& other : offs) {
            const double expected = off.reach > 0 ? off.u * other.reach / off.reach
                                                  : std::numeric_limits<double>::infinity(),
                         found = std::max(other.u, bound_u);
            if (&other == &off || other.reach == 0 || expected < far * bound_u ||
                double(other.checked) * visible(type, expected) < double(few))
                continue;
            const bool lacks = expected >= far * found && off.u >= alike * found;
            ++can_show;
            lack += lacks ? 1 : 0;
            values += lacks ? double(other.checked) * visible(type, expected) : 0;
        }
        // A single wrong value says nothing about its pair.
        if (off.wrong > 1 && lack >= some && values >= enough &&
            double(lack) >= nearly_all * double(can_show))
            outliers.push_back(off);
    }
    return outliers;
}

// Returns the number of each pair once, in order.
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
                                   const std::vector<bool>& rows) {
    constexpr double far_u = 50, small_angle = 0.1;
    const double bound_u = right.bound_u;
    if (right.store || right.operation.inv_freq.empty()) return {};
    const std::size_t pairs = right.operation.inv_freq.size() / right.operation.head_groups;
    const std::vector<double> reaches = reaches_of(right);
    std::vector<Off> offs(reaches.size());
    for (std::size_t i = 0; i < offs.size(); ++i)
        offs[i] = {.pair = i % pairs, .reach = reaches[i]};
    const oracle::ElementTable& numbers = oracle::table_of(right.out.type);
    constexpr std::uint64_t enough_elements = std::uint64_t{1} << 20;
    each_of_pairs(
        observation, right, sample_for(right, rows, enough_elements), rows,
        [&](std::size_t pair, const oracle::Compared& one) {
            if (one.exact.error > 0 && std::isfinite(one.exact.value) && one.exact.value != 0 &&
                !std::isnan(numbers.widen(one.got))) {
                const double u = bound_u * double(one.share);
                Off& off = offs[pair];
                ++off.checked;
                off.wrong += u > bound_u ? 1 : 0;
                off.u = std::max(off.u, u);
            }
        });
    std::stable_sort(offs.begin(), offs.end(),
                     [](const Off& a, const Off& b) { return a.reach > b.reach; });
    if (std::vector<std::size_t> outliers = numbers_of(
            standing_apart(offs, bound_u, pairs, right.out.type));
        !outliers.empty())
        return outliers;  // the rest may be rounding
    std::uint64_t run = 0, in_run = 0, longest = 0, turn = 0, right_values = 0;
    // In 16 bits a small error that crosses a tie between two values looks like a whole step, so
    // that the share of wrong values tells more of the error than the largest one.
    const bool rounds_to_16 = right.out.type != oracle::Type::f32;
    const auto share_of = [rounds_to_16](std::uint64_t errs, std::uint64_t checked) {
        return rounds_to_16 ? double(errs) / double(checked) : 1;
    };
    const auto shown = [&right](std::uint64_t values, double u, double share) {
        return double(values) * std::min(visible(right.out.type, u), share);
    };
    std::uint64_t errs = 0, checked = 0;  // values of wrong pairs
    const long double factor = oracle::factor_of(right.operation);
    bool odd = false, larger = false;
    double largest = 0;
    std::vector<Off> wrong;
    for (const Off& off : offs) {
        const bool is_wrong = off.u > bound_u;
        if (is_wrong) {
            wrong.push_back(off);
            largest = std::max(largest, off.u);
            errs += off.wrong;
            checked += off.checked;
            const double share = share_of(off.wrong, off.checked);
            odd = odd || (off.u > far_u && shown(longest, off.u, share) >= enough);
            larger = larger ||
                     ((off.wrong > 1 || !rounds_to_16) && off.u * share > far_u * (1 + off.reach));
        }
        // A single right pair may be one whose products of position and frequency are exact. Pairs
        // that do not turn round only their product with the factor.
        run = is_wrong || (off.reach == 0 && factor != 1) ? 0 : run + 1;
        in_run = is_wrong ? 0 : in_run + off.checked;
        longest = run >= 2 ? std::max(longest, in_run) : longest;
        // A pair with few values may be right by chance.
        const bool turns_right = !is_wrong && off.reach > small_angle && off.checked >= few;
        turn += turns_right ? 1 : 0;
        right_values += turns_right ? off.checked : 0;
    }
    odd = odd ||
          (larger && turn >= 2 && shown(right_values, largest, share_of(errs, checked)) >= enough);
    return odd ? numbers_of(wrong) : std::vector<std::size_t>();
}

}  // namespace vkrope::tools
