// SPDX-License-Identifier: MIT
#include "frequencies/scaling_rules.hpp"

namespace vkrope {
namespace {

Status check(const Llama3Scaling& scaling) noexcept {
    if (Status status = require_positive(scaling.factor, "factor"); !status) return status;
    if (Status status = require_positive(scaling.low_freq_factor, "low_freq_factor"); !status)
        return status;
    if (!std::isfinite(scaling.high_freq_factor)) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "high_freq_factor is %g: it must be finite",
                     scaling.high_freq_factor);
    }
    if (scaling.low_freq_factor > scaling.high_freq_factor) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "low_freq_factor is %g: it must be at most high_freq_factor, which is %g",
                     scaling.low_freq_factor, scaling.high_freq_factor);
    }
    return require_positive(scaling.original_max_position_embeddings,
                            "original_max_position_embeddings");
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_scale_llama3(double* inv_freq, size_t count,
                                  const vkrope_llama3_scaling* given, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(given, "scaling"); !s) return s;
            if (Status s = require_frequencies(inv_freq, count); !s) return s;
            const Llama3Scaling& scaling = *given;
            if (Status status = check(scaling); !status) return status;
            const double original = scaling.original_max_position_embeddings;
            const double longest_kept = original / scaling.high_freq_factor;
            const double shortest_scaled = original / scaling.low_freq_factor;
            for (std::size_t j = 0; j < count; ++j) {
                double& frequency = inv_freq[j];
                const double wavelength = two_pi / frequency;
                if (wavelength < longest_kept) continue;
                const double scaled = frequency / scaling.factor;
                if (wavelength > shortest_scaled ||
                    // Equal factors, as in Llama 4, result in a step.
                    longest_kept == shortest_scaled) {
                    frequency = scaled;
                    continue;
                }
                const double smooth = (original / wavelength - scaling.low_freq_factor) /
                                      (scaling.high_freq_factor - scaling.low_freq_factor);
                frequency = (1 - smooth) * scaled + smooth * frequency;
            }
            return {};
        });
}
