// SPDX-License-Identifier: MIT
// Where rows are, compared with enumeration: every row of a part is inside offset_of, span_of and
// binding_of, and these are not too large.
#include "kernel/geometry/view.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace vkrope {

namespace {

struct Extent {
    std::uint64_t first = UINT64_MAX, end = 0;  // elements
};

// Row by row, like the shader: the heads of a part are in groups of `group_heads`.
Extent enumerate(const View& view, std::uint32_t group_heads, const Box& box) {
    Extent extent;
    const auto row = [&](std::uint64_t at) {
        extent.first = std::min(extent.first, at);
        extent.end = std::max(extent.end, at + view.head_dim);
    };
    for (std::uint32_t g = box.first.groups; g < box.first.groups + box.count.groups; ++g) {
        for (std::uint32_t h = box.first.heads; h < box.first.heads + box.count.heads; ++h) {
            const std::uint32_t head = g * group_heads + h;
            const std::uint64_t at = head / view.heads_per_group * view.group +
                                     head % view.heads_per_group * view.head;
            if (view.page_size != 0) {
                for (std::uint32_t p = box.first.pages; p < box.first.pages + box.count.pages; ++p)
                    for (std::uint32_t line = box.first.rows;
                         line < box.first.rows + box.count.rows; ++line)
                        row(at + p * view.batch + line * view.token);
                continue;
            }
            for (std::uint32_t b = box.first.batch; b < box.first.batch + box.count.batch; ++b) {
                for (std::uint32_t t = box.first.tokens; t < box.first.tokens + box.count.tokens;
                     ++t)
                    row(at + b * view.batch + t * view.token);
            }
        }
    }
    return extent;
}

}  // namespace

TEST_CASE(
    "offset_of and span_of are the first element of a part, and the distance to behind its last") {
    std::mt19937 random(71);
    const auto below = [&](std::uint32_t bound) { return std::uint32_t(random() % bound); };
    for (int round = 0; round < 20'000; ++round) {
        View view;
        const std::uint32_t group_heads = 1 + below(3), multiple = 1 + below(3),
                            groups = 1 + below(4);
        // The view's own groups: equal to those of the part, a multiple of them, or all heads.
        view.heads = group_heads * multiple * groups;
        const std::uint32_t kind = below(3);
        view.heads_per_group = kind == 0   ? group_heads
                               : kind == 1 ? group_heads * multiple
                                           : view.heads;
        view.head_dim = 2 + below(6);
        view.head = below(30);
        view.token = below(200);
        view.batch = below(2000);
        // Groups do not overlap, so that the last head has the highest address: otherwise "first"
        // and "last" would have no meaning.
        view.group = view.heads_per_group * view.head + below(40);
        if (below(3) == 0) view.page_size = 1 + below(4);
        const auto part = [&](std::uint32_t whole, std::uint32_t& first, std::uint32_t& count) {
            first = below(whole);
            count = 1 + below(whole - first);
        };
        Box box;
        part(view.heads / group_heads, box.first.groups, box.count.groups);
        if (!view.steps_evenly(group_heads)) box.count.groups = 1;
        part(group_heads, box.first.heads, box.count.heads);
        part(4, box.first.tokens, box.count.tokens);
        part(3, box.first.batch, box.count.batch);
        part(3, box.first.pages, box.count.pages);
        part(std::max(view.page_size, 1u), box.first.rows, box.count.rows);
        const Extent extent = enumerate(view, group_heads, box);
        REQUIRE(offset_of(view, group_heads, box.first) == extent.first);
        REQUIRE(span_of(view, group_heads, box.count) == extent.end - extent.first);
    }
}

TEST_CASE(
    "groups step evenly where they are the view's own, or cut out of heads that are all at one "
    "distance") {
    View view{.heads = 12, .heads_per_group = 4, .group = 100, .head = 10};
    CHECK(view.steps_evenly(4));
    CHECK(view.group_step(4) == 100);
    CHECK_FALSE(view.steps_evenly(2));  // 0, 20, 100, 120, ...
    view.heads_per_group = 12;
    CHECK(view.steps_evenly(2));
    CHECK(view.group_step(2) == 20);
}

TEST_CASE(
    "a binding starts at the next lower offset that the device and 16 bytes allow, and ends with a "
    "word") {
    const auto buffer = reinterpret_cast<VkBuffer>(std::uintptr_t{1});
    for (std::uint64_t alignment = 1; alignment <= 256; alignment *= 2) {
        const StorageLimits limits{.offset_alignment = alignment};
        for (const std::uint64_t base :
             {std::uint64_t{0}, std::uint64_t{1} << 31, (std::uint64_t{1} << 40) - 512}) {
            for (std::uint64_t first = base; first < base + 520; ++first) {
                for (const std::uint64_t bytes : {2u, 4u, 6u, 250u, 256u}) {
                    const VkDescriptorBufferInfo bound = binding_of(buffer, first, bytes, limits);
                    const std::uint64_t end = bound.offset + bound.range;
                    REQUIRE(bound.offset % alignment == 0);
                    REQUIRE(bound.offset % 16 == 0);
                    REQUIRE(bound.offset <= first);
                    REQUIRE(first - bound.offset < std::max<std::uint64_t>(alignment, 16));
                    REQUIRE(end % 4 == 0);
                    REQUIRE(end >= first + bytes);
                    REQUIRE(end - (first + bytes) < 4);
                }
            }
        }
    }
}

}  // namespace vkrope
