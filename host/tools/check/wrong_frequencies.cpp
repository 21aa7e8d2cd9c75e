// SPDX-License-Identifier: MIT
#include <algorithm>

#include "check/attempts.hpp"

namespace vkrope::tools {
namespace {

using reference::Operation;

bool has_factor(const Evidence& evidence, reference::Gain gain) {
    return evidence.operation.attention_factor != 1 && evidence.operation.gain == gain;
}

Attempt unscaled(const Evidence& evidence, double base) {
    Attempt attempt = with_frequencies(evidence, powers(base, rotary_dim(evidence)));
    if (attempt) {
        attempt->operation.attention_factor = 1;
    }
    return attempt;
}

bool is_partial(const Evidence& evidence) {
    return rotary_dim(evidence) < evidence.in.head_dim;
}

}  // namespace

Attempt attention_factor_missing(const Evidence& evidence) {
    return if_any(
        has_factor(evidence, reference::Gain::apply),
        with(evidence, [](Operation& operation) { operation.gain = reference::Gain::omit; }));
}

Attempt attention_factor_applied(const Evidence& evidence) {
    return if_any(
        has_factor(evidence, reference::Gain::omit) ||
            has_factor(evidence, reference::Gain::divide_out),
        with(evidence, [](Operation& operation) { operation.gain = reference::Gain::apply; }));
}

Attempt attention_factor_twice(const Evidence& evidence) {
    return if_any(has_factor(evidence, reference::Gain::apply),
                  with(evidence, [](Operation& operation) {
                      operation.attention_factor *= operation.attention_factor;
                  }));
}

Attempt attention_factor_divided(const Evidence& evidence) {
    return if_any(
        has_factor(evidence, reference::Gain::apply),
        with(evidence, [](Operation& operation) { operation.gain = reference::Gain::divide_out; }));
}

Attempt softmax_scale_applied(const Evidence& evidence) {
    return if_any(evidence.softmax_scale != 1, with(evidence, [&evidence](Operation& operation) {
                      operation.attention_factor *= evidence.softmax_scale;
                  }));
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
                      evidence.operation.gain != reference::Gain::omit,
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
    const bool known = evidence.base > 0 &&
                       inclusive_inv_freq(evidence.base, rotary_dim(evidence), inv_freq.data());
    return if_any(known, with_frequencies(evidence, inv_freq));
}

}  // namespace vkrope::tools
