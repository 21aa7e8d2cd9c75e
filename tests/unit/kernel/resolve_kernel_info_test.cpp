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
                  "device.get_instance_proc_addr null");
    breaks_create([](DeviceRef& d, KernelInfo&) { d.enabled = 64; }, "device.enabled 0x40");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.rotary_dim = 0; }, "rotary_dim 0");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.rotary_dim = 15; }, "rotary_dim 15");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.tensor[Q] = i.tensor[K] = {}; },
                  "tensor[0].head_dim tensor[1].head_dim 0");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.tensor[Q].head_dim = 1; },
                  "tensor[0].head_dim 1");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.tensor[K].head_dim = 65535; },
                  "tensor[1].head_dim 65535");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.tensor[K].rotary_offset = 1; },
                  "tensor[1].rotary_offset 1");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.tensor[Q].rotary_offset = 4294967295u; },
                  "tensor[0].rotary_offset");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.tensor[Q].in = Element(7); }, "tensor[0].in 7");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.tensor[K].out = Element(11); },
                  "tensor[1].out 11");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.pairing = Pairing(7); }, "pairing 7");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.pairing = VKROPE_PAIRING_NONE; }, "pairing 0");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.angles = AngleSource(7); }, "angles 7");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.angles = VKROPE_ANGLES_AUTOMATIC; },
                  "angles VKROPE_ANGLES_AUTOMATIC vkrope_plan_angles");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.positions = PositionSource(7); },
                  "positions 7");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.mapping = Mapping(7); }, "mapping 7");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.conversion = Conversion(3); }, "conversion 3");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.tensor[V].head_dim = 1; },
                  "tensor[2].head_dim 1");
    breaks_create(
        [](DeviceRef&, KernelInfo& i) { i.tensor[V] = {.head_dim = 16, .rotary_offset = 2}; },
        "tensor[2].rotary_offset 2");
    breaks_create(
        [](DeviceRef&, KernelInfo& i) { i.tensor[V] = {.in = Element(7), .head_dim = 16}; },
        "tensor[2].in 7");
    breaks_create([](DeviceRef&,
                     KernelInfo& i) { i.tensor[Q] = i.tensor[K] = {}, i.tensor[V].head_dim = 16; },
                  "tensor[0].head_dim tensor[1].head_dim 0");
}

TEST_CASE("sections: which axis turns a pair") {
    const auto breaks = [](const Sections& sections, const char* names) {
        breaks_create(
            [&](DeviceRef&, KernelInfo& i) {
                i.positions = VKROPE_POSITIONS_AXIS_IDS, i.sections = sections;
            },
            names);
    };
    breaks({}, "sections.axes 0");
    breaks({.axes = 1, .pairs = {8}}, "sections.axes 1");
    breaks({.axes = 9}, "sections.axes 9");
    breaks({.axes = 2}, "sections.pairs 0");
    breaks({.axes = 2, .pairs = {4, 2, 2}}, "sections.pairs[2] 2");
    breaks({.axes = 2, .pairs = {40000, 2}}, "sections.pairs[0] 40000");
    breaks({.order = SectionOrder(3), .axes = 2, .pairs = {4, 4}}, "sections.order 3");
    breaks({.order = VKROPE_SECTIONS_SUM, .axes = 2}, "sections.order sum");
    breaks({.order = VKROPE_SECTIONS_INTERLEAVED, .axes = 2, .pairs = {4, 4}},
           "sections.axes 2 3 4");
    breaks(
        {.order = VKROPE_SECTIONS_INTERLEAVED, .axes = 3, .pairs = {4, 2, 2}, .leftover_axis = 3},
        "sections.leftover_axis 3");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.sections.axes = 2; }, "sections.axes 2");
}

