// SPDX-License-Identifier: MIT
// Checks how a call is cut into tiles, in 128-bit arithmetic: every row is in exactly one tile, no
// tile exceeds the limits of bindings, dispatches and the shader, nothing is cut without need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernel/geometry/tiling.hpp"

namespace vkrope {

__extension__ typedef unsigned __int128 Wide;

// splitmix64, because drawing must cost less than the tested code.
struct Random {
    std::uint64_t state;
    std::uint64_t bits() {
        std::uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
    std::uint64_t below(std::uint64_t bound) { return bits() % bound; }
    bool one_in(std::uint64_t n) { return below(n) == 0; }
    // Returns a number from 1 to `most`. Small numbers are as likely as large numbers.
    std::uint64_t up_to(std::uint64_t most) {
        const int width = 64 - __builtin_clzll(most);
        return std::clamp<std::uint64_t>(bits() >> (64 - 1 - below(std::uint64_t(width))), 1, most);
    }
    template <class T, std::size_t n>
    T of(const T (&all)[n]) {
        return all[below(n)];
    }
};

// A call, and the device for which it is cut into tiles.
struct Tuple {
    KernelInfo info{.pairing = VKROPE_HALF_SPLIT, .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
    Geometry geometry;
    Work work;
    Counts whole;
    std::uint32_t group_heads = 1;
    View views[Bound::most];
    Bound bound;
    StorageLimits storage;
    DispatchLimits dispatch;

    Tuple() = default;
    Tuple(const Tuple&) = delete;

    Result<Tiling> tile() const {
        return vkrope::tile(info, geometry, whole, group_heads, bound, storage, dispatch);
    }
};

std::string text(const Tuple& t);

// Counts what the tuples contained.
struct Seen {
    std::uint64_t whole = 0, cut = 0, refused = 0, terabyte = 0, paged = 0, uneven = 0, tiles = 0;
};

// Returns what is wrong with the tiling of a tuple, or null if nothing is. Looks at some of its
// tiles if it has many.
const char* wrong_in(const Tuple& t, Random& random, Seen& seen);

}  // namespace vkrope
