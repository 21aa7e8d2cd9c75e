// SPDX-License-Identifier: MIT
#include "kernel/geometry/tiling.hpp"

#include <algorithm>
#include <cinttypes>

#include "base/status.hpp"

namespace vkrope {

namespace {

// Members of Counts in the order of the tiles, slowest first.
using Along = std::uint32_t Counts::*;
constexpr Along tokens_first[] = {&Counts::pages,  &Counts::rows,   &Counts::batch,
                                  &Counts::groups, &Counts::tokens, &Counts::heads};
constexpr Along heads_first[] = {&Counts::pages,  &Counts::rows,  &Counts::batch,
                                 &Counts::groups, &Counts::heads, &Counts::tokens};
constexpr std::uint32_t directions = 6;

// Returns the elements from one step of a direction to the next.
std::uint64_t step_of(const View& view, std::uint32_t group_heads, Along direction) {
    if (direction == &Counts::heads) return view.head;
    if (direction == &Counts::groups) return view.group_step(group_heads);
    if (view.page_size != 0)
        return direction == &Counts::pages  ? view.batch
               : direction == &Counts::rows ? view.token
                                            : 0;
    return direction == &Counts::tokens ? view.token : direction == &Counts::batch ? view.batch : 0;
}

// Returns the maximum bytes lost to alignment: a tile in the middle may start anywhere between two
// offsets that the device can bind, and end anywhere in a word.
std::uint64_t max_lost(const StorageLimits& limits) {
    return binding_alignment(limits) - 1 + 3;
}

// Returns whether the span of `view` fits a binding if it is not divided.
bool fits_unsplit(const View& view, std::uint32_t group_heads, const StorageLimits& limits,
                  const Counts& whole) {
    const std::uint64_t bytes = span_of(view, group_heads, whole) * view.element_bytes;
    return binding_of(view.buffer, view.first_byte, bytes, limits).range <= limits.range;
}

// Returns whether the span of `view` in any tile of this size fits a binding.
bool fits_range(const View& view, std::uint32_t group_heads, const StorageLimits& limits,
                const Counts& whole, const Counts& tile) {
    const std::uint64_t bytes = span_of(view, group_heads, tile) * view.element_bytes;
    bool divided = false;
    for (const Along direction : tokens_first)
        divided = divided || (tile.*direction != whole.*direction &&
                              step_of(view, group_heads, direction) != 0);
    if (!divided) return fits_unsplit(view, group_heads, limits, tile);
    return bytes + max_lost(limits) <= limits.range;
}

// Returns the elements of `view` that fit a binding, wherever it begins.
std::uint64_t room_for(const View& view, const StorageLimits& limits) {
    const std::uint64_t lost = max_lost(limits);
    return limits.range > lost ? (limits.range - lost) / view.element_bytes : 0;
}

// Reduces the steps of the tile along a direction so that its span of `view` fits a binding, to 1
// at least. Returns whether it does.
bool shrink_along(const View& view, std::uint32_t group_heads, const StorageLimits& limits,
                  Along direction, Counts& tile) {
    const std::uint64_t room = room_for(view, limits), before = tile.*direction;
    tile.*direction = 1;
    const std::uint64_t rest = span_of(view, group_heads, tile);
    if (rest > room) return false;
    const std::uint64_t step = step_of(view, group_heads, direction);
    if (step != 0) tile.*direction = std::uint32_t(std::min(before, (room - rest) / step + 1));
    return true;
}

// Shrinks the tile, along the direction of the largest step first, until its span of `view` fits a
// binding.
bool shrink_to_range(const View& view, std::uint32_t group_heads, const StorageLimits& limits,
                     Counts& tile) {
    const std::uint64_t room = room_for(view, limits);
    while (span_of(view, group_heads, tile) > room) {
        Along widest = nullptr;
        for (const Along direction : tokens_first) {
            if (tile.*direction == 1 || step_of(view, group_heads, direction) == 0) continue;
            if (direction == &Counts::rows && tile.pages > 1)
                continue;  // slots of a tile must be contiguous
            if (!widest ||
                step_of(view, group_heads, direction) > step_of(view, group_heads, widest))
                widest = direction;
        }
        if (!widest) return false;
        shrink_along(view, group_heads, limits, widest, tile);
    }
    return true;
}

// Reduces the steps of a tile along a direction, so that each tile of a view begins where its
// binding does. Returns false if even one step is too many.
bool align_tiles(const Bound::Aligned& aligned, const Counts& whole, Along direction,
                 Counts& tile) {
    if (tile.*direction == whole.*direction) return true;
    const View& view = *aligned.view;
    const std::uint64_t bytes = step_of(view, 1, direction) * view.element_bytes;
    std::uint32_t steps = 1;  // whose bytes are a multiple, a power of two
    while (bytes * steps % aligned.multiple != 0) steps *= 2;
    tile.*direction -= tile.*direction % steps;
    return tile.*direction != 0;
}

Status no_alignment(const Bound::Aligned& aligned) {
    return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                 "%s: the call is divided into dispatches, and no division begins at multiples of "
                 "%" PRIu64 " bytes; call it for fewer tokens",
                 aligned.name, aligned.multiple);
}

// Returns the error for a view of which one row is too long.
Status too_long(const char* name, const View& view, std::uint32_t group_heads, const Counts& tile,
                const StorageLimits& storage) {
    return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                 "%s: one row spans %" PRIu64 " bytes, but the device binds at most %" PRIu64
                 " (maxStorageBufferRange)",
                 name, span_of(view, group_heads, tile) * view.element_bytes, storage.range);
}

}  // namespace

std::uint64_t Tiling::count() const noexcept {
    std::uint64_t tiles = 1;
    for (const Along direction : tokens_first)
        tiles *= divide_up(whole.*direction, tile.*direction);
    return tiles * sources;
}

