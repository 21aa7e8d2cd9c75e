// SPDX-License-Identifier: MIT
// Every rule that an argument of create() or record() can break: the code, and the name of the
// field in the sentence.
#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>

#include "arguments.hpp"

namespace vkrope {

namespace {

const VkBuffer q_buffer = fake<VkBuffer>(1), k_buffer = fake<VkBuffer>(2),
               other_buffer = fake<VkBuffer>(3), v_buffer = fake<VkBuffer>(4);
constexpr StorageLimits limits{.offset_alignment = 64, .range = 1u << 20};

KernelInfo info() {
    return {.rotary_dim = 16,
            .q = {Element::f16, Element::f16, 16, 0},
            .k = {Element::f16, Element::f16, 16, 0},
            .angles = AngleSource::direct_texture,
            .positions = PositionSource::ids};
}

AnglePlan plan() {
    AnglePlan p;
    p.source = AngleSource::direct_texture;
    p.pairs = 8;
    p.rows = 100;
    p.bytes = 100 * 8 * 8;
    p.row_texels = 4;
    p.fold_log2 = 7;
    p.extent = {4, 100};
    return p;
}
const AnglePlan the_plan = plan();

Tensor tensor(VkBuffer buffer, std::uint32_t heads, VkDeviceSize offset = 0,
              VkDeviceSize range = 4096) {
    return {.where = {buffer, offset, range}, .heads = heads};
}

// Valid: 2 sequences of 4 tokens, 4 and 2 heads of 16 channels, in place.
Call call() {
    Call c{.batch = 2, .tokens = 4};
    c.q_in = c.q_out = tensor(q_buffer, 4);
    c.k_in = c.k_out = tensor(k_buffer, 2);
    c.positions.ids = {other_buffer, 0, 64};
    c.angles = {.plan = &the_plan, .view = fake<VkImageView>(9)};
    return c;
}

VkDescriptorBufferInfo bound(const View& view, const Call& c) {
    const std::uint64_t span = span_of(view, view.heads,
                                       {.batch = c.batch, .heads = view.heads, .tokens = c.tokens});
    return binding_of(view.buffer, view.first_byte, span * view.element_bytes, limits);
}

void expect(const Status& status, Code code, const char* names) {
    INFO(status.what);
    CHECK(status.code == code);
    CHECK(std::string(status.what).find(names) != std::string::npos);
}

template <class Change>
void breaks_create(Change change, const char* names, Code code = Code::invalid_argument) {
    DeviceRef d = device();
    KernelInfo i = info();
    change(d, i);
    expect(check(d, i), code, names);
}

template <class Change>
void breaks_record(Change change, const char* names, Code code = Code::invalid_argument) {
    KernelInfo i = info();
    Call c = call();
    change(i, c);
    expect(resolve(i, limits, c).status, code, names);
}

}  // namespace

TEST_CASE("a valid kernel and a valid call pass") {
    CHECK(check(device(), info()));
    const auto resolved = resolve(info(), limits, call());
    INFO(resolved.status.what);
    REQUIRE(resolved);
    CHECK(resolved->q.in_place);
    CHECK(resolved->k.in_place);
    CHECK(resolved->q.in.head == 16);
    CHECK(resolved->q.in.token == 64);
    CHECK(resolved->q.in.batch == 256);
    CHECK(resolved->k.in.token == 32);
    CHECK(bound(resolved->q.in, call()).range == 2 * 4 * 4 * 16 * 2);
}

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
    breaks_create([](DeviceRef&, KernelInfo& i) { i.k.out = Element(7); }, "k.out is 7");
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

TEST_CASE("V: its rows are wherever the caller says, wider or narrower than those that rotate") {
    KernelInfo i = info();
    i.v = {Element::f32, Element::bf16, 8, 0};  // fewer channels than rotary_dim
    CHECK(check(device(), i));
    Call c = call();
    c.v_in = tensor(v_buffer, 3);
    c.v_out = tensor(v_buffer, 3, 2048, 1024);
    const auto resolved = resolve(i, limits, c);
    INFO(resolved.status.what);
    REQUIRE(resolved);
    CHECK(resolved->v.heads == 3);
    CHECK_FALSE(resolved->v.in_place);
    CHECK(resolved->v.in.element_bytes == 4);
    CHECK(resolved->v.out.element_bytes == 2);
    CHECK(resolved->v.out.token == 3 * 8);
    const auto breaks = [&](auto change, const char* names) {
        KernelInfo changed = i;
        Call broken = c;
        change(changed, broken);
        expect(resolve(changed, limits, broken).status, Code::invalid_argument, names);
    };
    breaks([](KernelInfo& k, Call&) { k.v = {}; },
           "v_in.heads is 3: the kernel was created without v");
    breaks([](KernelInfo& k, Call&) { k.v_heads = 2; },
           "v_in.heads is 3: the kernel was created for v_heads 2");
    breaks([](KernelInfo&, Call& b) { b.v_out.heads = 2; },
           "v_out.heads is 2: it must be v_in.heads, 3");
    breaks([](KernelInfo&, Call& b) { b.v_out.where.buffer = nullptr; },
           "v_out.where.buffer is null");
    breaks([](KernelInfo&, Call& b) { b.v_in.where.range = 4; }, "v_in.where.range is 4");
    breaks([](KernelInfo&, Call& b) { b.v_out.token_stride = -1; }, "v_out.token_stride is -1");
    breaks([](KernelInfo&, Call& b) { b.v_out.where.offset = 64; }, "v_in and v_out overlap");
    breaks([](KernelInfo&, Call& b) { b.v_out.where = b.q_out.where; }, "q_out and v_out overlap");
    breaks([](KernelInfo&, Call& b) { b.v_out.where = b.k_out.where; }, "k_out and v_out overlap");
    breaks([](KernelInfo&, Call& b) { b.v_in.where = b.k_out.where; }, "k_out and v_in overlap");
    breaks([](KernelInfo&, Call& b) { b.v_in.where = b.q_out.where; }, "q_out and v_in overlap");
    breaks(
        [](KernelInfo&, Call& b) {
            b.out_of_range = {v_buffer, 2048, 4};
        },
        "v_out and out_of_range overlap");
    breaks(
        [](KernelInfo&, Call& b) {
            b.out_of_range = {v_buffer, 0, 4};
        },
        "v_in and out_of_range overlap");
    breaks(
        [](KernelInfo&, Call& b) {
            b.v_out.where = {other_buffer, 0, 1024};
        },
        "v_out and positions.ids overlap");
    // In place with another pairing, which does not concern V.
    KernelInfo other = i;
    other.v.in = Element::bf16;
    other.pairing_out = Pairing::interleaved;
    Call in_place = c;
    in_place.q_out = tensor(q_buffer, 4, 4096), in_place.k_out = tensor(k_buffer, 2, 4096);
    in_place.v_in = in_place.v_out;
    const auto same = resolve(other, limits, in_place);
    INFO(same.status.what);
    REQUIRE(same);
    CHECK(same->v.in_place);
    // V alone.
    in_place.q_in = in_place.q_out = in_place.k_in = in_place.k_out = {};
    CHECK(resolve(other, limits, in_place));
}

TEST_CASE(
    "V in pages: the caches may share a buffer, and a slot that one of them lacks is outside") {
    KernelInfo i = info();
    i.v = i.k;
    i.scatter_k = true;
    Call c = call();
    // [pages, K and V, 4 rows, 2 heads, 16 channels] in f16
    constexpr VkDeviceSize half_page = 4 * 2 * 16 * 2, buffer = 5 * 2 * half_page;
    c.k_out = tensor(other_buffer, 2, 1024, buffer - half_page);
    c.v_in = tensor(v_buffer, 2);
    c.v_out = tensor(other_buffer, 2, 1024 + half_page, buffer - half_page);
    c.paged_cache.slot_mapping = {other_buffer, 64, 2 * 4 * 4};
    c.paged_cache.page_size = 4;
    c.paged_cache.page_stride = 2 * half_page / 2;
    const auto resolved = resolve(i, limits, c);
    INFO(resolved.status.what);
    REQUIRE(resolved);
    CHECK(resolved->k.pages == 5);
    CHECK(resolved->v.pages == 5);
    Call shorter = c;
    shorter.v_out.where.range -= 2 * half_page;
    const auto fewer = resolve(i, limits, shorter);
    REQUIRE(fewer);
    CHECK(fewer->k.pages == 4);
    CHECK(fewer->v.pages == 4);
    Call reaches = c;
    reaches.v_out.where.offset -= 32;
    expect(resolve(i, limits, reaches).status, Code::invalid_argument, "k_out and v_out overlap");
    Call strided = c;
    strided.v_out.token_stride = 32;
    expect(resolve(i, limits, strided).status, Code::invalid_argument,
           "v_out.token_stride is 32: with paged_cache it must be 0");
    // Rules that only V breaks name V.
    Call short_rows = c;
    short_rows.v_in.heads = short_rows.v_out.heads = 3;
    short_rows.v_out.where = {v_buffer, 2048, buffer};
    short_rows.paged_cache.row_stride = 32;
    expect(resolve(i, limits, short_rows).status, Code::invalid_argument,
           "v_out: paged_cache.row_stride is 32: it must be at least the 48 elements");
    short_rows.paged_cache = {.slot_mapping = c.paged_cache.slot_mapping, .row_stride = 32};
    expect(
        resolve(i, limits, short_rows).status, Code::invalid_argument,
        "paged_cache.page_size is 1, its default: with row_stride 32 it must be the rows of a page "
        "of v_out");
    // V alone has slots, too.
    Call alone = c;
    alone.k_in = alone.k_out = {};
    CHECK(resolve(i, limits, alone));
    alone.paged_cache.slot_mapping = {};
    expect(resolve(i, limits, alone).status, Code::invalid_argument,
           "paged_cache.slot_mapping.buffer is null");
}

TEST_CASE("record: each broken rule of a tensor is named") {
    breaks_record([](KernelInfo&, Call& c) { c.q_out.heads = 3; }, "q_out.heads is 3");
    breaks_record([](KernelInfo& i, Call&) { i.k = {}; }, "k_in.heads is 2");
    breaks_record([](KernelInfo&, Call& c) { c.k_in.where.buffer = VK_NULL_HANDLE; },
                  "k_in.where.buffer");
    breaks_record([](KernelInfo&, Call& c) { c.q_in.where.range = VK_WHOLE_SIZE; },
                  "q_in.where.range is VK_WHOLE_SIZE");
    breaks_record([](KernelInfo&, Call& c) { c.q_in.where.offset = 1; }, "q_in.where.offset is 1");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.q_in.where = c.q_out.where = {q_buffer, 2, 1024};
        },
        "q_in ends at byte 1026");
    breaks_record([](KernelInfo&, Call& c) { c.q_in.where.range = 1020; },
                  "q_in.where.range is 1020 bytes: its rows reach 1024");
    breaks_record([](KernelInfo&, Call& c) { c.q_in.token_stride = -1; },
                  "q_in.token_stride is -1");
    breaks_record([](KernelInfo&, Call& c) { c.q_in.batch_stride = INT64_MAX; }, "q_in");
    breaks_record([](KernelInfo&, Call& c) { c.q_in.token_stride = INT64_MAX / 2; }, "q_in");
    breaks_record([](KernelInfo&, Call& c) { c.q_in.batch_stride = c.q_out.batch_stride = 8; },
                  "q_out.batch_stride is 8");
    breaks_record([](KernelInfo&, Call& c) { c.k_in = c.k_out = c.q_in; },
                  "q_out and k_out overlap");
    breaks_record([](KernelInfo&, Call& c) { c.q_out.where.offset = 64; },
                  "q_in and q_out overlap");
    breaks_record(
        [](KernelInfo&, Call& c) { c.q_in.token_stride = 64, c.q_out.token_stride = 128; },
        "q_in and q_out overlap");
    // A stride of 0 is named with its packed value; a stride that was given is not.
    breaks_record([](KernelInfo&, Call& c) { c.q_out.token_stride = 128; },
                  "q_in.token_stride is 0, which stands for 64, and q_out's is 128");
    breaks_record([](KernelInfo&, Call& c) { c.q_in.head_stride = c.q_out.head_stride = 64; },
                  "q_out.token_stride is 0, which stands for 64");
    breaks_record([](KernelInfo&, Call& c) { c.q_in.head_stride = c.q_out.head_stride = 80; },
                  "q_out.token_stride is 0, which stands for 64: the faster axes then cover 208 "
                  "elements, so q_out.head_stride, 80, is too small");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.q_in.head_stride = c.q_out.head_stride = 64;
            c.q_in.token_stride = c.q_out.token_stride = 16;
        },
        "q_out.batch_stride is 0, which stands for 64");
    // Rows that reach too far: the error names the stride that was given, unless a stride of 0 must
    // step over it.
    breaks_record([](KernelInfo&, Call& c) { c.q_in.token_stride = 600; },
                  "its rows reach 8528, with q_in.token_stride 600 elements");
    breaks_record([](KernelInfo&, Call& c) { c.q_in.head_stride = 640; },
                  "with q_in.token_stride 0, which stands for 64 elements");
    breaks_record([](KernelInfo&, Call& c) { c.q_in.where.range = 64; },
                  "with q_in.batch_stride 0, which stands for 256 elements");
    breaks_record([](KernelInfo& i, Call&) { i.q.out = Element::bf16; }, "q_in and q_out overlap");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.k_out = tensor(q_buffer, 2, 4096 - 1024, 4096);
            c.q_in.where.range = c.q_out.where.range = 8192;
            c.q_in.token_stride = c.q_out.token_stride = 512;
        },
        "overlap");
    breaks_record([](KernelInfo&, Call& c) { c.q_out.head_stride = broadcast; },
                  "q_out.head_stride is broadcast");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.q_in.head_stride = broadcast;
            c.q_in.heads_per_group = 2;
        },
        "q_in.heads_per_group is 2");
    breaks_record([](KernelInfo&, Call& c) { c.q_in.heads_per_group = 3; },
                  "q_in.heads_per_group is 3: it must divide heads, 4");
    breaks_record([](KernelInfo&, Call& c) { c.k_in.group_stride = 64; },
                  "k_in.group_stride is 64: without heads_per_group");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.q_in.heads_per_group = c.q_out.heads_per_group = 2;
            c.q_in.group_stride = c.q_out.group_stride = 24;
        },
        "q_out.group_stride is 24: it must be at least the 32 elements");
    breaks_record([](KernelInfo& i, Call&) { i.pairing_out = Pairing::interleaved; },
                  "q_in and q_out are in place: the kernel's pairing_out");
}

