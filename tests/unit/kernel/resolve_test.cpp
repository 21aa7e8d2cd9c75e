// SPDX-License-Identifier: MIT
// A kernel and a call that keep every rule of create() and record(), and the rules that name more
// than one argument.
#include "broken_rules.hpp"

namespace vkrope {

TEST_CASE("a valid kernel and a valid call pass") {
    CHECK(check(device(), info()));
    const auto resolved = resolve(info(), limits, call());
    INFO(resolved.status.what);
    REQUIRE(resolved);
    CHECK(resolved->tensor[Q].in_place);
    CHECK(resolved->tensor[K].in_place);
    CHECK(resolved->tensor[Q].in.head == 16);
    CHECK(resolved->tensor[Q].in.token == 64);
    CHECK(resolved->tensor[Q].in.batch == 256);
    CHECK(resolved->tensor[K].in.token == 32);
    CHECK(bound(resolved->tensor[Q].in, call()).range == 2 * 4 * 4 * 16 * 2);
}

TEST_CASE("record: each broken rule of positions, angles and the counter is named") {
    breaks_record([](KernelInfo&, Call& c) { c.direction = Direction(7); }, "direction 7");
    breaks_record([](KernelInfo&, Call& c) { c.positions.ids = {}; }, "positions.ids.buffer");
    breaks_record([](KernelInfo&, Call& c) { c.positions.ids.offset = 2; },
                  "positions.ids.offset 2");
    breaks_record([](KernelInfo&, Call& c) { c.positions.ids.range = 12; },
                  "positions.ids.range 12");
    breaks_record([](KernelInfo&, Call& c) { c.positions.batch_stride = 16; },
                  "positions.ids.range 64");
    breaks_record([](KernelInfo&, Call& c) { c.positions.batch_stride = -1; },
                  "positions.batch_stride -1");
    breaks_record(
        [](KernelInfo& i, Call& c) {
            i.positions = VKROPE_POSITIONS_IMPLICIT;
            c.positions = {.first = 2147483645, .batch_stride = broadcast};
        },
        "positions.first 2147483645");
    breaks_record([](KernelInfo&, Call& c) { c.angles.layout = nullptr; }, "angles.layout null");
    breaks_record([](KernelInfo&, Call& c) { c.angles.view = VK_NULL_HANDLE; }, "angles.view null");
    breaks_record([](KernelInfo& i, Call&) { i.angles = VKROPE_ANGLES_DIRECT_BUFFER; },
                  "angles.layout->source");
    breaks_record([](KernelInfo& i, Call&) { i.rotary_dim = 8; }, "angles.layout->pairs 8");
    for (const auto& shrink :
         {+[](AngleTableLayout& p) { p.extent.width = 3; },
          +[](AngleTableLayout& p) { p.extent.height = 99; },
          +[](AngleTableLayout& p) { p.fold_log2 = 5; }, +[](AngleTableLayout& p) { p.rows = 0; },
          +[](AngleTableLayout& p) { p.row_texels = 3; }}) {
        AngleTableLayout broken = the_plan;
        shrink(broken);
        breaks_record([&](KernelInfo&, Call& c) { c.angles.layout = &broken; }, "angles.layout");
    }
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.positions.ids = {q_buffer, 1020, 64};
        },
        "out[0] positions.ids");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.out_of_range = {other_buffer, 12, 4};
        },
        "positions.ids out_of_range");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.out[Q].where.buffer = other_buffer;
            c.out[Q].where.offset = 64;
            c.out_of_range = {q_buffer, 8, 4};
        },
        "in[0] out_of_range");
    breaks_record([](KernelInfo&, Call& c) { c.in[Q].buffer_size = c.out[Q].buffer_size = 4092; },
                  "in[0].buffer_size 4092");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.out_of_range = {k_buffer, 0, 4};
        },
        "out[1] out_of_range");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.out_of_range = {other_buffer, 2, 4};
        },
        "out_of_range.offset 2");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.out_of_range = {other_buffer, 0, 2};
        },
        "out_of_range.range 2");
}

TEST_CASE(
    "rows that end in the middle of a word need to know that the buffer has the whole of it") {
    Call c = call();
    c.in[Q].where = c.out[Q].where = {q_buffer, 2, 1024};
    c.in[Q].buffer_size = c.out[Q].buffer_size = 1027;
    expect(resolve(info(), limits, c).status, VKROPE_ERROR_INVALID_ARGUMENT, "in[0] 1026");
    c.in[Q].buffer_size = c.out[Q].buffer_size = 1028;
    const auto resolved = resolve(info(), limits, c);
    INFO(resolved.status.what);
    REQUIRE(resolved);
    CHECK(bound(resolved->tensor[Q].in, c).range == 1028);
}

TEST_CASE(
    "packed QKV is in place and disjoint, and its descriptors start where the device can bind") {
    // [tokens, 4 + 2 + 2 heads, 16]: Q, K and V of one buffer.
    Call c = call();
    c.batch = 1;
    c.tokens = 10;
    const VkDeviceSize bytes = 10 * 8 * 16 * 2, lead = 6;
    const auto plane = [&](std::uint32_t first, std::uint32_t heads) {
        Tensor t = tensor(q_buffer, heads, lead + first * 32, bytes + 2 - first * 32);
        t.token_stride = 8 * 16;
        return t;
    };
    c.in[Q] = c.out[Q] = plane(0, 4);
    c.in[K] = c.out[K] = plane(4, 2);
    const auto resolved = resolve(info(), limits, c);
    INFO(resolved.status.what);
    REQUIRE(resolved);
    CHECK(resolved->tensor[Q].in_place);
    CHECK(bound(resolved->tensor[Q].in, c).offset == 0);
    CHECK(bound(resolved->tensor[K].in, c).offset == 128);
    // With one head more, Q reaches into K.
    c.in[Q].heads = c.out[Q].heads = 5;
    expect(resolve(info(), limits, c).status, VKROPE_ERROR_INVALID_ARGUMENT, "overlap");
}

TEST_CASE("a batch of 0 is one sequence, and a q_scale of 0 is 1") {
    Call c = call();
    c.positions.batch_stride = broadcast;
    c.batch = 0;
    const auto resolved = resolve(info(), limits, c);
    REQUIRE_MESSAGE(resolved, resolved.status.what);
    CHECK(resolved->batch == 1);
    CHECK(resolved->q_scale == 1);
}

TEST_CASE("a call without tokens or tensors needs no buffers") {
    for (const Call& c : {Call{}, Call{.tokens = 5}}) {
        const auto resolved = resolve(info(), limits, c);
        CHECK(resolved);
        CHECK(resolved->tokens == 0);
    }
}

}  // namespace vkrope
