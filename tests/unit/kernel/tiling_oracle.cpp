// SPDX-License-Identifier: MIT
#include "tiling_oracle.hpp"

#include <sstream>

namespace vkrope {

namespace {

// Returns the first byte of a row. `slow` is the sequence, or the page; `fast` the token, or the
// row of the page.
Wide byte_of(const View& v, std::uint32_t group_heads, std::uint64_t slow, std::uint64_t fast,
             std::uint64_t group, std::uint64_t head) {
    const std::uint64_t index = group * group_heads + head;
    const Wide elements = Wide{slow} * v.batch + Wide{fast} * v.token +
                          Wide{index / v.heads_per_group} * v.group +
                          Wide{index % v.heads_per_group} * v.head;
    return Wide{v.first_byte} + elements * v.element_bytes;
}

Wide steps(std::uint32_t whole, std::uint32_t tile) {
    return (Wide{whole} + tile - 1) / tile;
}

// Returns the most bytes of a binding that are not rows: it starts at an aligned offset, and ends
// with a whole word.
std::uint64_t max_lost(const StorageLimits& limits) {
    return std::max<std::uint64_t>(limits.offset_alignment, 16) - 1 + 3;
}

const char* wrong_in_view(const Tuple& t, const View& v, const Tile& tile, Random& random) {
    const bool paged = v.page_size != 0;
    const std::uint64_t slow = paged ? tile.first.pages : tile.first.batch,
                        fast = paged ? tile.first.rows : tile.first.tokens;
    const std::uint64_t slows = paged ? tile.count.pages : tile.count.batch,
                        fasts = paged ? tile.count.rows : tile.count.tokens;
    const auto at = [&](std::uint64_t s, std::uint64_t f, std::uint64_t g, std::uint64_t h) {
        return byte_of(v, t.group_heads, slow + s, fast + f, tile.first.groups + g,
                       tile.first.heads + h);
    };
    const std::uint64_t row_bytes = std::uint64_t{v.head_dim} * v.element_bytes;
    const Wide first = at(0, 0, 0, 0);
    const Wide end = at(slows - 1, fasts - 1, tile.count.groups - 1, tile.count.heads - 1) +
                     row_bytes;
    // These are the library's values, with which dispatch_sequence.cpp places tiles.
    const std::uint64_t offset = offset_of(v, t.group_heads, tile.first),
                        span = span_of(v, t.group_heads, tile.count);
    if (Wide{v.first_byte} + Wide{offset} * v.element_bytes != first)
        return "offset_of is not where the first row is";
    if (first + Wide{span} * v.element_bytes != end)
        return "span_of does not end with the last row";
    const VkDescriptorBufferInfo binding = binding_of(
        v.buffer, v.first_byte + offset * v.element_bytes, span * v.element_bytes, t.storage);
    if (binding.offset % t.storage.offset_alignment != 0)
        return "the binding starts where the device can not bind";
    if (binding.offset > first || Wide{binding.offset} + binding.range < end)
        return "the binding does not hold the rows";
    if (binding.range > t.storage.range) return "the binding exceeds maxStorageBufferRange";
    // The shader computes element offsets from the start of the binding in 32 bits.
    if ((end - binding.offset + v.element_bytes - 1) / v.element_bytes > UINT32_MAX)
        return "an element offset needs more than 32 bits";
    // A random row starts at a sum of multiples of the strides.
    const std::uint64_t s = random.below(slows), f = random.below(fasts),
                        g = random.below(tile.count.groups), h = random.below(tile.count.heads);
    const std::uint64_t group_step = tile.count.groups > 1 ? v.group_step(t.group_heads) : 0;
    if (tile.count.groups > 1 && !v.steps_evenly(t.group_heads))
        return "groups that do not step evenly are in one tile";
    const Wide row = first + (Wide{s} * v.batch + Wide{f} * v.token + Wide{g} * group_step +
                              Wide{h} * v.head) *
                                 v.element_bytes;
    if (row != at(s, f, g, h)) return "a row is not where the strides lead to";
    if (row + row_bytes > end) return "a row is outside its binding";
    return nullptr;
}

const char* wrong_in_box(const Tuple& t, const Tiling& tiling, std::uint64_t index,
                         Random& random) {
    const Tile tile = tiling.at(index);
    // The tiles are the cells of a grid, numbered in mixed radix, so different numbers are
    // different cells.
    using Along = std::uint32_t Counts::*;
    constexpr Along by_token[] = {&Counts::pages,  &Counts::rows,   &Counts::batch,
                                  &Counts::groups, &Counts::tokens, &Counts::heads};
    constexpr Along by_head[] = {&Counts::pages,  &Counts::rows,  &Counts::batch,
                                 &Counts::groups, &Counts::heads, &Counts::tokens};
    Wide number = 0;
    for (const Along along : tiling.heads_outer ? by_head : by_token) {
        const std::uint32_t whole = t.whole.*along, size = tiling.tile.*along,
                            first = tile.first.*along;
        if (first % size != 0 || first >= whole) return "a tile is not in the grid";
        if (tile.count.*along != std::min(size, whole - first))
            return "a tile is not as large as its cell";
        number = number * steps(whole, size) + first / size;
    }
    if (number != index) return "a tile is not the one of its number";
    for (std::uint32_t i = 0; i < t.bound.count; ++i)
        if (const char* wrong = wrong_in_view(t, *t.bound.views[i], tile, random)) return wrong;
    Work work = t.work;
    work.z = std::max(tile.count.batch, tile.count.groups);
    work.tokens = tile.count.tokens;
    work.q_heads = tile.count.heads;
    const DispatchShape shape = shape_of(t.geometry, work);
    for (int i = 0; i < 3; ++i)
        if (shape.groups[i] == 0 || shape.groups[i] > t.dispatch.workgroup_count[i])
            return "more workgroups than the device dispatches";
    if (Wide{shape.groups[0]} * t.geometry.group_tokens < work.tokens)
        return "too few workgroups for its tokens";
    const Wide heads = t.geometry.q_batch == 0
                           ? work.q_heads
                           : Wide{t.geometry.head_lanes} * t.geometry.q_batch * t.geometry.rounds;
    if (Wide{shape.groups[1]} * heads < work.q_heads) return "too few workgroups for its heads";
    return nullptr;
}

// Returns whether the call needs no cut.
bool fits_whole(const Tuple& t) {
    if (t.whole.batch > 1 && t.whole.groups > 1) return false;
    bool fits = t.whole.batch <= t.dispatch.workgroup_count[2] &&
                t.whole.groups <= t.dispatch.workgroup_count[2] &&
                t.whole.heads <= max_heads(t.info, t.geometry, t.dispatch);
    for (std::uint32_t i = 0; i < t.bound.count; ++i) {
        const View& v = *t.bound.views[i];
        if (t.whole.groups > 1 && !v.steps_evenly(t.group_heads)) return false;
        const std::uint64_t slow = v.page_size ? t.whole.pages : t.whole.batch,
                            fast = v.page_size ? v.page_size : t.whole.tokens;
        const Wide end = byte_of(v, t.group_heads, slow - 1, fast - 1, t.whole.groups - 1,
                                 t.whole.heads - 1) +
                         Wide{v.head_dim} * v.element_bytes;
        const std::uint64_t alignment = std::max<std::uint64_t>(t.storage.offset_alignment, 16);
        fits = fits && (end + 3) / 4 * 4 - v.first_byte / alignment * alignment <= t.storage.range;
    }
    return fits && t.whole.tokens <= max_tokens(t.geometry, t.dispatch);
}

// Returns whether one row of a view, or one page of one head, may need more than a binding has,
// since its start and end need not be aligned.
bool row_may_not_fit(const Tuple& t) {
    for (std::uint32_t i = 0; i < t.bound.count; ++i) {
        const View& v = *t.bound.views[i];
        if (Wide{v.head_dim} * v.element_bytes + max_lost(t.storage) > t.storage.range) return true;
    }
    return false;
}

}  // namespace

std::string text(const Tuple& t) {
    std::ostringstream out;
    out << "group_heads " << t.group_heads << ", batch " << t.whole.batch << ", groups "
        << t.whole.groups << ", tokens " << t.whole.tokens << ", pages " << t.whole.pages
        << ", range " << t.storage.range << ", alignment " << t.storage.offset_alignment
        << ", workgroups " << t.dispatch.workgroup_count[0] << ' ' << t.dispatch.workgroup_count[1]
        << ' ' << t.dispatch.workgroup_count[2];
    for (std::uint32_t i = 0; i < t.bound.count; ++i) {
        const View& v = *t.bound.views[i];
        out << "; " << t.bound.names[i] << ": byte " << v.first_byte << ", " << v.element_bytes
            << " bytes, head_dim " << v.head_dim << ", heads " << v.heads << " of "
            << v.heads_per_group << ", strides " << v.batch << ' ' << v.token << ' ' << v.group
            << ' ' << v.head << ", page_size " << v.page_size;
    }
    return out.str();
}

const char* wrong_in(const Tuple& t, Random& random, Seen& seen) {
    const Result<Tiling> result = t.tile();
    if (!result) {
        ++seen.refused;
        if (result.status.code != VKROPE_ERROR_LIMIT_EXCEEDED)
            return "an error that is not limit_exceeded";
        return row_may_not_fit(t) ? nullptr : "refused, though every row fits";
    }
    const Tiling& tiling = result.value;
    const Counts& tile = tiling.tile;
    if (tile.pages > 1 && tile.rows != t.whole.rows)
        return "slots of a tile do not follow each other";
    if (tile.batch > 1 && tile.groups > 1) return "both sequences and groups fall along z";
    if (tile.heads > max_heads(t.info, t.geometry, t.dispatch))
        return "more heads than a dispatch counts";
    const Wide count = steps(t.whole.batch, tile.batch) * steps(t.whole.groups, tile.groups) *
                       steps(t.whole.heads, tile.heads) * steps(t.whole.tokens, tile.tokens) *
                       steps(t.whole.pages, tile.pages) * steps(t.whole.rows, tile.rows);
    if (count >> 64 == 0 && tiling.count() != count) return "count() is not the number of cells";
    if (count >> 64 != 0) return nullptr;  // too many dispatches to record
    const bool whole = count == 1;
    if (!whole && fits_whole(t)) return "what fits is cut";
    ++(whole ? seen.whole : seen.cut);
    if (count <= 24) {
        Wide rows = 0;
        for (std::uint64_t i = 0; i < count; ++i) {
            if (const char* wrong = wrong_in_box(t, tiling, i, random)) return wrong;
            const Counts part = tiling.at(i).count;
            rows += Wide{part.batch} * part.groups * part.heads * part.tokens * part.pages *
                    part.rows;
        }
        seen.tiles += std::uint64_t(count);
        if (rows != Wide{t.whole.batch} * t.whole.groups * t.whole.heads * t.whole.tokens *
                        t.whole.pages * t.whole.rows)
            return "the tiles do not hold as many rows as the call";
        return nullptr;
    }
    for (const std::uint64_t i :
         {std::uint64_t{0}, random.below(std::uint64_t(count)), std::uint64_t(count) - 1})
        if (const char* wrong = wrong_in_box(t, tiling, i, random)) return wrong;
    seen.tiles += 3;
    return nullptr;
}

}  // namespace vkrope