TEST_CASE("record: each broken rule of positions, angles and the counter is named") {
    breaks_record([](KernelInfo&, Call& c) { c.direction = Direction(7); }, "direction is 7");
    breaks_record([](KernelInfo&, Call& c) { c.positions.ids = {}; }, "positions.ids.buffer");
    breaks_record([](KernelInfo&, Call& c) { c.positions.ids.offset = 2; },
                  "positions.ids.offset is 2");
    breaks_record([](KernelInfo&, Call& c) { c.positions.ids.range = 12; },
                  "positions.ids.range is 12");
    breaks_record([](KernelInfo&, Call& c) { c.positions.batch_stride = 16; },
                  "positions.ids.range is 64");
    breaks_record([](KernelInfo&, Call& c) { c.positions.batch_stride = -1; },
                  "positions.batch_stride is -1");
    breaks_record(
        [](KernelInfo& i, Call& c) {
            i.positions = PositionSource::implicit;
            c.positions.first = 2147483645;
        },
        "positions.first is 2147483645");
    breaks_record([](KernelInfo&, Call& c) { c.angles.plan = nullptr; }, "angles.plan is null");
    breaks_record([](KernelInfo&, Call& c) { c.angles.view = VK_NULL_HANDLE; },
                  "angles.view is null");
    breaks_record([](KernelInfo& i, Call&) { i.angles = AngleSource::direct_buffer; },
                  "angles.plan->source");
    breaks_record([](KernelInfo& i, Call&) { i.rotary_dim = 8; }, "angles.plan->pairs is 8");
    for (const auto& shrink :
         {+[](AnglePlan& p) { p.extent.width = 3; }, +[](AnglePlan& p) { p.extent.height = 99; },
          +[](AnglePlan& p) { p.fold_log2 = 5; }, +[](AnglePlan& p) { p.rows = 0; },
          +[](AnglePlan& p) { p.row_texels = 3; }}) {
        AnglePlan broken = the_plan;
        shrink(broken);
        breaks_record([&](KernelInfo&, Call& c) { c.angles.plan = &broken; }, "angles.plan");
    }
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.positions.ids = {q_buffer, 1020, 64};
        },
        "q_out and positions.ids overlap");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.out_of_range = {other_buffer, 12, 4};
        },
        "positions.ids and out_of_range overlap");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.q_out.where.buffer = other_buffer;
            c.q_out.where.offset = 64;
            c.out_of_range = {q_buffer, 8, 4};
        },
        "q_in and out_of_range overlap");
    breaks_record([](KernelInfo&, Call& c) { c.q_in.buffer_size = c.q_out.buffer_size = 4092; },
                  "q_in.buffer_size is 4092");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.out_of_range = {k_buffer, 0, 4};
        },
        "k_out and out_of_range overlap");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.out_of_range = {other_buffer, 2, 4};
        },
        "out_of_range.offset is 2");
    breaks_record(
        [](KernelInfo&, Call& c) {
            c.out_of_range = {other_buffer, 0, 2};
        },
        "out_of_range.range is 2");
}

