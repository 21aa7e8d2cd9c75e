// SPDX-License-Identifier: MIT
#include "check/mistakes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

namespace vkrope::tools {
namespace {

constexpr std::size_t rank_step = 100;  // measured values have ranks between those of two rows

/// Returns true if the mistake is possible only in a rotation.
bool is_of_rotation(const Row& row) {
    return row.part > Part::store;
}

/// Returns the order of a row in a report; measured values may stand between two rows.
std::size_t rank_of(const Row& row) {
    return rank_step * std::size_t(&row - all_rows().data() + 1);
}

/// Returns whether a layout that takes other axes for tokens has no effect, since all positions are
/// the same.
bool are_alike(const Observation& observation, const Hypothesis& wrong) {
    bool alike = wrong.in.token_stride != observation.right.in.token_stride;
    each_axis(wrong, [&alike](const Positions& positions) {
        alike = alike && std::adjacent_find(positions.begin(), positions.end(),
                                            std::not_equal_to<>()) == positions.end();
    });
    return alike;
}

const Row& row_of(std::string_view name) {
    return *std::find_if(all_rows().begin(), all_rows().end(),
                         [name](const Row& row) { return row.name == name; });
}

}  // namespace

const Rows& all_rows() {
    static const Rows rows = [] {
        Rows all;
        // Rounding of the frequencies and computation of cos and sin come last, because they use
        // the frequencies that another mistake may have changed.
        for (const auto table :
             {ops_mistakes, store_mistakes, pair_mistakes, scaling_mistakes, position_mistakes,
              window_mistakes, exponent_mistakes, layout_mistakes, arithmetic_mistakes}) {
            Rows rows_of_table = table();
            std::move(rows_of_table.begin(), rows_of_table.end(), std::back_inserter(all));
        }
        return all;
    }();
    return rows;
}

std::size_t rank_of_measured(Part part) {
    // After the rows that state a value, and before those of the arithmetic.
    const auto arithmetic = std::find_if(all_rows().begin(), all_rows().end(),
                                         [](const Row& row) { return row.part == Part::rounding; });
    return rank_step * std::size_t(arithmetic - all_rows().begin()) + std::size_t(part);
}

bool Mistake::changes(Part part) const {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
}

bool Mistake::is_vague() const {
    return std::any_of(named.begin(), named.end(),
                       [](const Named& each) { return each.name == other_positions; });
}

std::size_t Mistake::cost() const {
    std::size_t cost = is_vague() ? 4 : 0;
    for (const Named& each : named) {
        cost += each.rank % rank_step == 0 ? 2 : 3;
    }
    return cost;
}

void Mistake::add(Named mistake, Part part) {
    const auto before = std::upper_bound(
        named.begin(), named.end(), mistake,
        [](const Named& a, const Named& b) { return a.rank < b.rank; });
    named.insert(before, std::move(mistake));
    parts.push_back(part);
}

std::string Mistake::name() const {
    std::string all;
    for (const Named& each : named) {
        all += (all.empty() ? "" : " + ") + each.name;
    }
    return all;
}

std::string Mistake::meaning() const {
    std::string all;
    for (const Named& each : named) {
        all += (all.empty() ? "" : "; ") + each.meaning;
    }
    return all;
}

std::optional<Mistake> with(const Mistake& mistake, const Row& row,
                            const Observation& observation) {
    if ((is_of_rotation(row) && mistake.hypothesis.operation.inv_freq.empty()) ||
        mistake.changes(row.part) || mistake.changes(Part::alone) ||
        (row.part == Part::alone && !mistake.parts.empty())) {
        return std::nullopt;
    }
    Hypothesis wrong = mistake.hypothesis;
    wrong.detail.clear();
    if (!row.change(observation, wrong) ||
        (row.part == Part::positions && mistake.changes(Part::layout) &&
         are_alike(observation, wrong))) {
        return std::nullopt;
    }
    Mistake both = {.named = mistake.named, .hypothesis = std::move(wrong), .parts = mistake.parts};
    both.add({rank_of(row), row.name, row.meaning + both.hypothesis.detail}, row.part);
    both.precision = row.precision && (mistake.named.empty() || mistake.precision);
    both.turns = row.turns ? row.turns(observation, mistake.hypothesis) : std::vector<Turn>();
    return both;
}

std::optional<Mistake> with(const Mistake& mistake, const OtherRotation& other,
                            const Observation& observation) {
    if (mistake.changes(Part::frequencies) || other.rotation.no_rope ||
        other.rotation.sections.order == VKROPE_SECTIONS_SUM) {
        return std::nullopt;
    }
    Mistake both = mistake;
    oracle::Operation& operation = both.hypothesis.operation;
    const oracle::Operation& right = mistake.hypothesis.operation;
    set_angles(other.rotation, operation);
    const bool groups = operation.head_groups != 0 &&
                        both.hypothesis.in.heads % operation.head_groups == 0,
               another = differ(operation.inv_freq, right.inv_freq) ||
                         operation.attention_factor != right.attention_factor;
    if (!groups || !fits(both.hypothesis) || !another) {
        return std::nullopt;
    }
    Mistake::Named named = {first_rank, other.mistake, other.meaning};
    if (right.inv_freq.empty()) {
        named.name = "rotated_without_rope";
        named.meaning = "rotated although the layer has no RoPE: " + other.meaning;
    } else if (!differ(operation.inv_freq,
                       powers(observation.base, 2 * operation.inv_freq.size())) &&
               operation.inv_freq.size() == right.inv_freq.size() &&
               operation.attention_factor == 1) {
        const Row& ignored = row_of("scaling_ignored");
        named = {rank_of(ignored), ignored.name, ignored.meaning + "; " + other.meaning};
    }
    both.add(std::move(named), Part::frequencies);
    return both;
}

std::vector<double> powers(double base, std::uint64_t rotary_dim) {
    std::vector<double> inv_freq(rotary_dim / 2);
    return base > 0 &&
                   default_inv_freq(base, static_cast<std::uint32_t>(rotary_dim), inv_freq.data())
               ? inv_freq
               : std::vector<double>();
}

std::uint32_t rotary_dim(const Hypothesis& hypothesis) {
    return static_cast<std::uint32_t>(2 * hypothesis.operation.inv_freq.size());
}

std::vector<double> multipliers(const Observation& observation, const Hypothesis& right) {
    std::vector<double> ratios = powers(observation.base, rotary_dim(right));
    for (std::size_t j = 0; j < ratios.size(); ++j) {
        ratios[j] = right.operation.inv_freq[j] / ratios[j];
    }
    return ratios;
}

bool is_partial(const Hypothesis& hypothesis) {
    return rotary_dim(hypothesis) < hypothesis.in.head_dim;
}

std::uint64_t channels_to_end(const oracle::Operation& operation) {
    if (operation.windows.empty()) {
        return 2 * operation.inv_freq.size() / operation.head_groups;
    }
    return operation.windows.back().offset + 2 * operation.windows.back().pairs;
}

bool fits(const Hypothesis& hypothesis) {
    return hypothesis.operation.rotary_offset + channels_to_end(hypothesis.operation) <=
           hypothesis.in.head_dim;
}

double rounded_to(oracle::Type type, long double value) {
    return oracle::widen(type, oracle::narrow(type, value));
}

bool differ(const std::vector<double>& a, const std::vector<double>& b) {
    const auto far = [](double x, double y) { return std::fabs(x - y) > 1e-12 * std::fabs(y); };
    return a.size() != b.size() || !std::equal(a.begin(), a.end(), b.begin(),
                                               [&](double x, double y) { return !far(x, y); });
}

bool replace_frequencies(Hypothesis& wrong, const std::vector<double>& inv_freq) {
    const std::vector<double> right = std::exchange(wrong.operation.inv_freq, inv_freq);
    if (inv_freq.size() != right.size()) {
        wrong.operation.windows.clear();
    }
    return !inv_freq.empty() && fits(wrong) && differ(inv_freq, right);
}

void each_round_number(double least, double most, const std::function<void(double)>& visit) {
    for (int decade = int(std::floor(std::log10(least))); std::pow(10, decade) <= most; ++decade) {
        for (int digits = 10; digits < 100; ++digits) {
            const double number = std::stod(fmt::format("{}e{}", digits, decade - 1));
            if (number >= least && number <= most) {
                visit(number);
            }
        }
    }
}

bool replace_positions(
    Hypothesis& wrong,
    const std::function<std::int64_t(std::uint64_t token, const Positions& right)>& change) {
    bool changed = false;
    each_axis(wrong, [&](Positions& positions) {
        const Positions right = positions;
        for (std::uint64_t token = 0; token < positions.size(); ++token) {
            positions[token] = change(token, right);
        }
        changed = changed || positions != right;
    });
    return changed;
}

}  // namespace vkrope::tools
