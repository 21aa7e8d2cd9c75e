// SPDX-License-Identifier: MIT
#include "check/mistakes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>

#include "io/model_file.hpp"

namespace vkrope::tools {
namespace {

// Returns true if the mistake is possible only in a rotation.
bool is_of_rotation(const Row& row) {
    return row.part > Part::rotation;
}

}  // namespace

const Rows& all_rows() {
    static const Rows rows = [] {
        Rows all;
        // Rounding of the frequencies and computation of cos and sin come last, because they use
        // the frequencies that another mistake may have changed.
        for (const auto table : {rotation_mistakes, ops_mistakes, pair_mistakes, scaling_mistakes,
                                 position_mistakes, window_mistakes, exponent_mistakes,
                                 layout_mistakes, measured_mistakes, arithmetic_mistakes}) {
            Rows rows_of_table = table();
            std::move(rows_of_table.begin(), rows_of_table.end(), std::back_inserter(all));
        }
        return all;
    }();
    return rows;
}

const Row& row_of(std::string_view name) {
    const auto row = std::find_if(all_rows().begin(), all_rows().end(),
                                  [name](const Row& one) { return one.name == name; });
    if (row == all_rows().end())
        throw std::logic_error(fmt::format("no table has the mistake {}", name));
    return *row;
}

bool Mistake::changes(Part part) const {
    return std::any_of(
        named.begin(), named.end(), [part](const Named& each) { return each.row->part == part; });
}

bool Mistake::is_vague() const {
    return std::any_of(
        named.begin(), named.end(),
        [](const Named& each) { return each.row->name == other_positions; });
}

std::size_t Mistake::cost() const {
    std::size_t cost = is_vague() ? 4 : 0;
    for (const Named& each : named) cost += each.row->measured ? 3 : 2;
    return cost;
}

void Mistake::add(Named mistake) {
    const auto before = std::upper_bound(
        named.begin(), named.end(), mistake,
        [](const Named& a, const Named& b) { return a.row < b.row; });
    named.insert(before, std::move(mistake));
}

std::string Mistake::name() const {
    std::string all;
    for (const Named& each : named) all += (all.empty() ? "" : " + ") + each.row->name;
    return all;
}

std::string Mistake::meaning() const {
    std::string all;
    for (const Named& each : named) {
        all += (all.empty() ? "the engine " : "; ") + each.row->meaning +
               (each.detail.empty() ? "" : ": ") + each.detail;
    }
    return all;
}

bool positions_hide_another(const Observation& observation, const Mistake& mistake,
                            const Hypothesis& wrong) {
    bool alike = true, zero = true;
    each_axis(wrong, [&](const Positions& positions) {
        for (const std::int64_t position : positions) {
            alike = alike && position == positions[0];
            zero = zero && position == 0;
        }
    });
    return (alike && mistake.changes(Part::layout) &&
            wrong.in.token_stride != observation.right.in.token_stride) ||
           (zero && mistake.changes(Part::rotation));
}

std::optional<Mistake> with(const Mistake& mistake, const Row& row,
                            const Observation& observation) {
    if (!row.change || (is_of_rotation(row) && mistake.hypothesis.operation.inv_freq.empty()) ||
        mistake.changes(row.part) || mistake.changes(Part::alone) ||
        (row.part == Part::alone && !mistake.named.empty()))
        return std::nullopt;
    Hypothesis wrong = mistake.hypothesis;
    wrong.detail.clear();
    if (!row.change(observation, wrong) ||
        (row.part == Part::positions && positions_hide_another(observation, mistake, wrong)))
        return std::nullopt;
    Mistake both = {.named = mistake.named, .hypothesis = std::move(wrong)};
    both.add({&row, both.hypothesis.detail});
    both.precision = row.precision && (mistake.named.empty() || mistake.precision);
    both.turns = row.turns ? row.turns(observation, mistake.hypothesis) : std::vector<Turn>();
    return both;
}

// Sets the windows, frequencies, phases, head groups and attention factor.
static void set_angles(const RopeParams& rotation, oracle::Operation& operation) {
    operation.inv_freq = rotation.inv_freq;
    operation.phase = rotation.phase;
    operation.head_groups = rotation.head_groups;
    operation.attention_factor = rotation.attention_factor;
    operation.windows.clear();
    for (const Window& window : windows_of(rotation))
        operation.windows.push_back({window.offset, window.rotary_dim / 2});
}

std::optional<Mistake> with(const Mistake& mistake, const OtherRotation& other,
                            const Observation& observation) {
    if (mistake.changes(Part::frequencies) || other.rotation.no_rope ||
        other.rotation.sections.order == VKROPE_SECTIONS_SUM)
        return std::nullopt;
    Mistake both = mistake;
    oracle::Operation& operation = both.hypothesis.operation;
    const oracle::Operation& right = mistake.hypothesis.operation;
    set_angles(other.rotation, operation);
    const bool groups = operation.head_groups != 0 &&
                        both.hypothesis.in.heads % operation.head_groups == 0,
               another = differ(operation.inv_freq, right.inv_freq) ||
                         operation.attention_factor != right.attention_factor;
    if (!groups || !fits(both.hypothesis) || !another) return std::nullopt;
    if (right.inv_freq.empty()) set_sections(both.hypothesis, both.hypothesis.sections);
    std::string_view name = other.mistake;
    if (right.inv_freq.empty())
        name = "rotated_without_rope";
    else if (!differ(operation.inv_freq, powers(observation.base, 2 * operation.inv_freq.size())) &&
             operation.inv_freq.size() == right.inv_freq.size() && operation.attention_factor == 1)
        name = "scaling_ignored";
    both.add({&row_of(name), other.detail});
    return both;
}

std::vector<double> powers(double base, std::uint64_t rotary_dim) {
    std::vector<double> inv_freq(rotary_dim / 2);
    return base > 0 && default_inv_freq(base, std::uint32_t(rotary_dim), inv_freq.data())
               ? inv_freq
               : std::vector<double>();
}

std::uint32_t rotary_dim(const Hypothesis& hypothesis) {
    return std::uint32_t(2 * hypothesis.operation.inv_freq.size());
}

std::vector<double> multipliers(const Observation& observation, const Hypothesis& right) {
    std::vector<double> ratios = powers(observation.base, rotary_dim(right));
    for (std::size_t j = 0; j < ratios.size(); ++j)
        ratios[j] = right.operation.inv_freq[j] / ratios[j];
    return ratios;
}

bool is_partial(const Hypothesis& hypothesis) {
    return rotary_dim(hypothesis) < hypothesis.in.head_dim;
}

std::uint64_t channels_to_end(const oracle::Operation& operation) {
    if (operation.windows.empty()) return 2 * operation.inv_freq.size() / operation.head_groups;
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
    if (!wrong.operation.further.summed.empty()) return false;  // inv_freq is not used
    const std::vector<double> right = std::exchange(wrong.operation.inv_freq, inv_freq);
    if (inv_freq.size() != right.size()) wrong.operation.windows.clear();
    return !inv_freq.empty() && fits(wrong) && differ(inv_freq, right);
}

void each_round_number(double least, double most, const std::function<void(double)>& visit) {
    for (int decade = int(std::floor(std::log10(least))); std::pow(10, decade) <= most; ++decade) {
        for (int digits = 10; digits < 100; ++digits) {
            const double number = std::stod(fmt::format("{}e{}", digits, decade - 1));
            if (number >= least && number <= most) visit(number);
        }
    }
}

bool replace_positions(
    Hypothesis& wrong,
    const std::function<std::int64_t(std::uint64_t token, const Positions& right)>& change) {
    bool changed = false;
    each_axis(wrong, [&](Positions& positions) {
        const Positions right = positions;
        for (std::uint64_t token = 0; token < positions.size(); ++token)
            positions[token] = change(token, right);
        changed = changed || positions != right;
    });
    return changed;
}

}  // namespace vkrope::tools
