// SPDX-License-Identifier: MIT
// Mistakes in the channels that turn: windows at another offset or of another width, ordinary
// partial rotation, proportional scaling, and half of a window.
#include <algorithm>
#include <utility>

#include "check/mistakes.hpp"

namespace vkrope::tools {
namespace {

// Moves the window without changing its width.
bool move_window(Hypothesis& wrong, std::uint64_t offset) {
    const std::uint64_t right = std::exchange(wrong.operation.rotary_offset, offset);
    return offset != right && fits(wrong);
}

// Sets one window with twice as many channels as there are frequencies.
bool replace_window(Hypothesis& wrong, std::uint64_t offset, const std::vector<double>& inv_freq) {
    oracle::Operation& operation = wrong.operation;
    const bool one_window = operation.windows.size() <= 1 && operation.head_groups == 1 &&
                            operation.phase.empty();
    operation.windows.clear();
    operation.rotary_offset = offset;
    return one_window && replace_frequencies(wrong, inv_freq);
}

// Sets a window as wide as the row, in which only the first frequencies are not 0.
bool replace_by_whole_head(Hypothesis& wrong, std::vector<double> first) {
    first.resize(first.empty() ? 0 : wrong.in.head_dim / 2);
    return replace_window(wrong, 0, first);
}

std::vector<double> first_of(std::vector<double> inv_freq, std::size_t count) {
    inv_freq.resize(std::min(count, inv_freq.size()));
    return inv_freq;
}

std::vector<double> first_half(const Hypothesis& right) {
    const std::vector<double>& inv_freq = right.operation.inv_freq;
    return first_of(inv_freq, inv_freq.size() / 2);
}

// Returns the frequencies before the zeros of proportional scaling; empty if there are no zeros.
std::vector<double> turning(const Hypothesis& right) {
    const std::vector<double>& all = right.operation.inv_freq;
    const auto end = std::find(all.begin(), all.end(), 0.0);
    const bool proportional = end != all.end() && !is_partial(right) &&
                              std::all_of(end, all.end(), [](double f) { return f == 0; });
    return proportional ? std::vector<double>(all.begin(), end) : std::vector<double>();
}

// For proportional scaling, returns the frequencies of a partial window of the pairs that turn.
std::vector<double> of_partial(const Observation& observation, const Hypothesis& right) {
    const std::vector<double> turn = turning(right);
    std::vector<double> inv_freq = turn.empty() ? turn : powers(observation.base, 2 * turn.size());
    for (double& frequency : inv_freq) frequency *= turn[0];  // 1 / factor
    return inv_freq;
}

// Returns the frequencies of a window that is half as wide.
std::vector<double> every_other(const Hypothesis& right) {
    std::vector<double> some;
    for (std::size_t j = 0; j + 1 < right.operation.inv_freq.size(); j += 2)
        some.push_back(right.operation.inv_freq[j]);
    return some;
}

// scaled  with the model's scaling
Row whole_head(bool scaled) {
    return {"whole_head", Part::window, "rotated all of head_dim, with frequencies for it",
            [scaled](const Observation& observation, Hypothesis& wrong) {
                const bool partial = is_partial(wrong);
                const std::vector<double> plain = powers(observation.base, wrong.in.head_dim),
                                          inv_freq = scaled ? scaled_powers(observation, wrong,
                                                                            wrong.in.head_dim)
                                                            : plain;
                wrong.operation.rotary_offset = 0;
                return partial && (!scaled || differ(inv_freq, plain)) &&
                       replace_frequencies(wrong, inv_freq);
            }};
}

}  // namespace

Rows window_mistakes() {
    return {
        {"window_of_the_other_tensor", Part::window, "rotated K's window in Q, or Q's in K",
         [](const Observation& observation, Hypothesis& wrong) {
             return observation.other_offset != 0 && move_window(wrong, observation.other_offset);
         }},
        {"window_at_start", Part::window, "rotated the window at the start of a row",
         [](const Observation&, Hypothesis& wrong) { return move_window(wrong, 0); }},
        {"window_at_end", Part::window, "rotated the window at the end of a row",
         [](const Observation& observation, Hypothesis& wrong) {
             const std::uint64_t width = channels_to_end(wrong.operation);
             return width <= wrong.in.head_dim &&
                    wrong.in.head_dim - width != observation.other_offset &&
                    move_window(wrong, wrong.in.head_dim - width);
         }},
        {"windows_joined", Part::window, "formed pairs over all windows together, not within each",
         // Interleaved pairs of windows without a gap give the same output.
         [](const Observation&, Hypothesis& wrong) {
             oracle::Operation& operation = wrong.operation;
             const std::uint64_t channels = 2 * operation.inv_freq.size() / operation.head_groups;
             const bool gaps = channels_to_end(operation) != channels;
             return std::exchange(operation.windows, {}).size() > 1 &&
                    (gaps || !operation.interleaved);
         }},
        whole_head(false),
        whole_head(true),
        {"proportional_instead_of_partial", Part::window,
         "took head_dim for rotary_dim in the exponents and in the distance of a pair",
         // "proportional" in Hugging Face's modeling_rope_utils.py; other types use the partial
         // window.
         [](const Observation& observation, Hypothesis& wrong) {
             const std::vector<double> scaling = multipliers(observation, wrong);
             std::vector<double> inv_freq = first_of(powers(observation.base, wrong.in.head_dim),
                                                     scaling.size());
             for (std::size_t j = 0; j < inv_freq.size(); ++j) inv_freq[j] *= scaling[j];
             return is_partial(wrong) && turning(wrong).empty() &&
                    replace_by_whole_head(wrong, std::move(inv_freq));
         }},
        {"pair_distance_of_head_dim", Part::window,
         "took head_dim for rotary_dim in the distance of a pair",
         [](const Observation&, Hypothesis& wrong) {
             return is_partial(wrong) && !wrong.operation.interleaved &&
                    replace_by_whole_head(wrong, wrong.operation.inv_freq);
         }},
        {"partial_instead_of_proportional", Part::window,
         "took rotary_dim for head_dim in the exponents and in the distance of a pair",
         [](const Observation& observation, Hypothesis& wrong) {
             return replace_window(wrong, wrong.operation.rotary_offset,
                                   of_partial(observation, wrong));
         }},
        {"pair_distance_of_partial", Part::window,
         "took rotary_dim for head_dim in the distance of a pair",
         [](const Observation&, Hypothesis& wrong) {
             return !wrong.operation.interleaved &&
                    replace_window(wrong, wrong.operation.rotary_offset, turning(wrong));
         }},
        {"exponent_of_partial", Part::frequencies, "took rotary_dim for head_dim in the exponents",
         [](const Observation& observation, Hypothesis& wrong) {
             return !wrong.operation.interleaved &&
                    replace_by_whole_head(wrong, of_partial(observation, wrong));
         }},
        {"half_of_window", Part::window,
         "rotated half of the window, as if rotary_dim were half as wide",
         [](const Observation&, Hypothesis& wrong) {
             return replace_window(wrong, wrong.operation.rotary_offset, every_other(wrong));
         }},
        {"half_of_window_and_frequencies", Part::window,
         "rotated half of the window, by the first half of the frequencies",
         [](const Observation&, Hypothesis& wrong) {
             return replace_window(wrong, wrong.operation.rotary_offset, first_half(wrong));
         }},
        {"second_half_of_window", Part::window,
         "rotated the second half of the window, as if rotary_dim were half as wide",
         [](const Observation&, Hypothesis& wrong) {
             const std::vector<double> inv_freq = every_other(wrong);
             return replace_window(wrong, wrong.operation.rotary_offset + 2 * inv_freq.size(),
                                   inv_freq);
         }},
        {"half_of_pairs", Part::window, "rotated only the first half of the pairs",
         // The first half of interleaved pairs fills half of the window.
         [](const Observation&, Hypothesis& wrong) {
             std::vector<double> inv_freq = first_half(wrong);
             inv_freq.resize(inv_freq.empty() ? 0 : wrong.operation.inv_freq.size());
             return !wrong.operation.interleaved &&
                    replace_window(wrong, wrong.operation.rotary_offset, inv_freq);
         }},
        {"second_half_of_pairs", Part::window, "rotated only the second half of the pairs",
         [](const Observation&, Hypothesis& wrong) {
             std::vector<double> inv_freq = wrong.operation.inv_freq;
             std::fill_n(inv_freq.begin(), inv_freq.size() / 2, 0.0);
             return replace_window(wrong, wrong.operation.rotary_offset, inv_freq);
         }},
    };
}

}  // namespace vkrope::tools