TEST_CASE(
    "rows that end in the middle of a word need to know that the buffer has the whole of it") {
    Call c = call();
    c.q_in.where = c.q_out.where = {q_buffer, 2, 1024};
    c.q_in.buffer_size = c.q_out.buffer_size = 1027;
    expect(resolve(info(), limits, c).status, Code::invalid_argument,
           "q_in ends at byte 1026, in the middle of a word");
    c.q_in.buffer_size = c.q_out.buffer_size = 1028;
    const auto resolved = resolve(info(), limits, c);
    INFO(resolved.status.what);
    REQUIRE(resolved);
    CHECK(bound(resolved->q.in, c).range == 1028);
}

TEST_CASE("a factored table holds the rows of both digits") {
    KernelInfo i = info();
    i.angles = AngleSource::factored_texture;
    AnglePlan good = plan();  // 4096 positions: two coarse rows, 2048 fine ones, in columns of 1024
    good.source = AngleSource::factored_texture;
    good.rows = 4096;
    good.extent = {3 * 4, 1024};
    good.fold_log2 = 10;
    Call c = call();
    c.angles.plan = &good;
    CHECK(resolve(i, limits, c));
    const auto breaks = [&](auto change, const char* names) {
        AnglePlan broken = good;
        change(broken);
        c.angles.plan = &broken;
        expect(resolve(i, limits, c).status, Code::invalid_argument, names);
        c.angles.plan = &good;
    };
    breaks([](AnglePlan& p) { p.source = AngleSource::direct_texture; },
           "angles.plan->source is 3: the kernel was created for 1");
    breaks([](AnglePlan& p) { p.source = AngleSource::by_default; },
           "angles.plan->source is 0: the kernel was created for 1");
    breaks([](AnglePlan& p) { p.rows = 0; }, "angles.plan");
    breaks([](AnglePlan& p) { p.rows = 4096 + 1023 * 2048; },
           "angles.plan");  // a row beyond three columns
    breaks([](AnglePlan& p) { p.extent.width -= 1; }, "angles.plan");
    breaks([](AnglePlan& p) { p.extent.height -= 1; }, "angles.plan");
    breaks([](AnglePlan& p) { p.fold_log2 -= 1; }, "angles.plan");
    breaks([](AnglePlan& p) { p.row_texels -= 1; }, "angles.plan");
    c.angles.view = VK_NULL_HANDLE;
    expect(resolve(i, limits, c).status, Code::invalid_argument, "angles.view is null");
}

