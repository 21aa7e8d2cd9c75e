// SPDX-License-Identifier: MIT
// Checks how calls are cut into tiles where a limit is met or just exceeded.
#include <doctest/doctest.h>

#include "support/names.hpp"
#include "tiling_oracle.hpp"

namespace vkrope {

namespace {

// A tensor [batch, tokens, heads, 128] f16, in place, from byte `first` on, on a device with 128
// MiB and 256-byte offsets.
struct Packed : Tuple {
    Packed(std::uint32_t batch, std::uint32_t tokens, std::uint32_t heads,
           std::uint64_t first = 0) {
        info = {.pairing = VKROPE_HALF_SPLIT,
                .rotary_dim = 128,
                .tensor = {{VKROPE_F16, VKROPE_F16, 128, 0}},
                .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
        whole = {.batch = batch, .heads = heads, .tokens = tokens};
        group_heads = heads;
        views[0] = {.first_byte = first,
                    .element_bytes = 2,
                    .head_dim = 128,
                    .heads = heads,
                    .heads_per_group = heads};
        views[0].head = 128;
        views[0].token = 128 * heads;
        views[0].batch = std::uint64_t{128} * heads * tokens;
        bound.add("in", views[0]);
        bound.add("out", views[0]);
        work = {.z = batch, .tokens = tokens, .q_heads = heads};
        dispatch.workgroup_count[0] = UINT32_MAX;  // one workgroup per token
        geometry = geometry_for(info, shader::access_wide, Load::many_tokens, dispatch);
    }
};

std::uint64_t tiles_of(const Tuple& t) {
    Random random{1};
    Seen seen;
    const char* wrong = wrong_in(t, random, seen);
    INFO(text(t));
    CHECK(std::string(wrong ? wrong : "") == "");
    const Result<Tiling> tiling = t.tile();
    return tiling ? tiling->count() : 0;
}

}  // namespace

TEST_CASE(
    "groups step evenly if they are the view's own, or cut out of heads that are all equally far "
    "apart") {
    View view{.heads = 12, .heads_per_group = 4, .group = 100, .head = 10};
    CHECK(view.steps_evenly(4));
    CHECK(view.group_step(4) == 100);
    CHECK_FALSE(view.steps_evenly(2));  // 0, 20, 100, 120, ...
    view.heads_per_group = 12;
    CHECK(view.steps_evenly(2));
    CHECK(view.group_step(2) == 20);
}

TEST_CASE("128 MiB at offset 0 are one tile; a token more, or an offset of one element, are two") {
    CHECK(tiles_of(Packed(1, 1u << 16, 8)) == 1);
    CHECK(tiles_of(Packed(1, (1u << 16) + 1, 8)) == 2);
    CHECK(tiles_of(Packed(1, 1u << 16, 8, 2)) == 2);
    CHECK(tiles_of(Packed(1, 1u << 16, 8, 256)) == 1);
    CHECK(tiles_of(Packed(1, 1u << 16, 8, 258)) == 2);
    // 512 GiB and 1 TiB: tiles of 65535 tokens, since a tile in the middle may start at any byte.
    CHECK(tiles_of(Packed(1, 1u << 28, 8)) == ((1u << 28) + 65534) / 65535);
    CHECK(tiles_of(Packed(1u << 12, 1u << 17, 8)) == (1u << 12) * 3);
    CHECK(tiles_of(Packed(1u << 20, 512, 8)) == ((1u << 20) + 126) / 127);
}

TEST_CASE("tiles of a view without an offset begin where the device can bind it") {
    // [batch, tokens, 64] of f16: 128 bytes a token. 16 workgroups are at most 16 tokens.
    const auto tiles = [](std::uint32_t batch, std::uint32_t tokens, std::uint32_t limit,
                          VkDeviceSize alignment, std::uint32_t channels = 64) {
        Packed t(batch, tokens, 1);
        View second = {.element_bytes = 2, .head_dim = channels};
        second.token = channels;
        second.batch = std::uint64_t{channels} * tokens;
        t.bound.add("second", second);
        t.bound.packed_tokens = true;
        t.storage.offset_alignment = alignment;
        t.bound.align("second", second, binding_alignment(t.storage));
        t.dispatch.workgroup_count[0] = limit;
        t.geometry.group_tokens = 1;
        const Result<Tiling> tiling = t.tile();
        for (std::uint64_t i = 0; tiling && i < tiling->count(); ++i) {
            const std::uint64_t first = offset_of(second, 1, tiling->at(i).first) * 2;
            CHECK(binding_of(VK_NULL_HANDLE, first, 4, t.storage).offset == first);
        }
        return tiling ? tiling->count() : 0;
    };
    CHECK(tiles(1, 15, 15, 256) == 1);
    CHECK(tiles(1, 30, 15, 256) == 3);  // of 14, 14 and 2 tokens
    CHECK(tiles(1, 30, 15, 128) == 2);
    CHECK(tiles(2, 30, 15, 256) == 6);
    CHECK(tiles(2, 31, 15, 256) == 0);  // the second sequence begins at an odd multiple of 128
    CHECK(tiles(2, 31, 15, 128) == 6);
    CHECK(tiles(1, 2, 1, 256) == 0);
    CHECK(tiles(1, 30, 15, 4, 66) == 3);  // of 12 tokens, since bindings start at multiples of 16
}

TEST_CASE("65535 sequences or heads are one tile, one more are two") {
    CHECK(tiles_of(Packed(65535, 1, 1)) == 1);
    CHECK(tiles_of(Packed(65536, 1, 1)) == 2);
    CHECK(tiles_of(Packed(1, 1, 65535)) == 1);
    CHECK(tiles_of(Packed(1, 1, 65536)) == 2);
}

TEST_CASE("heads step more slowly than tokens: tiles ascend in the output") {
    Packed t(2, 1u << 16, 8);
    t.views[0].token = 128;
    t.views[0].head = std::uint64_t{128} << 16;
    CHECK(tiles_of(t) == 4);
    const Tiling tiling = t.tile().value;
    CHECK(tiling.heads_outer);
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < tiling.count(); ++i) {
        const std::uint64_t at = offset_of(t.views[0], 8, tiling.at(i).first);
        CHECK((i == 0 || at > last));
        last = at;
    }
}

TEST_CASE(
    "a cache of pages is cut between pages, between heads if one page is too large, and then "
    "between rows") {
    Packed t(1, 4, 8);
    t.views[1] = t.views[0];
    t.views[1].page_size = 16;
    t.views[1].token = 8 * 128;
    t.views[1].batch = 16 * 8 * 128;
    t.whole.pages = 1u << 15;  // 1 GiB
    t.whole.rows = 16;
    t.bound = {};
    t.bound.add("in", t.views[0]);
    t.bound.add("out", t.views[1]);
    CHECK(tiles_of(t) == ((1u << 15) + 4094) / 4095);
    // [pages, heads, page_size, head_dim] with pages of 256 MiB: 4 heads of a page, minus
    // alignment, fit a binding.
    t.views[1].page_size = 1u << 17;
    t.views[1].token = 128;
    t.views[1].head = std::uint64_t{128} << 17;
    t.views[1].batch = std::uint64_t{8 * 128} << 17;
    t.whole.pages = 3;
    t.whole.rows = 1u << 17;
    CHECK(tiles_of(t) == 3 * 3);
    t.storage.range = 1u << 24;  // a head of a page has 32 MiB
    CHECK(tiles_of(t) == 3 * 8 * 3);
}

TEST_CASE("limit_exceeded where one row does not fit, and nowhere else") {
    Packed t(4, 1000, 8, 2);
    t.storage.range = 256 + 258;
    CHECK(tiles_of(t) == 4 * 1000 * 8);
    t.storage.range -= 1;
    test::check_error(t.tile().status, VKROPE_ERROR_LIMIT_EXCEEDED, "in 256 513");
}

}  // namespace vkrope
