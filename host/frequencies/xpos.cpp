// SPDX-License-Identifier: MIT
// Implements XPos: cos and sin with a scale for each position and pair.
#include <limits>

#include "base/defaults.hpp"
#include "frequencies/scaling_rules.hpp"
#include "frequencies/table_entry.hpp"

namespace vkrope {
namespace {

using ull = unsigned long long;  // the type of %llu on every platform

constexpr std::int64_t farthest = std::int64_t{1} << 31;

Status check(const vkrope_rope_params& rotation, const XposScaling& scaling, std::int64_t first,
             std::size_t rows) noexcept {
    if (Status s = require_positive(scaling.scale_base, "scaling.scale_base"); !s) return s;
    if (Status s = require_positive(scaling.gamma, "scaling.gamma"); !s) return s;
    if (rotation.sections.axes != 0 || rotation.head_groups != 1 || rotation.phase_count != 0) {
        return error(VKROPE_ERROR_NOT_SUPPORTED,
                     "rotation has %u axes, %u head groups and %llu phases: XPos is for 0, 1 and 0",
                     rotation.sections.axes, rotation.head_groups, ull{rotation.phase_count});
    }
    if (rotation.inv_freq_count == 0 || rotation.inv_freq_count != rotation.rotary_dim / 2) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotation.inv_freq_count is %llu: it must be rotary_dim / 2 = %u, and "
                     "not 0",
                     ull{rotation.inv_freq_count}, rotation.rotary_dim / 2);
    }
    if (rotation.precision != VKROPE_ANGLE_PRECISION_EXACT)
        return error(VKROPE_ERROR_NOT_SUPPORTED,
                     "rotation.precision is %u: XPos computes exact angles",
                     unsigned(rotation.precision));
    if (Status s = not_null(rotation.inv_freq, "rotation.inv_freq"); !s) return s;
    for (std::size_t j = 0; j < rotation.inv_freq_count; ++j) {
        if (!(std::fabs(rotation.inv_freq[j]) < 0x1p11)) {
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "rotation.inv_freq[%llu] is %g: its magnitude must be below 2048", ull{j},
                         rotation.inv_freq[j]);
        }
    }
    for (const auto& [position, name] :
         {std::pair{first, "first"}, {scaling.centre, "scaling.centre"}}) {
        if (position > farthest || position < -farthest) {
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%s is %lld: its magnitude must be at most 2^31", name,
                         static_cast<long long>(position));
        }
    }
    if (rows > std::uint64_t(farthest)) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "rows is %llu: it must be at most 2^31",
                     ull{rows});
    }
    return {};
}

// Returns the exponent of zeta at a position.
double exponent(const XposScaling& scaling, bool keys, std::int64_t position) noexcept {
    const double distance = double(position - scaling.centre) / scaling.scale_base;
    return keys ? -distance : distance;
}

double zeta(const vkrope_rope_params& rotation, const XposScaling& scaling,
            std::size_t pair) noexcept {
    return (2.0 * double(pair) / rotation.rotary_dim + scaling.gamma) / (1 + scaling.gamma);
}

// Checks the factor of pair 0 at a position. Checking the first and last position is enough:
// factors are monotonic in the position, and those of pair 0 vary most, because zeta_0 is the
// smallest and all zeta are below 1.
Status check_range(const vkrope_rope_params& rotation, const XposScaling& scaling, bool keys,
                   std::int64_t position) noexcept {
    const double factor = rotation.attention_factor *
                          std::pow(zeta(rotation, scaling, 0),
                                   exponent(scaling, keys != VK_FALSE, position));
    if (factor >= double(std::numeric_limits<float>::min()) &&
        factor <= double(std::numeric_limits<float>::max()))
        return {};
    return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                 "the scale of position %lld is %g: it must be in the normal range of float; "
                 "scaling.centre is %lld",
                 static_cast<long long>(position), factor, static_cast<long long>(scaling.centre));
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_xpos_cos_sin(const vkrope_rope_params* params,
                                  const vkrope_xpos_scaling* given, VkBool32 keys, int64_t first,
                                  size_t rows, float* cos, float* sin, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(params, "rotation"); !s) return s;
            const vkrope_rope_params rotation = completed(*params);
            const XposScaling asked = given ? *given : XposScaling{};
            const XposScaling scaling = {value_or(asked.scale_base, 512.0),
                                         value_or(asked.gamma, 0.4), asked.centre};
            if (Status s = check(rotation, scaling, first, rows); !s) return s;
            if (rows == 0) return {};
            if (cos == nullptr || sin == nullptr)
                return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is null",
                             cos == nullptr ? "cos" : "sin");
            for (const std::int64_t end : {first, first + std::int64_t(rows) - 1})
                if (Status s = check_range(rotation, scaling, keys, end); !s) return s;
            const std::size_t pairs = rotation.inv_freq_count;
            for (std::size_t row = 0; row < rows; ++row) {
                const std::int64_t position = first + std::int64_t(row);
                const double power = exponent(scaling, keys, position);
                for (std::size_t j = 0; j < pairs; ++j) {
                    const double scale = rotation.attention_factor *
                                         std::pow(zeta(rotation, scaling, j), power);
                    const CosSin entry = table_entry(
                        std::uint64_t(position) * vkrope_turn_fraction(rotation.inv_freq[j]),
                        scale);
                    cos[row * pairs + j] = entry.cos;
                    sin[row * pairs + j] = entry.sin;
                }
            }
            return {};
        });
}
