// SPDX-License-Identifier: MIT
// Computes the content of angle tables.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/angle_layout.hpp"
#include "base/bits.hpp"
#include "frequencies/angle_table_layout.hpp"
#include "frequencies/table_entry.hpp"

namespace vkrope {
namespace {

using ull = unsigned long long;  // the type of %llu on every platform

// Writes table rows in order; never reads them back.
class RowWriter {
   public:
    RowWriter(const vkrope_rope_params& rotation, void* memory) noexcept
        : rotation_(rotation), next_(static_cast<float*>(memory)) {
        for (std::size_t j = 0; j < std::min(rotation.inv_freq_count, fractions_.size()); ++j) {
            fractions_[j] = vkrope_turn_fraction(rotation.inv_freq[j]);
            if (rotation.phase_count != 0) phases_[j] = vkrope_turn_fraction(rotation.phase[j]);
        }
    }

    // Writes cos and sin of position * inv_freq + phase, times the attention factor.
    void row(std::int64_t position) noexcept {
        for (std::size_t j = 0; j < rotation_.inv_freq_count; ++j) {
            write(rotation_.precision == VKROPE_ANGLE_PRECISION_EXACT
                      ? table_entry(std::uint64_t(position) * fraction(j) + phase(j),
                                    rotation_.attention_factor)
                      : float32_entry(std::uint64_t(position), rotation_.inv_freq[j],
                                      rotation_.attention_factor));
        }
    }

    // Writes cos and sin of position * inv_freq.
    void plain_row(std::uint64_t position) noexcept {
        for (std::size_t j = 0; j < rotation_.inv_freq_count; ++j)
            write(table_entry(position * fraction(j), 1));
    }

    void zeros(std::size_t floats) noexcept { next_ = std::fill_n(next_, floats, 0.0f); }

   private:
    void write(const CosSin& entry) noexcept {
        *next_++ = entry.cos;
        *next_++ = entry.sin;
    }

    std::uint64_t fraction(std::size_t j) const noexcept {
        return j < fractions_.size() ? fractions_[j] : vkrope_turn_fraction(rotation_.inv_freq[j]);
    }

    std::uint64_t phase(std::size_t j) const noexcept {
        return j < phases_.size() || rotation_.phase_count == 0
                   ? phases_[j % phases_.size()]
                   : vkrope_turn_fraction(rotation_.phase[j]);
    }

