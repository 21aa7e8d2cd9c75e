// SPDX-License-Identifier: MIT
#include "conformance/builtin/builtin.hpp"

#include "conformance/builtin/check.hpp"

namespace vkrope::conformance {

std::vector<Group> builtin_groups(const Extent& extent) {
    struct Source {
        const char *name, *prefix;
        void (*add)(Checks&);
    };
    constexpr Source sources[] = {
        {"arithmetic", "arithmetic", add_arithmetic},
        {"pairings", "pairings", add_pairings},
        {"element types and rounding", "elements", add_elements},
        {"layouts", "layouts", add_layouts},
        {"positions", "positions", add_positions},
        {"axes", "axes", add_axes},
        {"angle sources", "angles", add_angles},
        {"phases, sums, head groups, channels", "turns", add_turns},
        {"limits and splitting", "limits", add_limits},
        {"rows far apart", "offsets", add_offsets},
        {"variants of the shader", "variants", add_variants},
        {"in place and guard zones", "in_place", add_in_place},
        {"V beside Q and K", "values", add_values},
        {"norms, bias, clip and scale", "ops", add_ops},
        {"quantised outputs and Hadamard transforms", "store", add_stores},
        {"chained calls", "chains", add_chains},
        {"100 identical replays", "replays", add_replays},
        {"algebra", "algebra", add_algebra},
        {"the same bits", "same_bits", add_same_bits},
        {"random operations of each kind", "operations", add_operations},
        {"random operations", "random", add_random},
    };
    std::vector<Group> groups;
    for (const Source& source : sources) {
        groups.push_back({.name = source.name, .checks = {}});
        Checks checks(groups.back(), source.prefix, extent);
        source.add(checks);
    }
    return groups;
}

}  // namespace vkrope::conformance
