// SPDX-License-Identifier: MIT
// The rules of create(): widths, sections and windows.
#include <algorithm>
#include <initializer_list>

#include "broken_rules.hpp"

namespace vkrope {

TEST_CASE("create: each broken rule is named") {
    breaks_create([](DeviceRef& d, KernelInfo&) { d.instance = nullptr; }, "device.instance");
    breaks_create([](DeviceRef& d, KernelInfo&) { d.physical = nullptr; }, "device.physical");
    breaks_create([](DeviceRef& d, KernelInfo&) { d.device = nullptr; }, "device.device");
    breaks_create([](DeviceRef& d, KernelInfo&) { d.get_instance_proc_addr = nullptr; },
                  "get_instance_proc_addr");
    breaks_create([](DeviceRef& d, KernelInfo&) { d.enabled = 64; }, "device.enabled is 0x40");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.rotary_dim = 0; }, "rotary_dim is 0");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.rotary_dim = 15; }, "rotary_dim is 15");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.q = i.k = {}; }, "head_dim");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.q.head_dim = 1; }, "q.head_dim is 1");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.k.head_dim = 65535; }, "k.head_dim is 65535");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.k.rotary_offset = 1; }, "k.rotary_offset is 1");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.q.rotary_offset = 4294967295u; },
                  "q.rotary_offset");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.q.in = Element(7); }, "q.in is 7");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.k.out = Element(11); }, "k.out is 11");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.pairing = Pairing(7); }, "pairing is 7");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.angles = AngleSource(7); }, "angles is 7");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.angles = AngleSource::by_default; },
                  "angles is by_default: it must be AnglePlan::source, which plan_angles chose");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.positions = PositionSource(7); },
                  "positions is 7");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.mapping = Mapping(7); }, "mapping is 7");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.conversion = Conversion(3); },
                  "conversion is 3");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.v.head_dim = 1; }, "v.head_dim is 1");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.v = {.head_dim = 16, .rotary_offset = 2}; },
                  "v.rotary_offset is 2: V is never rotated");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.v = {.in = Element(7), .head_dim = 16}; },
                  "v.in is 7");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.q = i.k = {}, i.v.head_dim = 16; },
                  "q.head_dim and k.head_dim are both 0");
}

TEST_CASE("sections: which axis turns a pair") {
    const auto breaks = [](const Sections& sections, const char* names) {
        breaks_create(
            [&](DeviceRef&, KernelInfo& i) {
                i.positions = PositionSource::axis_ids, i.sections = sections;
            },
            names);
    };
    breaks({}, "sections.axes is 0");
    breaks({.axes = 1, .pairs = {8}}, "sections.axes is 1");
    breaks({.axes = 9}, "sections.axes is 9");
    breaks({.axes = 2}, "sections.pairs are all 0");
    breaks({.axes = 2, .pairs = {4, 2, 2}}, "sections.pairs[2] is 2");
    breaks({.axes = 2, .pairs = {40000, 2}}, "sections.pairs[0] is 40000");
    breaks({.order = SectionOrder(3), .axes = 2, .pairs = {4, 4}}, "sections.order is 3");
    breaks({.order = SectionOrder::sum, .axes = 2},
           "sections.order is sum: angles must be computed");
    breaks({.order = SectionOrder::interleaved, .axes = 2, .pairs = {4, 4}},
           "sections.axes is 2: interleaved sections must have 3 or 4");
    breaks({.order = SectionOrder::interleaved, .axes = 3, .pairs = {4, 2, 2}, .leftover_axis = 3},
           "sections.leftover_axis is 3");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.sections.axes = 2; },
                  "sections.axes is 2: without axis_ids");
}

TEST_CASE("phases, head groups and angles of channels: only with sources that have them") {
    const auto breaks = [](void (*change)(KernelInfo&), const char* names) {
        breaks_create([=](DeviceRef&, KernelInfo& i) { change(i); }, names);
    };
    KernelInfo good = info();
    good.angles = AngleSource::computed;
    good.phase = true;
    good.head_groups = 4;
    good.q_heads = 8;
    good.positions = PositionSource::axis_ids;
    good.sections = {.order = SectionOrder::sum, .axes = 8};
    CHECK(check(device(), good));
    breaks([](KernelInfo& i) { i.angles = AngleSource::cos_sin_cache, i.phase = true; },
           "phase is true: a cos_sin_cache holds whole angles");
    breaks([](KernelInfo& i) { i.channel_angles = true; },
           "channel_angles is true: angles must be cos_sin_cache, but it is 3");
    breaks(
        [](KernelInfo& i) {
            i.angles = AngleSource::cos_sin_cache, i.channel_angles = true;
            i.windows[0] = {0, 8}, i.windows[1] = {8, 8};
        },
        "windows[1].rotary_dim is 8: with channel_angles there must be one window");
    breaks([](KernelInfo& i) { i.head_groups = 0; }, "head_groups is 0: it must be 1 to 65535");
    breaks([](KernelInfo& i) { i.head_groups = 65536; }, "head_groups is 65536");
    breaks([](KernelInfo& i) { i.head_groups = 2; },
           "head_groups is 2: angles must be computed, but it is 3");
    breaks(
        [](KernelInfo& i) { i.angles = AngleSource::computed, i.head_groups = 4, i.k_heads = 6; },
        "k_heads is 6: it must be a multiple of head_groups, 4");
    breaks(
        [](KernelInfo& i) {
            i.angles = AngleSource::computed, i.positions = PositionSource::axis_ids;
            i.sections = {.order = SectionOrder::sum, .axes = 2, .pairs = {0, 4}};
        },
        "sections.pairs[1] is 4: in a sum every axis turns every pair, so it must be 0");
}

TEST_CASE("head groups: a norm over a token is refused at create(), not by each call") {
    breaks_create(
        [](DeviceRef&, KernelInfo& i) {
            i.angles = AngleSource::computed, i.head_groups = 2;
            i.k_finish.norm = {.kind = NormKind::rms, .span = NormSpan::token, .eps = 1e-6f};
        },
        "head_groups is 2: with a norm over a token (k_finish) it must be 1", Code::not_supported);
}

TEST_CASE("windows: even, ascending, apart, and rotary_dim together") {
    const auto windows = [](std::initializer_list<Window> given) {
        return [=](DeviceRef&, KernelInfo& i) { std::copy(given.begin(), given.end(), i.windows); };
    };
    KernelInfo two = info();
    two.windows[0] = {0, 4};
    two.windows[1] = {4, 12};
    CHECK(check(device(), two));
    breaks_create(windows({{0, 4}, {2, 12}}), "windows[1].offset is 2: windows[0] ends at 4");
    breaks_create(windows({{0, 5}, {8, 11}}), "windows[0].rotary_dim is 5");
    breaks_create(windows({{0, 4}, {4, 4}}),
                  "rotary_dim is 16: the windows have 8 channels together");
    breaks_create(windows({{0, 8}, {9, 8}}),
                  "q.rotary_offset is 0: the last window ends at channel 17, past head_dim 16");
    breaks_create(windows({{0, 8}, {0, 0}, {8, 8}}),
                  "windows[2].rotary_dim is 8: windows[1], before it, must be set too");
    breaks_create(windows({{0, 0}, {0, 16}}),
                  "windows[1].rotary_dim is 16: windows[0], before it, must be set too");
    breaks_create(windows({{0, 16}, {16, 0}}),
                  "windows[1].rotary_dim is 0 but its offset is 16: both must be 0");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.pairing_out = Pairing(9); },
                  "pairing_out is 9");
}

}  // namespace vkrope
