// SPDX-License-Identifier: MIT
// Plans of angle tables and their content for C.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

#include "c/convert.hpp"
#include "status.hpp"
#include "vkrope/frequencies.hpp"

using namespace vkrope;
using namespace vkrope::c;

namespace {

using ull = unsigned long long;  // what printf's %llu takes everywhere

static_assert(VKROPE_ANGLES_DIRECT_BUFFER == int(AngleSource::direct_buffer));
static_assert(VKROPE_ANGLES_FACTORED_TEXTURE == int(AngleSource::factored_texture));
static_assert(VKROPE_ANGLES_COMPUTED == int(AngleSource::computed));

}  // namespace

namespace vkrope::c {

enum class PlanFormat : std::uint32_t {};  // any number that C passes as a VkFormat

Status read_plan(const vkrope_angle_plan* from, const char* name, AnglePlan& plan) noexcept {
    vkrope_angle_plan c;
    if (Status s = read(from, name, c); !s) return s;
    if (c.bytes > std::numeric_limits<std::size_t>::max()) {
        return error(Code::invalid_argument,
                     "%s.bytes is %llu: it must fit in size_t, which holds at most %llu", name,
                     ull{c.bytes}, ull{std::numeric_limits<std::size_t>::max()});
    }
    const auto format = std::uint32_t(enum_from<PlanFormat>(c.format));
    if (format != VK_FORMAT_UNDEFINED && format != VK_FORMAT_R32G32B32A32_SFLOAT) {
        return error(
            Code::invalid_argument,
            "%s.format is %u: it must be the format that vkrope_plan_angles chose, %u or %u", name,
            format, unsigned(VK_FORMAT_UNDEFINED), unsigned(VK_FORMAT_R32G32B32A32_SFLOAT));
    }
    plan.source = enum_from<AngleSource>(c.source);
    plan.format = VkFormat(format);
    plan.extent = c.extent;
    plan.usage = c.usage;
    plan.bytes = std::size_t(c.bytes);
    plan.pairs = c.pairs;
    plan.rows = c.rows;
    plan.fold_log2 = c.fold_log2;
    plan.row_texels = c.row_texels;
    if (c.attention_factor != 0) plan.attention_factor = c.attention_factor;
    plan.element = enum_from<Element>(c.element);
    plan.row_stride = c.row_stride;
    plan.sections.order = enum_from<SectionOrder>(c.section_order);
    plan.sections.axes = c.axes;
    std::copy(std::begin(c.section_pairs), std::end(c.section_pairs), plan.sections.pairs);
    plan.sections.leftover_axis = c.leftover_axis;
    plan.phase = c.phase;
    if (c.head_groups != 0) plan.head_groups = c.head_groups;
    plan.channel_angles = c.channel_angles;
    return {};
}

vkrope_angle_plan to_c(const AnglePlan& plan) noexcept {
    vkrope_angle_plan c = {};
    c.struct_size = sizeof c;
    c.source = vkrope_angle_source(plan.source);
    c.format = plan.format;
    c.extent = plan.extent;
    c.usage = plan.usage;
    c.pairs = plan.pairs;
    c.rows = plan.rows;
    c.fold_log2 = plan.fold_log2;
    c.row_texels = plan.row_texels;
    c.bytes = plan.bytes;
    c.attention_factor = plan.attention_factor;
    c.element = vkrope_element(plan.element);
    c.row_stride = plan.row_stride;
    c.section_order = vkrope_section_order(plan.sections.order);
    c.axes = plan.sections.axes;
    std::copy(std::begin(plan.sections.pairs), std::end(plan.sections.pairs), c.section_pairs);
    c.leftover_axis = plan.sections.leftover_axis;
    c.phase = plan.phase;
    c.head_groups = plan.head_groups;
    c.channel_angles = plan.channel_angles;
    return c;
}

}  // namespace vkrope::c

vkrope_angle_source vkrope_default_angles(vkrope_angle_precision precision, uint64_t max_position) {
    return vkrope_angle_source(default_angles(enum_from<AnglePrecision>(precision), max_position));
}

double vkrope_error_bound(vkrope_angle_source source, double attention_factor) {
    return error_bound(enum_from<AngleSource>(source), attention_factor);
}

uint64_t vkrope_turn_fraction(double inv_freq) {
    return turn_fraction(inv_freq);
}

vkrope_result vkrope_plan_angles(const vkrope_rotation* rotation, vkrope_angle_source source,
                                 uint64_t max_position, uint32_t max_image_side,
                                 vkrope_angle_plan* plan, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        const Result<AnglePlan> made = plan_angles(rotation->of, enum_from<AngleSource>(source),
                                                   max_position, max_image_side);
        if (!made) return made.status;
        return write(c::to_c(made.value), "plan", plan);
    });
}

vkrope_result vkrope_plan_cos_sin_cache(uint32_t pairs, uint32_t rows, uint32_t row_stride,
                                        vkrope_element element, VkBool32 channel_angles,
                                        vkrope_angle_plan* plan, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        const Result<AnglePlan> made = plan_cos_sin_cache(
            pairs, rows, row_stride, enum_from<Element>(element), channel_angles);
        if (!made) return made.status;
        return write(c::to_c(made.value), "plan", plan);
    });
}

vkrope_result vkrope_fill_angles(const vkrope_rotation* rotation, const vkrope_angle_plan* plan,
                                 void* memory, size_t bytes, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        AnglePlan filled;
        if (Status s = read_plan(plan, "plan", filled); !s) return s;
        return fill_angles(rotation->of, filled, memory, bytes);
    });
}

vkrope_result vkrope_get_angle_lines(const vkrope_angle_plan* plan, vkrope_angle_lines* lines,
                                     vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        AnglePlan divided;
        if (Status s = read_plan(plan, "plan", divided); !s) return s;
        const AngleLines of = angle_lines(divided);
        vkrope_angle_lines c = {};
        c.count = of.count;
        c.bytes = of.bytes;
        return write(c, "lines", lines);
    });
}

vkrope_result vkrope_fill_angle_lines(const vkrope_rotation* rotation,
                                      const vkrope_angle_plan* plan, uint32_t first_line,
                                      uint32_t lines, void* memory, size_t bytes,
                                      vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        AnglePlan filled;
        if (Status s = read_plan(plan, "plan", filled); !s) return s;
        return fill_angles(rotation->of, filled, first_line, lines, memory, bytes);
    });
}
