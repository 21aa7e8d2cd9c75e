// SPDX-License-Identifier: MIT
// Checks the properties that are fixed when a kernel is created.
#include <cstring>

#include "base/defaults.hpp"
#include "base/parameter_layout.hpp"
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
    if (Status s = check_enumerator(name, "in", format.in, VKROPE_INT4); !s) return s;
    if (&format == &info.tensor[Q] && is_quantised(format.in))
        return error(
            VKROPE_ERROR_INVALID_ARGUMENT,
            "%s.in is %s: the input of Q must be f32, f16 or bf16; the type that is stored is out, "
            "and only K and V are read from a cache",
            name, element_name(format.in));
    if (Status s = check_enumerator(name, "out", format.out, VKROPE_INT4); !s) return s;
    const struct {
        const char* field;
        std::uint32_t channels;
    } blocks[] = {{"in", block_channels(format.in)}, {"out", block_channels(format.out)}};
    for (const auto& [field, channels] : blocks)
        if (format.head_dim % channels != 0)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%s.head_dim is %u: with blocks of %u channels as %s.%s it must be a "
                         "multiple of %u",
                         name, format.head_dim, channels, name, field, channels);
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

// Checks the rows of a tensor that come from a cache.
Status check_read(const KernelInfo& info, TensorIndex index) noexcept {
    const char* const tensor = names_of[index].name;
    const TensorInfo& of = info.tensor[index];
    const Ops& ops = of.ops;
    if (index == Q && ops.hadamard_of_input != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.hadamard_of_input is %u: only K and V come from a cache", tensor,
                     ops.hadamard_of_input);
    if (index == Q && ops.scales_in)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.scales_in is true: only K and V come from a cache", tensor);
    if (ops.hadamard_of_input != 0 && ops.norm.span == VKROPE_NORM_SPAN_TOKEN)
        return error(VKROPE_ERROR_NOT_SUPPORTED,
                     "%s.ops.hadamard_of_input is %u: with a norm over a token it must be 0",
                     tensor, ops.hadamard_of_input);
    if (ops.hadamard_of_input != 0 && info.pairing_out != info.pairing)
        return error(VKROPE_ERROR_NOT_SUPPORTED,
                     "%s.ops.hadamard_of_input is %u: with another pairing_out it must be 0",
                     tensor, ops.hadamard_of_input);
    if (!moves_keys(info) || !has_second(of)) return {};
    return error(VKROPE_ERROR_NOT_SUPPORTED,
                 "%s.second_of is %u: a kernel whose rows come from a cache has one destination",
                 tensor, unsigned(of.second_of));
}

// Checks what a kernel whose rows come from a cache does not have.
Status check_moves(const KernelInfo& info) noexcept {
    if (info.gather_kv && info.tensor[K].head_dim == 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "gather_kv is VK_TRUE: tensor[1].head_dim must then not be 0");
    if (!moves_keys(info) || info.tensor[Q].head_dim == 0) return {};
    const char* const rule = "keys move without queries, so tensor[0].head_dim must be 0";
    if (info.gather_kv)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "gather_kv is VK_TRUE: %s", rule);
    for (const TensorIndex t : {K, V})
        if (is_quantised(info.tensor[t].in))
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%s.in is %s, as of rows in a cache: %s; the type that a cache stores is "
                         "out",
                         names_of[t].name, element_name(info.tensor[t].in), rule);
    const TensorIndex t = info.tensor[K].ops.hadamard_of_input != 0 ? K : V;
    return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.ops.hadamard_of_input is %u: %s",
                 names_of[t].name, info.tensor[t].ops.hadamard_of_input, rule);
}

}  // namespace

Status check_enumerator(const char* tensor, const char* field, std::uint32_t value,
                        std::uint32_t last) noexcept {
    if (value <= last) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s%s%s is %u: it must be at most %u",
                 tensor ? tensor : "", tensor ? "." : "", field, value, last);
}

namespace {

Status check_tuning(const KernelInfo& info) noexcept {
    const Tuning& tuning = info.tuning;
    if (is_tuned(tuning) && info.mapping == VKROPE_MAPPING_CPU)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "tuning is set: mapping must not be VKROPE_MAPPING_CPU");
    const struct {
        const char* field;
        std::uint32_t value, least, most;
        bool is_power;
    } ranges[] = {{"lane_heads", tuning.lane_heads, 1, 16, false},
                  {"group_lanes", tuning.group_lanes, 32, 1024, true},
                  {"group_tokens", tuning.group_tokens, 1, 1024, true}};
    for (const auto& [field, value, least, most, is_power] : ranges) {
        if (value == 0) continue;
        if (value < least || value > most || (is_power && (value & (value - 1)) != 0))
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "tuning.%s is %u: it must be 0 or %s%u to %u", field, value,
                         is_power ? "a power of two, " : "", least, most);
    }
    for (const TensorIndex t : every_tensor)
        if (tuning.lane_heads != 0 && info.tensor[t].ops.norm.span == VKROPE_NORM_SPAN_TOKEN)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "tuning.lane_heads is %u: %s.ops.norm.span is a token, so it must be 0",
                         tuning.lane_heads, names_of[t].name);
    return {};
}

}  // namespace

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
    if (Status s = check_moves(info); !s) return s;
    for (const TensorIndex t : every_tensor)
        if (Status s = check_read(info, t); !s) return s;
    if (Status s = check_tuning(info); !s) return s;
    return check_ops(info);
}

namespace {

// Returns the form in which all infos of one kernel are equal.
KernelInfo normalised(const KernelInfo& given) noexcept {
    KernelInfo info = vkrope::completed(given);
    if (info.windows[0].rotary_dim == 0) info.windows[0].rotary_dim = info.rotary_dim;
    for (TensorInfo& of : info.tensor) {
        Norm& norm = of.ops.norm;
        if (norm.kind != VKROPE_NORM_NONE) norm.channels = norm_channels(norm, of.head_dim);
        if (of.ops.store_scale_group == of.head_dim) of.ops.store_scale_group = 0;
        for (float* number : {&of.ops.norm.eps, &of.ops.clip, &of.ops.scale, &of.ops.scale_floor})
            if (*number == 0) *number = 0;  // -0
    }
    return info;
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

VkBool32 vkrope_kernel_info_equal(const vkrope_kernel_info* a, const vkrope_kernel_info* b) {
    static_assert(alignof(KernelInfo) == 4, "without padding: each field has 4 bytes");
    if (!a || !b) return VK_FALSE;
    const KernelInfo first = normalised(*a), second = normalised(*b);
    return std::memcmp(&first, &second, sizeof first) == 0;
}

uint64_t vkrope_kernel_info_hash(const vkrope_kernel_info* info) {
    if (!info) return 0;
    const KernelInfo of = normalised(*info);
    std::uint32_t words[sizeof of / 4];
    std::memcpy(words, &of, sizeof of);
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, word by word
    for (const std::uint32_t word : words) hash = (hash ^ word) * 0x100000001b3;
    return hash;
}