    const vkrope_rope_params& rotation_;
    float* next_;
    // Cached fractions of the first pairs: enough for head_dim 512, small enough for any stack.
    std::array<std::uint64_t, 256> fractions_ = {}, phases_ = {};
};

// Returns the position of a row. The rows of positions 0, 1, ... come first, then -1, -2, ...
std::int64_t direct_position(const AngleTableLayout& plan, std::uint64_t row) noexcept {
    const auto position = std::int64_t(row);
    return row < plan.rows ? position : std::int64_t(plan.rows) - 1 - position;
}

void write_texture_row(const AngleTableLayout& plan, std::uint64_t row,
                       RowWriter& writer) noexcept {
    if (plan.source == VKROPE_ANGLES_DIRECT_TEXTURE)
        writer.row(direct_position(plan, row));
    else if (const std::uint64_t coarse = shader::coarse_rows(plan.rows, plan.phase); row < coarse)
        writer.plain_row(row << shader::fine_digit_bits);
    else
        writer.row(std::int64_t(row - coarse));
}

void fill_texture_line(const AngleTableLayout& plan, std::uint32_t line,
                       RowWriter& writer) noexcept {
    const std::size_t row_floats = std::size_t{plan.row_texels} * 4;
    const std::size_t padding = row_floats - std::size_t{plan.pairs} * 2;
    const std::uint32_t columns = plan.extent.width / plan.row_texels;
    for (std::uint64_t column = 0; column < columns; ++column) {
        const std::uint64_t row = (column << plan.fold_log2) + line;
        if (row < table_rows(plan)) {
            write_texture_row(plan, row, writer);
            writer.zeros(padding);
        } else {
            writer.zeros(row_floats);
        }
    }
}

// Writes the constants that vkrope_turn in shaders/turns.glsl reads: VkropeTurnFactor from
// radians_high on, the two parts of the attention factor, and the fractions of a turn. In each
// head group the fractions of the phases come last.
void write_turns(const vkrope_rope_params& rotation, void* memory) noexcept {
    auto* next = static_cast<std::uint32_t*>(memory);
    const double factor = rotation.attention_factor,
                 radians = factor * 0x1.921fb54442d18p-18;  // 2 pi / 2^20
    int exponent = 0;
    const double leading = std::trunc(std::ldexp(std::frexp(radians, &exponent), 7));  // 7 bits
    const float high = std::ldexp(float(leading), exponent - 7), rounded = float(factor);
    const float header[] = {high,
                            float(radians - double(high)),
                            float(radians / 4096),
                            0,
                            rounded,
                            float(factor - double(rounded)),
                            0,
                            0};
    static_assert(sizeof header == 16 * shader::turn_header_vec4s);
    for (const float number : header) *next++ = bits_of(number);
    const std::size_t pairs = rotation.rotary_dim / 2;
    const auto set = [&](const double* angles) {
        for (std::size_t j = 0; j < pairs; ++j) {
            const std::uint64_t fraction = vkrope_turn_fraction(angles[j]);
            *next++ = std::uint32_t(fraction);
            *next++ = std::uint32_t(fraction >> 32);
        }
        if (pairs % 2 != 0) next = std::fill_n(next, 2, 0u);
    };
    const double* inv_freq = rotation.inv_freq;
    for (std::size_t group = 0; group < rotation.head_groups; ++group) {
        for (std::uint32_t axis = 0; axis < summed_axes(rotation.sections); ++axis) {
            set(inv_freq);
            inv_freq += pairs;
        }
        if (rotation.phase_count != 0) set(rotation.phase + group * pairs);
    }
}

// Checks that a layout is of a table whose content this library computes.
Status has_content(const AngleTableLayout& plan) noexcept {
    if (plan.source != VKROPE_ANGLES_COS_SIN_CACHE) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "layout.source is %u: the content of a cos_sin_cache is the caller's",
                 unsigned(plan.source));
}

Status fill_lines(const vkrope_rope_params& rotation, const AngleTableLayout& plan,
                  std::uint32_t first_line, std::uint32_t lines, void* memory,
                  std::size_t bytes) noexcept {
    if (Status status = check(rotation); !status) return status;
    if (Status status = has_content(plan); !status) return status;
    if (Status status = check_source(rotation, plan.source); !status) return status;
    if (plan.pairs != rotation.rotary_dim / 2) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "layout.pairs is %u: it must be the rotation's rotary_dim / 2 = %u",
                     plan.pairs, rotation.rotary_dim / 2);
    }
    if ((plan.phase != 0) == (rotation.phase_count == 0) ||
        value_or(plan.head_groups, 1u) != rotation.head_groups ||
        summed_axes(plan.sections) != summed_axes(rotation.sections)) {
        return error(
            VKROPE_ERROR_INVALID_ARGUMENT,
            "layout.phase is %d, layout.head_groups is %u and layout.sections sum %u axes: they "
            "differ from the rotation's; make the layout from this rotation",
            plan.phase, plan.head_groups, summed_axes(plan.sections));
    }
    if (Status status = check_layout("layout.", plan); !status) return status;
    if (value_or(plan.attention_factor, 1.0) != rotation.attention_factor) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "layout.attention_factor is %g: it must be the rotation's, %g",
                     plan.attention_factor, rotation.attention_factor);
    }
    if (memory == nullptr || reinterpret_cast<std::uintptr_t>(memory) % alignof(float) != 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "memory is %p: it must not be null and must be aligned to 4 bytes", memory);
    }
    const AngleLines all = angle_lines(plan);
    if (first_line > all.count || lines > all.count - first_line) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "lines is %u from line %u on: the table has only %u lines", lines, first_line,
                     all.count);
    }
    const std::uint64_t needed = std::uint64_t{lines} * all.bytes;
    if (bytes < needed) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "bytes is %llu: it must be at least %llu for %u lines", ull{bytes},
                     ull{needed}, lines);
    }
    if (plan.source == VKROPE_ANGLES_COMPUTED) {
        if (lines != 0) write_turns(rotation, memory);
        return {};
    }
    RowWriter writer(rotation, memory);
    for (std::uint32_t line = first_line; line < first_line + lines; ++line)
        if (plan.source == VKROPE_ANGLES_DIRECT_BUFFER)
            writer.row(direct_position(plan, line));
        else
            fill_texture_line(plan, line, writer);
    return {};
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_fill_angles(const vkrope_rope_params* rotation,
                                 const vkrope_angle_table_layout* plan, void* memory, size_t bytes,
                                 vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(rotation, "rotation"); !s) return s;
            if (Status s = not_null(plan, "layout"); !s) return s;
            return fill_lines(completed(*rotation), *plan, 0, angle_lines(*plan).count, memory,
                              bytes);
        });
}

vkrope_result vkrope_fill_angle_lines(const vkrope_rope_params* rotation,
                                      const vkrope_angle_table_layout* plan, uint32_t first_line,
                                      uint32_t lines, void* memory, size_t bytes,
                                      vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(rotation, "rotation"); !s) return s;
            if (Status s = not_null(plan, "layout"); !s) return s;
            return fill_lines(completed(*rotation), *plan, first_line, lines, memory, bytes);
        });
}

vkrope_result vkrope_get_angle_lines(const vkrope_angle_table_layout* plan,
                                     vkrope_angle_lines* lines, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = check_layout(plan); !s) return s;
            if (Status s = has_content(*plan); !s) return s;
            return hand_out(Result<AngleLines>{{}, angle_lines(*plan)}, lines, "lines");
        });
}
