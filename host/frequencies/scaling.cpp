// SPDX-License-Identifier: MIT
// Inverse frequencies from a base, and the scalings that need one line of arithmetic.
#include <algorithm>
#include <numbers>

#include "defaults.hpp"
#include "frequencies/limits.hpp"
#include "frequencies/scaling_rules.hpp"
#include "vkrope/frequencies.hpp"

namespace vkrope {
namespace {

Status check_spacing(double base, std::uint32_t width, const char* width_name,
                     const double* inv_freq) noexcept {
    if (Status status = require_positive(base, "base"); !status) {
        return status;
    }
    if (width < 2 || width > max_rotary_dim || width % 2 != 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is %u: it must be even, 2 to %u",
                     width_name, width, max_rotary_dim);
    }
    if (inv_freq == nullptr) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "inv_freq is null");
    }
    return {};
}

void multiply(std::vector<double>& inv_freq, double number) noexcept {
    for (double& frequency : inv_freq) {
        frequency *= number;
    }
}

void divide(std::vector<double>& inv_freq, double number) noexcept {
    for (double& frequency : inv_freq) {
        frequency /= number;
    }
}

/// (base * alpha^(d / (d - 2)))^(-2j / d) is base^(-2j / d) * alpha^(-j / (d/2 - 1)): the scaling
/// of a pair does not depend on the base.
void scale_base(std::vector<double>& inv_freq, double alpha) noexcept {
    for (std::size_t j = 1; j < inv_freq.size(); ++j) {
        inv_freq[j] *= std::pow(alpha, -double(j) / double(inv_freq.size() - 1));
    }
}

}  // namespace

Status default_inv_freq(double base, std::uint32_t rotary_dim, double* inv_freq) {
    if (Status status = check_spacing(base, rotary_dim, "rotary_dim", inv_freq); !status) {
        return status;
    }
    for (std::uint32_t j = 0; j < rotary_dim / 2; ++j) {
        inv_freq[j] = std::pow(base, -2.0 * j / rotary_dim);
    }
    return {};
}

Status inclusive_inv_freq(double base, std::uint32_t rotary_dim, double* inv_freq) {
    if (Status status = check_spacing(base, rotary_dim, "rotary_dim", inv_freq); !status) {
        return status;
    }
    const std::uint32_t steps = rotary_dim / 2 - 1;
    inv_freq[0] = 1;
    for (std::uint32_t j = 1; j <= steps; ++j) {
        inv_freq[j] = std::pow(base, -double(j) / steps);
    }
    return {};
}

Status proportional_inv_freq(double base, std::uint32_t head_dim, const ProportionalScaling& given,
                             double* inv_freq) {
    const ProportionalScaling scaling = {value_or(given.factor, 1.0),
                                         value_or(given.partial_rotary_factor, 1.0)};
    if (Status status = check_spacing(base, head_dim, "head_dim", inv_freq); !status) {
        return status;
    }
    if (Status status = require_positive(scaling.factor, "factor"); !status) {
        return status;
    }
    if (!(scaling.partial_rotary_factor > 0 && scaling.partial_rotary_factor <= 1)) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "partial_rotary_factor is %g: it must be above 0, at most 1",
                     scaling.partial_rotary_factor);
    }
    const auto rotated = std::uint32_t(scaling.partial_rotary_factor * head_dim / 2);
    for (std::uint32_t j = 0; j < head_dim / 2; ++j) {
        inv_freq[j] = j < rotated ? std::pow(base, -2.0 * j / head_dim) / scaling.factor : 0;
    }
    return {};
}

Status scale_linear(std::vector<double>& inv_freq, double factor) {
    if (Status status = require_positive(factor, "factor"); !status) {
        return status;
    }
    divide(inv_freq, factor);
    return {};
}

Status scale_positions(std::vector<double>& inv_freq, double seq_scale) {
    if (Status status = require_positive(seq_scale, "seq_scale"); !status) {
        return status;
    }
    multiply(inv_freq, seq_scale);
    return {};
}

Status scale_divisors(std::vector<double>& inv_freq, const double* divisors, std::size_t count) {
    if (Status status = require_divisors(divisors, count, inv_freq.size(), "divisors"); !status) {
        return status;
    }
    for (std::size_t j = 0; j < count; ++j) {
        inv_freq[j] /= divisors[j];
    }
    return {};
}

Status scale_ntk(std::vector<double>& inv_freq, double alpha) {
    if (Status status = require_positive(alpha, "alpha"); !status) {
        return status;
    }
    scale_base(inv_freq, alpha);
    return {};
}

Status stop_slow_pairs(std::vector<double>& inv_freq, double length) {
    if (Status status = require_positive(length, "length"); !status) {
        return status;
    }
    const double slowest = 2 * std::numbers::pi / length;  // one turn
    for (double& frequency : inv_freq) {
        if (frequency < slowest) frequency = 0;
    }
    return {};
}

Status scale_dynamic_ntk(std::vector<double>& inv_freq, const DynamicNtkScaling& scaling,
                         std::uint64_t seq_len) {
    if (Status status = require_positive(scaling.factor, "factor"); !status) {
        return status;
    }
    if (Status status = require_positive(scaling.max_position_embeddings,
                                         "max_position_embeddings");
        !status) {
        return status;
    }
    const double longest = std::max(double(seq_len), scaling.max_position_embeddings);
    scale_base(inv_freq,
               scaling.factor * longest / scaling.max_position_embeddings - (scaling.factor - 1));
    return {};
}

}  // namespace vkrope
