// SPDX-License-Identifier: MIT
// Implements three variants of YaRN: transformers', DeepSeek's and ggml's.
#include <algorithm>

#include "base/defaults.hpp"
#include "frequencies/scaling_rules.hpp"

namespace vkrope {
namespace {

using ull = unsigned long long;  // the type of %llu on every platform

constexpr double narrowest_ramp = 0.001;  // pairs; every variant uses it to avoid a division by 0

// Range of pairs in which frequencies are blended.
struct Range {
    double low = 0, high = 0;
};

// Returns the fractional index of the pair that completes `turns` turns in the original length.
double pair_of(double turns, double rotary_dim, double base, double original) noexcept {
    return rotary_dim * std::log(original / (turns * two_pi)) / (2 * std::log(base));
}

// Clamps a range. The bounds are channel numbers although `range` counts pairs; all reference
// implementations do this.
Range clamped(Range range, double rotary_dim) noexcept {
    return {std::max(range.low, 0.0), std::min(range.high, rotary_dim - 1)};
}

Range widened(Range range) noexcept {
    return {std::floor(range.low), std::ceil(range.high)};
}

// Returns the weight of pair j in the blend, from 0 (fast pairs) to 1 (slow pairs).
double ramp(double j, Range range, double width) noexcept {
    return std::clamp((j - range.low) / width, 0.0, 1.0);
}

// Returns m(mscale), YaRN's magnitude for `factor`: arXiv:2309.00071, section 3.4.
double magnitude(double factor, double mscale) noexcept {
    return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

Status check_betas(double beta_fast, double beta_slow) noexcept {
    if (Status status = require_positive(beta_fast, "beta_fast"); !status) return status;
    if (Status status = require_positive(beta_slow, "beta_slow"); !status) return status;
    if (beta_fast < beta_slow) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "beta_fast is %g: it must be at least beta_slow, which is %g", beta_fast,
                     beta_slow);
    }
    return {};
}

// Checks that the frequencies are the powers of the base for `rotary_dim` channels, which the
// blended range assumes. The tolerance is that of powers computed in float.
Status check_powers(const double* inv_freq, std::size_t count, double base,
                    double rotary_dim) noexcept {
    for (std::size_t j = 0; j < count; ++j) {
        const double power = std::pow(base, -2.0 * double(j) / rotary_dim);
        if (std::fabs(std::fabs(inv_freq[j]) - power) <= 1e-5 * power) continue;
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "base is %g: inv_freq[%llu] is %g, but must be its power %g", base, ull{j},
                     inv_freq[j], power);
    }
    return {};
}

Status check(double base, const YarnScaling& scaling) noexcept {
    if (Status status = require_above_one(base, "base"); !status) return status;
    if (Status status = require_positive(scaling.factor, "factor"); !status) return status;
    if (Status status = require_positive(scaling.original_max_position_embeddings,
                                         "original_max_position_embeddings");
        !status)
        return status;
    if (Status status = check_betas(scaling.beta_fast, scaling.beta_slow); !status) return status;
    if (Status status = require_not_negative(scaling.attention_factor, "attention_factor"); !status)
        return status;
    if (Status status = require_not_negative(scaling.mscale, "mscale"); !status) return status;
    return require_not_negative(scaling.mscale_all_dim, "mscale_all_dim");
}

// Replaces unset fields by their defaults.
GgmlScaling completed(GgmlScaling scaling) noexcept {
    const auto complete = [](double& number, double otherwise) {
        number = std::isfinite(number) && number <= 0 ? otherwise : number;
    };
    scaling.freq_scale = value_or(scaling.freq_scale, 1.0);
    complete(scaling.ext_factor, 0);
    complete(scaling.attn_factor, 1);
    complete(scaling.beta_fast, 32);
    complete(scaling.beta_slow, 1);
    return scaling;
}

Status check(double base, const GgmlScaling& scaling, std::size_t pairs) noexcept {
    if (Status status = require_positive(scaling.freq_scale, "freq_scale"); !status) return status;
    if (!(scaling.ext_factor >= 0 && scaling.ext_factor <= 1)) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "ext_factor is %g: it must be 0 to 1",
                     scaling.ext_factor);
    }
    if (Status status = require_positive(scaling.attn_factor, "attn_factor"); !status)
        return status;
    if (scaling.freq_factor_count != 0) {
        if (scaling.freq_factor_count < pairs) {
            return error(
                VKROPE_ERROR_INVALID_ARGUMENT,
                "freq_factors has %llu elements: it must have at least rotary_dim / 2 = %llu",
                ull{scaling.freq_factor_count}, ull{pairs});
        }
        if (Status status = require_divisors(scaling.freq_factors, pairs, pairs, "freq_factors");
            !status)
            return status;
    }
    if (scaling.ext_factor == 0) return require_positive(base, "base");
    if (Status status = require_above_one(base, "base"); !status) return status;
    if (!(scaling.n_ctx_orig >= 0 && std::isfinite(scaling.n_ctx_orig))) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "n_ctx_orig is %g: it must be finite and not negative", scaling.n_ctx_orig);
    }
    return check_betas(scaling.beta_fast, scaling.beta_slow);
}