TEST_CASE("computed angles: a uniform buffer, at an offset at which the device binds one") {
    KernelInfo i = info();
    i.angles = AngleSource::computed;
    AnglePlan good;
    good.source = AngleSource::computed;
    good.pairs = 8;
    good.rows = 0x80000001;
    good.bytes = 16 * (2 + 4);
    Call c = call();
    c.angles = {.plan = &good, .buffer = {other_buffer, 512, 96}};
    const auto resolved = resolve(i, limits, c);
    INFO(resolved.status.what);
    REQUIRE(resolved);
    CHECK(resolved->table.buffer == other_buffer);
    CHECK(resolved->table.offset == 512);
    CHECK(resolved->table.range == 96);
    const auto breaks = [&](auto change, const char* names) {
        AnglePlan plan_of = good;
        Call broken = c;
        broken.angles.plan = &plan_of;
        change(plan_of, broken);
        expect(resolve(i, limits, broken).status, Code::invalid_argument, names);
    };
    breaks([](AnglePlan&, Call& b) { b.angles.buffer.buffer = VK_NULL_HANDLE; }, "angles.buffer");
    breaks([](AnglePlan&, Call& b) { b.angles.buffer.range = 92; }, "angles.buffer.range is 92");
    breaks([](AnglePlan&, Call& b) { b.angles.buffer.offset = 64; },
           "angles.buffer.offset is 64: for computed angles it must be a multiple of 256 "
           "(minUniformBufferOffsetAlignment)");
    breaks(
        [](AnglePlan&, Call& b) {
            b.angles.buffer = {q_buffer, 256, 96};
        },
        "angles.buffer overlap");
    breaks([](AnglePlan& p, Call&) { p.source = AngleSource::factored_texture; },
           "angles.plan->source is 1");
    breaks([](AnglePlan& p, Call&) { p.bytes = 80; }, "angles.plan");
    breaks([](AnglePlan& p, Call&) { p.rows = 0; }, "angles.plan");
    breaks([](AnglePlan& p, Call&) { p.pairs = 7; }, "angles.plan->pairs is 7");
    StorageLimits fine = limits;
    fine.uniform_alignment = 64;
    c.angles.buffer.offset = 64;
    c.positions.ids.offset = 256;
    CHECK(resolve(i, fine, c));
}

