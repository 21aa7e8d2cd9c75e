// SPDX-License-Identifier: MIT
// The rules of record() for angles and for the attention factor.
#include <limits>

#include "broken_rules.hpp"

namespace vkrope {

TEST_CASE("any VkBool32 but 0 is true, in an info and in a plan") {
    KernelInfo given;
    given.scatter_kv = given.phase = given.channel_angles = given.two_parameter_sets = 2;
    const KernelInfo info = completed(given);
    for (const VkBool32 flag :
         {info.scatter_kv, info.phase, info.channel_angles, info.two_parameter_sets})
        CHECK(flag == VK_TRUE);

    KernelInfo phased = vkrope::info();
    phased.phase = VK_TRUE;
    AngleTableLayout with = plan();
    with.phase = 2;
    with.extent.height = 256;
    with.fold_log2 = 8;
    Call c = call();
    c.angles.layout = &with;
    const auto resolved = resolve(phased, limits, c);
    CHECK_MESSAGE(resolved, resolved.status.what);
}

TEST_CASE("a factored table holds the rows of both digits") {
    KernelInfo i = info();
    i.angles = VKROPE_ANGLES_FACTORED_TEXTURE;
    AngleTableLayout good =
        plan();  // 4096 positions: two coarse rows, 2048 fine ones, in columns of 1024
    good.source = VKROPE_ANGLES_FACTORED_TEXTURE;
    good.rows = 4096;
    good.extent = {3 * 4, 1024};
    good.fold_log2 = 10;
    Call c = call();
    c.angles.layout = &good;
    CHECK(resolve(i, limits, c));
    const auto breaks = [&](auto change, const char* names) {
        AngleTableLayout broken = good;
        change(broken);
        c.angles.layout = &broken;
        expect(resolve(i, limits, c).status, VKROPE_ERROR_INVALID_ARGUMENT, names);
        c.angles.layout = &good;
    };
    breaks([](AngleTableLayout& p) { p.source = VKROPE_ANGLES_DIRECT_TEXTURE; },
           "angles.layout->source 3");
    breaks([](AngleTableLayout& p) { p.source = VKROPE_ANGLES_AUTOMATIC; },
           "angles.layout->source 0");
    breaks([](AngleTableLayout& p) { p.rows = 0; }, "angles.layout");
    breaks([](AngleTableLayout& p) { p.rows = 4096 + 1023 * 2048; },
           "angles.layout");  // a row beyond three columns
    breaks([](AngleTableLayout& p) { p.extent.width -= 1; }, "angles.layout");
    breaks([](AngleTableLayout& p) { p.extent.height -= 1; }, "angles.layout");
    breaks([](AngleTableLayout& p) { p.fold_log2 -= 1; }, "angles.layout");
    breaks([](AngleTableLayout& p) { p.row_texels -= 1; }, "angles.layout");
    c.angles.view = VK_NULL_HANDLE;
    expect(resolve(i, limits, c).status, VKROPE_ERROR_INVALID_ARGUMENT, "angles.view null");
}

TEST_CASE("computed angles: a uniform buffer, at an offset at which the device binds one") {
    KernelInfo i = info();
    i.angles = VKROPE_ANGLES_COMPUTED;
    AngleTableLayout good;
    good.source = VKROPE_ANGLES_COMPUTED;
    good.attention_factor = 1;
    good.head_groups = 1;
    good.pairs = 8;
    good.rows = 0x80000001;
    good.bytes = 16 * (2 + 4);
    Call c = call();
    c.angles = {.layout = &good, .buffer = {other_buffer, 512, 96}};
    const auto resolved = resolve(i, limits, c);
    INFO(resolved.status.what);
    REQUIRE(resolved);
    CHECK(resolved->table.buffer == other_buffer);
    CHECK(resolved->table.offset == 512);
    CHECK(resolved->table.range == 96);
    const auto breaks = [&](auto change, const char* names) {
        AngleTableLayout plan_of = good;
        Call broken = c;
        broken.angles.layout = &plan_of;
        change(plan_of, broken);
        expect(resolve(i, limits, broken).status, VKROPE_ERROR_INVALID_ARGUMENT, names);
    };
    breaks([](AngleTableLayout&, Call& b) { b.angles.buffer.buffer = VK_NULL_HANDLE; },
           "angles.buffer.buffer null");
    breaks([](AngleTableLayout&, Call& b) { b.angles.buffer.range = 92; },
           "angles.buffer.range 92");
    breaks([](AngleTableLayout&, Call& b) { b.angles.buffer.offset = 64; },
           "angles.buffer.offset 64 256");
    breaks(
        [](AngleTableLayout&, Call& b) {
            b.angles.buffer = {q_buffer, 256, 96};
        },
        "angles.buffer");
    breaks([](AngleTableLayout& p, Call&) { p.source = VKROPE_ANGLES_FACTORED_TEXTURE; },
           "angles.layout->source 1");
    breaks([](AngleTableLayout& p, Call&) { p.bytes = 80; }, "angles.layout");
    breaks([](AngleTableLayout& p, Call&) { p.rows = 0; }, "angles.layout");
    breaks([](AngleTableLayout& p, Call&) { p.pairs = 7; }, "angles.layout->pairs 7");
    StorageLimits fine = limits;
    fine.uniform_alignment = 64;
    c.angles.buffer.offset = 64;
    c.positions.ids.offset = 256;
    CHECK(resolve(i, fine, c));
}

TEST_CASE("a table of the caller's own: two buffers of whole words") {
    KernelInfo own = info();
    own.angles = VKROPE_ANGLES_COS_SIN_CACHE;
    own.table = VKROPE_F16;
    CHECK(check(device(), own));
    AngleTableLayout table;
    table.source = VKROPE_ANGLES_COS_SIN_CACHE;
    table.attention_factor = 1;
    table.head_groups = 1;
    table.pairs = 8;
    table.rows = 5;
    table.row_stride = 9;
    table.element = VKROPE_F16;
    table.bytes = 88;
    Call good = call();
    good.angles = {
        .layout = &table, .buffer = {other_buffer, 256, 88}, .sin = {other_buffer, 512, 88}};
    CHECK(resolve(own, limits, good));
    const auto breaks = [&](auto change, const char* names) {
        AngleTableLayout broken = table;
        Call c = good;
        c.angles.layout = &broken;
        change(broken, c);
        expect(resolve(own, limits, c).status, VKROPE_ERROR_INVALID_ARGUMENT, names);
    };
    breaks([](AngleTableLayout&, Call& c) { c.angles.sin = {}; }, "angles.sin.buffer null");
    breaks([](AngleTableLayout&, Call& c) { c.angles.buffer.range = 84; },
           "angles.buffer.range 84 88");
    breaks([](AngleTableLayout& p, Call&) { p.element = VKROPE_BF16; }, "angles.layout->element 2");
    breaks([](AngleTableLayout& p, Call&) { p.row_stride = 7; }, "angles.layout");
    breaks([](AngleTableLayout& p, Call&) { p.rows = 6; }, "angles.layout");
    // A little more than 2^64 bytes.
    breaks([](AngleTableLayout& p, Call&) { p.rows = 2147437309, p.row_stride = 2147529989; },
           "angles.layout");
    breaks([](AngleTableLayout&, Call& c) { c.angles.sin.buffer = c.out[Q].where.buffer; },
           "out[0] angles.sin");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.table = Element(3); }, "table 3");
}

