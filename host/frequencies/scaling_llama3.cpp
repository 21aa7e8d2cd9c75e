// SPDX-License-Identifier: MIT
#include "frequencies/scaling_rules.hpp"
#include "vkrope/frequencies.hpp"

namespace vkrope {
namespace {

Status check(const Llama3Scaling& scaling) noexcept {
    if (Status status = require_positive(scaling.factor, "factor"); !status) {
        return status;
    }
    if (Status status = require_positive(scaling.low_freq_factor, "low_freq_factor"); !status) {
        return status;
    }
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

Status scale_llama3(std::vector<double>& inv_freq, const Llama3Scaling& scaling) {
    if (Status status = check(scaling); !status) {
        return status;
    }
    const double original = scaling.original_max_position_embeddings;
    const double longest_kept = original / scaling.high_freq_factor;
    const double shortest_scaled = original / scaling.low_freq_factor;
    for (double& frequency : inv_freq) {
        const double wavelength = two_pi / frequency;
        if (wavelength < longest_kept) {
            continue;
        }
        const double scaled = frequency / scaling.factor;
        if (wavelength > shortest_scaled ||
            longest_kept == shortest_scaled) {  // equal factors, as in Llama 4, make a step
            frequency = scaled;
            continue;
        }
        const double smooth = (original / wavelength - scaling.low_freq_factor) /
                              (scaling.high_freq_factor - scaling.low_freq_factor);
        frequency = (1 - smooth) * scaled + smooth * frequency;
    }
    return {};
}

}  // namespace vkrope
