// SPDX-License-Identifier: MIT
// Checks scaling parameters and returns their errors.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/status.hpp"

namespace vkrope {

inline constexpr double two_pi = 0x1.921fb54442d18p+2;

inline Status require_positive(double value, const char* name) noexcept {
    if (std::isfinite(value) && value > 0) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is %g: it must be finite and above 0", name,
                 value);
}

// Checks a parameter where 0 means "not set".
inline Status require_not_negative(double value, const char* name) noexcept {
    if (std::isfinite(value) && value >= 0) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is %g: it must be finite and at least 0", name,
                 value);
}

// Checks a base whose logarithm is a divisor.
inline Status require_above_one(double value, const char* name) noexcept {
    if (std::isfinite(value) && value > 1) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is %g: it must be finite and above 1", name,
                 value);
}

// Checks the frequencies that a scaling changes.
inline Status require_frequencies(const double* inv_freq, std::size_t count) noexcept {
    if (count == 0) return {};
    if (Status s = not_null(inv_freq, "inv_freq"); !s) return s;
    if (count <= PTRDIFF_MAX / sizeof(double)) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "count is %llu: that many elements do not fit in memory",
                 static_cast<unsigned long long>(count));
}

// vkrope_scale_ggml. `powers`: the frequencies must be the powers of the base, unless the sections
// of vision mode begin them again.
Status scale_as_ggml(double* inv_freq, std::size_t count, double base, const GgmlScaling& scaling,
                     bool powers, double& attention_factor) noexcept;

// Checks the count and the values of divisors for `pairs` frequencies.
inline Status require_divisors(const double* divisors, std::size_t count, std::size_t pairs,
                               const char* name) noexcept {
    using ull = unsigned long long;  // the type of %llu on every platform
    if (count != pairs) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s has %llu elements: it must have rotary_dim / 2 = %llu", name, ull{count},
                     ull{pairs});
    }
    if (divisors == nullptr && count != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is null", name);
    for (std::size_t j = 0; j < count; ++j) {
        if (!(std::isfinite(divisors[j]) && divisors[j] > 0)) {
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%s[%llu] is %g: it must be finite and above 0", name, ull{j},
                         divisors[j]);
        }
    }
    return {};
}

}  // namespace vkrope
