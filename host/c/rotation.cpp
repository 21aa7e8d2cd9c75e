// SPDX-License-Identifier: MIT
// Rotations for C: made of an info, read back as one.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "c/handles.hpp"
#include "defaults.hpp"
#include "status.hpp"
#include "vkrope/rotation_from.hpp"

using namespace vkrope;
using namespace vkrope::c;

namespace {

using ull = unsigned long long;  // what printf's %llu takes everywhere

Status check(const vkrope_rotation_info& info) {
    if (info.sections.order > VKROPE_SECTIONS_SUM) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "info.sections.order is %u: it must be a vkrope_section_order",
                     unsigned(info.sections.order));
    }
    if ((info.pairing == VKROPE_PAIRING_NONE && !info.no_rope) ||
        info.pairing > VKROPE_INTERLEAVED) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "info.pairing is %u: it must be a vkrope_pairing", unsigned(info.pairing));
    }
    if (info.precision > VKROPE_ANGLE_PRECISION_FLOAT32) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "info.precision is %u: it must be a vkrope_angle_precision",
                     unsigned(info.precision));
    }
    // Arrays come without their size, so a count that does not match rotary_dim must not be
    // trusted.
    const std::size_t count = info.inv_freq_count;
    const std::uint64_t phases = std::uint64_t{info.rotary_dim / 2} *
                                 std::max(info.head_groups, 1u);
    const std::uint64_t frequencies = phases * summed_axes(info.sections);
    if (count != frequencies && !(info.no_rope && count == 0)) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "info.inv_freq_count is %llu: it must be %s = %llu", ull{count},
                     frequencies == info.rotary_dim / 2
                         ? "rotary_dim / 2"
                         : "head_groups * sections.axes * rotary_dim / 2",
                     ull{frequencies});
    }
    if (Status s = not_null(info.inv_freq, "info.inv_freq"); !s && count != 0) return s;
    if (info.phase_count != 0 && info.phase_count != phases)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "info.phase_count is %llu: it must be 0, or head_groups * rotary_dim / 2 = "
                     "%llu",
                     ull{info.phase_count}, ull{phases});
    if (Status s = not_null(info.phase, "info.phase"); !s && info.phase_count != 0) return s;
    if (Status s = not_null(info.warnings, "info.warnings"); !s && info.warning_count != 0)
        return s;
    for (std::size_t i = 0; i < info.warning_count; ++i) {
        if (!info.warnings[i])
            return error(VKROPE_ERROR_INVALID_ARGUMENT, "info.warnings[%llu] is null", ull{i});
    }
    return {};
}

Rotation to_cpp(const vkrope_rotation_info& info) {
    Rotation rotation;
    rotation.pairing = info.pairing;
    rotation.head_dim = info.head_dim;
    rotation.rotary_dim = info.rotary_dim;
    rotation.q_rotary_offset = info.q_rotary_offset;
    rotation.k_rotary_offset = info.k_rotary_offset;
    rotation.inv_freq.assign(info.inv_freq, info.inv_freq + info.inv_freq_count);
    rotation.attention_factor = value_or(info.attention_factor, 1.0);
    rotation.softmax_scale = value_or(info.softmax_scale, 1.0);
    rotation.max_position = info.max_position;
    rotation.longest_seq_len = info.longest_seq_len;
    rotation.base = info.base;
    if (info.phase_count != 0) rotation.phase.assign(info.phase, info.phase + info.phase_count);
    rotation.head_groups = value_or(info.head_groups, 1u);
    std::copy(std::begin(info.windows), std::end(info.windows), rotation.windows);
    rotation.sections = info.sections;
    rotation.precision = info.precision;
    rotation.rotates = !info.no_rope;
    if (info.rope_type) rotation.rope_type = info.rope_type;
    rotation.warnings.assign(info.warnings, info.warnings + info.warning_count);
    return rotation;
}

vkrope_rotation_info to_c(const vkrope_rotation& rotation) {
    vkrope_rotation_info info = {};
    info.pairing = rotation.of.pairing;
    info.head_dim = rotation.of.head_dim;
    info.rotary_dim = rotation.of.rotary_dim;
    info.q_rotary_offset = rotation.of.q_rotary_offset;
    info.k_rotary_offset = rotation.of.k_rotary_offset;
    info.no_rope = !rotation.of.rotates;
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
    std::copy(std::begin(rotation.of.windows), std::end(rotation.of.windows), info.windows);
    info.sections = rotation.of.sections;
    info.precision = rotation.of.precision;
    info.rope_type = rotation.of.rope_type.c_str();
    info.warnings = rotation.warnings.data();
    info.warning_count = rotation.warnings.size();
    return info;
}

}  // namespace

namespace vkrope::c {

std::unique_ptr<vkrope_rotation> wrap(Rotation&& rotation) {
    auto handle = std::make_unique<vkrope_rotation>();
    handle->of = std::move(rotation);
    for (const std::string& warning : handle->of.warnings)
        handle->warnings.push_back(warning.c_str());
    return handle;
}

}  // namespace vkrope::c

vkrope_result vkrope_rotation_create(const vkrope_rotation_info* info, vkrope_rotation** rotation,
                                     vkrope_error* error) {
    return making(rotation, "rotation", error, [&]() -> Status {
        if (Status s = not_null(info, "info"); !s) return s;
        if (Status s = check(*info); !s) return s;
        *rotation = wrap(to_cpp(*info)).release();
        return {};
    });
}

vkrope_result vkrope_rotation_get_info(const vkrope_rotation* rotation, vkrope_rotation_info* info,
                                       vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        return hand_out(Result<vkrope_rotation_info>{{}, to_c(*rotation)}, info, "info");
    });
}

void vkrope_rotation_destroy(vkrope_rotation* rotation) {
    delete rotation;
}

uint32_t vkrope_row_channels(const vkrope_rotation* rotation, uint32_t rotary_offset) {
    return rotation ? row_channels(rotation->of, rotary_offset) : 0;
}

namespace {

bool is_valid(const vkrope_sections* sections) {
    return sections && sections->order <= VKROPE_SECTIONS_SUM && sections->axes <= max_axes;
}

}  // namespace

uint32_t vkrope_axis_of(const vkrope_sections* sections, uint32_t pair) {
    return is_valid(sections) ? axis_of(*sections, pair) : 0;
}

uint32_t vkrope_summed_axes(const vkrope_sections* sections) {
    return is_valid(sections) ? summed_axes(*sections) : 1;
}

vkrope_result vkrope_rotation_get_finish(const vkrope_rotation* rotation,
                                         vkrope_model_finish* finish, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        return hand_out(Result<ModelFinish>{{}, rotation->of.finish}, finish, "finish");
    });
}

vkrope_result vkrope_rotation_from_ggml(const vkrope_ggml_rope* rope, vkrope_rotation** rotation,
                                        vkrope_error* error) {
    return making(rotation, "rotation", error, [&]() -> Status {
        if (Status s = not_null(rope, "rope"); !s) return s;
        Result<Rotation> made = rotation_from_ggml(*rope);
        if (made) *rotation = wrap(std::move(made.value)).release();
        return made.status;
    });
}
