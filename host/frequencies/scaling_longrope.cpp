// SPDX-License-Identifier: MIT
#include "frequencies/scaling_rules.hpp"

namespace vkrope {
namespace {

Status check(const LongRopeScaling& scaling, std::size_t pairs) noexcept {
    if (Status status = require_divisors(scaling.short_factor, scaling.count, pairs,
                                         "short_factor");
        !status)
        return status;
    if (Status status = require_divisors(scaling.long_factor, scaling.count, pairs, "long_factor");
        !status)
        return status;
    if (Status status = require_above_one(scaling.original_max_position_embeddings,
                                          "original_max_position_embeddings");
        !status)
        return status;
    if (Status status = require_positive(scaling.factor, "factor"); !status) return status;
    if (Status status = require_not_negative(scaling.attention_factor, "attention_factor"); !status)
        return status;
    if (Status status = require_not_negative(scaling.short_mscale, "short_mscale"); !status)
        return status;
    return require_not_negative(scaling.long_mscale, "long_mscale");
}

double default_attention_factor(const LongRopeScaling& scaling) noexcept {
    if (scaling.factor <= 1) return 1;
    return std::sqrt(1 +
                     std::log(scaling.factor) / std::log(scaling.original_max_position_embeddings));
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_scale_longrope(double* inv_freq, size_t count,
                                    const vkrope_longrope_scaling* given, uint64_t seq_len,
                                    double* attention_factor, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(given, "scaling"); !s) return s;
            if (Status s = require_frequencies(inv_freq, count); !s) return s;
            if (Status s = not_null(attention_factor, "attention_factor"); !s) return s;
            const LongRopeScaling& scaling = *given;
            if (Status status = check(scaling, count); !status) return status;
            const bool beyond = double(seq_len) > scaling.original_max_position_embeddings;
            const double* divisors = beyond ? scaling.long_factor : scaling.short_factor;
            for (std::size_t j = 0; j < scaling.count; ++j) inv_freq[j] /= divisors[j];
            const double mscale = beyond ? scaling.long_mscale : scaling.short_mscale;
            *attention_factor = mscale != 0                     ? mscale
                                : scaling.attention_factor != 0 ? scaling.attention_factor
                                                                : default_attention_factor(scaling);
            return {};
        });
}
