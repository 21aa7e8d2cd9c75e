// SPDX-License-Identifier: MIT
// Computes inverse frequencies from a base, and the scalings that need one line of arithmetic.
#include <algorithm>

#include "base/defaults.hpp"
#include "frequencies/scaling_rules.hpp"

namespace vkrope {
namespace {

Status check_spacing(double base, std::uint32_t width, const char* width_name,
                     const double* inv_freq) noexcept {
    if (Status status = require_positive(base, "base"); !status) return status;
    if (width < 2 || width > max_head_dim || width % 2 != 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is %u: it must be even, 2 to %u",
                     width_name, width, max_head_dim);
    }
    if (inv_freq == nullptr) return error(VKROPE_ERROR_INVALID_ARGUMENT, "inv_freq is null");
    return {};
}

void multiply(double* inv_freq, std::size_t count, double number) noexcept {
    for (std::size_t j = 0; j < count; ++j) inv_freq[j] *= number;
}

void divide(double* inv_freq, std::size_t count, double number) noexcept {
    for (std::size_t j = 0; j < count; ++j) inv_freq[j] /= number;
}

// Multiplies the base of d channels by alpha^(d / (d - 2)), and therefore frequency j by
// alpha^(-j / (d/2 - 1)), which does not depend on the base.
void scale_base(double* inv_freq, std::size_t count, double alpha) noexcept {
    for (std::size_t j = 1; j < count; ++j)
        inv_freq[j] *= std::pow(alpha, -double(j) / double(count - 1));
}

// Stops the pairs that turn less than once over `length` positions.
void stop_slow_pairs(double* inv_freq, std::size_t count, double length) noexcept {
    const double slowest = two_pi / length;
    for (std::size_t j = 0; j < count; ++j)
        if (inv_freq[j] < slowest) inv_freq[j] = 0;
}

// Implements the scalings by one number.
vkrope_result scale_by(double* inv_freq, std::size_t count, double number, const char* name,
                       void (*scaling)(double*, std::size_t, double),
                       vkrope_error* failure) noexcept {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = require_frequencies(inv_freq, count); !s) return s;
            if (Status s = require_positive(number, name); !s) return s;
            scaling(inv_freq, count, number);
            return {};
        });
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_default_inv_freq(double base, uint32_t rotary_dim, double* inv_freq,
                                      vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status status = check_spacing(base, rotary_dim, "rotary_dim", inv_freq); !status)
                return status;
            for (std::uint32_t j = 0; j < rotary_dim / 2; ++j)
                inv_freq[j] = std::pow(base, -2.0 * j / rotary_dim);
            return {};
        });
}

vkrope_result vkrope_inclusive_inv_freq(double base, uint32_t rotary_dim, double* inv_freq,
                                        vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status status = check_spacing(base, rotary_dim, "rotary_dim", inv_freq); !status)
                return status;
            const std::uint32_t steps = rotary_dim / 2 - 1;
            inv_freq[0] = 1;
            for (std::uint32_t j = 1; j <= steps; ++j)
                inv_freq[j] = std::pow(base, -double(j) / steps);
            return {};
        });
}

vkrope_result vkrope_proportional_inv_freq(double base, uint32_t head_dim,
                                           const vkrope_proportional_scaling* given,
                                           double* inv_freq, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            const ProportionalScaling scaling = {
                value_or(given ? given->factor : 0, 1.0),
                value_or(given ? given->partial_rotary_factor : 0, 1.0)};
            if (Status status = check_spacing(base, head_dim, "head_dim", inv_freq); !status)
                return status;
            if (Status status = require_positive(scaling.factor, "factor"); !status) return status;
            if (!(scaling.partial_rotary_factor > 0 && scaling.partial_rotary_factor <= 1))
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "partial_rotary_factor is %g: it must be above 0, at most 1",
                             scaling.partial_rotary_factor);
            const auto rotated = std::uint32_t(scaling.partial_rotary_factor * head_dim / 2);
            for (std::uint32_t j = 0; j < head_dim / 2; ++j)
                inv_freq[j] = j < rotated ? std::pow(base, -2.0 * j / head_dim) / scaling.factor
                                          : 0;
            return {};
        });
}

vkrope_result vkrope_scale_linear(double* inv_freq, size_t count, double factor,
                                  vkrope_error* failure) {
    return scale_by(inv_freq, count, factor, "factor", divide, failure);
}

vkrope_result vkrope_scale_positions(double* inv_freq, size_t count, double seq_scale,
                                     vkrope_error* failure) {
    return scale_by(inv_freq, count, seq_scale, "seq_scale", multiply, failure);
}

vkrope_result vkrope_scale_divisors(double* inv_freq, size_t count, const double* divisors,
                                    size_t divisor_count, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = require_frequencies(inv_freq, count); !s) return s;
            if (Status status = require_divisors(divisors, divisor_count, count, "divisors");
                !status)
                return status;
            for (std::size_t j = 0; j < count; ++j) inv_freq[j] /= divisors[j];
            return {};
        });
}

vkrope_result vkrope_scale_ntk(double* inv_freq, size_t count, double alpha,
                               vkrope_error* failure) {
    return scale_by(inv_freq, count, alpha, "alpha", scale_base, failure);
}

vkrope_result vkrope_stop_slow_pairs(double* inv_freq, size_t count, double length,
                                     vkrope_error* failure) {
    return scale_by(inv_freq, count, length, "length", stop_slow_pairs, failure);
}

vkrope_result vkrope_scale_dynamic_ntk(double* inv_freq, size_t count,
                                       const vkrope_dynamic_ntk_scaling* given, uint64_t seq_len,
                                       vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(given, "scaling"); !s) return s;
            if (Status s = require_frequencies(inv_freq, count); !s) return s;
            const DynamicNtkScaling& scaling = *given;
            if (Status status = require_positive(scaling.factor, "factor"); !status) return status;
            if (Status status = require_positive(scaling.max_position_embeddings,
                                                 "max_position_embeddings");
                !status)
                return status;
            const double longest = std::max(double(seq_len), scaling.max_position_embeddings);
            scale_base(
                inv_freq, count,
                scaling.factor * longest / scaling.max_position_embeddings - (scaling.factor - 1));
            return {};
        });
}