TEST_CASE("ids: 32 or 64 bits, any strides, one row for all axes or one each") {
    breaks_record(
        [](KernelInfo&, Call& c) { c.positions.ids.range = 28, c.positions.batch_stride = 4; },
        "positions.ids.range is 28");
    breaks_record(
        [](KernelInfo&, Call& c) { c.positions.int64 = true, c.positions.ids.range = 28; },
        "at least 32");
    breaks_record([](KernelInfo&, Call& c) { c.positions.token_stride = 0; },
                  "positions.token_stride is 0");
    breaks_record([](KernelInfo&, Call& c) { c.positions.token_stride = 7; }, "at least 88");
    breaks_record([](KernelInfo&, Call& c) { c.positions.axis_stride = 4; },
                  "positions.axis_stride is 4: the kernel was created for one");
    breaks_record([](KernelInfo&, Call& c) { c.positions.axis_stride = -1; },
                  "positions.axis_stride is -1");
    breaks_record([](KernelInfo& i,
                     Call& c) { i.positions = PositionSource::implicit, c.positions.int64 = true; },
                  "positions.int64");
    breaks_record(
        [](KernelInfo& i, Call& c) {
            i.positions = PositionSource::implicit, c.positions.batch_stride = 2147483645;
        },
        "positions.first is 0: with tokens 4, batch 2 and batch_stride 2147483645");
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
    breaks({.order = SectionOrder(2), .axes = 2, .pairs = {4, 4}}, "sections.order is 2");
    breaks({.order = SectionOrder::interleaved, .axes = 2, .pairs = {4, 4}},
           "sections.axes is 2: interleaved sections must have 3 or 4");
    breaks({.order = SectionOrder::interleaved, .axes = 3, .pairs = {4, 2, 2}, .leftover_axis = 3},
           "sections.leftover_axis is 3");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.sections.axes = 2; },
                  "sections.axes is 2: without axis_ids");
}

