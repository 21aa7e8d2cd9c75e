// SPDX-License-Identifier: MIT
#include <limits>

#include "base/query_scale_layout.hpp"
#include "frequencies/scaling_rules.hpp"

namespace vkrope {
namespace {

// Names of a scale and its fields in errors.
struct Names {
    const char *scale, *length, *beta;
};
constexpr Names alone = {"scale", "scale.length", "scale.beta"},
                in_layout = {"layout.scale", "layout.scale.length", "layout.scale.beta"};

Status check(const QueryScale& scale, const Names& names) noexcept {
    if (scale.kind > VKROPE_QUERY_SCALING_MINISTRAL3) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.kind is %u: it must be a vkrope_query_scaling", names.scale,
                     unsigned(scale.kind));
    }
    if (scale.kind == VKROPE_QUERY_SCALING_NONE) {
        if (Status s = not_set(names.scale, "length", scale.length != 0, "kind is none"); !s)
            return s;
    }
    if (scale.kind <= VKROPE_QUERY_SCALING_LOGN && scale.beta != 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s is %g: it must be 0 unless %s.kind is llama4 or ministral3", names.beta,
                     scale.beta, names.scale);
    }
    if (scale.kind == VKROPE_QUERY_SCALING_NONE) return {};
    if (scale.kind == VKROPE_QUERY_SCALING_LOGN)
        return require_above_one(scale.length, names.length);
    if (Status status = require_positive(scale.length, names.length); !status) return status;
    return require_not_negative(scale.beta, names.beta);
}

using ull = unsigned long long;  // the type of %llu on every platform

double factor_at(const QueryScale& scale, double p) noexcept {
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

Status check_factor(const QueryScale& scale, double position, const Names& names) noexcept {
    if (factor_at(scale, position) <= double(std::numeric_limits<float>::max())) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s is %g: the factor of position %.0f exceeds the range of float", names.beta,
                 scale.beta, position);
}

// Returns the first position of a row, which is -1 for the first row of a table with a shift.
double position_of(const QueryScaleLayout& layout, std::uint32_t row) noexcept {
    return double(row) * layout.positions_per_row - layout.shift;
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
            if (Status status = check(scale, alone); !status) return status;
            if (count != 0 && (positions == nullptr || scales == nullptr))
                return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is null",
                             positions == nullptr ? "positions" : "scales");
            for (std::size_t i = 0; i < count; ++i) {
                if (positions[i] < 0)
                    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                                 "positions[%llu] is %d: it must be at least 0", ull{i},
                                 positions[i]);
                if (Status s = check_factor(scale, positions[i], alone); !s) return s;
            }
            for (std::size_t i = 0; i < count; ++i)
                scales[i] = float(factor_at(scale, positions[i]));
            return {};
        });
}

vkrope_result vkrope_plan_query_scales(const vkrope_query_scale* scale, uint64_t max_position,
                                       vkrope_query_scale_layout* made, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(scale, "scale"); !s) return s;
            if (Status s = not_null(made, "layout"); !s) return s;
            if (Status s = check(*scale, alone); !s) return s;
            if (scale->kind == VKROPE_QUERY_SCALING_NONE)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "scale.kind is none: a table needs a formula");
            if (max_position == 0 || max_position > max_positions)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "max_position is %llu: it must be 1 to %llu", ull{max_position},
                             ull{max_positions});
            const QueryScaleLayout layout = layout_of(*scale, max_position);
            if (layout.rows > max_buffer_bytes / 4)
                return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                             "max_position is %llu: %u factors need %llu bytes, but a storage "
                             "buffer has at most %llu",
                             ull{max_position}, layout.rows, ull{layout.rows} * 4,
                             ull{max_buffer_bytes});
            if (Status s = check_factor(*scale, position_of(layout, layout.rows - 1), alone); !s)
                return s;
            *made = layout;
            return {};
        });
}

vkrope_result vkrope_fill_query_scales(const vkrope_query_scale_layout* layout, void* memory,
                                       size_t bytes, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(layout, "layout"); !s) return s;
            if (Status s = check(layout->scale, in_layout); !s) return s;
            if (Status s = check_layout("layout.", *layout); !s) return s;
            if (Status s = check_factor(layout->scale, position_of(*layout, layout->rows - 1),
                                        in_layout);
                !s)
                return s;
            if (!memory || reinterpret_cast<std::uintptr_t>(memory) % 4 != 0)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "memory is %p: it must be a multiple of 4, not null", memory);
            if (bytes < layout->bytes)
                return error(VKROPE_ERROR_INVALID_ARGUMENT, "bytes is %zu: the layout has %zu",
                             bytes, layout->bytes);
            auto* next = static_cast<float*>(memory);
            for (std::uint32_t row = 0; row < layout->rows; ++row)
                *next++ = float(factor_at(layout->scale, position_of(*layout, row)));
            return {};
        });
}