Status blend_yarn(double* inv_freq, std::size_t count, double base, const YarnScaling& given,
                  double& attention_factor) noexcept {
    YarnScaling scaling = given;
    scaling.beta_fast = value_or(given.beta_fast, 32.0);
    scaling.beta_slow = value_or(given.beta_slow, 1.0);
    if (Status status = check(base, scaling); !status) return status;
    const double rotary_dim = 2.0 * double(count);
    if (Status status = check_powers(inv_freq, count, base, rotary_dim); !status) return status;
    Range range = {
        pair_of(scaling.beta_fast, rotary_dim, base, scaling.original_max_position_embeddings),
        pair_of(scaling.beta_slow, rotary_dim, base, scaling.original_max_position_embeddings)};
    range = clamped(scaling.no_truncate ? range : widened(range), rotary_dim);
    const double width = range.low == range.high ? narrowest_ramp : range.high - range.low;
    for (std::size_t j = 0; j < count; ++j) {
        const double divided = ramp(double(j), range, width);
        inv_freq[j] = inv_freq[j] / scaling.factor * divided + inv_freq[j] * (1 - divided);
    }
    attention_factor = scaling.attention_factor != 0 ? scaling.attention_factor
                       : scaling.mscale != 0 && scaling.mscale_all_dim != 0
                           ? magnitude(scaling.factor, scaling.mscale) /
                                 magnitude(scaling.factor, scaling.mscale_all_dim)
                           : magnitude(scaling.factor, 1);
    return {};
}

}  // namespace

Status scale_as_ggml(double* inv_freq, std::size_t count, double base, const GgmlScaling& given,
                     bool powers, double& attention_factor) noexcept {
    const GgmlScaling scaling = completed(given);
    if (Status status = check(base, scaling, count); !status) return status;
    const double rotary_dim = scaling.n_dims != 0 ? double(scaling.n_dims) : 2.0 * double(count);
    const bool blends = scaling.ext_factor != 0;
    if (blends && powers) {
        if (Status status = check_powers(inv_freq, count, base, rotary_dim); !status) return status;
    }
    Range range;
    if (blends) {
        range = clamped(widened({pair_of(scaling.beta_fast, rotary_dim, base, scaling.n_ctx_orig),
                                 pair_of(scaling.beta_slow, rotary_dim, base, scaling.n_ctx_orig)}),
                        rotary_dim);
    }
    const double width = std::max(range.high - range.low, narrowest_ramp);
    for (std::size_t j = 0; j < count; ++j) {
        const double kept = blends ? (1 - ramp(double(j), range, width)) * scaling.ext_factor : 0;
        const double frequency = scaling.freq_factor_count != 0
                                     ? inv_freq[j] / scaling.freq_factors[j]
                                     : inv_freq[j];
        inv_freq[j] = frequency * scaling.freq_scale * (1 - kept) + frequency * kept;
    }
    attention_factor = scaling.attn_factor;
    if (blends) attention_factor *= 1 + 0.1 * std::log(1 / scaling.freq_scale);
    return {};
}

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_scale_yarn(double* inv_freq, size_t count, double base,
                                const vkrope_yarn_scaling* scaling, double* attention_factor,
                                vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(scaling, "scaling"); !s) return s;
            if (Status s = require_frequencies(inv_freq, count); !s) return s;
            if (Status s = not_null(attention_factor, "attention_factor"); !s) return s;
            return blend_yarn(inv_freq, count, base, *scaling, *attention_factor);
        });
}

vkrope_result vkrope_scale_deepseek_yarn(double* inv_freq, size_t count, double base,
                                         const vkrope_deepseek_yarn_scaling* given,
                                         double* attention_factor, double* softmax_scale,
                                         vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(given, "scaling"); !s) return s;
            if (Status s = require_frequencies(inv_freq, count); !s) return s;
            if (Status s = not_null(attention_factor, "attention_factor"); !s) return s;
            if (Status s = not_null(softmax_scale, "softmax_scale"); !s) return s;
            DeepseekYarnScaling scaling = *given;
            if (!std::isfinite(scaling.mscale))
                return error(VKROPE_ERROR_INVALID_ARGUMENT, "mscale is %g: it must be finite",
                             scaling.mscale);
            scaling.mscale = std::max(value_or(scaling.mscale, 1.0), 0.0);  // m(0) is 1
            if (Status status = require_not_negative(scaling.mscale_all_dim, "mscale_all_dim");
                !status)
                return status;
            const YarnScaling frequencies = {scaling.factor,
                                             scaling.original_max_position_embeddings,
                                             scaling.beta_fast, scaling.beta_slow};
            double unused = 1;
            if (Status status = blend_yarn(inv_freq, count, base, frequencies, unused); !status)
                return status;
            const double in_softmax = magnitude(scaling.factor, scaling.mscale_all_dim);
            *attention_factor = magnitude(scaling.factor, scaling.mscale) / in_softmax;
            *softmax_scale = in_softmax * in_softmax;
            return {};
        });
}

vkrope_result vkrope_scale_ggml(double* inv_freq, size_t count, double base,
                                const vkrope_ggml_scaling* given, double* attention_factor,
                                vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(given, "scaling"); !s) return s;
            if (Status s = require_frequencies(inv_freq, count); !s) return s;
            if (Status s = not_null(attention_factor, "attention_factor"); !s) return s;
            return scale_as_ggml(inv_freq, count, base, *given, true, *attention_factor);
        });
}
