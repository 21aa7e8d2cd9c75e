// SPDX-License-Identifier: MIT
// Checks record()'s rules for tensors: rows, pages, and which ranges may overlap.
#include <limits>

#include "given.hpp"

namespace vkrope {

TEST_CASE("record: rules of a tensor") {
    const Broken rules[] = {
        {"out[0].heads 3", [](Given& g) { g.call.out[Q].heads = 3; }},
        {"in[1].heads 2", [](Given& g) { g.info.tensor[K] = {}; }},
        {"in[1].where.buffer", [](Given& g) { g.call.in[K].where.buffer = VK_NULL_HANDLE; }},
        {"in[0].where.range VK_WHOLE_SIZE",
         [](Given& g) { g.call.in[Q].where.range = VK_WHOLE_SIZE; }},
        {"in[0].where.offset 1", [](Given& g) { g.call.in[Q].where.offset = 1; }},
        {"in[0].where.range 1020 1024", [](Given& g) { g.call.in[Q].where.range = 1020; }},
        {"in[0].token_stride -1", [](Given& g) { g.call.in[Q].token_stride = -1; }},
        {"in[0]", [](Given& g) { g.call.in[Q].batch_stride = INT64_MAX; }},
        {"in[0]", [](Given& g) { g.call.in[Q].token_stride = INT64_MAX / 2; }},
        {"out[0].batch_stride 8",
         [](Given& g) { g.call.in[Q].batch_stride = g.call.out[Q].batch_stride = 8; }},
        {"out[0] out[1]", [](Given& g) { g.call.in[K] = g.call.out[K] = g.call.in[Q]; }},
        {"in[0] out[0]", [](Given& g) { g.call.out[Q].where.offset = 64; }},
        {"in[0] out[0]",
         [](Given& g) {
             g.call.in[Q].token_stride = 64;
             g.call.out[Q].token_stride = 128;
         }},
        {"in[0].batch_stride 0 256 out[0]'s 320",
         [](Given& g) { g.call.out[Q].batch_stride = 320; }},
        // The error names a packed value only for a stride of 0, not for one that was set.
        {"in[0].token_stride 0 64 out[0]'s 128",
         [](Given& g) { g.call.out[Q].token_stride = 128; }},
        {"out[0].token_stride 0 64",
         [](Given& g) { g.call.in[Q].head_stride = g.call.out[Q].head_stride = 64; }},
        {"out[0].token_stride 0 64 208 out[0].head_stride 80",
         [](Given& g) { g.call.in[Q].head_stride = g.call.out[Q].head_stride = 80; }},
        {"out[0].batch_stride 0 64",
         [](Given& g) {
             g.call.in[Q].head_stride = g.call.out[Q].head_stride = 64;
             g.call.in[Q].token_stride = g.call.out[Q].token_stride = 16;
         }},
        // If rows reach too far, the error names the stride that was set, unless a stride of 0
        // would have to step over the one that was set.
        {"8528 in[0].token_stride 600", [](Given& g) { g.call.in[Q].token_stride = 600; }},
        {"in[0].token_stride 0 64", [](Given& g) { g.call.in[Q].head_stride = 640; }},
        {"in[0].batch_stride 0 256", [](Given& g) { g.call.in[Q].where.range = 64; }},
        {"in[0] out[0]", [](Given& g) { g.info.tensor[Q].out = VKROPE_BF16; }},
        {"overlap",
         [](Given& g) {
             g.call.out[K] = tensor(q_buffer, 2, 4096 - 1024, 4096);
             g.call.in[Q].where.range = g.call.out[Q].where.range = 8192;
             g.call.in[Q].token_stride = g.call.out[Q].token_stride = 512;
         }},
        {"out[0].head_stride broadcast", [](Given& g) { g.call.out[Q].head_stride = broadcast; }},
        {"in[0].heads_per_group 2",
         [](Given& g) {
             g.call.in[Q].head_stride = broadcast;
             g.call.in[Q].heads_per_group = 2;
         }},
        {"in[0].heads_per_group 3 4", [](Given& g) { g.call.in[Q].heads_per_group = 3; }},
        {"in[1].group_stride 64 heads_per_group", [](Given& g) { g.call.in[K].group_stride = 64; }},
        {"out[0].group_stride 24 32",
         [](Given& g) {
             g.call.in[Q].heads_per_group = g.call.out[Q].heads_per_group = 2;
             g.call.in[Q].group_stride = g.call.out[Q].group_stride = 24;
         }},
        {"in[0] out[0] pairing_out", [](Given& g) { g.info.pairing_out = VKROPE_INTERLEAVED; }},
    };
    check_record({}, rules);
}

TEST_CASE("record: groups of 4 heads that go to groups of 6 are groups of 2") {
    Given given;
    given.call.in[Q] = {
        .where = at(q_buffer, 0, 4096), .heads = 12, .heads_per_group = 4, .group_stride = 64 + 16};
    given.call.out[Q] = {
        .where = at(v_buffer, 0, 4096), .heads = 12, .heads_per_group = 6, .group_stride = 96 + 16};
    given.call.in[Q].token_stride = given.call.out[Q].token_stride = 240;
    CHECK(given.valid().tensor[Q].group_heads == 2);
}

TEST_CASE("record: rows that end inside a word are valid where the buffer has the whole word") {
    Given given;
    given.call.in[Q].where = given.call.out[Q].where = at(q_buffer, 2, 1024);
    for (const std::uint64_t size : {0, 1027}) {
        given.call.in[Q].buffer_size = given.call.out[Q].buffer_size = size;
        refused(given, "in[0] 1026");
    }
    given.call.in[Q].buffer_size = given.call.out[Q].buffer_size = 1028;
    CHECK(given.bound(given.valid().tensor[Q].in).range == 1028);
}

TEST_CASE("record: V may have rows anywhere and of any width") {
    Given good;
    good.info.tensor[V] = {VKROPE_F32, VKROPE_BF16, 8, 0};  // fewer channels than rotary_dim
    CHECK(good.created());
    good.call.in[V] = tensor(v_buffer, 3);
    good.call.out[V] = tensor(v_buffer, 3, 2048, 1024);
    const ResolvedCall resolved = good.valid();
    CHECK(resolved.tensor[V].heads == 3);
    CHECK_FALSE(resolved.tensor[V].in_place);
    CHECK(resolved.tensor[V].in.element_bytes == 4);
    CHECK(resolved.tensor[V].out.element_bytes == 2);
    CHECK(resolved.tensor[V].out.token == 3 * 8);
    const Broken rules[] = {
        {"in[2].heads 3", [](Given& g) { g.info.tensor[V] = {}; }},
        {"in[2].heads 3 tensor[2].heads 2", [](Given& g) { g.info.tensor[V].heads = 2; }},
        {"out[2].heads 2 in[2].heads 3", [](Given& g) { g.call.out[V].heads = 2; }},
        {"out[2].where.buffer null", [](Given& g) { g.call.out[V].where.buffer = nullptr; }},
        {"in[2].where.range 4", [](Given& g) { g.call.in[V].where.range = 4; }},
        {"out[2].token_stride -1", [](Given& g) { g.call.out[V].token_stride = -1; }},
        {"in[2] out[2]", [](Given& g) { g.call.out[V].where.offset = 64; }},
        {"out[0] out[2]", [](Given& g) { g.call.out[V].where = g.call.out[Q].where; }},
        {"out[1] out[2]", [](Given& g) { g.call.out[V].where = g.call.out[K].where; }},
        {"out[1] in[2]", [](Given& g) { g.call.in[V].where = g.call.out[K].where; }},
        {"out[0] in[2]", [](Given& g) { g.call.in[V].where = g.call.out[Q].where; }},
        {"out[2] out_of_range", [](Given& g) { g.call.out_of_range = at(v_buffer, 2048, 4); }},
        {"in[2] out_of_range", [](Given& g) { g.call.out_of_range = at(v_buffer, 0, 4); }},
        {"out[2] positions.ids", [](Given& g) { g.call.out[V].where = at(other_buffer, 0, 1024); }},
    };
    check_record(good, rules);
    // V may be in place with another output pairing, which does not concern V.
    good.info.tensor[V].in = VKROPE_BF16;
    good.info.pairing_out = VKROPE_INTERLEAVED;
    good.call.out[Q] = tensor(q_buffer, 4, 4096);
    good.call.out[K] = tensor(k_buffer, 2, 4096);
    good.call.in[V] = good.call.out[V];
    CHECK(good.valid().tensor[V].in_place);
    // A call may have V alone.
    good.call.in[Q] = good.call.out[Q] = good.call.in[K] = good.call.out[K] = {};
    good.valid();
}

TEST_CASE("record: a second destination is packed, and overlaps no other buffer") {
    Given good;
    good.info.tensor[K].heads = 2;
    good.info.tensor[K].second_of = VKROPE_SECOND_INPUT;
    good.info.tensor[K].second = VKROPE_F32;
    constexpr VkDeviceSize bytes = 2 * 4 * 2 * 16 * 4;
    good.call.second[K] = at(other_buffer, 256, bytes);
    const View second = second_of(good.info, good.valid(), K);
    CHECK(second.token == 32);
    CHECK(second.batch == 4 * 32);
    CHECK(second.first_byte == 256);
    const Broken rules[] = {
        {"second[1].buffer null", [](Given& g) { g.call.second[K] = {}; }},
        {"second[1].offset 128 256", [](Given& g) { g.call.second[K].offset = 128; }},
        {"second[1].range 1023 1024", [](Given& g) { g.call.second[K].range = bytes - 1; }},
        {"second[1].range 1024", [](Given& g) { g.call.second[K].range = VK_WHOLE_SIZE; }},
        {
            "out[1] second[1]",
            [](Given& g) { g.call.second[K].buffer = k_buffer; },
        },
        {"out[0] second[1]", [](Given& g) { g.call.second[K].buffer = q_buffer; }},
        {"positions.ids second[1]", [](Given& g) { g.call.second[K].offset = 0; }},
        {"out_of_range second[1]",
         [](Given& g) { g.call.out_of_range = at(other_buffer, 256 + bytes - 4, 4); }},
        {"second[0] second_of", [](Given& g) { g.call.second[Q] = g.call.second[K]; }},
        {"second[1] second_of",
         [](Given& g) {
             g.info.tensor[K].second_of = VKROPE_SECOND_NONE;
             g.info.tensor[K].second = {};
         }},
        {"second[1] absent", [](Given& g) { g.call.in[K] = g.call.out[K] = {}; }},
    };
    check_record(good, rules);
    good.call.second[K].range += 4096;  // the bytes of the rows count
    good.call.out_of_range = at(other_buffer, 256 + bytes, 4);
    good.valid();
}

TEST_CASE("record: a weight that the call binds is aligned, and overlaps no output") {
    Given good;
    good.info.tensor[Q].ops.norm = {.kind = VKROPE_NORM_RMS,
                                    .eps = 1e-6f,
                                    .weight = VKROPE_PARAMETER_CHANNEL,
                                    .weight_bound = true,
                                    .weight_type = VKROPE_F16};
    good.call.norm_weight[Q] = at(other_buffer, 128, 32);
    const Broken rules[] = {
        {"norm_weight[0].buffer null", [](Given& g) { g.call.norm_weight[Q] = {}; }},
        {"norm_weight[0].offset 144 64", [](Given& g) { g.call.norm_weight[Q].offset = 144; }},
        {"norm_weight[0].offset 136 16",
         [](Given& g) { g.limits.offset_alignment = 4, g.call.norm_weight[Q].offset = 136; }},
        {"norm_weight[0].range 28 32", [](Given& g) { g.call.norm_weight[Q].range = 28; }},
        {"norm_weight[0].range 32 64",
         [](Given& g) { g.info.tensor[Q].ops.norm.weight_type = VKROPE_F32; }},
        {"norm_weight[0].range 32 128",
         [](Given& g) {
             g.info.tensor[Q].heads = 4;
             g.info.tensor[Q].ops.norm.weight = VKROPE_PARAMETER_HEAD_CHANNEL;
         }},
        {"norm_weight[0].range 6 8",  // whole words
         [](Given& g) {
             g.info.tensor[Q].ops.norm.channels = 3;
             g.call.norm_weight[Q].range = 6;
         }},
        {"norm_weight[1] ops.norm.weight_bound",
         [](Given& g) { g.call.norm_weight[K] = g.call.norm_weight[Q]; }},
        {"norm_weight[2] absent", [](Given& g) { g.call.norm_weight[V] = g.call.norm_weight[Q]; }},
        {"norm_weight[0] absent", [](Given& g) { g.call.in[Q] = g.call.out[Q] = {}; }},
        {"norm_weight[0] ops.norm.weight_bound", [](Given& g) { g.info.tensor[Q].ops.norm = {}; }},
        {"out[0] norm_weight[0]", [](Given& g) { g.call.norm_weight[Q].buffer = q_buffer; }},
        {"out[1] norm_weight[0]", [](Given& g) { g.call.norm_weight[Q].buffer = k_buffer; }},
        {"norm_weight[0] out_of_range",
         [](Given& g) { g.call.out_of_range = at(other_buffer, 156, 4); }},
        {"parameters", [](Given& g) { g.call.parameters = at(other_buffer, 0, 256); }},
    };
    check_record(good, rules);
    Given both = good;  // one buffer serves Q and K
    both.info.tensor[K].ops = both.info.tensor[Q].ops;
    both.call.norm_weight[K] = both.call.norm_weight[Q];
    both.call.out_of_range = at(other_buffer, 160, 4);
    both.valid();
    both.limits.offset_alignment = 4;
    both.call.norm_weight[Q].offset = 112;
    both.valid();
}

TEST_CASE("record: a call without rotation has no field of a rotation") {
    Given good;
    good.info = completed({.tensor = {good.info.tensor[Q], good.info.tensor[K]}});
    good.has_layout = false;
    good.call.positions = {};
    good.call.angles = {};
    good.valid();
    const Broken rules[] = {
        {"positions.first 1 rotary_dim 0", [](Given& g) { g.call.positions.first = 1; }},
        {"positions.ids rotary_dim 0",
         [](Given& g) { g.call.positions.ids = at(other_buffer, 0, 32); }},
        {"positions.int64", [](Given& g) { g.call.positions.int64 = VK_TRUE; }},
        {"positions.batch_stride 4", [](Given& g) { g.call.positions.batch_stride = 4; }},
        {"positions.axis_stride 4", [](Given& g) { g.call.positions.axis_stride = 4; }},
        {"positions.token_stride 1", [](Given& g) { g.call.positions.token_stride = 1; }},
        {"angles.layout rotary_dim 0", [](Given& g) { g.has_layout = true; }},
        {"angles.view", [](Given& g) { g.call.angles.view = fake<VkImageView>(9); }},
        {"angles.buffer", [](Given& g) { g.call.angles.buffer = at(other_buffer, 0, 4); }},
        {"angles.sin", [](Given& g) { g.call.angles.sin = at(other_buffer, 0, 4); }},
        {"direction 1 rotary_dim 0", [](Given& g) { g.call.direction = VKROPE_INVERSE; }},
        {"gain 2 rotary_dim 0", [](Given& g) { g.call.gain = VKROPE_GAIN_DIVIDE_OUT; }},
        {"out_of_range", [](Given& g) { g.call.out_of_range = at(other_buffer, 0, 4); }},
    };
    check_record(good, rules);
}

TEST_CASE("record: a cache has as many pages as fit its range") {
    Given good;
    good.info.scatter_kv = true;
    // The range has five pages of four rows of two heads, and almost a sixth page.
    good.call.out[K] = tensor(other_buffer, 2, 1024, 5 * 4 * 32 * 2 + 63);
    good.call.paged_cache.slot_mapping = at(other_buffer, 64, 2 * 4 * 4);
    good.call.paged_cache.page_size = 4;
    const ResolvedCall resolved = good.valid();
    CHECK(resolved.tensor[K].pages == 5);
    CHECK(resolved.tensor[K].out.batch == 128);
    CHECK(resolved.tensor[K].out.token == 32);
    CHECK(resolved.slot_mapping.batch == 4);
    const auto single_rows = [](std::int64_t row_stride, std::int64_t page_stride,
                                std::int64_t head_stride) {
        return [=](Given& g) {
            g.call.paged_cache.page_size = 1;
            g.call.paged_cache.row_stride = row_stride;
            g.call.paged_cache.page_stride = page_stride;
            g.call.out[K].head_stride = head_stride;
        };
    };
    const Broken rules[] = {
        {"paged_cache.slot_mapping scatter_kv", [](Given& g) { g.info.scatter_kv = false; }},
        {"paged_cache.page_stride 64",
         [](Given& g) {
             g.info.scatter_kv = false;
             g.call.paged_cache = {.page_stride = 64};
         }},
        {"paged_cache.slot_mapping.buffer null",
         [](Given& g) { g.call.paged_cache.slot_mapping = {}; }},
        {"paged_cache.slot_mapping.range 31 32",
         [](Given& g) { g.call.paged_cache.slot_mapping.range = 31; }},
        {"paged_cache.slot_mapping.range 32 64", [](Given& g) { g.call.paged_cache.int64 = true; }},
        {"paged_cache.batch_stride -1", [](Given& g) { g.call.paged_cache.batch_stride = -1; }},
        {"paged_cache.page_size 2147483649",
         [](Given& g) { g.call.paged_cache.page_size = 0x80000001; }},
        // page_size is missing although the strides are those of pages of 4 rows, with rows before
        // heads or heads before rows.
        {"paged_cache.page_size 1 page_stride 128 out[1]", single_rows(0, 128, 0)},
        {"paged_cache.page_size 1 row_stride 16", single_rows(16, 0, 64)},
        {"paged_cache.page_size 1 page_stride 128", single_rows(32, 128, 0)},
        {"out[1].where.range", [](Given& g) { g.call.paged_cache.page_size = 64; }},
        {"paged_cache.row_stride 31 32", [](Given& g) { g.call.paged_cache.row_stride = 31; }},
        {"paged_cache.page_stride 127 128", [](Given& g) { g.call.paged_cache.page_stride = 127; }},
        {"paged_cache.page_stride -2", [](Given& g) { g.call.paged_cache.page_stride = -2; }},
        {"out[1].token_stride 32 paged_cache 0", [](Given& g) { g.call.out[K].token_stride = 32; }},
        {"in[1] out[1]", [](Given& g) { g.call.out[K].where = g.call.in[K].where; }},
        {"out[1] paged_cache.slot_mapping",
         [](Given& g) { g.call.paged_cache.slot_mapping.offset = 1024; }},
    };
    check_record(good, rules);
    // Strides that equal those of single rows, with heads before rows, and with K next to V.
    for (const auto& [row_stride, page_stride] : {std::pair{32, 32}, {16, 32}, {64, 64}}) {
        Given single = good;
        single_rows(row_stride, page_stride, 0)(single);
        single.valid();
    }
}

TEST_CASE(
    "record: caches of K and V may share a buffer; a slot that one of them lacks is out of range") {
    Given good;
    good.info.tensor[V] = good.info.tensor[K];
    good.info.scatter_kv = true;
    // [pages, K and V, 4 rows, 2 heads, 16 channels] in f16
    constexpr VkDeviceSize half_page = 4 * 2 * 16 * 2, buffer = 5 * 2 * half_page;
    good.call.out[K] = tensor(other_buffer, 2, 1024, buffer - half_page);
    good.call.in[V] = tensor(v_buffer, 2);
    good.call.out[V] = tensor(other_buffer, 2, 1024 + half_page, buffer - half_page);
    good.call.paged_cache = {.slot_mapping = at(other_buffer, 64, 2 * 4 * 4), .page_size = 4};
    good.call.paged_cache.page_stride = 2 * half_page / 2;
    CHECK(good.valid().tensor[K].pages == 5);
    CHECK(good.valid().tensor[V].pages == 5);
    Given shorter = good;
    shorter.call.out[V].where.range -= 2 * half_page;
    CHECK(shorter.valid().tensor[K].pages == 4);
    CHECK(shorter.valid().tensor[V].pages == 4);
    // If only V breaks a rule, the error names V.
    const auto three_heads = [](Given& g) {
        g.call.in[V].heads = g.call.out[V].heads = 3;
        g.call.out[V].where = at(v_buffer, 2048, 5 * 2 * 4 * 2 * 16 * 2);
        g.call.paged_cache.row_stride = 32;
    };
    const Broken rules[] = {
        {"out[1] out[2]", [](Given& g) { g.call.out[V].where.offset -= 32; }},
        {"out[2].token_stride 32 paged_cache 0", [](Given& g) { g.call.out[V].token_stride = 32; }},
        {"out[2] paged_cache.row_stride 32 48", three_heads},
        // A stride that is too short is named, not a stride that was left at 0.
        {"paged_cache.page_stride 16", [](Given& g) { g.call.paged_cache.page_stride = 16; }},
        {"paged_cache.row_stride 16", [](Given& g) { g.call.paged_cache.row_stride = 16; }},
        {"paged_cache.page_stride 16",
         [](Given& g) {
             g.call.paged_cache.page_size = 1;
             g.call.paged_cache.page_stride = g.call.paged_cache.row_stride = 16;
         }},
        {"paged_cache.slot_mapping.range 64 paged_cache.int64",
         [](Given& g) { g.call.paged_cache.slot_mapping.range = 64; }},
        {"paged_cache.slot_mapping.range 144 paged_cache.int64",  // rows of 9 slots, as int64
         [](Given& g) {
             g.call.tokens = 1;
             g.call.positions.ids.range = 8;
             g.call.paged_cache.batch_stride = 9;
             g.call.paged_cache.slot_mapping.range = 2 * 9 * 8;
         }},
        {"paged_cache.page_size 1 row_stride 32 out[2]",
         [=](Given& g) {
             three_heads(g);
             g.call.paged_cache.page_size = 0;
             g.call.paged_cache.page_stride = 0;
         }},
    };
    check_record(good, rules);
    // V alone may have slots, too.
    good.call.in[K] = good.call.out[K] = {};
    good.valid();
    good.call.paged_cache.slot_mapping = {};
    refused(good, "paged_cache.slot_mapping.buffer null");
}

TEST_CASE("record: packed QKV is in place and disjoint, bound where the device can bind") {
    // Q, K and V are in one buffer: [tokens, 4 + 2 + 2 heads, 16].
    Given given;
    given.call.batch = 1;
    given.call.tokens = 10;
    given.call.positions.ids.range = 40;
    const VkDeviceSize bytes = 10 * 8 * 16 * 2, lead = 6;
    const auto plane = [&](std::uint32_t first, std::uint32_t heads) {
        Tensor t = tensor(q_buffer, heads, lead + first * 32, bytes + 2 - first * 32);
        t.token_stride = 8 * 16;
        return t;
    };
    given.call.in[Q] = given.call.out[Q] = plane(0, 4);
    given.call.in[K] = given.call.out[K] = plane(4, 2);
    const ResolvedCall resolved = given.valid();
    CHECK(resolved.tensor[Q].in_place);
    CHECK(given.bound(resolved.tensor[Q].in).offset == 0);
    CHECK(given.bound(resolved.tensor[K].in).offset == 128);
    // With one more head, Q reaches into K.
    given.call.in[Q].heads = given.call.out[Q].heads = 5;
    refused(given, "overlap");
}

TEST_CASE("record: rows that alternate are disjoint, at every level") {
    // QKV is [batch, tokens, groups, 4 + 1 + 1 heads, 16], with two bytes per element.
    const auto plane = [](std::uint32_t first, std::uint32_t heads) {
        Tensor t = tensor(q_buffer, 8 * heads, first * 32, 3 * 5 * 8 * 6 * 32 - first * 32);
        t.heads_per_group = heads;
        t.group_stride = 6 * 16;
        t.token_stride = 8 * 6 * 16;
        return t;
    };
    Given given;
    Call& c = given.call;
    c.batch = 3;
    c.tokens = 5;
    c.positions.ids.range = 5 * 4;
    c.positions.batch_stride = broadcast;
    const auto in_place = [&](const Tensor& q, const Tensor& k) {
        c.in[Q] = c.out[Q] = q;
        c.in[K] = c.out[K] = k;
    };
    in_place(plane(0, 4), plane(4, 1));
    const ResolvedCall resolved = given.valid();
    CHECK(resolved.tensor[Q].group_heads == 4);
    CHECK(resolved.tensor[K].group_heads == 8);  // groups of one head count as heads
    CHECK(resolved.tensor[K].in.head == 6 * 16);
    in_place(plane(0, 4), plane(3, 1));
    refused(given, "out[0] out[1] out[0].batch_stride 0 3840");
    // Callers of packed QKV often forget a token stride. The error names the one that is missing.
    Tensor k = plane(4, 1);
    k.token_stride = 0;
    in_place(plane(0, 4), k);
    refused(given, "out[1].token_stride 0 128 688");
    in_place(tensor(q_buffer, 32, 0, 3 * 5 * 8 * 6 * 32), plane(4, 1));
    refused(given, "out[0] out[1] out[0].token_stride 0 512");
    // K is at the end of a group, so that relative to Q it crosses the end of the period.
    in_place(plane(0, 4), plane(5, 1));
    given.valid();
    in_place(plane(1, 4), plane(0, 1));
    given.valid();
    // Q goes out of place into a plane of the same buffer.
    in_place(plane(0, 2), {});
    c.out[Q] = plane(2, 2);
    given.valid();
    c.out[Q] = plane(1, 2);
    refused(given, "in[0] out[0]");
}

namespace {

// Returns a call with two sequences of 4 tokens of Q, 64 f32 channels and implicit positions.
Given of_64_channels() {
    Given given;
    given.info.rotary_dim = 64;
    given.info.positions = VKROPE_POSITIONS_IMPLICIT;
    given.info.tensor[Q] = given.info.tensor[K] = {VKROPE_F32, VKROPE_F32, 64, 0};
    given.layout.pairs = 32;
    given.layout.row_texels = 16;
    given.layout.extent.width = 16;
    given.layout.bytes = 100 * 32 * 8;
    given.limits = {};
    given.call.in[Q] = given.call.out[Q] = tensor(q_buffer, 1, 0, 2 * 4 * 64 * 4);
    given.call.in[K] = given.call.out[K] = {};
    given.call.positions = {.batch_stride = broadcast};
    return given;
}

}  // namespace

TEST_CASE("record: rules of parameters and scales") {
    Given good = of_64_channels();
    Ops& ops = good.info.tensor[Q].ops;
    ops.norm = {.kind = VKROPE_NORM_RMS, .eps = 1e-6f, .weight = VKROPE_PARAMETER_CHANNEL};
    ops.scale_call = ops.scale_tokens = true;
    ops.scale = 2;
    good.call.parameters = at(other_buffer, 16, 256);
    good.call.scale_tokens[Q] = at(other_buffer, 512, 32);
    good.call.q_scale = 0.25f;
    CHECK(good.valid().q_scale == 0.5f);
    CHECK(good.valid().parameters_offset == 4);
    const Broken rules[] = {
        {"parameters.buffer null", [](Given& g) { g.call.parameters = {}; }},
        {"parameters.offset 4 16", [](Given& g) { g.call.parameters.offset = 4; }},
        {"parameters.range 252 256", [](Given& g) { g.call.parameters.range = 252; }},
        {"scale_tokens[0].range 28 32", [](Given& g) { g.call.scale_tokens[Q].range = 28; }},
        {"q_scale nan", [](Given& g) { g.call.q_scale = std::numeric_limits<float>::quiet_NaN(); }},
        {"out[0] parameters", [](Given& g) { g.call.parameters = at(q_buffer, 1024, 256); }},
        {"first_set_tokens 3 one set", [](Given& g) { g.call.first_set_tokens = 3; }},
        {"parameters.range 256 512",
         [](Given& g) {
             g.info.two_parameter_sets = true;
             g.call.first_set_tokens = 3;
         }},
        {"q_scale 0.25 tensor[0].ops.scale_call",
         [](Given& g) { g.info.tensor[Q].ops.scale_call = false; }},
        {"scale_tokens[0]", [](Given& g) { g.info.tensor[Q].ops.scale_tokens = false; }},
    };
    check_record(good, rules);
    good.info.two_parameter_sets = true;
    good.call.parameters.range = 512;
    for (const std::uint32_t tokens : {0u, 4u, 0x80000000u}) {
        good.call.first_set_tokens = tokens;
        refused(good, "first_set_tokens 1 4");
    }
    good.call.first_set_tokens = 3;
    good.valid();
}

TEST_CASE("record: strides, offsets and scales of quantised outputs") {
    Given good = of_64_channels();
    good.info.tensor[Q].out = VKROPE_Q8_0;
    good.info.tensor[K].out = VKROPE_INT8;
    good.info.tensor[K].heads = 2;
    good.info.tensor[K].ops.store_scale = VKROPE_STORE_SCALE_MADE;
    good.call.in[Q] = tensor(q_buffer, 3, 0, 2 * 4 * 3 * 64 * 4);
    good.call.out[Q] = tensor(fake<VkBuffer>(5), 3, 2, 2 * 4 * 3 * 68);
    good.call.in[K] = tensor(k_buffer, 2, 0, 2 * 4 * 2 * 64 * 4);
    good.call.out[K] = tensor(v_buffer, 2, 1, 2 * 4 * 2 * 64);
    good.call.out[Q].buffer_size = good.call.out[K].buffer_size = 2000;
    good.call.scales_out[K] = at(other_buffer, 4, 2 * 4 * 2 * 4);
    const ResolvedCall resolved = good.valid();
    CHECK(resolved.tensor[Q].out.head_dim == 2);
    CHECK(resolved.tensor[Q].out.head == 2);
    CHECK(resolved.tensor[Q].out.token == 6);
    CHECK(resolved.tensor[Q].out.element_bytes == 34);
    CHECK(resolved.tensor[K].out.head == 64);
    const View scales = scales_of(good.info, resolved, K, false);
    CHECK(scales.first_byte == 4);
    CHECK(scales.element_bytes == 8);
    CHECK(scales.batch == 4);
    const Broken rules[] = {
        {"out[0].head_stride 72 32", [](Given& g) { g.call.out[Q].head_stride = 72; }},
        {"out[0].head_stride 32 64", [](Given& g) { g.call.out[Q].head_stride = 32; }},
        {"out[0].where.offset 1 2", [](Given& g) { g.call.out[Q].where.offset = 1; }},
        {"out[0].where.range 1631 1632 out[0].batch_stride 0 768",
         [](Given& g) { g.call.out[Q].where.range = 1631; }},
        {"in[0] out[0]", [](Given& g) { g.call.out[Q].where.buffer = q_buffer; }},
        {"scales_out[1].buffer null", [](Given& g) { g.call.scales_out[K] = {}; }},
        {"scales_out[1].range 60 64", [](Given& g) { g.call.scales_out[K].range = 60; }},
        {"scales_out[0] store_scale",
         [](Given& g) { g.call.scales_out[Q] = g.call.scales_out[K]; }},
        {"out[1] scales_out[1]", [](Given& g) { g.call.scales_out[K] = at(v_buffer, 512, 64); }},
        {"in[0] scales_out[1]", [](Given& g) { g.call.scales_out[K] = at(q_buffer, 512, 64); }},
        {"out_of_range scales_out[1]",
         [](Given& g) { g.call.out_of_range = at(other_buffer, 8, 4); }},
        {"scales_out[1] store_scale",
         [](Given& g) {
             g.info.tensor[Q].out = VKROPE_F32;
             g.info.tensor[K].ops.store_scale = VKROPE_STORE_SCALE_NONE;
             g.call.out[Q] = g.call.in[Q];
         }},
    };
    check_record(good, rules);
}

}  // namespace vkrope
