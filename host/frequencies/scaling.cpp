// SPDX-License-Identifier: MIT
// The formulas that turn a base and a scaling into inverse frequencies.
#include <cmath>

#include "frequencies/limits.hpp"
#include "status.hpp"
#include "vkrope/frequencies.hpp"

namespace vkrope {
namespace {

constexpr double two_pi = 6.283185307179586476925286766559;

bool positive(double value) noexcept {
    return std::isfinite(value) && value > 0;
}

}  // namespace

Status default_inv_freq(double base, std::uint32_t rotary_dim, double* inv_freq) {
    if (!positive(base)) {
        return error(Code::invalid_argument, "base is %g: must be finite and above 0", base);
    }
    if (rotary_dim < 2 || rotary_dim > max_rotary_dim || rotary_dim % 2 != 0) {
        return error(Code::invalid_argument, "rotary_dim is %u: must be even, 2 to %u", rotary_dim, max_rotary_dim);
    }
    if (inv_freq == nullptr) {
        return error(Code::invalid_argument, "inv_freq is null");
    }
    for (std::uint32_t j = 0; j < rotary_dim / 2; ++j) {
        inv_freq[j] = std::pow(base, -2.0 * j / rotary_dim);
    }
    return {};
}

Status scale_linear(std::vector<double>& inv_freq, double factor) {
    if (!positive(factor)) {
        return error(Code::invalid_argument, "factor is %g: must be finite and above 0", factor);
    }
    for (double& frequency : inv_freq) {
        frequency /= factor;
    }
    return {};
}

namespace {

Status check(const Llama3Scaling& scaling) noexcept {
    if (!positive(scaling.factor)) {
        return error(Code::invalid_argument, "factor is %g: must be finite and above 0", scaling.factor);
    }
    if (!positive(scaling.low_freq_factor)) {
        return error(Code::invalid_argument, "low_freq_factor is %g: must be finite and above 0", scaling.low_freq_factor);
    }
    if (!std::isfinite(scaling.high_freq_factor)) {
        return error(Code::invalid_argument, "high_freq_factor is %g: must be finite", scaling.high_freq_factor);
    }
    if (scaling.low_freq_factor >= scaling.high_freq_factor) {
        return error(Code::invalid_argument, "low_freq_factor is %g: must be below high_freq_factor, which is %g",
                     scaling.low_freq_factor, scaling.high_freq_factor);
    }
    if (!positive(scaling.original_max_position_embeddings)) {
        return error(Code::invalid_argument, "original_max_position_embeddings is %g: must be finite and above 0",
                     scaling.original_max_position_embeddings);
    }
    return {};
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
        if (wavelength > shortest_scaled) {
            frequency = scaled;
            continue;
        }
        const double smooth =
            (original / wavelength - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
        frequency = (1 - smooth) * scaled + smooth * frequency;
    }
    return {};
}

}  // namespace vkrope
