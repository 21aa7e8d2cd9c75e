// SPDX-License-Identifier: MIT
// Rotations for C: made of an info, read back as one.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "c/convert.hpp"
#include "status.hpp"
#include "vkrope/frequencies.hpp"

using namespace vkrope;
using namespace vkrope::c;

namespace {

using ull = unsigned long long;  // what printf's %llu takes everywhere

static_assert(VKROPE_PAIRING_INTERLEAVED == int(Pairing::interleaved));
static_assert(VKROPE_ANGLE_PRECISION_FLOAT32 == int(AnglePrecision::float32));

bool rotates(const vkrope_rotation_info& info) {
    return !info.rotates || *info.rotates;
}

Status check(const vkrope_rotation_info& info, const Sections& sections) {
    if (enum_from<Pairing>(info.pairing) > Pairing::interleaved) {
        return error(Code::invalid_argument, "info.pairing is %u: it must be a vkrope_pairing",
                     unsigned(enum_from<Pairing>(info.pairing)));
    }
    if (enum_from<AnglePrecision>(info.precision) > AnglePrecision::float32) {
        return error(Code::invalid_argument,
                     "info.precision is %u: it must be a vkrope_angle_precision",
                     unsigned(enum_from<AnglePrecision>(info.precision)));
    }
    // Arrays come without their size, so a count that does not match rotary_dim must not be
    // trusted.
    const std::size_t count = info.inv_freq_count;
    const std::uint64_t phases = std::uint64_t{info.rotary_dim / 2} *
                                 std::max(info.head_groups, 1u);
    const std::uint64_t frequencies = phases * summed_axes(sections);
    if (count != frequencies && !(!rotates(info) && count == 0)) {
        return error(
            Code::invalid_argument, "info.inv_freq_count is %llu: it must be %s = %llu", ull{count},
            frequencies == info.rotary_dim / 2 ? "rotary_dim / 2"
                                               : "head_groups * sections.axes * rotary_dim / 2",
            ull{frequencies});
    }
    if (Status s = not_null(info.inv_freq, "info.inv_freq"); !s && count != 0) return s;
    if (info.phase_count != 0 && info.phase_count != phases)
        return error(Code::invalid_argument,
                     "info.phase_count is %llu: it must be 0, or head_groups * rotary_dim / 2 = "
                     "%llu",
                     ull{info.phase_count}, ull{phases});
    if (Status s = not_null(info.phase, "info.phase"); !s && info.phase_count != 0) return s;
    if (Status s = not_null(info.warnings, "info.warnings"); !s && info.warning_count != 0)
        return s;
    for (std::size_t i = 0; i < info.warning_count; ++i) {
        if (!info.warnings[i])
            return error(Code::invalid_argument, "info.warnings[%llu] is null", ull{i});
    }
    return {};
}

Rotation to_cpp(const vkrope_rotation_info& info) {
    Rotation rotation;
    rotation.pairing = enum_from<Pairing>(info.pairing);
    rotation.head_dim = info.head_dim;
    rotation.rotary_dim = info.rotary_dim;
    rotation.q_rotary_offset = info.q_rotary_offset;
    rotation.k_rotary_offset = info.k_rotary_offset;
    rotation.inv_freq.assign(info.inv_freq, info.inv_freq + info.inv_freq_count);
    rotation.attention_factor = or_one(info.attention_factor);
    rotation.softmax_scale = or_one(info.softmax_scale);
    rotation.max_position = info.max_position;
    rotation.longest_seq_len = info.longest_seq_len;
    rotation.base = info.base;
    if (info.phase_count != 0) rotation.phase.assign(info.phase, info.phase + info.phase_count);
    if (info.head_groups != 0) rotation.head_groups = info.head_groups;
    for (std::uint32_t i = 0; i < max_windows; ++i)
        rotation.windows[i] = window_of(info.windows[i]);
    rotation.precision = enum_from<AnglePrecision>(info.precision);
    rotation.rotates = rotates(info);
    if (info.rope_type) rotation.rope_type = info.rope_type;
    rotation.warnings.assign(info.warnings, info.warnings + info.warning_count);
    return rotation;
}

vkrope_rotation_info to_c(const vkrope_rotation& rotation) {
    vkrope_rotation_info info = {};
    info.pairing = vkrope_pairing(rotation.of.pairing);
    info.head_dim = rotation.of.head_dim;
    info.rotary_dim = rotation.of.rotary_dim;
    info.q_rotary_offset = rotation.of.q_rotary_offset;
    info.k_rotary_offset = rotation.of.k_rotary_offset;
    info.rotates = &rotation.rotates;
    info.inv_freq = rotation.of.inv_freq.data();
    info.inv_freq_count = rotation.of.inv_freq.size();
    info.attention_factor = rotation.of.attention_factor;
    info.softmax_scale = rotation.of.softmax_scale;
    info.max_position = rotation.of.max_position;
    info.longest_seq_len = rotation.of.longest_seq_len;
    info.base = rotation.of.base;
    info.phase = rotation.of.phase.empty() ? nullptr : rotation.of.phase.data();
    info.phase_count = rotation.of.phase.size();
    info.head_groups = rotation.of.head_groups;
    for (std::uint32_t i = 0; i < max_windows; ++i)
        info.windows[i] = window_of(rotation.of.windows[i]);
    info.precision = vkrope_angle_precision(rotation.of.precision);
    info.rope_type = rotation.of.rope_type.c_str();
    info.warnings = rotation.warnings.data();
    info.warning_count = rotation.warnings.size();
    if (rotation.of.sections.axes != 0) info.sections = &rotation.sections;
    return info;
}

}  // namespace

