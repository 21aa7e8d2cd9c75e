// SPDX-License-Identifier: MIT
// Mistakes in the frequencies: in their scaling, in the exponents and in the base.
#include <algorithm>
#include <cmath>
#include <utility>

#include "check/mistakes.hpp"

namespace vkrope::tools {
namespace {

std::vector<double> unscaled(const Observation& observation, const Hypothesis& right) {
    return powers(observation.base, rotary_dim(right));
}

// Replaces all frequencies by unscaled ones, without the attention factor.
bool replace_all(Hypothesis& wrong, double base) {
    wrong.operation.attention_factor = 1;
    return replace_frequencies(wrong, powers(base, rotary_dim(wrong)));
}

// Returns the frequencies of these YaRN parameters; empty if they give none.
std::vector<double> blended(const Observation& observation, std::uint32_t rotary_dim,
                            const YarnScaling& yarn) {
    std::vector<double> inv_freq = powers(observation.base, rotary_dim);
    double unused = 1;
    return !inv_freq.empty() && scale_yarn(inv_freq, observation.base, yarn, unused)
               ? inv_freq
               : std::vector<double>();
}

// Returns the YaRN parameters that give the right frequencies; the model states only frequencies.
std::optional<YarnScaling> yarn_of(const Observation& observation, const Hypothesis& right) {
    for (YarnScaling yarn : observation.yarn) {
        for (const bool truncate : {true, false}) {
            yarn.no_truncate = !truncate;
            const std::vector<double> inv_freq = blended(observation, rotary_dim(right), yarn);
            if (!inv_freq.empty() && !differ(inv_freq, right.operation.inv_freq)) return yarn;
        }
    }
    return std::nullopt;
}

Row yarn_range(const char* name, const char* meaning, bool rounded) {
    return {name, Part::frequencies, meaning,
            [rounded](const Observation& observation, Hypothesis& wrong) {
                std::optional<YarnScaling> yarn = yarn_of(observation, wrong);
                if (!yarn || (yarn->no_truncate == 0) == rounded) return false;
                yarn->no_truncate = !rounded;
                return replace_frequencies(wrong, blended(observation, rotary_dim(wrong), *yarn));
            }};
}

enum class Scaling { none, of_each_pair, of_head_dim };

Row exponent_of_head_dim(Scaling scaling) {
    return {
        "exponent_of_head_dim", Part::frequencies, "took head_dim for rotary_dim in the exponents",
        [scaling](const Observation& observation, Hypothesis& wrong) {
            const std::vector<double> ratios = multipliers(observation, wrong);
            std::vector<double> inv_freq = scaling == Scaling::of_head_dim
                                               ? scaled_powers(observation, wrong,
                                                               wrong.in.head_dim)
                                               : powers(observation.base, wrong.in.head_dim);
            inv_freq.resize(std::min(inv_freq.size(), ratios.size()));
            for (std::size_t j = 0; scaling == Scaling::of_each_pair && j < inv_freq.size(); ++j)
                inv_freq[j] *= ratios[j];
            return is_partial(wrong) && replace_frequencies(wrong, inv_freq);
        }};
}

}  // namespace

std::vector<double> scaled_powers(const Observation& observation, const Hypothesis& right,
                                  std::uint64_t rotary_dim) {
    if (const std::optional<YarnScaling> yarn = yarn_of(observation, right))
        return blended(observation, std::uint32_t(rotary_dim), *yarn);
    const std::vector<double> ratios = multipliers(observation, right);
    const bool linear = !ratios.empty() &&
                        !differ(ratios, std::vector<double>(ratios.size(), ratios[0]));
    std::vector<double> inv_freq = linear ? powers(observation.base, rotary_dim)
                                          : std::vector<double>();
    for (double& frequency : inv_freq) frequency *= ratios[0];
    return inv_freq;
}

double factor_of_scaling(const Observation& observation, const Hypothesis& right) {
    if (const std::optional<YarnScaling> yarn = yarn_of(observation, right)) return yarn->factor;
    const std::vector<double> ratios = multipliers(observation, right);
    const auto least = std::min_element(ratios.begin(), ratios.end());
    return least == ratios.end() || *least <= 0 || *least >= 1 - 1e-9 ? 1 : 1 / *least;
}

Rows scaling_mistakes() {
    return {
        {"scaling_ignored", Part::frequencies,
         "left out the scaling of the frequencies and the attention factor",
         [](const Observation& observation, Hypothesis& wrong) {
             return replace_all(wrong, observation.base);
         }},
        {"frequencies_unscaled", Part::frequencies,
         "left out the scaling of the frequencies, not the attention factor",
         [](const Observation& observation, Hypothesis& wrong) {
             return wrong.operation.attention_factor != 1 &&
                    replace_frequencies(wrong, unscaled(observation, wrong));
         }},
        {"scaling_twice", Part::frequencies, "scaled the frequencies twice",
         [](const Observation& observation, Hypothesis& wrong) {
             std::vector<double> inv_freq = multipliers(observation, wrong);
             for (std::size_t j = 0; j < inv_freq.size(); ++j)
                 inv_freq[j] *= wrong.operation.inv_freq[j];
             return replace_frequencies(wrong, inv_freq);
         }},
        {"scaling_inverted", Part::frequencies,
         "multiplied the frequencies where the scaling divides them",
         [](const Observation& observation, Hypothesis& wrong) {
             std::vector<double> inv_freq = unscaled(observation, wrong);
             const std::vector<double> ratios = multipliers(observation, wrong);
             for (std::size_t j = 0; j < inv_freq.size(); ++j)
                 inv_freq[j] /= ratios[j] > 0 ? ratios[j] : 1;
             return replace_frequencies(wrong, inv_freq);
         }},
        yarn_range("yarn_range_rounded", "rounded YaRN's range of blended pairs to whole pairs",
                   true),
        yarn_range("yarn_range_unrounded",
                   "did not round YaRN's range of blended pairs to whole pairs", false),
        {"factor_in_power", Part::frequencies,
         "multiplied the base by the factor of the scaling, inside the power, where the factor "
         "divides the frequencies",
         // Computes (factor * base)^(-2j / n) where base^(-2j / n) / factor is right, scaled for
         // each pair only as much as the right one is.
         [](const Observation& observation, Hypothesis& wrong) {
             const double factor = factor_of_scaling(observation, wrong);
             const std::vector<double> ratios = multipliers(observation, wrong),
                                       kept = unscaled(observation, wrong);
             std::vector<double> inv_freq = powers(factor * observation.base, rotary_dim(wrong));
             for (std::size_t j = 0; factor > 1 && j < inv_freq.size(); ++j) {
                 const double share = std::clamp((1 - ratios[j]) / (1 - 1 / factor), 0.0, 1.0);
                 inv_freq[j] = share * inv_freq[j] + (1 - share) * kept[j];
             }
             return factor > 1 && replace_frequencies(wrong, inv_freq);
         }},
    };
}

Rows exponent_mistakes() {
    return {
        exponent_of_head_dim(Scaling::none),
        exponent_of_head_dim(Scaling::of_each_pair),
        exponent_of_head_dim(Scaling::of_head_dim),
        {"base_10000", Part::frequencies,
         "took the base 10000 and left out scaling and attention factor",
         [](const Observation& observation, Hypothesis& wrong) {
             return observation.base != 10000 && replace_all(wrong, 10000);
         }},
        {"base_10000_with_factor", Part::frequencies,
         "took the base 10000 and left out the scaling, not the attention factor",
         [](const Observation& observation, Hypothesis& wrong) {
             return observation.base != 10000 && wrong.operation.attention_factor != 1 &&
                    wrong.operation.gain != oracle::Gain::omit &&
                    replace_frequencies(wrong, powers(10000, rotary_dim(wrong)));
         }},
        {"inclusive_spacing", Part::frequencies,
         "let the exponents reach 1: j / (n - 1), not j / n",
         [](const Observation& observation, Hypothesis& wrong) {
             std::vector<double> inv_freq(wrong.operation.inv_freq.size());
             return observation.base > 0 &&
                    status_of(vkrope_inclusive_inv_freq, observation.base, rotary_dim(wrong),
                              inv_freq.data()) &&
                    replace_frequencies(wrong, inv_freq);
         }},
    };
}

}  // namespace vkrope::tools
