// SPDX-License-Identifier: MIT
// The rules of record() for ids.
#include "broken_rules.hpp"

namespace vkrope {

TEST_CASE("ids: 32 or 64 bits, any strides, one row for all axes or one each") {
    breaks_record(
        [](KernelInfo&, Call& c) { c.positions.ids.range = 28, c.positions.batch_stride = 4; },
        "positions.ids.range 28");
    breaks_record(
        [](KernelInfo&, Call& c) { c.positions.int64 = true, c.positions.ids.range = 28; },
        "positions.ids.range 28 64");
    breaks_record([](KernelInfo&, Call& c) { c.positions.token_stride = broadcast; },
                  "positions.token_stride 1");
    breaks_record([](KernelInfo&, Call& c) { c.positions.token_stride = 7; },
                  "positions.ids.range 64 200 positions.batch_stride 0 28 broadcast");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.positions.token_stride = 7, c.positions.batch_stride = broadcast;
        },
        "positions.ids.range 64 88");
    breaks_record([](KernelInfo&, Call& c) { c.positions.axis_stride = 4; },
                  "positions.axis_stride 4");
    breaks_record([](KernelInfo&, Call& c) { c.positions.axis_stride = -1; },
                  "positions.axis_stride -1");
    breaks_record(
        [](KernelInfo& i, Call& c) {
            i.positions = VKROPE_POSITIONS_IMPLICIT, c.positions = {.int64 = true};
        },
        "positions.int64");
    breaks_record(
        [](KernelInfo& i, Call& c) { i.positions = VKROPE_POSITIONS_IMPLICIT, c.positions = {}; },
        "positions.batch_stride 0 batch 2 broadcast");
    breaks_record(
        [](KernelInfo& i, Call& c) {
            i.positions = VKROPE_POSITIONS_IMPLICIT, c.positions.ids = {};
            c.positions.batch_stride = 2147483645;
        },
        "positions.first 0 tokens 4 2 batch_stride 2147483645");
    KernelInfo axes = info();
    axes.positions = VKROPE_POSITIONS_AXIS_IDS;
    axes.sections = {.axes = 3, .pairs = {2, 3, 3}};
    CHECK(check(device(), axes));
    AngleTableLayout with_sections = plan();
    with_sections.sections = axes.sections;
    Call c = call();
    c.angles.layout = &with_sections;
    c.positions.ids.range = (2 * 9 + 1 + 4 + 3) * 4;
    c.positions.axis_stride = 9;
    c.positions.batch_stride = 4;
    CHECK(resolve(axes, limits, c));
    c.positions.ids.range -= 4;
    expect(resolve(axes, limits, c).status, VKROPE_ERROR_INVALID_ARGUMENT, "positions.ids.range");
    c.positions.int64 = true;
    c.positions.ids.range = (2 * 9 + 1 + 4 + 3) * 8;
    const auto resolved = resolve(axes, limits, c);
    REQUIRE(resolved);
    CHECK(resolved->ids_axis == 18);
    CHECK(resolved->ids.batch == 8);
    CHECK(resolved->ids.token == 2);
}

TEST_CASE("ids: a stride of 0 is packed; what is shared says broadcast") {
    KernelInfo axes = info();
    axes.positions = VKROPE_POSITIONS_AXIS_IDS;
    axes.sections = {.axes = 3, .pairs = {2, 3, 3}};
    AngleTableLayout with_sections = plan();
    with_sections.sections = axes.sections;
    Call c = call();  // 2 sequences of 4 tokens
    c.angles.layout = &with_sections;
    const struct {
        std::int64_t batch, axis, token;
        std::uint64_t batch_is, axis_is, token_is, bytes;
    } ways[] = {
        {0, 0, 0, 4, 8, 1, 3 * 8 * 4},              // [axes, batch, tokens]
        {broadcast, 0, 0, 0, 4, 1, 3 * 4 * 4},      // [axes, tokens]
        {0, broadcast, 0, 4, 0, 1, 8 * 4},          // [batch, tokens]
        {broadcast, broadcast, 0, 0, 0, 1, 4 * 4},  // [tokens]
        {0, 1, 3, 12, 1, 3, 3 * 8 * 4},             // [batch, tokens, axes]
        {5, 0, 0, 5, 10, 1, (2 * 10 + 5 + 4) * 4},  // gaps between sequences
        {0, 0, 2, 8, 16, 2, (2 * 16 + 8 + 7) * 4},  // gaps between tokens
    };
    for (const auto& way : ways) {
        CAPTURE(way.bytes);
        c.positions.batch_stride = way.batch;
        c.positions.axis_stride = way.axis;
        c.positions.token_stride = way.token;
        c.positions.ids.range = way.bytes;
        const auto resolved = resolve(axes, limits, c);
        REQUIRE_MESSAGE(resolved, resolved.status.what);
        CHECK(resolved->ids.batch == way.batch_is);
        CHECK(resolved->ids.token == way.token_is);
        CHECK(resolved->ids_axis == way.axis_is);
        c.positions.ids.range -= 4;
        expect(resolve(axes, limits, c).status, VKROPE_ERROR_INVALID_ARGUMENT,
               "positions.ids.range");
    }
    // A row for one sequence, and one for all axes, given as if they were shared.
    c.positions = {.ids = {other_buffer, 0, 16}, .axis_stride = broadcast};
    expect(resolve(axes, limits, c).status, VKROPE_ERROR_INVALID_ARGUMENT,
           "positions.ids.range 16 32 positions.batch_stride 0 4 broadcast");
    c.positions = {.ids = {other_buffer, 0, 32}};
    expect(resolve(axes, limits, c).status, VKROPE_ERROR_INVALID_ARGUMENT,
           "positions.ids.range 32 96 positions.axis_stride 0 8 broadcast");
    // Sequences of one token, each with an id of its own.
    c = call();
    c.tokens = 1;
    c.positions.ids.range = 8;
    const auto decoding = resolve(info(), limits, c);
    REQUIRE_MESSAGE(decoding, decoding.status.what);
    CHECK(decoding->ids.batch == 1);
    // Implicit positions have no packed form.
    KernelInfo implicit = info();
    implicit.positions = VKROPE_POSITIONS_IMPLICIT;
    c.positions = {.first = 5, .batch_stride = broadcast};
    CHECK(resolve(implicit, limits, c)->position_step == 0);
    c.positions.batch_stride = 9;
    CHECK(resolve(implicit, limits, c)->position_step == 9);
    c.positions.batch_stride = 0;
    expect(resolve(implicit, limits, c).status, VKROPE_ERROR_INVALID_ARGUMENT,
           "positions.batch_stride 0 batch 2 broadcast");
    c.batch = 1;
    c.in[Q].batch_stride = c.out[Q].batch_stride = 0;
    CHECK(resolve(implicit, limits, c));
}

}  // namespace vkrope
