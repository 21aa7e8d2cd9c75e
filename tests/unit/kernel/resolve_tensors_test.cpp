// SPDX-License-Identifier: MIT
// The rules of record() for tensors: rows, pages and what may overlap.
#include "broken_rules.hpp"

namespace vkrope {

TEST_CASE("V: its rows are wherever the caller says, wider or narrower than those that rotate") {
    KernelInfo i = info();
    i.tensor[V] = {VKROPE_F32, VKROPE_BF16, 8, 0};  // fewer channels than rotary_dim
    CHECK(check(device(), i));
    Call c = call();
    c.in[V] = tensor(v_buffer, 3);
    c.out[V] = tensor(v_buffer, 3, 2048, 1024);
    const auto resolved = resolve(i, limits, c);
    INFO(resolved.status.what);
    REQUIRE(resolved);
    CHECK(resolved->tensor[V].heads == 3);
    CHECK_FALSE(resolved->tensor[V].in_place);
    CHECK(resolved->tensor[V].in.element_bytes == 4);
    CHECK(resolved->tensor[V].out.element_bytes == 2);
    CHECK(resolved->tensor[V].out.token == 3 * 8);
    const auto breaks = [&](auto change, const char* names) {
        KernelInfo changed = i;
        Call broken = c;
        change(changed, broken);
        expect(resolve(changed, limits, broken).status, VKROPE_ERROR_INVALID_ARGUMENT, names);
    };
    breaks([](KernelInfo& k, Call&) { k.tensor[V] = {}; }, "in[2].heads 3");
    breaks([](KernelInfo& k, Call&) { k.tensor[V].heads = 2; }, "in[2].heads 3 tensor[2].heads 2");
    breaks([](KernelInfo&, Call& b) { b.out[V].heads = 2; }, "out[2].heads 2 in[2].heads 3");
    breaks([](KernelInfo&, Call& b) { b.out[V].where.buffer = nullptr; },
           "out[2].where.buffer null");
    breaks([](KernelInfo&, Call& b) { b.in[V].where.range = 4; }, "in[2].where.range 4");
    breaks([](KernelInfo&, Call& b) { b.out[V].token_stride = -1; }, "out[2].token_stride -1");
    breaks([](KernelInfo&, Call& b) { b.out[V].where.offset = 64; }, "in[2] out[2]");
    breaks([](KernelInfo&, Call& b) { b.out[V].where = b.out[Q].where; }, "out[0] out[2]");
    breaks([](KernelInfo&, Call& b) { b.out[V].where = b.out[K].where; }, "out[1] out[2]");
    breaks([](KernelInfo&, Call& b) { b.in[V].where = b.out[K].where; }, "out[1] in[2]");
    breaks([](KernelInfo&, Call& b) { b.in[V].where = b.out[Q].where; }, "out[0] in[2]");
    breaks(
        [](KernelInfo&, Call& b) {
            b.out_of_range = {v_buffer, 2048, 4};
        },
        "out[2] out_of_range");
    breaks([](KernelInfo&, Call& b) { b.out_of_range = {v_buffer, 0, 4}; }, "in[2] out_of_range");
    breaks(
        [](KernelInfo&, Call& b) {
            b.out[V].where = {other_buffer, 0, 1024};
        },
        "out[2] positions.ids");
    // In place with another pairing, which does not concern V.
    KernelInfo other = i;
    other.tensor[V].in = VKROPE_BF16;
    other.pairing_out = VKROPE_INTERLEAVED;
    Call in_place = c;
    in_place.out[Q] = tensor(q_buffer, 4, 4096), in_place.out[K] = tensor(k_buffer, 2, 4096);
    in_place.in[V] = in_place.out[V];
    const auto same = resolve(other, limits, in_place);
    INFO(same.status.what);
    REQUIRE(same);
    CHECK(same->tensor[V].in_place);
    // V alone.
    in_place.in[Q] = in_place.out[Q] = in_place.in[K] = in_place.out[K] = {};
    CHECK(resolve(other, limits, in_place));
}

TEST_CASE(
    "V in pages: the caches may share a buffer, and a slot that one of them lacks is outside") {
    KernelInfo i = info();
    i.tensor[V] = i.tensor[K];
    i.scatter_kv = true;
    Call c = call();
    // [pages, K and V, 4 rows, 2 heads, 16 channels] in f16
    constexpr VkDeviceSize half_page = 4 * 2 * 16 * 2, buffer = 5 * 2 * half_page;
    c.out[K] = tensor(other_buffer, 2, 1024, buffer - half_page);
    c.in[V] = tensor(v_buffer, 2);
    c.out[V] = tensor(other_buffer, 2, 1024 + half_page, buffer - half_page);
    c.paged_cache.slot_mapping = {other_buffer, 64, 2 * 4 * 4};
    c.paged_cache.page_size = 4;
    c.paged_cache.page_stride = 2 * half_page / 2;
    const auto resolved = resolve(i, limits, c);
    INFO(resolved.status.what);
    REQUIRE(resolved);
    CHECK(resolved->tensor[K].pages == 5);
    CHECK(resolved->tensor[V].pages == 5);
    Call shorter = c;
    shorter.out[V].where.range -= 2 * half_page;
    const auto fewer = resolve(i, limits, shorter);
    REQUIRE(fewer);
    CHECK(fewer->tensor[K].pages == 4);
    CHECK(fewer->tensor[V].pages == 4);
    Call reaches = c;
    reaches.out[V].where.offset -= 32;
    expect(resolve(i, limits, reaches).status, VKROPE_ERROR_INVALID_ARGUMENT, "out[1] out[2]");
    Call strided = c;
    strided.out[V].token_stride = 32;
    expect(resolve(i, limits, strided).status, VKROPE_ERROR_INVALID_ARGUMENT,
           "out[2].token_stride 32 paged_cache 0");
    // Rules that only V breaks name V.
    Call short_rows = c;
    short_rows.in[V].heads = short_rows.out[V].heads = 3;
    short_rows.out[V].where = {v_buffer, 2048, buffer};
    short_rows.paged_cache.row_stride = 32;
    expect(resolve(i, limits, short_rows).status, VKROPE_ERROR_INVALID_ARGUMENT,
           "out[2] paged_cache.row_stride 32 48");
    short_rows.paged_cache = {.slot_mapping = c.paged_cache.slot_mapping, .row_stride = 32};
    expect(resolve(i, limits, short_rows).status, VKROPE_ERROR_INVALID_ARGUMENT,
           "paged_cache.page_size 1 row_stride 32 out[2]");
    // V alone has slots, too.
    Call alone = c;
    alone.in[K] = alone.out[K] = {};
    CHECK(resolve(i, limits, alone));
    alone.paged_cache.slot_mapping = {};
    expect(resolve(i, limits, alone).status, VKROPE_ERROR_INVALID_ARGUMENT,
           "paged_cache.slot_mapping.buffer null");
}

TEST_CASE("record: each broken rule of a tensor is named") {
    breaks_record([](KernelInfo&, Call& c) { c.out[Q].heads = 3; }, "out[0].heads 3");
    breaks_record([](KernelInfo& i, Call&) { i.tensor[K] = {}; }, "in[1].heads 2");
    breaks_record([](KernelInfo&, Call& c) { c.in[K].where.buffer = VK_NULL_HANDLE; },
                  "in[1].where.buffer");
    breaks_record([](KernelInfo&, Call& c) { c.in[Q].where.range = VK_WHOLE_SIZE; },
                  "in[0].where.range VK_WHOLE_SIZE");
    breaks_record([](KernelInfo&, Call& c) { c.in[Q].where.offset = 1; }, "in[0].where.offset 1");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.in[Q].where = c.out[Q].where = {q_buffer, 2, 1024};
        },
        "in[0] 1026");
    breaks_record([](KernelInfo&, Call& c) { c.in[Q].where.range = 1020; },
                  "in[0].where.range 1020 1024");
    breaks_record([](KernelInfo&, Call& c) { c.in[Q].token_stride = -1; }, "in[0].token_stride -1");
    breaks_record([](KernelInfo&, Call& c) { c.in[Q].batch_stride = INT64_MAX; }, "in[0]");
    breaks_record([](KernelInfo&, Call& c) { c.in[Q].token_stride = INT64_MAX / 2; }, "in[0]");
    breaks_record([](KernelInfo&, Call& c) { c.in[Q].batch_stride = c.out[Q].batch_stride = 8; },
                  "out[0].batch_stride 8");
    breaks_record([](KernelInfo&, Call& c) { c.in[K] = c.out[K] = c.in[Q]; }, "out[0] out[1]");
    breaks_record([](KernelInfo&, Call& c) { c.out[Q].where.offset = 64; }, "in[0] out[0]");
    breaks_record(
        [](KernelInfo&, Call& c) { c.in[Q].token_stride = 64, c.out[Q].token_stride = 128; },
        "in[0] out[0]");
    // A stride of 0 is named with its packed value; a stride that was given is not.
    breaks_record([](KernelInfo&, Call& c) { c.out[Q].token_stride = 128; },
                  "in[0].token_stride 0 64 out[0]'s 128");
    breaks_record([](KernelInfo&, Call& c) { c.in[Q].head_stride = c.out[Q].head_stride = 64; },
                  "out[0].token_stride 0 64");
    breaks_record([](KernelInfo&, Call& c) { c.in[Q].head_stride = c.out[Q].head_stride = 80; },
                  "out[0].token_stride 0 64 208 out[0].head_stride 80");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.in[Q].head_stride = c.out[Q].head_stride = 64;
            c.in[Q].token_stride = c.out[Q].token_stride = 16;
        },
        "out[0].batch_stride 0 64");
    // Rows that reach too far: the error names the stride that was given, unless a stride of 0 must
    // step over it.
    breaks_record([](KernelInfo&, Call& c) { c.in[Q].token_stride = 600; },
                  "8528 in[0].token_stride 600");
    breaks_record([](KernelInfo&, Call& c) { c.in[Q].head_stride = 640; },
                  "in[0].token_stride 0 64");
    breaks_record([](KernelInfo&, Call& c) { c.in[Q].where.range = 64; },
                  "in[0].batch_stride 0 256");
    breaks_record([](KernelInfo& i, Call&) { i.tensor[Q].out = VKROPE_BF16; }, "in[0] out[0]");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.out[K] = tensor(q_buffer, 2, 4096 - 1024, 4096);
            c.in[Q].where.range = c.out[Q].where.range = 8192;
            c.in[Q].token_stride = c.out[Q].token_stride = 512;
        },
        "overlap");
    breaks_record([](KernelInfo&, Call& c) { c.out[Q].head_stride = broadcast; },
                  "out[0].head_stride broadcast");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.in[Q].head_stride = broadcast;
            c.in[Q].heads_per_group = 2;
        },
        "in[0].heads_per_group 2");
    breaks_record([](KernelInfo&, Call& c) { c.in[Q].heads_per_group = 3; },
                  "in[0].heads_per_group 3 4");
    breaks_record([](KernelInfo&, Call& c) { c.in[K].group_stride = 64; },
                  "in[1].group_stride 64 heads_per_group");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.in[Q].heads_per_group = c.out[Q].heads_per_group = 2;
            c.in[Q].group_stride = c.out[Q].group_stride = 24;
        },
        "out[0].group_stride 24 32");
    breaks_record([](KernelInfo& i, Call&) { i.pairing_out = VKROPE_INTERLEAVED; },
                  "in[0] out[0] pairing_out");
}

