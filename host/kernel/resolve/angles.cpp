// SPDX-License-Identifier: MIT
// Resolves the angle table of a call, and its attention factor.
#include <limits>

#include "base/defaults.hpp"
#include "base/status.hpp"
#include "kernel/resolve/rules.hpp"

namespace vkrope {

Status resolve_angles(const KernelInfo& info, const StorageLimits& limits, const Angles& angles,
                      ResolvedCall& resolved) noexcept {
    if (!angles.layout) return error(VKROPE_ERROR_INVALID_ARGUMENT, "angles.layout is null");
    if (angles.layout->source != info.angles) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "angles.layout->source is %u: the kernel was created for %u",
                     unsigned(angles.layout->source), unsigned(info.angles));
    }
    if (angles.layout->pairs != info.rotary_dim / 2) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "angles.layout->pairs is %u: rotary_dim %u has %u", angles.layout->pairs,
                     info.rotary_dim, info.rotary_dim / 2);
    }
    if (info.angles != VKROPE_ANGLES_COS_SIN_CACHE && angles.layout->sections != info.sections) {
        if (angles.layout->sections.axes != info.sections.axes) {
            return error(
                VKROPE_ERROR_INVALID_ARGUMENT,
                "angles.layout->sections.axes is %u: the kernel was created for sections of "
                "%u; make both from one rotation",
                angles.layout->sections.axes, info.sections.axes);
        }
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "angles.layout->sections differ from the kernel's in order, pairs or "
                     "leftover_axis; make both from one rotation");
    }
    if (!angles.layout->phase != !info.phase ||
        value_or(angles.layout->head_groups, 1u) != info.head_groups ||
        !angles.layout->channel_angles != !info.channel_angles) {
        return error(
            VKROPE_ERROR_INVALID_ARGUMENT,
            "angles.layout: its phase is %d, head_groups %u and channel_angles %d, but the "
            "kernel was created for %d, %u and %d; make both from one rotation",
            angles.layout->phase, angles.layout->head_groups, angles.layout->channel_angles,
            info.phase, info.head_groups, info.channel_angles);
    }
    if (info.angles == VKROPE_ANGLES_COMPUTED)
        return bind_uniforms("angles.buffer", angles, limits, resolved.table);
    if (info.angles == VKROPE_ANGLES_DIRECT_BUFFER) {
        return bind_words("angles.buffer", angles.buffer, angles.layout->bytes, limits,
                          resolved.table, resolved.table_offset);
    }
    if (info.angles == VKROPE_ANGLES_COS_SIN_CACHE) {
        if (angles.layout->element != info.table) {
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "angles.layout->element is %s: the kernel was created for a table of %s",
                         element_name(angles.layout->element), element_name(info.table));
        }
        const std::uint64_t bytes = angles.layout->bytes;
        if (Status s = bind_words("angles.buffer", angles.buffer, bytes, limits, resolved.table,
                                  resolved.table_offset);
            !s)
            return s;
        return bind_words("angles.sin", angles.sin, bytes, limits, resolved.table_sin,
                          resolved.table_sin_offset);
    }
    if (angles.view == VK_NULL_HANDLE)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "angles.view is null");
    return {};
}

Status resolve_gain(const Call& call, ResolvedCall& resolved) noexcept {
    const double factor = value_or(call.angles.layout->attention_factor, 1.0);
    if (!(factor > 0) || factor > std::numeric_limits<float>::max()) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "angles.layout->attention_factor is %g: it must be finite and above 0",
                     factor);
    }
    if (call.gain == VKROPE_GAIN_APPLY) return {};
    const double gain = call.gain == VKROPE_GAIN_OMIT ? 1 / factor : 1 / factor / factor;
    if (gain < double(std::numeric_limits<float>::min()) ||
        gain > double(std::numeric_limits<float>::max())) {
        return error(
            VKROPE_ERROR_INVALID_ARGUMENT,
            "angles.layout->attention_factor is %g: gain %u would multiply by %g, which is "
            "not a normal float",
            factor, unsigned(call.gain), gain);
    }
    resolved.gain = float(gain);
    return {};
}

}  // namespace vkrope
