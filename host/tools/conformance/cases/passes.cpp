// SPDX-License-Identifier: MIT
#include "conformance/cases/passes.hpp"

#include <algorithm>

namespace vkrope::conformance {
namespace {

Sections library_sections(const SectionsCase& sections, std::uint32_t axes) {
    Sections made;
    made.order = sections.mode == SectionMode::interleaved ? VKROPE_SECTIONS_INTERLEAVED
                                                           : VKROPE_SECTIONS_SEQUENTIAL;
    made.leftover_axis = made.order == VKROPE_SECTIONS_INTERLEAVED ? sections.leftover_axis : 0;
    std::size_t used = sections.sizes.size();  // an axis after the last pair needs no positions
    while (sections.sizes[used - 1] == 0) {
        --used;
    }
    if (made.order == VKROPE_SECTIONS_INTERLEAVED) {
        used = std::max<std::size_t>({used, 3, made.leftover_axis + std::size_t{1}});
    }
    if (used > max_axes) {
        unsupported("sections over {} axes; the library has {}", used, max_axes);
    }
    if (used > axes) {
        wrong_file("sections over {} axes; the positions have {}", used, axes);
    }
    std::copy_n(sections.sizes.begin(), std::min(used, sections.sizes.size()), made.pairs);
    made.axes = static_cast<std::uint32_t>(used);
    return made;
}

/// Returns true if one kernel supports all the windows: they are ascending and disjoint.
bool in_order(const std::vector<WindowCase>& windows) {
    const auto follows = [](const WindowCase& a, const WindowCase& b) {
        return b.offset < a.offset + a.rotary_dim;
    };
    return windows.size() <= vkrope::max_windows &&
           std::adjacent_find(windows.begin(), windows.end(), follows) == windows.end();
}

std::vector<Pass> window_passes(const std::vector<WindowCase>& windows, std::uint32_t axes) {
    for (const WindowCase& window : windows) {
        if (window.axis >= axes) {
            wrong_file("a window of axis {}; the positions have {}", window.axis, axes);
        }
    }
    const std::uint32_t first = windows.front().axis;
    if (in_order(windows)) {
        if (std::all_of(windows.begin(), windows.end(),
                        [first](const WindowCase& window) { return window.axis == first; })) {
            return {{.windows = windows, .axis = first, .sections = {}}};
        }
        Pass together = {.windows = windows, .axis = std::nullopt, .sections = {}};
        for (const WindowCase& window :
             windows) {  // the sections are the windows, with one axis each, counted from 0
            if (window.axis == together.sections.axes) {
                together.sections.pairs[together.sections.axes++] = window.rotary_dim / 2;
            }
        }
        if (together.sections.axes == windows.size()) {
            return {together};
        }
    }
    std::vector<Pass> passes;
    for (const WindowCase& window : windows) {
        passes.push_back({.windows = {window}, .axis = window.axis, .sections = {}});
    }
    return passes;
}

}  // namespace

std::vector<Pass> passes_of(const CaseDescription& description, const CasePositions& positions) {
    if (!description.windows.empty()) {
        if (description.sections) {
            unsupported("sections together with windows");
        }
        return window_passes(description.windows, positions.axes);
    }
    Pass pass = {
        .windows = {{.offset = description.rotary_offset, .rotary_dim = description.rotary_dim}},
        .axis = std::nullopt,
        .sections = {}};
    if (positions.source == VKROPE_POSITIONS_AXIS_IDS) {
        if (!description.sections && positions.axes != 1) {
            unsupported("positions on {} axes without sections", positions.axes);
        }
        if (description.sections) {
            pass.sections = library_sections(*description.sections, positions.axes);
        }
        if (pass.sections.axes < 2) {  // all pairs use one axis
            pass.sections = {};
            pass.axis = 0;
        }
    }
    return {pass};
}

}  // namespace vkrope::conformance