TEST_CASE("a table of the caller's own: two buffers of whole words") {
    KernelInfo own = info();
    own.angles = AngleSource::cos_sin_cache;
    own.table = Element::f16;
    CHECK(check(device(), own));
    AnglePlan table;
    table.source = AngleSource::cos_sin_cache;
    table.pairs = 8;
    table.rows = 5;
    table.row_stride = 9;
    table.element = Element::f16;
    table.bytes = 88;
    Call good = call();
    good.angles = {
        .plan = &table, .buffer = {other_buffer, 256, 88}, .sin = {other_buffer, 512, 88}};
    CHECK(resolve(own, limits, good));
    const auto breaks = [&](auto change, const char* names) {
        AnglePlan broken = table;
        Call c = good;
        c.angles.plan = &broken;
        change(broken, c);
        expect(resolve(own, limits, c).status, Code::invalid_argument, names);
    };
    breaks([](AnglePlan&, Call& c) { c.angles.sin = {}; }, "angles.sin.buffer is null");
    breaks([](AnglePlan&, Call& c) { c.angles.buffer.range = 84; },
           "angles.buffer.range is 84 bytes: it must be at least 88");
    breaks([](AnglePlan& p, Call&) { p.element = Element::bf16; }, "angles.plan->element is 2");
    breaks([](AnglePlan& p, Call&) { p.row_stride = 7; }, "angles.plan");
    breaks([](AnglePlan& p, Call&) { p.rows = 6; }, "angles.plan");
    // A little more than 2^64 bytes.
    breaks([](AnglePlan& p, Call&) { p.rows = 2147437309, p.row_stride = 2147529989; },
           "angles.plan");
    breaks([](AnglePlan&, Call& c) { c.angles.sin.buffer = c.q_out.where.buffer; },
           "q_out and angles.sin overlap");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.table = Element(3); }, "table is 3");
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
                  "q.rotary_offset is 0: with rotary_dim 16 the window ends past head_dim 16");
    breaks_create(windows({{0, 8}, {0, 0}, {8, 8}}),
                  "windows[2].rotary_dim is 8: windows[1], before it, must be set too");
    breaks_create(windows({{0, 0}, {0, 16}}), "windows[0].rotary_dim is 0");
    breaks_create(windows({{0, 16}, {16, 0}}),
                  "windows[1].rotary_dim is 0 but its offset is 16: both must be 0");
    breaks_create([](DeviceRef&, KernelInfo& i) { i.pairing_out = Pairing(9); },
                  "pairing_out is 9");
}