TEST_CASE("slots: a cache has as many pages as its range holds") {
    KernelInfo i = info();
    i.scatter_kv = true;
    Call good = call();
    good.out[K] = tensor(
        other_buffer, 2, 1024,
        5 * 4 * 32 * 2 + 63);  // five pages of four rows of two heads, and not quite one more
    good.paged_cache.slot_mapping = {other_buffer, 64, 2 * 4 * 4};
    good.paged_cache.page_size = 4;
    const auto resolved = resolve(i, limits, good);
    INFO(resolved.status.what);
    REQUIRE(resolved);
    CHECK(resolved->tensor[K].pages == 5);
    CHECK(resolved->tensor[K].out.batch == 128);
    CHECK(resolved->tensor[K].out.token == 32);
    CHECK(resolved->slot_mapping.batch == 4);
    const auto breaks = [&](auto change, const char* names) {
        KernelInfo changed = i;
        Call c = good;
        change(changed, c);
        expect(resolve(changed, limits, c).status, VKROPE_ERROR_INVALID_ARGUMENT, names);
    };
    breaks([](KernelInfo& k, Call&) { k.scatter_kv = false; },
           "paged_cache.slot_mapping scatter_kv");
    breaks(
        [](KernelInfo& k, Call& c) {
            k.scatter_kv = false;
            c.paged_cache = {.page_stride = 64};
        },
        "paged_cache.page_stride 64");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.slot_mapping = {}; },
           "paged_cache.slot_mapping.buffer null");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.slot_mapping.range = 31; },
           "paged_cache.slot_mapping.range 31 32");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.int64 = true; },
           "paged_cache.slot_mapping.range 32 64");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.batch_stride = -1; },
           "paged_cache.batch_stride -1");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.page_size = 0x80000001; },
           "paged_cache.page_size 2147483649");
    // page_size forgotten, with the strides of pages of 4 rows, rows before heads and heads before
    // rows.
    breaks(
        [](KernelInfo&, Call& c) { c.paged_cache.page_size = 1, c.paged_cache.page_stride = 128; },
        "paged_cache.page_size 1 page_stride 128 out[1]");
    breaks(
        [](KernelInfo&, Call& c) {
            c.paged_cache.page_size = 1, c.paged_cache.row_stride = 16, c.out[K].head_stride = 64;
        },
        "paged_cache.page_size 1 row_stride 16");
    breaks(
        [](KernelInfo&, Call& c) {
            c.paged_cache.page_size = 1, c.paged_cache.row_stride = 32,
            c.paged_cache.page_stride = 128;
        },
        "paged_cache.page_size 1 page_stride 128");
    {  // equal to the strides of single rows
        Call c = good;
        c.paged_cache.page_size = 1;
        c.paged_cache.row_stride = c.paged_cache.page_stride = 32;
        CHECK(resolve(i, limits, c));
        c.paged_cache.row_stride = 16;  // heads before rows
        CHECK(resolve(i, limits, c));
        c.paged_cache.row_stride = c.paged_cache.page_stride = 64;  // K beside V
        CHECK(resolve(i, limits, c));
    }
    breaks([](KernelInfo&, Call& c) { c.paged_cache.page_size = 64; }, "out[1].where.range");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.row_stride = 31; },
           "paged_cache.row_stride 31 32");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.page_stride = 127; },
           "paged_cache.page_stride 127 128");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.page_stride = -2; },
           "paged_cache.page_stride -2");
    breaks([](KernelInfo&, Call& c) { c.out[K].token_stride = 32; },
           "out[1].token_stride 32 paged_cache 0");
    breaks([](KernelInfo&, Call& c) { c.out[K].where = c.in[K].where; }, "in[1] out[1]");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.slot_mapping.offset = 1024; },
           "out[1] paged_cache.slot_mapping");
    breaks_create(
        [](DeviceRef&, KernelInfo& k) {
            k.scatter_kv = true;
            k.tensor[K] = {};
        },
        "scatter_kv tensor[1].head_dim 0");
}

