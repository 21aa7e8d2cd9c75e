// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <utility>

#include "check/attempts.hpp"

namespace vkrope::tools {
namespace {

using oracle::Operation;

bool has_factor(const Evidence& evidence, oracle::Gain gain) {
    return evidence.operation.attention_factor != 1 && evidence.operation.gain == gain;
}

Attempt unscaled(const Evidence& evidence, double base) {
    Attempt attempt = with_frequencies(evidence, powers(base, rotary_dim(evidence)));
    if (attempt) {
        attempt->operation.attention_factor = 1;
    }
    return attempt;
}

/// The correct operation with another attention factor.
Attempt with_factor(const Evidence& evidence, double factor) {
    const double right = evidence.operation.attention_factor;
    return if_any(std::fabs(factor - right) > 1e-12 * right,
                  with(evidence, [factor](Operation& operation) {
                      operation.attention_factor = factor;
                      operation.gain = oracle::Gain::apply;
                  }));
}

/// The frequencies of this YaRN; empty if it has none.
std::vector<double> blended(const Evidence& evidence, const YarnScaling& yarn) {
    std::vector<double> inv_freq = powers(evidence.base, rotary_dim(evidence));
    double unused = 1;
    return !inv_freq.empty() && scale_yarn(inv_freq, evidence.base, yarn, unused)
               ? inv_freq
               : std::vector<double>();
}

/// The YaRN that gives the right frequencies; of its parameters only the frequencies are known.
std::optional<YarnScaling> yarn_of(const Evidence& evidence) {
    for (YarnScaling yarn : evidence.yarn) {
        for (const bool truncate : {true, false}) {
            yarn.no_truncate = !truncate;
            const std::vector<double> inv_freq = blended(evidence, yarn);
            if (!inv_freq.empty() && !differ(inv_freq, evidence.operation.inv_freq)) {
                return yarn;
            }
        }
    }
    return std::nullopt;
}

/// What the scaling divides the slowest frequencies by; 1 without a scaling, or if it is unknown.
double factor_of_scaling(const Evidence& evidence) {
    if (const std::optional<YarnScaling> yarn = yarn_of(evidence)) {
        return yarn->factor;
    }
    const std::vector<double> ratios = multipliers(evidence);
    const auto least = std::min_element(ratios.begin(), ratios.end());
    return least == ratios.end() || *least <= 0 || *least >= 1 - 1e-9 ? 1 : 1 / *least;
}

Attempt yarn_range(const Evidence& evidence, bool rounded) {
    std::optional<YarnScaling> yarn = yarn_of(evidence);
    if (!yarn || (yarn->no_truncate == 0) == rounded) {
        return std::nullopt;
    }
    yarn->no_truncate = !rounded;
    return with_frequencies(evidence, blended(evidence, *yarn));
}

Attempt frequencies_in(const Evidence& evidence, oracle::Type type) {
    Attempt attempt = right(evidence);
    bool changed = false;
    for (std::vector<double>* each : {&attempt->operation.inv_freq, &attempt->further.summed}) {
        for (double& frequency : *each) {
            const double exact = std::exchange(frequency, rounded_to(type, frequency));
            changed = changed || frequency != exact;
        }
    }
    return if_any(changed, attempt);
}

}  // namespace

std::vector<double> multipliers(const Evidence& evidence) {
    std::vector<double> ratios = powers(evidence.base, rotary_dim(evidence));
    for (std::size_t j = 0; j < ratios.size(); ++j) {
        ratios[j] = evidence.operation.inv_freq[j] / ratios[j];
    }
    return ratios;
}

bool is_partial(const Evidence& evidence) {
    return rotary_dim(evidence) < evidence.in.head_dim;
}

Attempt attention_factor_missing(const Evidence& evidence) {
    return if_any(
        has_factor(evidence, oracle::Gain::apply),
        with(evidence, [](Operation& operation) { operation.gain = oracle::Gain::omit; }));
}

Attempt attention_factor_applied(const Evidence& evidence) {
    return if_any(
        has_factor(evidence, oracle::Gain::omit) || has_factor(evidence, oracle::Gain::divide_out),
        with(evidence, [](Operation& operation) { operation.gain = oracle::Gain::apply; }));
}

Attempt attention_factor_twice(const Evidence& evidence) {
    return if_any(has_factor(evidence, oracle::Gain::apply),
                  with(evidence, [](Operation& operation) {
                      operation.attention_factor *= operation.attention_factor;
                  }));
}

Attempt attention_factor_divided(const Evidence& evidence) {
    return if_any(
        has_factor(evidence, oracle::Gain::apply),
        with(evidence, [](Operation& operation) { operation.gain = oracle::Gain::divide_out; }));
}

Attempt softmax_scale_applied(const Evidence& evidence) {
    return if_any(evidence.softmax_scale != 1, with(evidence, [&evidence](Operation& operation) {
                      operation.attention_factor *= evidence.softmax_scale;
                  }));
}

/// m(1) of arXiv:2309.00071, section 3.4, where mscales cancel or the file gives another factor.
Attempt yarn_magnitude_applied(const Evidence& evidence) {
    const double factor = factor_of_scaling(evidence);
    return if_any(factor > 1, with_factor(evidence, 0.1 * std::log(factor) + 1));
}

/// DeepSeek's softmax scale is the square of a magnitude, of Q's and of K's.
Attempt softmax_root_applied(const Evidence& evidence) {
    return if_any(evidence.softmax_scale > 0,
                  with_factor(evidence, evidence.operation.attention_factor *
                                            std::sqrt(evidence.softmax_scale)));
}

Attempt frequencies_unscaled(const Evidence& evidence) {
    return if_any(evidence.operation.attention_factor != 1,
                  with_frequencies(evidence, powers(evidence.base, rotary_dim(evidence))));
}

Attempt scaling_ignored(const Evidence& evidence) {
    return unscaled(evidence, evidence.base);
}

Attempt base_10000(const Evidence& evidence) {
    return if_any(evidence.base != 10000, unscaled(evidence, 10000));
}

Attempt base_10000_with_factor(const Evidence& evidence) {
    return if_any(evidence.base != 10000 && evidence.operation.attention_factor != 1 &&
                      evidence.operation.gain != oracle::Gain::omit,
                  with_frequencies(evidence, powers(10000, rotary_dim(evidence))));
}

/// Applies the scaling to each frequency a second time.
Attempt scaling_twice(const Evidence& evidence) {
    const std::vector<double> unscaled = powers(evidence.base, rotary_dim(evidence));
    std::vector<double> inv_freq = unscaled.empty() ? unscaled : evidence.operation.inv_freq;
    for (std::size_t j = 0; j < inv_freq.size(); ++j) {
        inv_freq[j] *= inv_freq[j] / unscaled[j];
    }
    return with_frequencies(evidence, inv_freq);
}

Attempt whole_head(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    attempt->operation.rotary_offset = 0;
    set_frequencies(attempt->operation,
                    powers(evidence.base, static_cast<std::uint32_t>(evidence.in.head_dim)));
    return if_any(is_partial(evidence) && !attempt->operation.inv_freq.empty(), attempt);
}

Attempt exponent_of_head_dim(const Evidence& evidence) {
    std::vector<double> inv_freq = powers(evidence.base,
                                          static_cast<std::uint32_t>(evidence.in.head_dim));
    inv_freq.resize(std::min(inv_freq.size(), evidence.operation.inv_freq.size()));
    return if_any(is_partial(evidence), with_frequencies(evidence, inv_freq));
}

Attempt inclusive_spacing(const Evidence& evidence) {
    std::vector<double> inv_freq(evidence.operation.inv_freq.size());
    const bool known = evidence.base > 0 && status_of(vkrope_inclusive_inv_freq, evidence.base,
                                                      rotary_dim(evidence), inv_freq.data());
    return if_any(known, with_frequencies(evidence, inv_freq));
}

Attempt yarn_range_rounded(const Evidence& evidence) {
    return yarn_range(evidence, true);
}

Attempt yarn_range_unrounded(const Evidence& evidence) {
    return yarn_range(evidence, false);
}

/// (factor * base)^(-2j / n) where base^(-2j / n) / factor is right, as far as each pair has it.
Attempt factor_in_power(const Evidence& evidence) {
    const double factor = factor_of_scaling(evidence);
    const std::vector<double> ratios = multipliers(evidence),
                              kept = powers(evidence.base, rotary_dim(evidence));
    std::vector<double> inv_freq = powers(factor * evidence.base, rotary_dim(evidence));
    for (std::size_t j = 0; factor > 1 && j < inv_freq.size(); ++j) {
        const double share = std::clamp((1 - ratios[j]) / (1 - 1 / factor), 0.0, 1.0);
        inv_freq[j] = share * inv_freq[j] + (1 - share) * kept[j];
    }
    return if_any(factor > 1, with_frequencies(evidence, inv_freq));
}

Attempt frequencies_in_bf16(const Evidence& evidence) {
    return frequencies_in(evidence, oracle::Type::bf16);
}

Attempt frequencies_in_f16(const Evidence& evidence) {
    return frequencies_in(evidence, oracle::Type::f16);
}

}  // namespace vkrope::tools
