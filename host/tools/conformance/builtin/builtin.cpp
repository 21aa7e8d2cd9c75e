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
        {"element types and rounding", "elements", add_elements},
        {"positions", "positions", add_positions},
        {"angle sources", "angles", add_angles},
        {"rows far apart", "offsets", add_offsets},
        {"chained calls", "chains", add_chains},
        {"100 identical replays", "replays", add_replays},
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
