// SPDX-License-Identifier: MIT
#include "kernel/dispatch_shape.hpp"

#include <algorithm>

namespace vkrope {

namespace {

constexpr std::uint64_t divide_up(std::uint64_t value, std::uint64_t by) {
    return (value + by - 1) / by;
}

bool all_f32(const Width& width) {
    return width.head_dim == 0 || (width.in == Element::f32 && width.out == Element::f32);
}

// A unit must not straddle a window's borders, nor the middle of its pairs.
bool width_allows(const Windows& windows, const Width& width, std::uint32_t unit) {
    if (width.head_dim == 0) return true;
    std::uint32_t misfit = width.head_dim % unit;
    for (const Window& window : windows.of) {
        if (window.rotary_dim != 0) misfit |= (width.rotary_offset + window.offset) % unit | window.rotary_dim / 2 % unit;
    }
    return misfit == 0;
}

}  // namespace

std::uint32_t unit_elements(const KernelInfo& info, std::uint32_t access) noexcept {
    if (access == shader::access_narrow) return 1;
    return (access == shader::access_wide ? 4u : 1u) * (all_f32(info.q) && all_f32(info.k) ? 1u : 2u);
}

Windows windows_of(const KernelInfo& info) noexcept {
    Windows windows;
    if (info.windows[0].rotary_dim == 0) {
        windows.of[0] = {0, info.rotary_dim};
    } else {
        std::copy(info.windows, info.windows + max_windows, windows.of);
    }
    return windows;
}

namespace {

bool widths_allow_unit(const KernelInfo& info, std::uint32_t unit) {
    const Windows windows = windows_of(info);
    return width_allows(windows, info.q, unit) && width_allows(windows, info.k, unit);
}

}  // namespace

bool widths_allow(const KernelInfo& info, std::uint32_t access) noexcept {
    return widths_allow_unit(info, unit_elements(info, access));
}

bool strides_allow(std::uint32_t element_bytes, std::uint64_t offset_and_strides, std::uint32_t access) noexcept {
    if (access == shader::access_narrow) return true;
    return offset_and_strides % ((access == shader::access_wide ? 16 : 4) / element_bytes) == 0;
}

Variant variant_for(const KernelInfo& info, bool cpu, std::uint32_t access, bool many_heads,
                    const DispatchLimits& limits) noexcept {
    Variant variant{.access = access, .unit_elements = unit_elements(info, access)};
    const auto at_most = [&](std::uint32_t size) {
        return size < limits.workgroup_invocations ? size : limits.workgroup_invocations;
    };
    if (cpu) {
        // What a step costs beside its accesses is the same for several words as for one, but it takes longer to compile: for windows
        // that rule out wide access, not for the odd call whose strides do.
        if (access == shader::access_word && !widths_allow(info, shader::access_wide)) {
            while (widths_allow_unit(info, 2 * variant.unit_elements)) variant.unit_elements *= 2;
        }
        // 64 bytes or more side by side: a software device runs an invocation on one core, and a core fetches whole lines.
        const std::uint32_t unit_bytes = variant.unit_elements * (all_f32(info.q) && all_f32(info.k) ? 4 : 2);
        variant.heads_owned = 0;
        variant.units_owned = unit_bytes < 64 ? 64 / unit_bytes : 1;
        variant.workgroup_size = at_most(128);
    } else {
        variant.heads_owned = variant.heads_batch = many_heads ? 4 : 1;
        variant.workgroup_size = at_most(64);
    }
    return variant;
}

namespace {

// Of one row. A step moves two units; only a tensor that changes places has to move what is around its windows.
struct Steps {
    std::uint64_t rotating = 0, copying = 0;
};

Steps steps_of(const KernelInfo& info, const Variant& variant, const Width& width, bool in_place) {
    const std::uint64_t step = 2 * std::uint64_t{variant.unit_elements};
    return {info.rotary_dim / step, in_place ? 0 : divide_up(width.head_dim - info.rotary_dim, step)};
}

}  // namespace

std::uint64_t items_per_token(const KernelInfo& info, const Variant& variant, const Work& work) noexcept {
    const auto items = [&](const Width& width, std::uint32_t heads, bool in_place) -> std::uint64_t {
        if (heads == 0) return 0;
        const Steps steps = steps_of(info, variant, width, in_place);
        if (variant.heads_owned != 0) return (steps.rotating + steps.copying) * divide_up(heads, variant.heads_owned);
        return std::max(divide_up(steps.rotating, variant.units_owned), divide_up(steps.copying, shader::copies_owned));
    };
    const std::uint64_t q = items(info.q, work.q_heads, work.q_in_place), k = items(info.k, work.k_heads, work.k_in_place);
    return variant.heads_owned == 0 ? std::max(q, k) : q + k;
}

std::uint32_t most_heads(const KernelInfo& info, const Variant& variant) noexcept {
    if (variant.heads_owned != 0) return 65535;
    constexpr std::uint64_t iterations = 16384;  // of Q, and as many of K
    const auto copying = [&](const Width& width) {
        return width.head_dim == 0 ? 0 : steps_of(info, variant, width, false).copying;
    };
    const std::uint64_t items = divide_up(info.rotary_dim / (2 * std::uint64_t{variant.unit_elements}), variant.units_owned);
    const std::uint64_t share = divide_up(std::max(copying(info.q), copying(info.k)), items);
    return std::uint32_t(iterations / (variant.units_owned + std::min<std::uint64_t>(share, shader::copies_owned)));
}

std::uint64_t most_invocations(const Variant& variant, const DispatchLimits& limits) noexcept {
    // The shader counts invocations in 32 bits, the idle ones of the last row of workgroups too.
    constexpr std::uint64_t counted = std::uint64_t{1} << 32;
    const std::uint64_t groups = counted / variant.workgroup_size, columns = limits.workgroup_count[0];
    const std::uint64_t rows = std::min<std::uint64_t>(limits.workgroup_count[1], groups / columns);
    return (rows == 0 ? groups : rows * columns) * variant.workgroup_size;
}

DispatchShape shape_of(std::uint64_t invocations, std::uint32_t z, const Variant& variant, const DispatchLimits& limits) noexcept {
    const std::uint64_t groups = divide_up(invocations, variant.workgroup_size);
    DispatchShape shape;
    // Along x as far as it goes, the rest along y; the last row may reach past the end, which the shader checks.
    shape.groups[0] = std::uint32_t(std::min<std::uint64_t>(groups, limits.workgroup_count[0]));
    shape.groups[1] = std::uint32_t(divide_up(groups, shape.groups[0]));
    shape.groups[2] = z;
    return shape;
}

}  // namespace vkrope
