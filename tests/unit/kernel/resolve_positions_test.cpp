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
        "positions.ids.range 28 32");
    breaks_record([](KernelInfo&, Call& c) { c.positions.token_stride = 0; },
                  "positions.token_stride 0");
    breaks_record([](KernelInfo&, Call& c) { c.positions.token_stride = 7; },
                  "positions.ids.range 64 88");
    breaks_record([](KernelInfo&, Call& c) { c.positions.axis_stride = 4; },
                  "positions.axis_stride 4");
    breaks_record([](KernelInfo&, Call& c) { c.positions.axis_stride = -1; },
                  "positions.axis_stride -1");
    breaks_record([](KernelInfo& i,
                     Call& c) { i.positions = PositionSource::implicit, c.positions.int64 = true; },
                  "positions.int64");
    breaks_record(
        [](KernelInfo& i, Call& c) {
            i.positions = PositionSource::implicit, c.positions.batch_stride = 2147483645;
        },
        "positions.first 0 tokens 4 2 batch_stride 2147483645");
    KernelInfo axes = info();
    axes.positions = PositionSource::axis_ids;
    axes.sections = {.axes = 3, .pairs = {2, 3, 3}};
    CHECK(check(device(), axes));
    AnglePlan with_sections = plan();
    with_sections.sections = axes.sections;
    Call c = call();
    c.angles.plan = &with_sections;
    c.positions.ids.range = (2 * 9 + 1 + 4 + 3) * 4;
    c.positions.axis_stride = 9;
    c.positions.batch_stride = 4;
    CHECK(resolve(axes, limits, c));
    c.positions.ids.range -= 4;
    expect(resolve(axes, limits, c).status, Code::invalid_argument, "positions.ids.range");
    c.positions.int64 = true;
    c.positions.ids.range = (2 * 9 + 1 + 4 + 3) * 8;
    const auto resolved = resolve(axes, limits, c);
    REQUIRE(resolved);
    CHECK(resolved->ids_axis == 18);
    CHECK(resolved->ids.batch == 8);
    CHECK(resolved->ids.token == 2);
}

}  // namespace vkrope
