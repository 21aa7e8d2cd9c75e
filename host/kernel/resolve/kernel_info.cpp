// SPDX-License-Identifier: MIT
// Checks the properties that are fixed when a kernel is created.
#include "base/section_rules.hpp"
#include "base/window_rules.hpp"
#include "kernel/resolve/rules.hpp"
#include "kernel/vulkan/program.hpp"

namespace vkrope {

namespace {

Status check_format(const char* name, const TensorInfo& format, const KernelInfo& info,
                    bool rotates) noexcept {
    if (format.head_dim == 0) return {};
    if (!rotates && format.rotary_offset != 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.rotary_offset is %u: V is never rotated, so it must be 0", name,
                     format.rotary_offset);
    }
    if (format.head_dim < 2 || format.head_dim > max_head_dim) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.head_dim is %u: it must be 2 to 65534, or 0 for an absent tensor", name,
                     format.head_dim);
    }
    const std::uint64_t end = window_end(info.windows, info.rotary_dim);
    if (rotates && format.rotary_offset + end > format.head_dim) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.rotary_offset is %u: the last window ends at channel %llu, past head_dim "
                     "%u",
                     name, format.rotary_offset,
                     static_cast<unsigned long long>(format.rotary_offset + end), format.head_dim);
    }
    if (format.in > VKROPE_BF16)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.in is %u: it must be f32, f16 or bf16",
                     name, unsigned(format.in));
    if (Status s = check_enumerator(name, "out", format.out, VKROPE_Q5_1); !s) return s;
    if (format.head_dim % block_channels(format.out) != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.head_dim is %u: with blocks of 32 channels as %s.out it must be a "
                     "multiple of 32",
                     name, format.head_dim, name);
    return {};
}

Status check_axes(const KernelInfo& info) noexcept {
    const Sections& sections = info.sections;
    const bool several = info.positions == VKROPE_POSITIONS_AXIS_IDS;
    if (several && sections.axes == 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "sections.axes is 0: with VKROPE_POSITIONS_AXIS_IDS it must be 2 to %u",
                     max_axes);
    if (!several && sections.axes != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "sections.axes is %u: positions is %u, not VKROPE_POSITIONS_AXIS_IDS, so it "
                     "must be 0",
                     sections.axes, unsigned(info.positions));
    if (Status s = check_sections("", sections); !s) return s;
    if (sections.order != VKROPE_SECTIONS_SUM || info.angles == VKROPE_ANGLES_COMPUTED) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "sections.order is sum: angles must be computed, but it is %u",
                 unsigned(info.angles));
}

// Checks the pairing, the number of rotated channels, and the angle source.
Status check_rotation(const KernelInfo& info) noexcept {
    if (info.pairing == VKROPE_PAIRING_NONE || info.pairing > VKROPE_INTERLEAVED)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "pairing is %u: it must be VKROPE_HALF_SPLIT or VKROPE_INTERLEAVED, or "
                     "rotary_dim, now %u, must be 0",
                     unsigned(info.pairing), info.rotary_dim);
    if (info.angles == VKROPE_ANGLES_AUTOMATIC)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "angles is VKROPE_ANGLES_AUTOMATIC: it must be "
                     "vkrope_angle_table_layout::source, which "
                     "vkrope_plan_angles chose");
    if (info.rotary_dim < 2 || info.rotary_dim % 2 != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "rotary_dim is %u: it must be even and at least 2, or 0 for a layer without "
                     "rotation",
                     info.rotary_dim);
    return {};
}

// Checks phases, head groups and angles of channels, which only some angle sources support.
Status check_angles(const KernelInfo& info) noexcept {
    const bool caller = info.angles == VKROPE_ANGLES_COS_SIN_CACHE;
    if (info.phase && caller)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "phase is VK_TRUE: a VKROPE_ANGLES_COS_SIN_CACHE contains whole angles, so it "
                     "must be VK_FALSE");
    if (info.channel_angles && !caller)
        return error(
            VKROPE_ERROR_INVALID_ARGUMENT,
            "channel_angles is VK_TRUE: angles must be VKROPE_ANGLES_COS_SIN_CACHE, but it is %u",
            unsigned(info.angles));
    if (info.channel_angles && info.windows[1].rotary_dim != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "windows[1].rotary_dim is %u: with channel_angles there must be one window",
                     info.windows[1].rotary_dim);
    if (info.head_groups == 0 || info.head_groups > 65535)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "head_groups is %u: it must be 1 to 65535",
                     info.head_groups);
    if (info.head_groups == 1) return {};
    if (info.angles != VKROPE_ANGLES_COMPUTED)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "head_groups is %u: angles must be computed, but it is %u", info.head_groups,
                     unsigned(info.angles));
    for (const TensorIndex t : {Q, K}) {
        const TensorInfo& of = info.tensor[t];
        if (of.ops.norm.span == VKROPE_NORM_SPAN_TOKEN)
            return error(VKROPE_ERROR_NOT_SUPPORTED,
                         "head_groups is %u: with a norm over a token (%s.ops) it must be 1",
                         info.head_groups, names_of[t].name);
        if (of.heads % info.head_groups != 0)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%s is %u: it must be a multiple of head_groups, %u", names_of[t].heads,
                         of.heads, info.head_groups);
    }
    return {};
}

}  // namespace

Status check_enumerator(const char* tensor, const char* field, std::uint32_t value,
                        std::uint32_t last) noexcept {
    if (value <= last) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s%s%s is %u: it must be at most %u",
                 tensor ? tensor : "", tensor ? "." : "", field, value, last);
}

Status check(const DeviceRef& device, const KernelInfo& info) noexcept {
    if (Status s = check(device); !s) return s;
    if (info.rotary_dim != 0) {
        if (Status s = check_rotation(info); !s) return s;
    }
    const struct {
        const char* field;
        std::uint32_t value, last;
    } enumerators[] = {{"angles", info.angles, VKROPE_ANGLES_COS_SIN_CACHE},
                       {"positions", info.positions, VKROPE_POSITIONS_AXIS_IDS},
                       {"pairing_out", info.pairing_out, VKROPE_INTERLEAVED},
                       {"conversion", info.conversion, VKROPE_CONVERSION_INTEGER},
                       {"mapping", info.mapping, VKROPE_MAPPING_CPU},
                       {"table", info.table, VKROPE_BF16}};
    for (const auto& [field, value, last] : enumerators)
        if (Status s = check_enumerator(nullptr, field, value, last); !s) return s;
    if (info.scatter_kv && info.tensor[K].head_dim == 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "scatter_kv is set: tensor[1].head_dim must then not be 0");
    if (info.tensor[Q].head_dim == 0 && info.tensor[K].head_dim == 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "tensor[0].head_dim and tensor[1].head_dim are both 0: there is nothing to "
                     "%s",
                     info.rotary_dim != 0 ? "rotate" : "do; a V alone can be K");
    if (Status s = check_windows("", info.windows, info.rotary_dim); !s) return s;
    if (Status s = check_unused(info); !s) return s;
    if (Status s = check_axes(info); !s) return s;
    if (Status s = check_angles(info); !s) return s;
    for (const TensorIndex t : every_tensor)
        if (Status s = check_format(names_of[t].name, info.tensor[t], info, t != V); !s) return s;
    return check_ops(info);
}

}  // namespace vkrope
