// SPDX-License-Identifier: MIT
#include "kernel/geometry/geometry.hpp"

#include <algorithm>

#include "base/meaning.hpp"
#include "kernel/geometry/ops.hpp"

namespace vkrope {

namespace {

// Returns whether a tensor is f32. Quantised types count as f32, as they have no units.
bool all_f32(const TensorInfo& format) {
    const auto is_f32 = [](Element element) {
        return element == VKROPE_F32 || is_quantised(element);
    };
    return format.head_dim == 0 ||
           (is_f32(format.in) && is_f32(format.out) && format.second == VKROPE_F32);
}

bool all_f32(const KernelInfo& info) {
    return !any_tensor(
        info, [](const TensorInfo& tensor) { return !all_f32(tensor); });
}

// Returns whether no unit of the channels that do not rotate extends across a border of a window.
bool format_allows_copies(const Windows& windows, const TensorInfo& format, std::uint32_t unit) {
    if (format.head_dim == 0) return true;
    std::uint32_t misfit = format.head_dim % unit;
    for (const Window& window : windows.of)
        if (window.rotary_dim != 0)
            misfit |= (format.rotary_offset + window.offset) % unit | window.rotary_dim % unit;
    return misfit == 0;
}

// Returns whether no unit extends across a border or the middle of a window, or across a border of
// the part of a row that a norm takes.
bool format_allows(const Windows& windows, const TensorInfo& format, std::uint32_t unit) {
    if (format.head_dim == 0) return true;
    const Norm& norm = format.ops.norm;
    std::uint32_t misfit = norm.first_channel % unit | norm.channels % unit;
    for (const Window& window : windows.of) misfit |= window.rotary_dim / 2 % unit;
    return misfit == 0 && format_allows_copies(windows, format, unit);
}

// Returns the words that an access reads or writes. A narrow access has one element.
std::uint32_t words_of(std::uint32_t access) {
    return access == shader::access_wide ? 4 : access == shader::access_pair ? 2 : 1;
}

}  // namespace

std::uint32_t unit_elements(const KernelInfo& info, std::uint32_t access) noexcept {
    if (access == shader::access_narrow) return 1;
    return words_of(access) * (all_f32(info) ? 1u : 2u);
}

Windows windows_of(const KernelInfo& info) noexcept {
    Windows windows;
    if (info.windows[0].rotary_dim == 0)
        windows.of[0] = {0, info.rotary_dim};
    else
        std::copy(info.windows, info.windows + max_windows, windows.of);
    return windows;
}

namespace {

bool formats_allow_unit(const KernelInfo& info, std::uint32_t unit) {
    const Windows windows = windows_of(info);
    return format_allows(windows, info.tensor[Q], unit) &&
           format_allows(windows, info.tensor[K], unit) && format_allows({}, info.tensor[V], unit);
}

}  // namespace

bool formats_allow(const KernelInfo& info, std::uint32_t access) noexcept {
    return formats_allow_unit(info, unit_elements(info, access));
}

bool strides_allow(std::uint32_t element_bytes, std::uint64_t offset_and_strides,
                   std::uint32_t access) noexcept {
    if (access == shader::access_narrow) return true;
    return offset_and_strides % (4 * words_of(access) / element_bytes) == 0;
}

namespace {

// Returns whether a row has channels that do not rotate.
bool copies_channels(const KernelInfo& info) {
    return any_tensor(
        info,
        [&](const TensorInfo& tensor) {
            const bool of_v = &tensor == &info.tensor[V];
            return tensor.head_dim != 0 && (of_v || tensor.head_dim != info.rotary_dim);
        });
}

std::uint32_t rotating_chunks(const KernelInfo& info, std::uint32_t unit) {
    return info.rotary_dim / (2 * unit);
}

// Counts the copied chunks in the row with the most pass-through channels.
std::uint64_t copying_chunks(const KernelInfo& info, std::uint32_t unit) {
    std::uint32_t channels = info.tensor[V].head_dim;
    for (const TensorInfo& format : {info.tensor[Q], info.tensor[K]})
        if (format.head_dim != 0) channels = std::max(channels, format.head_dim - info.rotary_dim);
    return divide_up(channels, 2 * std::uint64_t{unit});
}

// Computes the lanes for a row if each lane rotates `together` chunks. A lane copies at most 64
// chunks, because llvmpipe limits loop iterations, or `together` chunks if nothing rotates.
std::uint64_t lanes_wanted(const KernelInfo& info, const Geometry& geometry,
                           std::uint32_t together) {
    constexpr std::uint32_t max_copies = 64;
    const std::uint64_t rotating = rotating_chunks(info, geometry.unit_elements);
    return std::max<std::uint64_t>({1, divide_up(rotating, together),
                                    divide_up(copying_chunks(info, geometry.copy_elements),
                                              rotating == 0 ? together : max_copies)});
}

// Returns the lanes that subgroups of 32 lanes keep busy, in percent.
std::uint32_t busy_percent(std::uint32_t lanes) {
    return lanes * 100 / std::uint32_t(divide_up(lanes, 32) * 32);
}

std::uint32_t power_of_two_up_to(std::uint32_t value) {
    std::uint32_t power = 1;
    while (power <= value / 2) power *= 2;
    return power;
}

// Gives each lane 64 adjacent bytes, because a software device runs a lane on one core, and a core
// fetches whole cache lines. It runs 4 or 8 neighbouring lanes in lockstep, so all lanes first
// rotate and then copy, with equal shares.
Geometry on_processor(const KernelInfo& info, Geometry geometry, const DispatchLimits& limits) {
    // A chunk of several words has the same overhead as one of a single word, but takes longer to
    // compile. This is worth it if the windows rule out wide access, but not for the rare calls
    // whose strides do.
    std::uint32_t& unit = geometry.unit_elements;
    if (geometry.access == shader::access_word && !formats_allow(info, shader::access_wide))
        while (formats_allow_unit(info, 2 * unit)) unit *= 2;
    geometry.copy_elements = unit;
    const std::uint32_t unit_bytes = unit * (all_f32(info) ? 4 : 2);
    geometry.chunks_together = unit_bytes < 64 ? 64 / unit_bytes : 1;
    const std::uint32_t lanes = std::min(limits.workgroup_invocations, 128u);
    const std::uint64_t wanted = lanes_wanted(info, geometry, geometry.chunks_together);
    geometry.chunk_lanes = std::uint32_t(std::min<std::uint64_t>(wanted, lanes));
    geometry.group_tokens = lanes / geometry.chunk_lanes;
    return geometry;
}

// Computes the number of heads per lane for a tensor with `heads` heads (0: unknown).
std::uint32_t batch_of(std::uint32_t heads, std::uint32_t head_lanes, std::uint32_t otherwise,
                       std::uint32_t most) {
    return heads == 0 ? otherwise
                      : std::uint32_t(std::min<std::uint64_t>(divide_up(heads, head_lanes), most));
}

// Returns the first number unless it is 0, else the second one.
std::uint32_t either(std::uint32_t tuned, std::uint32_t otherwise) {
    return tuned != 0 ? tuned : otherwise;
}

// Sets the tokens of a workgroup if they, or its lanes, are tuned.
void set_group_tokens(const Tuning& tuning, const DispatchLimits& limits, Geometry& geometry) {
    if ((tuning.group_tokens | tuning.group_lanes) == 0) return;
    const std::uint32_t most = std::min(limits.workgroup_invocations,
                                        either(tuning.group_lanes, 128));
    const std::uint32_t taken = geometry.chunk_lanes * geometry.head_lanes;
    geometry.group_tokens = std::min(either(tuning.group_tokens, geometry.group_tokens),
                                     power_of_two_up_to(std::max(most / taken, 1u)));
}

// Computes the maximum number of heads per lane for many tokens.
std::uint32_t heads_per_lane(const KernelInfo& info, const DispatchLimits& limits) {
    const TensorInfo& row = info.tensor[info.tensor[Q].head_dim != 0 ? Q : K];
    const bool copies = info.rotary_dim != 0 && row.head_dim >= 2 * info.rotary_dim;
    return either(info.tuning.lane_heads,
                  copies && limits.batch == max_batch ? 2 * max_batch : limits.batch);
}

// Gives each workgroup one token, with its chunks and heads side by side, or several tokens if one
// token does not fill the workgroup. 64 lanes are one or two subgroups on most GPUs. 128 lanes move
// more bytes at a time if each lane still has its maximum number of heads, and that is above one.
Geometry on_gpu(const KernelInfo& info, Geometry geometry, bool many_tokens,
                const DispatchLimits& limits) {
    const std::uint64_t wanted = lanes_wanted(info, geometry, 1);
    const std::uint32_t most = many_tokens ? heads_per_lane(info, limits) : 1;
    const bool all_known = (info.tensor[Q].head_dim == 0 || info.tensor[Q].heads != 0) &&
                           (info.tensor[K].head_dim == 0 || info.tensor[K].heads != 0);
    std::uint32_t heads = std::max(info.tensor[Q].heads, info.tensor[K].heads);
    const bool fills_128 = most > 1 && heads * std::min<std::uint64_t>(wanted, 128) >=
                                           128 * std::uint64_t{most};
    const std::uint32_t lanes = std::min(limits.workgroup_invocations,
                                         either(info.tuning.group_lanes, fills_128 ? 128u : 64u));
    heads = std::min(heads, lanes);
    geometry.units_apart = true;
    geometry.chunk_lanes = std::uint32_t(divide_up(wanted, divide_up(wanted, lanes)));
    geometry.head_lanes = power_of_two_up_to(
        std::min(lanes / geometry.chunk_lanes, all_known ? 2 * heads - 1 : 8));
    std::uint32_t taken = geometry.chunk_lanes * geometry.head_lanes;
    const std::uint32_t allowed = std::min(limits.workgroup_invocations, 128u);
    while (info.tuning.group_lanes == 0 && 2 * taken <= allowed && geometry.head_lanes < heads &&
           busy_percent(2 * taken) > busy_percent(taken)) {
        geometry.head_lanes *= 2;
        taken *= 2;
    }
    if (taken < 32) geometry.group_tokens = power_of_two_up_to(lanes / taken);
    set_group_tokens(info.tuning, limits, geometry);
    // If the number of heads is unknown, K is assumed to have few.
    geometry.q_batch = batch_of(info.tensor[Q].heads, geometry.head_lanes, most, most);
    geometry.k_batch = batch_of(info.tensor[K].heads, geometry.head_lanes, 1, most);
    if (info.tensor[Q].head_dim == 0) geometry.q_batch = 1;
    if (info.tensor[K].head_dim == 0) geometry.k_batch = 1;
    geometry.few_registers = limits.batch == 1;
    return geometry;
}

// ---- Kernels with ops ----

// Counts the chunks of the longest row.
std::uint64_t row_chunks(const KernelInfo& info, std::uint32_t unit) {
    std::uint64_t chunks = divide_up(info.tensor[V].head_dim, 2 * std::uint64_t{unit});
    for (const TensorInfo& format : {info.tensor[Q], info.tensor[K]}) {
        if (format.head_dim == 0) continue;
        chunks = std::max(
            chunks, rotating_chunks(info, unit) +
                        divide_up(format.head_dim - info.rotary_dim, 2 * std::uint64_t{unit}));
    }
    return chunks;
}

bool has_norm_of_token(const KernelInfo& info) {
    return any_tensor(
        info,
        [](const TensorInfo& tensor) { return tensor.ops.norm.span == VKROPE_NORM_SPAN_TOKEN; });
}

// Gives a lane all rows of a token. It computes their norms, and then each chunk in all heads.
Geometry owned(const KernelInfo& info, Geometry geometry, const DispatchLimits& limits) {
    constexpr std::uint32_t max_held = 64;
    geometry.ops = shader::ops_owned;
    geometry.norms_held = max_held;
    geometry.chunk_lanes = geometry.head_lanes = geometry.chunks_together = 1;
    geometry.units_apart = false;
    geometry.q_batch = geometry.k_batch = 0;
    geometry.group_tokens = std::min(limits.workgroup_invocations, 128u);
    set_group_tokens(info.tuning, limits, geometry);
    if (geometry.access == shader::access_word && !formats_allow(info, shader::access_wide))
        while (formats_allow_unit(info, 2 * geometry.unit_elements)) geometry.unit_elements *= 2;
    geometry.copy_elements = geometry.unit_elements;
    return geometry;
}

// Lets neighbouring lanes share a row. A workgroup has all heads that a norm treats as one row. On
// a CPU, a lane has a whole row, so that it waits for no other lane. On a GPU with many tokens, a
// lane processes several heads in turn, which share angles and parameters.
Geometry shared(const KernelInfo& info, Geometry geometry, bool processor,
                const DispatchLimits& limits) {
    const bool whole_token = has_norm_of_token(info);
    const std::uint32_t most = processor ? 32
                                         : either(info.tuning.group_lanes, whole_token ? 128 : 64);
    const std::uint32_t lanes = std::min(limits.workgroup_invocations, most);
    const std::uint64_t wanted = processor ? 1 : row_chunks(info, geometry.unit_elements);
    const std::uint32_t heads = std::max(
        {info.tensor[Q].heads, info.tensor[K].heads, info.tensor[V].heads});
    geometry.ops = shader::ops_shared;
    geometry.units_apart = !processor;
    geometry.q_batch = geometry.k_batch = 1;
    geometry.chunk_lanes = std::uint32_t(divide_up(wanted, divide_up(wanted, lanes)));
    geometry.head_lanes = power_of_two_up_to(
        std::min(lanes / geometry.chunk_lanes, heads != 0 ? 2 * std::min(heads, lanes) - 1 : 8));
    const std::uint32_t taken = geometry.chunk_lanes * geometry.head_lanes;
    if (taken < 32) geometry.group_tokens = power_of_two_up_to(lanes / taken);
    set_group_tokens(info.tuning, limits, geometry);
    if (whole_token) geometry.heads_together = std::uint32_t(divide_up(heads, geometry.head_lanes));
    // To fit in shared memory, reduces the tokens, then the heads per exchange, then the heads.
    const auto too_many = [&] { return shared_bytes(info, geometry) > max_shared_bytes; };
    while (geometry.group_tokens > 1 && too_many()) geometry.group_tokens /= 2;
    while (geometry.heads_together > 1 && too_many()) --geometry.heads_together;
    while (geometry.head_lanes > 1 && too_many()) geometry.head_lanes /= 2;
    const bool may_own = !stores_together(info);  // otherwise create() returns an error
    if (too_many() && may_own) return owned(info, geometry, limits);
    if (!processor && !whole_token) geometry.rounds = either(info.tuning.lane_heads, limits.batch);
    if (is_tuned(info.tuning)) geometry.enough_lanes = 0;
    // Gaps speed up lanes that read a row together. Rows have gaps if shared memory suffices.
    geometry.staged_gaps = geometry.chunk_lanes > 1 && !may_own;
    geometry.staged_gaps = geometry.staged_gaps && !too_many();
    return geometry;
}

}  // namespace

Geometry geometry_for(const KernelInfo& info, std::uint32_t access, Load load,
                      const DispatchLimits& limits) noexcept {
    Geometry geometry = {};
    geometry.access = geometry.copy_access = access;
    if (load != Load::processor && !has_ops(info)) {
        const Windows windows = windows_of(info);
        const auto rotated = [&](std::uint32_t unit) {
            return format_allows(windows, info.tensor[Q], unit) &&
                   format_allows(windows, info.tensor[K], unit);
        };
        const auto copied = [&](std::uint32_t unit) {
            return format_allows_copies(windows, info.tensor[Q], unit) &&
                   format_allows_copies(windows, info.tensor[K], unit) &&
                   format_allows_copies({}, info.tensor[V], unit);
        };
        while (!rotated(unit_elements(info, geometry.access))) ++geometry.access;
        while (!copied(unit_elements(info, geometry.copy_access))) ++geometry.copy_access;
        if (!copies_channels(info)) geometry.copy_access = geometry.access;
        if (info.rotary_dim == 0) geometry.access = geometry.copy_access;
    }
    geometry.unit_elements = unit_elements(info, geometry.access);
    geometry.copy_elements = unit_elements(info, geometry.copy_access);
    if (has_ops(info))
        return load == Load::processor && !stores_together(info)
                   ? owned(info, geometry, limits)
                   : shared(info, geometry, load == Load::processor, limits);
    return load == Load::processor ? on_processor(info, geometry, limits)
                                   : on_gpu(info, geometry, load == Load::many_tokens, limits);
}

std::uint32_t max_heads(const KernelInfo& info, const Geometry& geometry,
                        const DispatchLimits& limits) noexcept {
    if (geometry.q_batch != 0) {
        const std::uint64_t group = std::uint64_t{geometry.head_lanes} *
                                    std::min(geometry.q_batch, geometry.k_batch);
        return std::uint32_t(std::min<std::uint64_t>(65535, group * limits.workgroup_count[1]));
    }
    if (geometry.ops == shader::ops_owned) {
        const Iterations taken = owned_iterations(info, geometry);
        const std::uint64_t left = max_iterations - std::min(max_iterations, taken.row);
        return std::uint32_t(std::clamp<std::uint64_t>(left / taken.head, 1, 65535));
    }
    const std::uint64_t chunks = divide_up(rotating_chunks(info, geometry.unit_elements),
                                           geometry.chunk_lanes * geometry.chunks_together);
    const std::uint64_t copies = divide_up(copying_chunks(info, geometry.copy_elements),
                                           geometry.chunk_lanes);
    return std::uint32_t(
        std::max<std::uint64_t>(1, max_iterations / (chunks * geometry.chunks_together + copies)));
}

std::uint64_t max_tokens(const Geometry& geometry, const DispatchLimits& limits) noexcept {
    return std::uint64_t{geometry.group_tokens} * limits.workgroup_count[0];
}

DispatchShape shape_of(const Geometry& geometry, const Work& work) noexcept {
    const auto head_groups = [&](std::uint32_t heads, std::uint32_t batch) {
        return batch == 0 ? 1 : divide_up(heads, std::uint64_t{geometry.head_lanes} * batch);
    };
    DispatchShape shape;
    shape.groups[0] = std::uint32_t(divide_up(work.tokens, geometry.group_tokens));
    shape.groups[1] = std::uint32_t(std::max(head_groups(work.q_heads, geometry.q_batch),
                                             head_groups(work.k_heads, geometry.k_batch)));
    shape.groups[2] = work.z;
    const std::uint64_t fewer = divide_up(shape.groups[1], geometry.rounds);
    const std::uint64_t lanes = std::uint64_t{shape.groups[0]} * shape.groups[2] *
                                geometry.workgroup_size();
    if (fewer * lanes >= geometry.enough_lanes) shape.groups[1] = std::uint32_t(fewer);
    return shape;
}

std::uint64_t max_in_a_row(std::uint32_t workgroup_size, const DispatchLimits& limits) noexcept {
    // The index of an invocation has 32 bits. Idle invocations in the last row of workgroups have
    // an index, too.
    constexpr std::uint64_t counted = std::uint64_t{1} << 32;
    const std::uint64_t groups = counted / workgroup_size, columns = limits.workgroup_count[0];
    const std::uint64_t rows = std::min<std::uint64_t>(limits.workgroup_count[1], groups / columns);
    return (rows == 0 ? groups : rows * columns) * workgroup_size;
}

DispatchShape shape_in_a_row(std::uint64_t invocations, std::uint32_t workgroup_size,
                             const DispatchLimits& limits) noexcept {
    const std::uint64_t groups = divide_up(invocations, workgroup_size);
    DispatchShape shape;
    // Fills x up to its limit, then y. The last row may reach past the end, which the shader
    // checks.
    shape.groups[0] = std::uint32_t(std::min<std::uint64_t>(groups, limits.workgroup_count[0]));
    shape.groups[1] = std::uint32_t(divide_up(groups, shape.groups[0]));
    shape.groups[2] = 1;
    return shape;
}

}  // namespace vkrope