namespace vkrope::c {

Status read_sections(const vkrope_sections* from, const char* name, Sections& sections) {
    vkrope_sections c;
    if (Status s = read_optional(from, name, c); !s) return s;
    sections.order = enum_from<SectionOrder>(c.order);
    if (sections.order > SectionOrder::sum)
        return error(Code::invalid_argument, "%s.order is %u: it must be a vkrope_section_order",
                     name, unsigned(sections.order));
    sections.axes = c.axes;
    static_assert(VKROPE_MAX_AXES == max_axes);
    std::copy(std::begin(c.pairs), std::end(c.pairs), sections.pairs);
    sections.leftover_axis = c.leftover_axis;
    return {};
}

std::unique_ptr<vkrope_rotation> wrap(Rotation&& rotation) {
    auto handle = std::make_unique<vkrope_rotation>();
    handle->of = std::move(rotation);
    for (const std::string& warning : handle->of.warnings)
        handle->warnings.push_back(warning.c_str());
    handle->rotates = handle->of.rotates;
    const Sections& sections = handle->of.sections;
    handle->sections.struct_size = sizeof handle->sections;
    handle->sections.order = vkrope_section_order(sections.order);
    handle->sections.axes = sections.axes;
    std::copy(std::begin(sections.pairs), std::end(sections.pairs), handle->sections.pairs);
    handle->sections.leftover_axis = sections.leftover_axis;
    set_finish(*handle);
    return handle;
}

}  // namespace vkrope::c

vkrope_result vkrope_rotation_create(const vkrope_rotation_info* info, vkrope_rotation** rotation,
                                     vkrope_error* error) {
    return making(rotation, "rotation", error, [&]() -> Status {
        vkrope_rotation_info c;
        if (Status s = read(info, "info", c); !s) return s;
        Sections sections;
        if (Status s = read_sections(c.sections, "info.sections", sections); !s) return s;
        if (Status s = check(c, sections); !s) return s;
        Rotation made = to_cpp(c);
        made.sections = sections;
        *rotation = wrap(std::move(made)).release();
        return {};
    });
}

vkrope_result vkrope_rotation_get_info(const vkrope_rotation* rotation, vkrope_rotation_info* info,
                                       vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        return write(to_c(*rotation), "info", info);
    });
}

void vkrope_rotation_destroy(vkrope_rotation* rotation) {
    delete rotation;
}

uint32_t vkrope_row_channels(const vkrope_rotation* rotation, uint32_t rotary_offset) {
    return rotation ? row_channels(rotation->of, rotary_offset) : 0;
}

uint32_t vkrope_axis_of(const vkrope_sections* sections, uint32_t pair) {
    Sections read;
    return read_sections(sections, "sections", read) && read.axes <= max_axes ? axis_of(read, pair)
                                                                              : 0;
}

uint32_t vkrope_summed_axes(const vkrope_sections* sections) {
    Sections read;
    return read_sections(sections, "sections", read) && read.axes <= max_axes ? summed_axes(read)
                                                                              : 1;
}
