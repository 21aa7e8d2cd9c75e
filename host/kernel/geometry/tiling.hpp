// SPDX-License-Identifier: MIT
// Splits a call into tiles that the device can bind and dispatch: pure arithmetic, no Vulkan call.
// A head row is never split.
#pragma once

#include <new>

#include "kernel/geometry/geometry.hpp"
#include "kernel/geometry/view.hpp"

namespace vkrope {

// Tiles of one size, except the last in each direction.
struct Tiling {
    Counts whole;  // counts of the call
    Counts tile;   // counts of the largest tile; batch or groups is 1, and z counts the other
    bool heads_outer =
        false;  // heads vary more slowly than tokens, so that the tiles' outputs ascend
    std::uint32_t sources = 1;  // tiles of a source, for each of which all tiles are repeated

    std::uint64_t count() const noexcept;
    Tile at(std::uint64_t index) const noexcept;
};

// Pages of a cache, and rows of a page, that a call reads at other slots than it writes: of the
// cache, and of a tile.
struct Source {
    std::uint32_t pages, rows, tile_pages, tile_rows;

    // Returns `tile`, which is tiling.at(index), with the pages and rows that it reads.
    Tile at(const Tiling& tiling, std::uint64_t index, Tile tile) const noexcept;
};

// Views that are bound for a tensor: input and output and, if present, ids, slots, factors of
// tokens, computed scales and a second destination. Each must fit in maxStorageBufferRange.
struct Bound {
    Bound() noexcept {}

    static constexpr std::uint32_t most = 9;
    const char* names[most];
    const View* views[most];
    std::uint32_t count = 0;
    bool packed_tokens = false;  // one view is [batch, tokens], without strides in the shader
    // Views whose tiles begin at multiples of some bytes.
    struct Aligned {
        const char* name;
        const View* view;
        VkDeviceSize multiple;
        bool of_source;
    } aligned[2];
    std::uint32_t aligned_count = 0;
    // A cache that is read at other slots than are written, and its scales.
    struct SourceView {
        const char* name;
        const View* view;
    } source[2];
    std::uint32_t source_count = 0;
    // Views that exist only here, the first kept_count of them: most calls have none.
    union {
        View kept[4];
    };
    std::uint32_t kept_count = 0;

    const View& keep(const View& view) { return *new (&kept[kept_count++]) View(view); }

    void add(const char* name, const View& view) {
        names[count] = name;
        views[count++] = &view;
    }
    void add_source(const char* name, const View& view) { source[source_count++] = {name, &view}; }
    void align(const char* name, const View& view, VkDeviceSize multiple, bool of_source = false) {
        aligned[aligned_count++] = {name, &view, multiple, of_source};
    }
};

// Splits `whole` so that each binding fits the range, and heads and tokens fit one dispatch.
// Returns limit_exceeded if one head row does not fit, or if no tiles of an aligned view begin at
// its multiples.
Result<Tiling> tile(const KernelInfo& info, const Geometry& geometry, const Counts& whole,
                    std::uint32_t group_heads, const Bound& bound, const StorageLimits& storage,
                    const DispatchLimits& dispatch) noexcept;

// Splits the pages and rows of the source, if there is one, and sets tiling.sources.
Status tile_source(const Bound& bound, std::uint32_t group_heads, const StorageLimits& storage,
                   Tiling& tiling, Source& source) noexcept;

}  // namespace vkrope
