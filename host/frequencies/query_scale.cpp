// SPDX-License-Identifier: MIT
#include <limits>

#include "frequencies/scaling_rules.hpp"

namespace vkrope {
namespace {

Status check(const QueryScale& scale) noexcept {
    if (scale.kind > VKROPE_QUERY_SCALING_MINISTRAL3) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "scale.kind is %u: it must be a vkrope_query_scaling", unsigned(scale.kind));
    }
    if (scale.kind == VKROPE_QUERY_SCALING_NONE) {
        if (Status s = not_set("scale", "length", scale.length != 0, "kind is none"); !s) return s;
    }
    if (scale.kind <= VKROPE_QUERY_SCALING_LOGN && scale.beta != 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "scale.beta is %g: it must be 0 unless scale.kind is llama4 or ministral3",
                     scale.beta);
    }
    if (scale.kind == VKROPE_QUERY_SCALING_NONE) return {};
    if (scale.kind == VKROPE_QUERY_SCALING_LOGN)
        return require_above_one(scale.length, "scale.length");
    if (Status status = require_positive(scale.length, "scale.length"); !status) return status;
    return require_not_negative(scale.beta, "scale.beta");
}

double factor_at(const QueryScale& scale, std::int32_t position) noexcept {
    const double p = position;
    switch (scale.kind) {
        case VKROPE_QUERY_SCALING_LOGN:
            return p + 1 > scale.length ? std::log(p + 1) / std::log(scale.length) : 1;
        case VKROPE_QUERY_SCALING_LLAMA4:
            return 1 + scale.beta * std::log1p(std::floor((p + 1) / scale.length));
        case VKROPE_QUERY_SCALING_MINISTRAL3:
            return 1 + scale.beta * std::log1p(std::floor(p / scale.length));
        default: return 1;
    }
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_query_scales(const vkrope_query_scale* given, const int32_t* positions,
                                  size_t count, float* scales, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(given, "scale"); !s) return s;
            const QueryScale& scale = *given;
            using ull = unsigned long long;  // the type of %llu on every platform
            if (Status status = check(scale); !status) return status;
            if (count != 0 && (positions == nullptr || scales == nullptr))
                return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is null",
                             positions == nullptr ? "positions" : "scales");
            for (std::size_t i = 0; i < count; ++i) {
                if (positions[i] < 0)
                    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                                 "positions[%llu] is %d: it must be at least 0", ull{i},
                                 positions[i]);
                if (!(factor_at(scale, positions[i]) <= double(std::numeric_limits<float>::max())))
                    return error(
                        VKROPE_ERROR_INVALID_ARGUMENT,
                        "scale.beta is %g: the factor of position %d exceeds the range of float",
                        scale.beta, positions[i]);
            }
            for (std::size_t i = 0; i < count; ++i)
                scales[i] = float(factor_at(scale, positions[i]));
            return {};
        });
}