TEST_CASE("rows that alternate are apart, at every level") {
    // QKV as [batch, tokens, groups, 4 + 1 + 1 heads, 16], two bytes each.
    const auto plane = [](std::uint32_t first, std::uint32_t heads) {
        Tensor t = tensor(q_buffer, 8 * heads, first * 32, 3 * 5 * 8 * 6 * 32 - first * 32);
        t.heads_per_group = heads;
        t.group_stride = 6 * 16;
        t.token_stride = 8 * 6 * 16;
        return t;
    };
    Call c = call();
    c.batch = 3;
    c.tokens = 5;
    c.positions.ids.range = 5 * 4;
    c.positions.batch_stride = broadcast;
    c.in[Q] = c.out[Q] = plane(0, 4);
    c.in[K] = c.out[K] = plane(4, 1);
    const auto resolved = resolve(info(), limits, c);
    INFO(resolved.status.what);
    REQUIRE(resolved);
    CHECK(resolved->tensor[Q].group_heads == 4);
    CHECK(resolved->tensor[K].group_heads == 8);  // groups of one head are heads
    CHECK(resolved->tensor[K].in.head == 6 * 16);
    c.in[K] = c.out[K] = plane(3, 1);
    expect(resolve(info(), limits, c).status, VKROPE_ERROR_INVALID_ARGUMENT,
           "out[0] out[1] out[0].batch_stride 0 3840");
    // A common mistake with packed QKV: the error names the token stride that was forgotten, of
    // either tensor.
    c.in[K] = c.out[K] = plane(4, 1);
    c.in[K].token_stride = c.out[K].token_stride = 0;
    expect(resolve(info(), limits, c).status, VKROPE_ERROR_INVALID_ARGUMENT,
           "out[1].token_stride 0 128 688");
    c.in[K] = c.out[K] = plane(4, 1);
    c.in[Q].token_stride = c.out[Q].token_stride = 0;
    c.in[Q].heads_per_group = c.out[Q].heads_per_group = 0;
    c.in[Q].group_stride = c.out[Q].group_stride = 0;
    expect(resolve(info(), limits, c).status, VKROPE_ERROR_INVALID_ARGUMENT,
           "out[0] out[1] out[0].token_stride 0 512");
    c.in[Q] = c.out[Q] = plane(0, 4);
    // K at the end of a group, so that relative to Q it crosses the end of the period.
    c.in[K] = c.out[K] = plane(5, 1);
    CHECK(resolve(info(), limits, c));
    c.in[Q] = c.out[Q] = plane(1, 4);
    c.in[K] = c.out[K] = plane(0, 1);
    CHECK(resolve(info(), limits, c));
    // Out of place into a plane of the same buffer.
    c.in[K] = c.out[K] = {};
    c.in[Q] = plane(0, 2);
    c.out[Q] = plane(2, 2);
    CHECK(resolve(info(), limits, c));
    c.out[Q] = plane(1, 2);
    expect(resolve(info(), limits, c).status, VKROPE_ERROR_INVALID_ARGUMENT, "in[0] out[0]");
}

}  // namespace vkrope
