// SPDX-License-Identifier: MIT
// Checks the rules of kernels that move keys, and of scales of groups of channels.
#include "given.hpp"

namespace vkrope {

namespace {

// Returns arguments that move 2 heads of K and V, of 64 channels, within caches of 5 pages of 4
// rows: K has a scale for every 32 channels, and the values have a transform.
Given moving() {
    Given given;
    given.info.rotary_dim = 64;
    given.info.scatter_kv = given.info.gather_kv = true;
    given.info.tensor[Q] = {};
    given.info.tensor[K] = {.in = VKROPE_E4M3FN,
                            .out = VKROPE_E4M3FN,
                            .head_dim = 64,
                            .heads = 2,
                            .ops = {.store_scale = VKROPE_STORE_SCALE_MADE_POWER_OF_TWO,
                                    .store_scale_group = 32,
                                    .scale_type = VKROPE_SCALE_TYPE_UE8M0,
                                    .scales_in = true}};
    given.info.tensor[V] = {.in = VKROPE_Q8_0,
                            .out = VKROPE_Q8_0,
                            .head_dim = 64,
                            .ops = {.hadamard = 64, .hadamard_of_input = 64}};
    given.layout.pairs = 32;
    given.layout.row_texels = 16;
    given.layout.extent.width = 16;
    given.layout.bytes = 100 * 32 * 8;
    Call& call = given.call;
    call.in[Q] = call.out[Q] = {};
    call.in[K] = call.out[K] = tensor(k_buffer, 2, 0, 5 * 4 * 2 * 64);
    call.in[V] = call.out[V] = tensor(v_buffer, 2, 0, 5 * 4 * 2 * 68);
    call.scales_in[K] = call.scales_out[K] = at(other_buffer, 1024, 5 * 4 * 2 * 2);
    call.paged_cache = {.slot_mapping = at(other_buffer, 64, 32),
                        .source_mapping = at(other_buffer, 128, 32),
                        .page_size = 4};
    return given;
}

TensorInfo& k(Given& g) {
    return g.info.tensor[K];
}
TensorInfo& v(Given& g) {
    return g.info.tensor[V];
}

}  // namespace

TEST_CASE("create: a kernel that reads a cache has neither Q nor second destinations") {
    const TensorInfo q = {VKROPE_F16, VKROPE_F16, 64};
    const auto only = [](TensorInfo reads) {  // K of f16 with Q, and this V
        return [=](Given& g) {
            g.info.scatter_kv = g.info.gather_kv = false;
            g.info.tensor[Q] = g.info.tensor[K] = {VKROPE_F16, VKROPE_F16, 64};
            g.info.tensor[V] = reads;
        };
    };
    const Broken rules[] = {
        {"gather_kv VK_TRUE tensor[0].head_dim 0", [=](Given& g) { g.info.tensor[Q] = q; }},
        {"tensor[2].in q8_0 tensor[0].head_dim 0 out",
         only({.in = VKROPE_Q8_0, .out = VKROPE_F16, .head_dim = 64})},
        {"tensor[2].ops.hadamard_of_input 64 tensor[0].head_dim 0",
         only({.in = VKROPE_F16,
               .out = VKROPE_F16,
               .head_dim = 64,
               .ops = {.hadamard_of_input = 64}})},
        {"tensor[0].ops.hadamard_of_input 64",
         [=](Given& g) {
             only({})(g);
             g.info.tensor[Q].ops.hadamard_of_input = 64;
         }},
        {"tensor[0].ops.scales_in",
         [=](Given& g) {
             only({})(g);
             g.info.tensor[Q].heads = 2;
             g.info.tensor[Q].ops.scales_in = true;
         }},
        {"tensor[0].in int8 f32 f16 bf16 out",
         [=](Given& g) {
             only({})(g);
             g.info.tensor[Q].in = VKROPE_INT8;
         }},
        {"tensor[1].second_of 1", [](Given& g) { k(g).second_of = VKROPE_SECOND_RESULT; },
         VKROPE_ERROR_NOT_SUPPORTED},
        {"tensor[2].second_of 2",
         [](Given& g) {
             v(g).heads = 2;
             v(g).second_of = VKROPE_SECOND_INPUT;
         },
         VKROPE_ERROR_NOT_SUPPORTED},
        {"gather_kv tensor[1].head_dim 0",
         [=](Given& g) {
             g.info.scatter_kv = false;
             g.info.tensor[Q] = q;
             k(g) = {};
         }},
    };
    check_create(moving(), rules);
    // Without Q, K and V are read, moved and converted with or without slots and a rotation.
    for (const bool scatters : {false, true}) {
        for (const bool gathers : {false, true}) {
            Given good = moving();
            good.info.scatter_kv = scatters;
            good.info.gather_kv = gathers;
            CHECK(good.created());
            good.info = completed(
                {.tensor = {{}, k(good), v(good)}, .scatter_kv = scatters, .gather_kv = gathers});
            CHECK(good.created());
        }
    }
}

TEST_CASE("create: rules of a transform that is undone") {
    const Broken rules[] = {
        {"tensor[2].ops.hadamard_of_input 1 2 512",
         [](Given& g) { v(g).ops.hadamard_of_input = 1; }},
        {"tensor[2].ops.hadamard_of_input 48 2 512",
         [](Given& g) { v(g).ops.hadamard_of_input = 48; }},
        {"tensor[2].ops.hadamard_of_input 1024 2 512",
         [](Given& g) { v(g).ops.hadamard_of_input = 1024; }},
        {"tensor[2].ops.hadamard_of_input 128 head_dim 64",
         [](Given& g) { v(g).ops.hadamard_of_input = 128; }},
        {"tensor[1].ops.hadamard_of_input 64 norm token",
         [](Given& g) {
             k(g).ops.hadamard_of_input = 64;
             k(g).ops.norm = {
                 .kind = VKROPE_NORM_RMS, .span = VKROPE_NORM_SPAN_TOKEN, .eps = 1e-6f};
         },
         VKROPE_ERROR_NOT_SUPPORTED},
        {"tensor[1].ops.hadamard_of_input 64 pairing_out",
         [](Given& g) {
             k(g).ops.hadamard_of_input = 64;
             g.info.pairing_out = VKROPE_INTERLEAVED;
         },
         VKROPE_ERROR_NOT_SUPPORTED},
    };
    check_create(moving(), rules);
}

TEST_CASE("create: rules of scales that are read, and of scales of groups") {
    const auto without_scales = [](auto change) {
        return [=](Given& g) {
            k(g).ops = {};
            change(k(g).ops);
        };
    };
    const Broken rules[] = {
        {"tensor[1].ops.scales_in e4m3fn e5m2 int8 int4 tensor[1].in f16",
         [](Given& g) { k(g).in = VKROPE_F16; }},
        {"tensor[2].ops.scales_in tensor[2].in q8_0",
         [](Given& g) {
             v(g).heads = 2;
             v(g).ops.scales_in = true;
         }},
        {"tensor[1].ops.scales_in tensor[1].heads 0",
         [](Given& g) {
             k(g).heads = 0;
             k(g).ops.store_scale = VKROPE_STORE_SCALE_NONE;
         }},
        {"tensor[1].ops.store_scale_group 16 32 64 128",
         [](Given& g) { k(g).ops.store_scale_group = 16; }},
        {"tensor[1].ops.store_scale_group 48 32 64 128",
         [](Given& g) { k(g).ops.store_scale_group = 48; }},
        {"tensor[1].ops.store_scale_group 256 32 64 128",
         [](Given& g) { k(g).ops.store_scale_group = 256; }},
        {"tensor[1].ops.store_scale_group 128 head_dim 64",
         [](Given& g) { k(g).ops.store_scale_group = 128; }},
        {"tensor[1].ops.store_scale_group 32",
         without_scales([](Ops& ops) { ops.store_scale_group = 32; })},
        {"tensor[1].ops.store_scale_group 32", without_scales([](Ops& ops) {
             ops.store_scale = VKROPE_STORE_SCALE_GIVEN;
             ops.store_scale_group = 32;
         })},
        {"tensor[1].ops.scale_type 2", [](Given& g) { k(g).ops.scale_type = ScaleType(2); }},
        {"tensor[1].ops.scale_type 1",
         without_scales([](Ops& ops) { ops.scale_type = VKROPE_SCALE_TYPE_UE8M0; })},
        {"tensor[1].ops.scale_type UE8M0 store_scale 3",
         [](Given& g) { k(g).ops.store_scale = VKROPE_STORE_SCALE_MADE; }},
        {"tensor[1].ops.scale_layout 1",
         [](Given& g) {
             g.info.scatter_kv = g.info.gather_kv = false;
             k(g).ops.scale_layout = VKROPE_SCALE_LAYOUT_PAGES_HEADS;
         }},
        {"tensor[1].ops.store_scale 3 tensor[1].out iq4_nl",
         [](Given& g) {
             k(g).out = VKROPE_IQ4_NL;
             k(g).ops.store_scale = VKROPE_STORE_SCALE_MADE;
             k(g).ops.scale_type = VKROPE_SCALE_TYPE_F32;
         }},
    };
    check_create(moving(), rules);
    // Scales that are only read have groups, a layout and a type, too.
    Given read = moving();
    read.info.scatter_kv = false;
    k(read).out = VKROPE_F16;
    k(read).ops.store_scale = VKROPE_STORE_SCALE_NONE;
    k(read).ops.scale_layout = VKROPE_SCALE_LAYOUT_PAGES_HEADS;
    CHECK(read.created());
}

TEST_CASE("create: int4 has two channels in a byte, and iq4_nl 32 in a block") {
    const auto with = [](Element in, Element out, std::uint32_t head_dim) {
        return [=](Given& g) { v(g) = {.in = in, .out = out, .head_dim = head_dim}; };
    };
    const Broken rules[] = {
        {"tensor[2].head_dim 65 2 tensor[2].out", with(VKROPE_F16, VKROPE_INT4, 65)},
        {"tensor[2].head_dim 65 2 tensor[2].in", with(VKROPE_INT4, VKROPE_F16, 65)},
        {"tensor[2].head_dim 48 32 tensor[2].out", with(VKROPE_F16, VKROPE_IQ4_NL, 48)},
        {"tensor[2].head_dim 48 32 tensor[2].in", with(VKROPE_IQ4_NL, VKROPE_F16, 48)},
    };
    check_create(moving(), rules);
    for (const Element element : {VKROPE_INT4, VKROPE_IQ4_NL}) {
        Given good = moving();
        with(element, element, 96)(good);
        CHECK(good.created());
    }
}

TEST_CASE("record: keys that move have two slots") {
    const Given good = moving();
    CHECK(good.created());
    const ResolvedCall resolved = good.valid();
    CHECK(resolved.tensor[K].pages == 5);
    CHECK(resolved.tensor[V].pages == 5);
    CHECK(resolved.tensor[K].in.page_size == 4);
    CHECK(resolved.tensor[K].in.token == 128);
    CHECK(resolved.tensor[V].in.token == 4);
    const auto no_scatter = [](Given& g) {
        g.info.scatter_kv = false;
        k(g).out = v(g).out = VKROPE_F16;
        k(g).ops = {
            .store_scale_group = 32, .scale_type = VKROPE_SCALE_TYPE_UE8M0, .scales_in = true};
        g.call.out[K] = tensor(fake<VkBuffer>(5), 2, 0, 2 * 4 * 2 * 64 * 2);
        g.call.out[V] = tensor(fake<VkBuffer>(6), 2, 0, 2 * 4 * 2 * 64 * 2);
        g.call.scales_out[K] = {};
        g.call.paged_cache.slot_mapping = {};
    };
    const Broken rules[] = {
        {"paged_cache.slot_mapping.buffer null",
         [](Given& g) { g.call.paged_cache.slot_mapping = {}; }},
        {"paged_cache.source_mapping.offset 2",
         [](Given& g) { g.call.paged_cache.source_mapping.offset = 2; }},
        {"paged_cache.source_mapping.range 28 32",
         [](Given& g) { g.call.paged_cache.source_mapping.range = 28; }},
        {"paged_cache.source_mapping.range 64 paged_cache.int64",
         [](Given& g) { g.call.paged_cache.source_mapping.range = 64; }},
        {"paged_cache.source_mapping.buffer null",
         [](Given& g) { g.call.paged_cache.source_mapping.buffer = VK_NULL_HANDLE; }},
        {"out[2] paged_cache.source_mapping",
         [](Given& g) { g.call.paged_cache.source_mapping.buffer = v_buffer; }},
        {"paged_cache.source_mapping out_of_range",
         [](Given& g) { g.call.out_of_range = at(other_buffer, 156, 4); }},
        {"in[1].token_stride 128 paged_cache 0", [](Given& g) { g.call.in[K].token_stride = 128; }},
        {"in[2].batch_stride 512 paged_cache 0", [](Given& g) { g.call.in[V].batch_stride = 512; }},
        {"in[1].where.range 500",
         [](Given& g) {
             g.call.in[K] = tensor(fake<VkBuffer>(5), 2, 0, 500);
             g.call.scales_in[K].buffer = fake<VkBuffer>(6);
         }},
        // Gathering decides who has source slots, scattering who has slots.
        {"paged_cache.source_mapping gather_kv",
         [](Given& g) {
             g.info.gather_kv = false;
             g.call.in[K] = tensor(fake<VkBuffer>(5), 2);
             g.call.in[V] = tensor(fake<VkBuffer>(6), 2);
         }},
        {"paged_cache.slot_mapping scatter_kv",
         [=](Given& g) {
             no_scatter(g);
             g.call.paged_cache.slot_mapping = at(other_buffer, 64, 32);
         }},
        {"paged_cache.source_mapping.buffer null",
         [=](Given& g) {
             no_scatter(g);
             g.call.paged_cache.source_mapping = {};
         }},
        {"paged_cache.source_mapping",
         [](Given& g) {
             g.call.in[K] = g.call.in[V] = g.call.out[K] = g.call.out[V] = {};
             g.call.paged_cache.slot_mapping = {};
         }},
    };
    check_record(good, rules);
    // Without source_mapping, rows stay in their slots.
    Given stays = good;
    stays.call.paged_cache.source_mapping = {};
    stays.valid();
    // Without slots that are stored to, the output is packed.
    Given packed = good;
    no_scatter(packed);
    CHECK(packed.valid().tensor[K].out.page_size == 0);
    CHECK(packed.valid().tensor[K].out.token == 128);
    // A slot may be out of range although angles are computed.
    packed.info = completed({.tensor = {{}, k(packed), v(packed)}, .gather_kv = true});
    packed.has_layout = false;
    packed.call.positions = {};
    packed.call.angles = {};
    packed.call.out_of_range = at(other_buffer, 4096, 4);
    packed.valid();
}

TEST_CASE("record: slots of V's own have the rules of K's, and V a number of pages of its own") {
    Given good = moving();
    good.call.paged_cache.v_slot_mapping = at(other_buffer, 192, 32);
    good.call.paged_cache.v_source_mapping = at(other_buffer, 256, 32);
    good.call.in[V].where.range = good.call.out[V].where.range = 7 * 4 * 2 * 68;
    const auto only = [](Given& g, bool v_slots, bool v_sources) {
        if (!v_slots) g.call.paged_cache.v_slot_mapping = {};
        if (!v_sources) g.call.paged_cache.v_source_mapping = {};
    };
    const Broken rules[] = {
        {"paged_cache.slot_mapping.buffer null",
         [](Given& g) { g.call.paged_cache.slot_mapping = {}; }},
        {"paged_cache.v_slot_mapping.buffer null",
         [](Given& g) { g.call.paged_cache.v_slot_mapping.buffer = VK_NULL_HANDLE; }},
        {"paged_cache.v_slot_mapping.offset 194",
         [](Given& g) { g.call.paged_cache.v_slot_mapping.offset = 194; }},
        {"paged_cache.v_slot_mapping.range 28 32",
         [](Given& g) { g.call.paged_cache.v_slot_mapping.range = 28; }},
        {"paged_cache.v_slot_mapping.range 64 paged_cache.int64",
         [](Given& g) { g.call.paged_cache.v_slot_mapping.range = 64; }},
        {"paged_cache.v_source_mapping.offset 258",
         [](Given& g) { g.call.paged_cache.v_source_mapping.offset = 258; }},
        {"paged_cache.v_source_mapping.range 28 32",
         [](Given& g) { g.call.paged_cache.v_source_mapping.range = 28; }},
        {"out[2] paged_cache.v_slot_mapping",
         [](Given& g) { g.call.paged_cache.v_slot_mapping.buffer = v_buffer; }},
        {"out[1] paged_cache.v_source_mapping",
         [](Given& g) { g.call.paged_cache.v_source_mapping.buffer = k_buffer; }},
        {"paged_cache.v_slot_mapping out_of_range",
         [](Given& g) { g.call.out_of_range = at(other_buffer, 220, 4); }},
        {"paged_cache.v_source_mapping source_mapping",
         [](Given& g) { g.call.paged_cache.source_mapping = {}; }},
        {"paged_cache.v_slot_mapping V",
         [=](Given& g) {
             only(g, true, false);
             g.call.in[V] = g.call.out[V] = {};
         }},
        {"paged_cache.v_source_mapping K",
         [=](Given& g) {
             only(g, false, true);
             g.call.in[K] = g.call.out[K] = {};
             g.call.scales_in[K] = g.call.scales_out[K] = {};
         }},
        {"paged_cache.v_slot_mapping scatter_kv",
         [](Given& g) {
             g.info.scatter_kv = false;
             k(g).out = v(g).out = VKROPE_F16;
             k(g).ops = {
                 .store_scale_group = 32, .scale_type = VKROPE_SCALE_TYPE_UE8M0, .scales_in = true};
             g.call.out[K] = tensor(fake<VkBuffer>(5), 2, 0, 2 * 4 * 2 * 64 * 2);
             g.call.out[V] = tensor(fake<VkBuffer>(6), 2, 0, 2 * 4 * 2 * 64 * 2);
             g.call.scales_out[K] = {};
             g.call.paged_cache.slot_mapping = {};
         }},
    };
    check_record(good, rules);
    for (const auto& [v_slots, v_sources] :
         {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
        CAPTURE(v_slots);
        CAPTURE(v_sources);
        Given given = good;
        only(given, v_slots, v_sources);
        const ResolvedCall call = given.valid();
        const bool own = v_slots || v_sources;
        CHECK(v_has_own_slots(call) == own);
        CHECK(call.tensor[K].pages == 5);
        CHECK(call.tensor[V].pages == (own ? 7 : 5));
        CHECK(call.tensor[V].source_pages == (own ? 7 : 5));
        CHECK(slots_of(call, V, false).first_byte == (v_slots ? 192 : 64));
        CHECK(slots_of(call, V, true).first_byte == (v_sources ? 256 : 128));
        CHECK(slots_of(call, K, false).first_byte == 64);
        CHECK(slots_of(call, K, true).first_byte == 128);
    }
    // Without source_mapping, V's rows stay in V's slots.
    only(good, true, false);
    good.call.paged_cache.source_mapping = {};
    CHECK(slots_of(good.valid(), V, true).first_byte == 192);
    CHECK(slots_of(good.valid(), K, true).first_byte == 64);
}

TEST_CASE("record: source and destination are one cache, or disjoint") {
    Given good = moving();
    good.call.in[K] = tensor(fake<VkBuffer>(5), 2, 0, 4 * 4 * 2 * 64);
    good.call.in[V] = tensor(fake<VkBuffer>(5), 2, 8192, 5 * 4 * 2 * 68);
    good.call.scales_in[K] = at(other_buffer, 2048, 4 * 4 * 2 * 2);
    const Broken rules[] = {
        {"in[1] out[1]", [](Given& g) { g.call.in[K].where = at(k_buffer, 512, 4 * 4 * 2 * 64); }},
        {"in[1] out[1]",
         [](Given& g) {
             g.call.in[K] = g.call.out[K];
             g.call.in[K].head_stride = 4 * 64;
             g.call.in[K].where.range = 8192;
         }},
        {"in[1] out[1]",
         [](Given& g) {
             k(g).in = VKROPE_INT8;
             g.call.in[K] = g.call.out[K];
         }},
        {"out[1] in[2]",
         [](Given& g) { g.call.in[V].where.buffer = k_buffer, g.call.in[V].where.offset = 0; }},
        {"in[1] out[2]", [](Given& g) { g.call.in[K].where.buffer = v_buffer; }},
        {"scales_in[1].buffer null", [](Given& g) { g.call.scales_in[K] = {}; }},
        {"scales_in[1].offset 2050", [](Given& g) { g.call.scales_in[K].offset = 2050; }},
        {"scales_in[1].range 60 64", [](Given& g) { g.call.scales_in[K].range = 60; }},
        {"scales_out[1].range 76 80", [](Given& g) { g.call.scales_out[K].range = 76; }},
        {"scales_in[1] scales_out[1]",
         [](Given& g) { g.call.scales_in[K] = g.call.scales_out[K]; }},
        {"scales_in[1] scales_out[1]", [](Given& g) { g.call.scales_in[K].offset = 1024 + 76; }},
        {"out[2] scales_in[1]",
         [](Given& g) { g.call.scales_in[K].buffer = v_buffer, g.call.scales_in[K].offset = 0; }},
        {"scales_in[2]", [](Given& g) { g.call.scales_in[V] = g.call.scales_in[K]; }},
        // In one cache, the scales of rows that are read and of those that are stored are the same.
        {"scales_in[1] scales_out[1]",
         [](Given& g) {
             g.call.in[K] = g.call.out[K];
             g.call.scales_in[K].range = 80;
         }},
        {"scales_in[1] scales_out[1]",
         [](Given& g) {
             g.call.in[K] = g.call.out[K];
             g.call.scales_in[K] = g.call.scales_out[K];
             g.call.scales_in[K].offset += 4;
         }},
        {"scales_in[1] scales_out[1]",  // two caches in one buffer
         [](Given& g) {
             g.call.in[K].where.buffer = k_buffer;
             g.call.in[K].where.offset = 8192;
             g.call.scales_in[K] = g.call.scales_out[K];
         }},
    };
    check_record(good, rules);
    // A source has its own pages, and scales.
    const ResolvedCall resolved = good.valid();
    CHECK(resolved.tensor[K].pages == 5);
    CHECK(resolved.tensor[K].source_pages == 4);
    CHECK(resolved.tensor[V].source_pages == 4);  // slots must be inside both sources
    const View read = scales_of(good.info, resolved, K, true),
               made = scales_of(good.info, resolved, K, false);
    CHECK(read.first_byte == 2048);
    CHECK(made.first_byte == 1024);
    for (const View& scales : {read, made}) {
        CHECK(scales.element_bytes == 2 * 2);  // of 2 heads, each of 2 groups
        CHECK(scales.batch == 4);
        CHECK(scales.token == 1);
        CHECK(scales.page_size == 4);
    }
    k(good).ops.scale_layout = VKROPE_SCALE_LAYOUT_PAGES_HEADS;
    const View paged = scales_of(good.info, good.valid(), K, true);
    CHECK(paged.element_bytes == 2);
    CHECK(paged.batch == 2 * 4);
    // A source of whole rows of f32, whose scale is f32.
    good.info.tensor[K].ops.scale_type = VKROPE_SCALE_TYPE_F32;
    good.call.scales_in[K].range *= 4;
    good.call.scales_out[K].range *= 4;
    good.valid();
    refused(
        [&] {
            Given g = good;
            g.call.scales_in[K].range -= 4;
            return g;
        }(),
        "scales_in[1].range 252 256");
}

TEST_CASE("record: a cache is converted in place without slots, or as packed rows") {
    Given good = moving();
    good.info.scatter_kv = good.info.gather_kv = false;
    good.call.paged_cache = {};
    good.call.in[K] = good.call.out[K] = tensor(k_buffer, 2, 0, 2 * 4 * 2 * 64);
    good.call.in[V] = good.call.out[V] = tensor(v_buffer, 2, 0, 2 * 4 * 2 * 68);
    good.call.scales_in[K] = good.call.scales_out[K] = at(other_buffer, 1024, 2 * 4 * 2 * 2);
    CHECK(good.created());
    const ResolvedCall resolved = good.valid();
    CHECK(resolved.tensor[K].in_place);
    CHECK(resolved.tensor[V].in_place);
    CHECK(resolved.tensor[V].in.element_bytes == 34);
    const Broken rules[] = {
        {"in[2].where.offset 1 2",
         [](Given& g) { g.call.in[V] = tensor(fake<VkBuffer>(5), 2, 1); }},
        {"in[2].head_stride 72 32",
         [](Given& g) {
             g.call.in[V] = tensor(fake<VkBuffer>(5), 2);
             g.call.in[V].head_stride = 72;
         }},
        {"in[1].where.range 1020",
         [](Given& g) { g.call.in[K] = tensor(fake<VkBuffer>(5), 2, 0, 1020); }},
        {"scales_in[1] scales_out[1]", [](Given& g) { g.call.scales_in[K].offset = 2048; }},
        {"in[1] out[1]",
         [](Given& g) { g.call.in[K].where.offset = 64, g.call.in[K].where.range = 2048; }},
    };
    check_record(good, rules);
    // Channels of int4 are counted in strides: two are a byte.
    v(good) = {.in = VKROPE_INT4, .out = VKROPE_INT4, .head_dim = 64};
    good.call.in[V] = good.call.out[V] = tensor(v_buffer, 2, 1, 2 * 4 * 2 * 32);
    good.call.in[V].buffer_size = good.call.out[V].buffer_size = 4096;
    CHECK(good.valid().tensor[V].in.head == 32);
    good.call.in[V].head_stride = 65;
    refused(good, "in[2].head_stride 65 2");
}

}  // namespace vkrope
