// SPDX-License-Identifier: MIT
#include "check/mistakes.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

namespace vkrope::tools {
namespace {

const Rows& all_rows() {
    static const Rows rows = [] {
        Rows all;
        // Rounding of the frequencies and computation of cos and sin come last, because they use
        // the frequencies that another mistake may have changed.
        for (const auto table : {ops_mistakes, store_mistakes, pair_mistakes, scaling_mistakes,
                                 position_mistakes, window_mistakes, exponent_mistakes,
                                 layout_mistakes, measured_mistakes, arithmetic_mistakes}) {
            Rows rows_of_table = table();
            std::move(rows_of_table.begin(), rows_of_table.end(), std::back_inserter(all));
        }
        return all;
    }();
    return rows;
}

/// Returns true if the mistake is possible only in a rotation.
bool is_of_rotation(const Row& row) {
    return row.part > Part::store;
}

std::optional<Mistake> mistake_of(const Row& row, const Observation& observation,
                                  const Hypothesis& right) {
    if (is_of_rotation(row) && right.operation.inv_freq.empty()) {
        return std::nullopt;
    }
    Hypothesis wrong = right;
    wrong.detail.clear();
    if (!row.change(observation, wrong)) {
        return std::nullopt;
    }
    return Mistake{.name = row.name,
                   .meaning = row.meaning + wrong.detail,
                   .hypothesis = std::move(wrong),
                   .part = row.part,
                   .precision = row.precision,
                   .measured = row.measured,
                   .turns = row.turns ? row.turns(observation, right) : std::vector<Turn>(),
                   .next_row = static_cast<std::size_t>(&row - all_rows().data()) + 1};
}

/// Returns true if a mistake in the frequencies gives this other RoPE of the model.
bool same_rotation(const Mistake& mistake, const RopeParams& rotation) {
    return mistake.part == Part::frequencies &&
           !differ(rotation.inv_freq, mistake.hypothesis.operation.inv_freq) &&
           rotation.attention_factor == mistake.hypothesis.operation.attention_factor;
}

/// Returns the mistake that uses another RoPE of the model. Returns none if the window of that RoPE
/// does not fit, or if it is the right RoPE.
std::optional<Mistake> other_rotation(const Hypothesis& right, const OtherRotation& other) {
    if (other.rotation.no_rope || other.rotation.sections.order == VKROPE_SECTIONS_SUM) {
        return std::nullopt;
    }
    Hypothesis wrong = right;
    oracle::Operation& operation = wrong.operation;
    set_angles(other.rotation, operation);
    const bool groups = operation.head_groups != 0 && right.in.heads % operation.head_groups == 0;
    const bool another = differ(operation.inv_freq, right.operation.inv_freq) ||
                         operation.attention_factor != right.operation.attention_factor;
    if (!groups || !fits(wrong) || !another) {
        return std::nullopt;
    }
    const bool still = right.operation.inv_freq.empty();
    return Mistake{.name = still ? "rotated_without_rope" : other.mistake,
                   .meaning = still ? "rotated although the layer has no RoPE: " + other.meaning
                                    : other.meaning,
                   .hypothesis = std::move(wrong),
                   .part = Part::frequencies};
}

}  // namespace

std::vector<Mistake> mistakes_of(const Observation& observation) {
    std::vector<Mistake> mistakes;
    const Hypothesis& right = observation.right;
    if (right.operation.positions.empty() || right.in.heads == 0) {
        return mistakes;
    }
    for (const Row& row : all_rows()) {
        if (std::optional<Mistake> mistake = mistake_of(row, observation, right)) {
            mistakes.push_back(std::move(*mistake));
        }
    }
    // The other RoPEs of the model come first, because if they explain an output they are likelier
    // than a base that happens to match. A RoPE without scaling is reported as scaling_ignored.
    const auto scaling_ignored = std::find_if(
        mistakes.begin(), mistakes.end(),
        [](const Mistake& mistake) { return mistake.name == "scaling_ignored"; });
    std::vector<Mistake> others;
    for (const OtherRotation& other : observation.others) {
        std::optional<Mistake> mistake = other_rotation(right, other);
        if (mistake && scaling_ignored != mistakes.end() &&
            same_rotation(*scaling_ignored, other.rotation)) {
            scaling_ignored->meaning += "; " + other.meaning;
        } else if (mistake) {
            others.push_back(std::move(*mistake));
        }
    }
    mistakes.insert(mistakes.begin(), std::make_move_iterator(others.begin()),
                    std::make_move_iterator(others.end()));
    return mistakes;
}

void each_two(const Observation& observation, const std::vector<Mistake>& singles,
              const std::function<void(const Mistake&)>& visit) {
    for (const Mistake& first : singles) {
        for (std::size_t i = first.next_row; i < all_rows().size(); ++i) {
            const Row& row = all_rows()[i];
            if (first.part == Part::alone || row.part == Part::alone || row.part == first.part) {
                continue;
            }
            if (std::optional<Mistake> both = mistake_of(row, observation, first.hypothesis)) {
                both->name = first.name + " + " + both->name;
                both->meaning = first.meaning + "; " + both->meaning;
                both->part = Part::alone;
                both->precision = false;
                both->measured = both->measured || first.measured;
                visit(*both);
            }
        }
    }
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
