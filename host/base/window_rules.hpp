// SPDX-License-Identifier: MIT
// Checks the windows of a row. The frequencies tier checks the windows of a rotation, and the
// kernel tier those of a kernel.
#pragma once

#include "base/status.hpp"

namespace vkrope {

// Returns the end of the last window of a row, which without windows is rotary_dim.
constexpr std::uint64_t window_end(const Window (&windows)[max_windows],
                                   std::uint32_t rotary_dim) noexcept {
    std::uint64_t end = rotary_dim;
    for (const Window& window : windows)
        if (window.rotary_dim != 0) end = std::uint64_t{window.offset} + window.rotary_dim;
    return end;
}

// Checks that windows are even, ascending and disjoint, and add up to rotary_dim. Windows that are
// all zero mean one window.
//
// of  prefix of the names of fields in errors: "" or "rotation."
inline Status check_windows(const char* of, const Window (&windows)[max_windows],
                            std::uint32_t rotary_dim) noexcept {
    using ull = unsigned long long;  // the type of %llu on every platform
    std::uint64_t end = 0, sum = 0;
    for (std::uint32_t i = 0; i < max_windows; ++i) {
        const Window& window = windows[i];
        if (window.rotary_dim == 0) {
            if (window.offset == 0) continue;
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%swindows[%u].rotary_dim is 0 but its offset is %u: both must be 0", of,
                         i, window.offset);
        }
        if (i > 0 && windows[i - 1].rotary_dim == 0)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%swindows[%u].rotary_dim is %u: windows[%u], before it, must be set too",
                         of, i, window.rotary_dim, i - 1);
        if (window.rotary_dim % 2 != 0)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%swindows[%u].rotary_dim is %u: it must be even", of, i,
                         window.rotary_dim);
        if (window.offset < end) {
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%swindows[%u].offset is %u: windows[%u] ends at %llu; they must not "
                         "overlap",
                         of, i, window.offset, i - 1, ull{end});
        }
        end = std::uint64_t{window.offset} + window.rotary_dim;
        sum += window.rotary_dim;
    }
    if (sum == 0 || sum == rotary_dim) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%srotary_dim is %u: the windows have %llu channels together", of, rotary_dim,
                 ull{sum});
}

}  // namespace vkrope