Tile Tiling::at(std::uint64_t index) const noexcept {
    Tile part;
    const auto& order = heads_outer ? heads_first : tokens_first;
    for (std::uint32_t i = directions; i-- > 0;) {
        const Along direction = order[i];
        const std::uint64_t steps = divide_up(whole.*direction, tile.*direction);
        part.first.*direction = std::uint32_t(index % steps * (tile.*direction));
        part.count.*direction = std::min(tile.*direction, whole.*direction - part.first.*direction);
        index /= steps;
    }
    return part;
}

Tile Source::at(const Tiling& tiling, std::uint64_t index, Tile tile) const noexcept {
    index /= tiling.count() / tiling.sources;
    const auto take = [&index](std::uint32_t all, std::uint32_t one, std::uint32_t& first,
                               std::uint32_t& count) {
        const std::uint64_t steps = divide_up(all, one);
        first = std::uint32_t(index % steps * one);
        count = std::min(one, all - first);
        index /= steps;
    };
    take(rows, tile_rows, tile.first.rows, tile.count.rows);
    take(pages, tile_pages, tile.first.pages, tile.count.pages);
    return tile;
}

Result<Tiling> tile(const KernelInfo& info, const Geometry& geometry, const Counts& whole,
                    std::uint32_t group_heads, const Bound& bound, const StorageLimits& storage,
                    const DispatchLimits& dispatch) noexcept {
    Result<Tiling> result;
    Tiling& tiling = result.value;
    tiling.whole = tiling.tile = whole;
    Counts& tile = tiling.tile;

    bool even = true;
    for (std::uint32_t i = 0; i < bound.count; ++i)
        even = even && bound.views[i]->steps_evenly(group_heads);
    // Sequences of an aligned view may begin anywhere within a dispatch.
    bool one_batch = false;
    for (std::uint32_t i = 0; i < bound.aligned_count && whole.batch > 1; ++i) {
        const auto& [name, view, multiple, of_source] = bound.aligned[i];
        one_batch = one_batch || view->batch * view->element_bytes % multiple != 0;
    }
    if (!even || whole.groups < whole.batch || one_batch)
        tile.groups = 1;
    else
        tile.batch = 1;
    tile.batch = std::min(tile.batch, dispatch.workgroup_count[2]);
    tile.groups = std::min(tile.groups, dispatch.workgroup_count[2]);
    tile.heads = std::min(tile.heads, max_heads(info, geometry, dispatch));
    tile.tokens = std::uint32_t(
        std::min<std::uint64_t>(tile.tokens, max_tokens(geometry, dispatch)));

    // A view that fits unsplit may not fit once another view has been split.
    const auto misfit = [&]() -> std::uint32_t {
        std::uint32_t i = 0;
        while (i < bound.count && fits_range(*bound.views[i], group_heads, storage, whole, tile))
            ++i;
        return i;
    };
    for (std::uint32_t i = misfit(); i < bound.count; i = misfit()) {
        if (shrink_to_range(*bound.views[i], group_heads, storage, tile)) continue;
        result.status = too_long(bound.names[i], *bound.views[i], group_heads, tile, storage);
        return result;
    }

    // The shader uses the tokens of the dispatch as the stride of sequences.
    if (bound.packed_tokens && tile.tokens != whole.tokens) tile.batch = 1;
    for (std::uint32_t i = 0; i < bound.aligned_count; ++i) {
        const Bound::Aligned& aligned = bound.aligned[i];
        if (aligned.of_source) continue;
        for (const Along direction :
             {&Counts::batch, &Counts::tokens, &Counts::pages, &Counts::rows}) {
            if (align_tiles(aligned, whole, direction, tile)) continue;
            result.status = no_alignment(aligned);
            return result;
        }
    }

    const View& out = *bound.views[bound.source_count == 0 ? 1 : 0];
    tiling.heads_outer = out.page_size == 0 && out.head > out.token;
    return result;
}

Status tile_source(const Bound& bound, std::uint32_t group_heads, const StorageLimits& storage,
                   Tiling& tiling, Source& source) noexcept {
    Counts whole = tiling.whole, tile = tiling.tile;
    whole.pages = tile.pages = source.pages;
    whole.rows = tile.rows = source.rows;
    for (std::uint32_t i = 0; i < bound.source_count; ++i) {
        const auto& [name, view] = bound.source[i];
        const bool whole_fits = fits_unsplit(*view, group_heads, storage, tile);
        const bool is_split = tile.pages != whole.pages || tile.rows != whole.rows;
        if (whole_fits && !is_split) continue;
        // Slots of a tile must be contiguous, so that rows of a page are split last.
        if (!shrink_along(*view, group_heads, storage, &Counts::pages, tile) &&
            !shrink_along(*view, group_heads, storage, &Counts::rows, tile))
            return too_long(name, *view, group_heads, tile, storage);
    }
    for (std::uint32_t i = 0; i < bound.aligned_count; ++i) {
        const Bound::Aligned& aligned = bound.aligned[i];
        if (aligned.of_source && !(align_tiles(aligned, whole, &Counts::pages, tile) &&
                                   align_tiles(aligned, whole, &Counts::rows, tile)))
            return no_alignment(aligned);
    }
    source.tile_pages = tile.pages;
    source.tile_rows = tile.rows;
    const std::uint64_t tiles = std::uint64_t{divide_up(source.pages, tile.pages)} *
                                divide_up(source.rows, tile.rows);
    tiling.sources = std::uint32_t(tiles);
    if (tiles == tiling.sources) return {};
    return error(VKROPE_ERROR_LIMIT_EXCEEDED, "%s: it is divided into more than 2^32 parts",
                 bound.source[0].name);
}

}  // namespace vkrope