TEST_CASE("phases, head groups and angles of channels: only with sources that have them") {
    const auto breaks = [](void (*change)(KernelInfo&), const char* names) {
        breaks_create([=](DeviceRef&, KernelInfo& i) { change(i); }, names);
    };
    KernelInfo good = info();
    good.angles = VKROPE_ANGLES_COMPUTED;
    good.phase = true;
    good.head_groups = 4;
    good.tensor[Q].heads = 8;
    good.positions = VKROPE_POSITIONS_AXIS_IDS;
    good.sections = {.order = VKROPE_SECTIONS_SUM, .axes = 8};
    CHECK(check(device(), good));
    breaks([](KernelInfo& i) { i.angles = VKROPE_ANGLES_COS_SIN_CACHE, i.phase = true; },
           "phase VK_TRUE VKROPE_ANGLES_COS_SIN_CACHE");
    breaks([](KernelInfo& i) { i.channel_angles = true; },
           "channel_angles VK_TRUE VKROPE_ANGLES_COS_SIN_CACHE 3");
    breaks(
        [](KernelInfo& i) {
            i.angles = VKROPE_ANGLES_COS_SIN_CACHE, i.channel_angles = true;
            i.windows[0] = {0, 8}, i.windows[1] = {8, 8};
        },
        "windows[1].rotary_dim 8 channel_angles");
    breaks([](KernelInfo& i) { i.head_groups = 0; }, "head_groups 0 1 65535");
    breaks([](KernelInfo& i) { i.head_groups = 65536; }, "head_groups 65536");
    breaks([](KernelInfo& i) { i.head_groups = 2; }, "head_groups 2 3");
    breaks(
        [](KernelInfo& i) {
            i.angles = VKROPE_ANGLES_COMPUTED, i.head_groups = 4, i.tensor[K].heads = 6;
        },
        "tensor[1].heads 6 head_groups 4");
    breaks(
        [](KernelInfo& i) {
            i.angles = VKROPE_ANGLES_COMPUTED, i.positions = VKROPE_POSITIONS_AXIS_IDS;
            i.sections = {.order = VKROPE_SECTIONS_SUM, .axes = 2, .pairs = {0, 4}};
        },
        "sections.pairs[1] 4");
}

TEST_CASE("head groups: a norm over a token is refused at create(), not by each call") {
    breaks_create(
        [](DeviceRef&, KernelInfo& i) {
            i.angles = VKROPE_ANGLES_COMPUTED, i.head_groups = 2;
            i.tensor[K].ops.norm = {
                .kind = VKROPE_NORM_RMS, .span = VKROPE_NORM_SPAN_TOKEN, .eps = 1e-6f};
        },
        "head_groups 2 tensor[1].ops 1", VKROPE_ERROR_NOT_SUPPORTED);
}

TEST_CASE("windows: even, ascending, apart, and rotary_dim together") {
    const auto windows = [](std::initializer_list<Window> given) {
        return [=](DeviceRef&, KernelInfo& i) { std::copy(given.begin(), given.end(), i.windows); };
    };
    KernelInfo two = info();
    two.windows[0] = {0, 4};
    two.windows[1] = {4, 12};
    CHECK(check(device(), two));
    breaks_create(windows({{0, 4}, {2, 12}}), "windows[1].offset 2 windows[0] 4");
    breaks_create(windows({{0, 5}, {8, 11}}), "windows[0].rotary_dim 5");
    breaks_create(windows({{0, 4}, {4, 4}}), "rotary_dim 16 8");
    breaks_create(windows({{0, 8}, {9, 8}}), "tensor[0].rotary_offset 0 17 head_dim 16");
    breaks_create(windows({{0, 8}, {0, 0}, {8, 8}}), "windows[2].rotary_dim 8 windows[1]");
    breaks_create(windows({{0, 0}, {0, 16}}), "windows[1].rotary_dim 16 windows[0]");
    breaks_create(windows({{0, 16}, {16, 0}}), "windows[1].rotary_dim 0 16");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.pairing_out = Pairing(9); }, "pairing_out 9");
}

}  // namespace vkrope