TEST_CASE("gain: what is left of the attention factor") {
    AnglePlan factor = the_plan;
    factor.attention_factor = 1.25;
    Call c = call();
    c.angles.plan = &factor;
    CHECK(resolve(info(), limits, c)->gain == 1.0f);
    c.gain = Gain::omit;
    CHECK(resolve(info(), limits, c)->gain == 0.8f);
    c.gain = Gain::divide_out;
    CHECK(resolve(info(), limits, c)->gain == 0.64f);
    breaks_record([](KernelInfo&, Call& broken) { broken.gain = Gain(9); }, "gain is 9");
    for (const double far : {1e-20, 1e20}) {  // 1e40 and 1e-40 are not floats
        factor.attention_factor = far;
        CHECK(resolve(info(), limits, call()));
        breaks_record(
            [&](KernelInfo&, Call& broken) {
                broken.angles.plan = &factor, broken.gain = Gain::divide_out;
            },
            "angles.plan->attention_factor");
    }
    for (const double bad : {0.0, -1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
        factor.attention_factor = bad;
        breaks_record([&](KernelInfo&, Call& broken) { broken.angles.plan = &factor; },
                      "angles.plan->attention_factor");
    }
}

TEST_CASE("slots: a cache has as many pages as its range holds") {
    KernelInfo i = info();
    i.scatter_k = true;
    Call good = call();
    good.k_out = tensor(
        other_buffer, 2, 1024,
        5 * 4 * 32 * 2 + 63);  // five pages of four rows of two heads, and not quite one more
    good.paged_cache.slot_mapping = {other_buffer, 64, 2 * 4 * 4};
    good.paged_cache.page_size = 4;
    const auto resolved = resolve(i, limits, good);
    INFO(resolved.status.what);
    REQUIRE(resolved);
    CHECK(resolved->k.pages == 5);
    CHECK(resolved->k.out.batch == 128);
    CHECK(resolved->k.out.token == 32);
    CHECK(resolved->slot_mapping.batch == 4);
    const auto breaks = [&](auto change, const char* names) {
        KernelInfo changed = i;
        Call c = good;
        change(changed, c);
        expect(resolve(changed, limits, c).status, Code::invalid_argument, names);
    };
    breaks([](KernelInfo& k, Call&) { k.scatter_k = false; },
           "paged_cache: the kernel was created without scatter_k");
    breaks(
        [](KernelInfo& k, Call& c) {
            k.scatter_k = false;
            c.paged_cache = {.page_stride = 64};
        },
        "paged_cache: the kernel was created without");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.slot_mapping = {}; },
           "paged_cache.slot_mapping.buffer is null");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.slot_mapping.range = 31; },
           "paged_cache.slot_mapping.range is 31 bytes: it must be at least 32");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.int64 = true; },
           "paged_cache.slot_mapping.range is 32 bytes: it must be at least 64");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.batch_stride = -1; },
           "paged_cache.batch_stride is -1");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.page_size = 0; }, "paged_cache.page_size is 0");
    // page_size forgotten, with the strides of pages of 4 rows, rows before heads and heads before
    // rows.
    breaks(
        [](KernelInfo&, Call& c) { c.paged_cache.page_size = 1, c.paged_cache.page_stride = 128; },
        "paged_cache.page_size is 1, its default: with page_stride 128 it must be the rows of a "
        "page "
        "of k_out");
    breaks(
        [](KernelInfo&, Call& c) {
            c.paged_cache.page_size = 1, c.paged_cache.row_stride = 16, c.k_out.head_stride = 64;
        },
        "paged_cache.page_size is 1, its default: with row_stride 16");
    breaks(
        [](KernelInfo&, Call& c) {
            c.paged_cache.page_size = 1, c.paged_cache.row_stride = 32,
            c.paged_cache.page_stride = 128;
        },
        "paged_cache.page_size is 1, its default: with page_stride 128");
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
    breaks([](KernelInfo&, Call& c) { c.paged_cache.page_size = 64; }, "k_out.where.range");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.row_stride = 31; },
           "paged_cache.row_stride is 31: it must be at least the 32 elements");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.page_stride = 127; },
           "paged_cache.page_stride is 127: it must be at least the 128 elements");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.page_stride = -2; },
           "paged_cache.page_stride is -2");
    breaks([](KernelInfo&, Call& c) { c.k_out.token_stride = 32; },
           "k_out.token_stride is 32: with paged_cache it must be 0");
    breaks([](KernelInfo&, Call& c) { c.k_out.where = c.k_in.where; }, "k_in and k_out overlap");
    breaks([](KernelInfo&, Call& c) { c.paged_cache.slot_mapping.offset = 1024; },
           "k_out and paged_cache.slot_mapping overlap");
    breaks_create(
        [](DeviceRef&, KernelInfo& k) {
            k.scatter_k = true;
            k.k = {};
        },
        "scatter_k is set: k.head_dim must then not be 0");
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
    c.q_in = c.q_out = plane(0, 4);
    c.k_in = c.k_out = plane(4, 1);
    const auto resolved = resolve(info(), limits, c);
    INFO(resolved.status.what);
    REQUIRE(resolved);
    CHECK(resolved->q.group_heads == 4);
    CHECK(resolved->k.group_heads == 8);  // groups of one head are heads
    CHECK(resolved->k.in.head == 6 * 16);
    c.k_in = c.k_out = plane(3, 1);
    expect(resolve(info(), limits, c).status, Code::invalid_argument,
           "q_out and k_out overlap: they must be disjoint; q_out.batch_stride is 0, which stands "
           "for 3840 elements");
    // A common mistake with packed QKV: the error names the token stride that was forgotten, of
    // either tensor.
    c.k_in = c.k_out = plane(4, 1);
    c.k_in.token_stride = c.k_out.token_stride = 0;
    expect(resolve(info(), limits, c).status, Code::invalid_argument,
           "k_out.token_stride is 0, which stands for 128: it must be at least the 688 "
           "elements");
    c.k_in = c.k_out = plane(4, 1);
    c.q_in.token_stride = c.q_out.token_stride = 0;
    c.q_in.heads_per_group = c.q_out.heads_per_group = 0;
    c.q_in.group_stride = c.q_out.group_stride = 0;
    expect(resolve(info(), limits, c).status, Code::invalid_argument,
           "q_out and k_out overlap: they must be disjoint; q_out.token_stride is 0, which stands "
           "for 512 elements");
    c.q_in = c.q_out = plane(0, 4);
    // K at the end of a group, so that relative to Q it crosses the end of the period.
    c.k_in = c.k_out = plane(5, 1);
    CHECK(resolve(info(), limits, c));
    c.q_in = c.q_out = plane(1, 4);
    c.k_in = c.k_out = plane(0, 1);
    CHECK(resolve(info(), limits, c));
    // Out of place into a plane of the same buffer.
    c.k_in = c.k_out = {};
    c.q_in = plane(0, 2);
    c.q_out = plane(2, 2);
    CHECK(resolve(info(), limits, c));
    c.q_out = plane(1, 2);
    expect(resolve(info(), limits, c).status, Code::invalid_argument, "q_in and q_out overlap");
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
    c.q_in = c.q_out = plane(0, 4);
    c.k_in = c.k_out = plane(4, 2);
    const auto resolved = resolve(info(), limits, c);
    INFO(resolved.status.what);
    REQUIRE(resolved);
    CHECK(resolved->q.in_place);
    CHECK(bound(resolved->q.in, c).offset == 0);
    CHECK(bound(resolved->k.in, c).offset == 128);
    // With one head more, Q reaches into K.
    c.q_in.heads = c.q_out.heads = 5;
    expect(resolve(info(), limits, c).status, Code::invalid_argument, "overlap");
}

TEST_CASE("no tokens, no sequences or no tensors: nothing is asked for") {
    for (const Call& c :
         {Call{},
          Call{.batch = 0, .tokens = 5, .q_in = tensor(q_buffer, 4), .q_out = tensor(q_buffer, 4)},
          Call{.tokens = 5}}) {
        const auto resolved = resolve(info(), limits, c);
        CHECK(resolved);
        CHECK(resolved->tokens == 0);
    }
}

}  // namespace vkrope
