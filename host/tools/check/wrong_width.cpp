// SPDX-License-Identifier: MIT
// Windows of another width: ordinary partial rotation, proportional scaling, and half of a window.
#include <algorithm>
#include <utility>

#include "check/attempts.hpp"

namespace vkrope::tools {
namespace {

bool has_one_window(const Evidence& evidence) {
    const oracle::Operation& operation = evidence.operation;
    const std::size_t windows = operation.windows.size();
    return windows <= 1 && operation.head_groups == 1 && operation.phase.empty();
}

/// The correct operation in one window of twice as many channels as there are frequencies.
Attempt in_window(const Evidence& evidence, std::uint64_t offset,
                  const std::vector<double>& inv_freq) {
    Attempt attempt = right(evidence);
    attempt->operation.windows.clear();
    attempt->operation.rotary_offset = offset;
    attempt->operation.inv_freq = inv_freq;
    const bool fits = offset + 2 * inv_freq.size() <= evidence.in.head_dim;
    return if_any(has_one_window(evidence) && !inv_freq.empty() && fits &&
                      differ(inv_freq, evidence.operation.inv_freq),
                  attempt);
}

/// Frequencies of a window as wide as the row, of which only the first are not 0.
Attempt in_whole_head(const Evidence& evidence, std::vector<double> first) {
    first.resize(first.empty() ? 0 : evidence.in.head_dim / 2);
    return in_window(evidence, 0, first);
}

std::vector<double> first_of(std::vector<double> inv_freq, std::size_t count) {
    inv_freq.resize(std::min(count, inv_freq.size()));
    return inv_freq;
}

/// Of proportional scaling: the frequencies before the zeros. Empty if there are no zeros.
std::vector<double> turning(const Evidence& evidence) {
    const std::vector<double>& all = evidence.operation.inv_freq;
    const auto end = std::find(all.begin(), all.end(), 0.0);
    const bool proportional = end != all.end() && !is_partial(evidence) &&
                              std::all_of(end, all.end(), [](double f) { return f == 0; });
    return proportional ? std::vector<double>(all.begin(), end) : std::vector<double>();
}

/// Of proportional scaling: the frequencies of a partial window of the pairs that turn.
std::vector<double> of_partial(const Evidence& evidence) {
    const std::vector<double> turn = turning(evidence);
    std::vector<double> inv_freq =
        turn.empty() ? turn : powers(evidence.base, static_cast<std::uint32_t>(2 * turn.size()));
    for (double& frequency : inv_freq) {
        frequency *= turn[0];  // 1 / factor
    }
    return inv_freq;
}

/// The frequencies of a window that is half as wide.
std::vector<double> every_other(const Evidence& evidence) {
    std::vector<double> some;
    for (std::size_t j = 0; j + 1 < evidence.operation.inv_freq.size(); j += 2) {
        some.push_back(evidence.operation.inv_freq[j]);
    }
    return some;
}

}  // namespace

/// "proportional" in Hugging Face's modeling_rope_utils.py, where the partial window of other types
/// is right.
Attempt proportional_instead_of_partial(const Evidence& evidence) {
    std::vector<double> inv_freq = powers(evidence.base,
                                          static_cast<std::uint32_t>(evidence.in.head_dim));
    const std::vector<double> scaling = multipliers(evidence);
    inv_freq = first_of(std::move(inv_freq), scaling.size());
    for (std::size_t j = 0; j < inv_freq.size(); ++j) {
        inv_freq[j] *= scaling[j];
    }
    return if_any(is_partial(evidence) && turning(evidence).empty(),
                  in_whole_head(evidence, std::move(inv_freq)));
}

Attempt pair_distance_of_head_dim(const Evidence& evidence) {
    return if_any(is_partial(evidence) && !evidence.operation.interleaved,
                  in_whole_head(evidence, evidence.operation.inv_freq));
}

Attempt partial_instead_of_proportional(const Evidence& evidence) {
    return in_window(evidence, evidence.operation.rotary_offset, of_partial(evidence));
}

Attempt pair_distance_of_partial(const Evidence& evidence) {
    return if_any(!evidence.operation.interleaved,
                  in_window(evidence, evidence.operation.rotary_offset, turning(evidence)));
}

Attempt exponent_of_partial(const Evidence& evidence) {
    return if_any(!evidence.operation.interleaved, in_whole_head(evidence, of_partial(evidence)));
}

Attempt half_of_window(const Evidence& evidence) {
    return in_window(evidence, evidence.operation.rotary_offset, every_other(evidence));
}

Attempt second_half_of_window(const Evidence& evidence) {
    const std::vector<double> inv_freq = every_other(evidence);
    return in_window(evidence, evidence.operation.rotary_offset + 2 * inv_freq.size(), inv_freq);
}

Attempt half_of_window_and_frequencies(const Evidence& evidence) {
    const std::vector<double>& inv_freq = evidence.operation.inv_freq;
    return in_window(evidence, evidence.operation.rotary_offset,
                     first_of(inv_freq, inv_freq.size() / 2));
}

/// Of interleaved pairs the first half fills half of the window.
Attempt half_of_pairs(const Evidence& evidence) {
    std::vector<double> inv_freq = first_of(evidence.operation.inv_freq,
                                            evidence.operation.inv_freq.size() / 2);
    inv_freq.resize(inv_freq.empty() ? 0 : evidence.operation.inv_freq.size());
    return if_any(!evidence.operation.interleaved,
                  in_window(evidence, evidence.operation.rotary_offset, inv_freq));
}

Attempt second_half_of_pairs(const Evidence& evidence) {
    std::vector<double> inv_freq = evidence.operation.inv_freq;
    std::fill_n(inv_freq.begin(), inv_freq.size() / 2, 0.0);
    return in_window(evidence, evidence.operation.rotary_offset, inv_freq);
}

}  // namespace vkrope::tools