TEST_CASE("gain: the attention factor is applied, omitted or divided out") {
    AngleTableLayout factor = the_plan;
    factor.attention_factor = 1.25;
    Call c = call();
    c.angles.layout = &factor;
    CHECK(resolve(info(), limits, c)->gain == 1.0f);
    c.gain = VKROPE_GAIN_OMIT;
    CHECK(resolve(info(), limits, c)->gain == 0.8f);
    c.gain = VKROPE_GAIN_DIVIDE_OUT;
    CHECK(resolve(info(), limits, c)->gain == 0.64f);
    breaks_record([](KernelInfo&, Call& broken) { broken.gain = Gain(9); }, "gain 9");
    for (const double far : {1e-20, 1e20}) {  // 1e40 and 1e-40 are not floats
        factor.attention_factor = far;
        CHECK(resolve(info(), limits, call()));
        breaks_record(
            [&](KernelInfo&, Call& broken) {
                broken.angles.layout = &factor, broken.gain = VKROPE_GAIN_DIVIDE_OUT;
            },
            "angles.layout->attention_factor");
    }
    for (const double bad : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
        factor.attention_factor = bad;
        breaks_record([&](KernelInfo&, Call& broken) { broken.angles.layout = &factor; },
                      "angles.layout->attention_factor");
    }
}

}  // namespace vkrope
