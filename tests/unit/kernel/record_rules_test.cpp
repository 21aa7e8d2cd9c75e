// SPDX-License-Identifier: MIT
// Checks the rules of record() for positions, angles, the counter and the attention factor.
#include <limits>

#include "given.hpp"

namespace vkrope {

TEST_CASE("record: a valid call") {
    const Given given;
    const ResolvedCall call = given.valid();
    CHECK(call.tensor[Q].in_place);
    CHECK(call.tensor[K].in_place);
    CHECK(call.tensor[Q].in.head == 16);
    CHECK(call.tensor[Q].in.token == 64);
    CHECK(call.tensor[Q].in.batch == 256);
    CHECK(call.tensor[K].in.token == 32);
    CHECK(given.bound(call.tensor[Q].in).range == 2 * 4 * 4 * 16 * 2);
}

TEST_CASE("record: a batch of 0 is one sequence, and a q_scale of 0 is 1") {
    Given given;
    given.call.positions.batch_stride = broadcast;
    given.call.positions.ids.range = 16;
    given.call.batch = 0;
    CHECK(given.valid().batch == 1);
    CHECK(given.valid().q_scale == 1);
}

TEST_CASE("record: a call without tokens or tensors needs no buffers") {
    for (const Call& call : {Call{}, Call{.tokens = 5}}) {
        Given given;
        given.call = call;
        given.has_layout = false;
        CHECK(given.valid().tokens == 0);
    }
}

TEST_CASE("record: rules of positions, angles and the counter") {
    const Broken rules[] = {
        {"direction 7", [](Given& g) { g.call.direction = Direction(7); }},
        {"gain 9", [](Given& g) { g.call.gain = Gain(9); }},
        {"positions.ids.buffer", [](Given& g) { g.call.positions.ids = {}; }},
        {"positions.ids.offset 2", [](Given& g) { g.call.positions.ids.offset = 2; }},
        {"positions.ids.range 12", [](Given& g) { g.call.positions.ids.range = 12; }},
        {"positions.ids.range 28 64",
         [](Given& g) {
             g.call.positions.int64 = true;
             g.call.positions.ids.range = 28;
         }},
        {"positions.ids.range 28",
         [](Given& g) {
             g.call.positions.ids.range = 28;
             g.call.positions.batch_stride = 4;
         }},
        {"positions.ids.range 32", [](Given& g) { g.call.positions.batch_stride = 16; }},
        {"positions.batch_stride -1", [](Given& g) { g.call.positions.batch_stride = -1; }},
        {"positions.token_stride 1", [](Given& g) { g.call.positions.token_stride = broadcast; }},
        {"positions.ids.range 32 200 positions.batch_stride 0 28 broadcast",
         [](Given& g) { g.call.positions.token_stride = 7; }},
        {"positions.ids.range 32 88",
         [](Given& g) {
             g.call.positions.token_stride = 7;
             g.call.positions.batch_stride = broadcast;
         }},
        {"positions.axis_stride 4", [](Given& g) { g.call.positions.axis_stride = 4; }},
        {"positions.axis_stride -1", [](Given& g) { g.call.positions.axis_stride = -1; }},
        {"angles.layout null", [](Given& g) { g.has_layout = false; }},
        {"angles.view null", [](Given& g) { g.call.angles.view = VK_NULL_HANDLE; }},
        {"angles.layout->source", [](Given& g) { g.info.angles = VKROPE_ANGLES_DIRECT_BUFFER; }},
        {"angles.layout->pairs 8", [](Given& g) { g.info.rotary_dim = 8; }},
        {"angles.layout->extent.width 3", [](Given& g) { g.layout.extent.width = 3; }},
        {"angles.layout->format 0", [](Given& g) { g.layout.format = VK_FORMAT_UNDEFINED; }},
        {"angles.layout->usage 0", [](Given& g) { g.layout.usage = 0; }},
        {"out[0] positions.ids", [](Given& g) { g.call.positions.ids = at(q_buffer, 1020, 32); }},
        {"positions.ids.range 64 positions.int64",
         [](Given& g) { g.call.positions.ids.range = 64; }},
        {"positions.ids.range 80 positions.int64",  // rows of 5 ids for 4 tokens
         [](Given& g) {
             g.call.positions.batch_stride = 5;
             g.call.positions.ids.range = 80;
         }},
        {"positions.ids out_of_range",
         [](Given& g) { g.call.out_of_range = at(other_buffer, 12, 4); }},
        {"in[0] out_of_range",
         [](Given& g) {
             g.call.out[Q].where = at(other_buffer, 64, 4096);
             g.call.out_of_range = at(q_buffer, 8, 4);
         }},
        {"in[0].buffer_size 4092",
         [](Given& g) { g.call.in[Q].buffer_size = g.call.out[Q].buffer_size = 4092; }},
        {"out[1] out_of_range", [](Given& g) { g.call.out_of_range = at(k_buffer, 0, 4); }},
        {"out_of_range.offset 2", [](Given& g) { g.call.out_of_range = at(other_buffer, 2, 4); }},
        {"out_of_range.range 2", [](Given& g) { g.call.out_of_range = at(other_buffer, 0, 2); }},
        {"out_of_range.buffer null", [](Given& g) { g.call.out_of_range = at(nullptr, 0, 4); }},
        {"out_of_range.buffer null", [](Given& g) { g.call.out_of_range = at(nullptr, 8192, 0); }},
    };
    check_record({}, rules);
    for (const VkDeviceSize more : {36, 60, 68, 128}) {  // only twice as many bytes is a mistake
        Given given;
        given.call.positions.ids.range = more;
        given.valid();
    }
}

TEST_CASE("record: a call without tokens has valid enumerations and a planned layout") {
    const Broken rules[] = {
        {"direction 2", [](Given& g) { g.call.direction = Direction(2); }},
        {"gain 3", [](Given& g) { g.call.gain = Gain(3); }},
        {"angles.layout->usage 1", [](Given& g) { g.layout.usage = 1; }},
    };
    Given good;
    good.call.tokens = 0;
    check_record(good, rules);
}

TEST_CASE("record: a counter that nothing can increment is refused") {
    const auto counts = [](AngleSource angles, bool int64, bool scatters, TensorIndex alone) {
        Given given;
        given.info.angles = angles;
        given.info.scatter_kv = scatters;
        given.call.positions.int64 = int64;
        for (const TensorIndex t : {Q, K})
            if (t != alone) given.call.in[t] = given.call.out[t] = {};
        given.call.out_of_range = at(other_buffer, 4096, 4);
        return std::string(given.resolved().status.what).find("out_of_range") == std::string::npos;
    };
    for (const TensorIndex alone : {Q, K}) {
        CHECK(counts(VKROPE_ANGLES_DIRECT_TEXTURE, false, false, alone));
        CHECK(counts(VKROPE_ANGLES_COMPUTED, true, false, alone));
        CHECK(!counts(VKROPE_ANGLES_COMPUTED, false, false, alone));
        CHECK(counts(VKROPE_ANGLES_COMPUTED, false, true, alone) == (alone == K));
    }
}

TEST_CASE("record: the number of tokens is a word of its own, which may exceed the tokens") {
    Given good;
    good.call.token_count = at(other_buffer, 256, 4);
    CHECK(std::string(good.resolved().status.what).find("token_count") != std::string::npos);
    good.info.token_count = true;
    const Broken rules[] = {
        {"tokens 2147483649 2^31",
         [](Given& g) { g.call.tokens = 0x80000001u, g.call.positions.token_stride = 0; }},
        {"token_count.buffer null", [](Given& g) { g.call.token_count = {}; }},
        {"token_count.offset 2", [](Given& g) { g.call.token_count.offset = 2; }},
        {"token_count.offset 260 64", [](Given& g) { g.call.token_count.offset = 260; }},
        {"token_count.offset 264 16",
         [](Given& g) { g.limits.offset_alignment = 4, g.call.token_count.offset = 264; }},
        {"token_count.range 3 4", [](Given& g) { g.call.token_count.range = 3; }},
        {"out[0] token_count", [](Given& g) { g.call.token_count.buffer = q_buffer; }},
        {"token_count out_of_range",
         [](Given& g) { g.call.out_of_range = at(other_buffer, 256, 4); }},
    };
    check_record(good, rules);
    CHECK(good.valid().token_count.offset == 256);
    good.info.angles = VKROPE_ANGLES_COMPUTED;  // a number that is too large is counted, too
    good.call.out_of_range = at(other_buffer, 4096, 4);
    CHECK(std::string(good.resolved().status.what).find("out_of_range") == std::string::npos);
}

TEST_CASE("record: an implicit position beyond the table needs a counter") {
    Given good;
    good.info.positions = VKROPE_POSITIONS_IMPLICIT;
    good.call.positions = {.first = 96, .batch_stride = broadcast};  // 4 tokens, 100 rows
    const Broken rules[] = {
        {"positions.first 97 -99 99 100", [](Given& g) { g.call.positions.first = 97; }},
        {"positions.first 96 100", [](Given& g) { g.call.positions.batch_stride = 1; }},
        {"positions.first -100", [](Given& g) { g.call.positions.first = -100; }},
        {"positions.first 97",
         [](Given& g) {
             g.call.positions.first = 97;
             g.call.in[Q] = g.call.out[Q] = {};
         }},
    };
    check_record(good, rules);
    for (const Broken& rule : rules) {
        Given counted = good;
        rule.change(counted);
        counted.call.out_of_range = at(other_buffer, 4096, 4);
        counted.valid();
    }
    good.call.positions.first = -99;
    good.valid();
    Given cache;
    cache.info.angles = VKROPE_ANGLES_COS_SIN_CACHE;
    cache.info.positions = VKROPE_POSITIONS_IMPLICIT;
    cache.layout = plan_cos_sin_cache(8, 5, 0, VKROPE_F32).value;
    cache.call.positions = {.first = 1, .batch_stride = broadcast};
    cache.call.angles = {.buffer = at(other_buffer, 256, 160), .sin = at(other_buffer, 512, 160)};
    const Broken outside[] = {
        {"positions.first 2 0 4 5", [](Given& g) { g.call.positions.first = 2; }},
        {"positions.first -1 0 4", [](Given& g) { g.call.positions.first = -1; }},
    };
    check_record(cache, outside);
}

TEST_CASE("record: implicit positions have no packed form") {
    Given good;
    good.info.positions = VKROPE_POSITIONS_IMPLICIT;
    good.call.out_of_range = at(other_buffer, 4096, 4);
    good.call.positions = {.first = 5, .batch_stride = broadcast};
    CHECK(good.valid().position_step == 0);
    const Broken rules[] = {
        {"positions.int64", [](Given& g) { g.call.positions.int64 = true; }},
        {"positions.batch_stride 0 batch 2 broadcast",
         [](Given& g) { g.call.positions.batch_stride = 0; }},
        {"positions.first 5 tokens 4 2 batch_stride 2147483640",
         [](Given& g) { g.call.positions.batch_stride = 2147483640; }},
        {"positions.first 2147483645", [](Given& g) { g.call.positions.first = 2147483645; }},
    };
    check_record(good, rules);
    good.call.positions.batch_stride = 2147483639;  // the last position is 2^31 - 1
    good.valid();
    good.call.positions.batch_stride = 9;
    CHECK(good.valid().position_step == 9);
    good.call.positions.batch_stride = 0;
    good.call.batch = 1;
    good.valid();
}

TEST_CASE("record: ids with a stride of 0 are packed; shared ids have the stride broadcast") {
    Given given;
    given.info.positions = VKROPE_POSITIONS_AXIS_IDS;
    given.info.sections = given.layout.sections = {.axes = 3, .pairs = {2, 3, 3}};
    Positions& ids = given.call.positions;
    const struct {
        std::int64_t batch, axis, token;
        std::uint64_t batch_is, axis_is, token_is, bytes;
        bool int64 = false;
    } ways[] = {
        {0, 0, 0, 4, 8, 1, 3 * 8 * 4},                  // [axes, batch, tokens]
        {broadcast, 0, 0, 0, 4, 1, 3 * 4 * 4},          // [axes, tokens]
        {0, broadcast, 0, 4, 0, 1, 8 * 4},              // [batch, tokens]
        {broadcast, broadcast, 0, 0, 0, 1, 4 * 4},      // [tokens]
        {0, 1, 3, 12, 1, 3, 3 * 8 * 4},                 // [batch, tokens, axes]
        {5, 0, 0, 5, 10, 1, (2 * 10 + 5 + 4) * 4},      // gaps between sequences
        {0, 0, 2, 8, 16, 2, (2 * 16 + 8 + 7) * 4},      // gaps between tokens
        {4, 9, 0, 4, 9, 1, (2 * 9 + 4 + 4) * 4},        // gaps between axes
        {4, 9, 0, 8, 18, 2, (2 * 9 + 4 + 4) * 8, true}  // the same, of two words each
    };
    for (const auto& way : ways) {
        CAPTURE(way.bytes);
        ids = {.ids = at(other_buffer, 0, way.bytes),
               .int64 = way.int64,
               .batch_stride = way.batch,
               .axis_stride = way.axis,
               .token_stride = way.token};
        const ResolvedCall resolved = given.valid();
        CHECK(resolved.ids.batch == way.batch_is);
        CHECK(resolved.ids.token == way.token_is);
        CHECK(resolved.ids_axis == way.axis_is);
        ids.ids.range -= 4;
        refused(given, "positions.ids.range");
    }
    // A row of ids for all sequences, or for all axes, needs the stride broadcast.
    ids = {.ids = at(other_buffer, 0, 16), .axis_stride = broadcast};
    refused(given, "positions.ids.range 16 32 positions.batch_stride 0 4 broadcast");
    ids = {.ids = at(other_buffer, 0, 32)};
    refused(given, "positions.ids.range 32 96 positions.axis_stride 0 8 broadcast");
    // Sequences of one token, each with an id.
    given = {};
    given.call.tokens = 1;
    given.call.positions.ids.range = 8;
    CHECK(given.valid().ids.batch == 1);
}

TEST_CASE("record: any VkBool32 but 0 is true in a layout") {
    Given given;
    given.info.phase = VK_TRUE;
    given.layout.phase = 2;
    given.layout.extent.height = 199;  // the rows of -99 to -1 too
    given.layout.fold_log2 = 8;
    given.layout.bytes = 199 * 8 * 8;
    given.valid();
}

TEST_CASE("record: a factored table has the rows of both digits") {
    Given good;
    good.info.angles = good.layout.source = VKROPE_ANGLES_FACTORED_TEXTURE;
    // 4096 positions have two coarse rows and 2048 fine ones, in columns of 1024.
    good.layout.rows = 4096;
    good.layout.extent = {3 * 4, 1024};
    good.layout.fold_log2 = 10;
    good.layout.bytes = 3 * 4 * 1024 * 16;
    const Broken rules[] = {
        {"angles.layout->source 0", [](Given& g) { g.layout.source = VKROPE_ANGLES_AUTOMATIC; }},
        {"angles.layout->rows 0", [](Given& g) { g.layout.rows = 0; }},
        // One row does not fit three columns.
        {"angles.layout->extent.width", [](Given& g) { g.layout.rows = 4096 + 1023 * 2048; }},
        {"angles.layout->extent.width", [](Given& g) { g.layout.extent.width -= 1; }},
        {"angles.layout->extent.height", [](Given& g) { g.layout.extent.height -= 1; }},
        {"angles.layout->extent.width", [](Given& g) { g.layout.fold_log2 -= 1; }},
        {"angles.layout->row_texels", [](Given& g) { g.layout.row_texels -= 1; }},
        {"angles.view null", [](Given& g) { g.call.angles.view = VK_NULL_HANDLE; }},
    };
    check_record(good, rules);
}

TEST_CASE("record: computed angles are a uniform buffer, at an offset that the device binds") {
    Given good;
    good.info.angles = VKROPE_ANGLES_COMPUTED;
    good.layout = {.source = VKROPE_ANGLES_COMPUTED,
                   .usage = VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT,
                   .bytes = 16 * (2 + 4),
                   .pairs = 8,
                   .rows = 0x80000001,
                   .attention_factor = 1,
                   .head_groups = 1};
    good.call.angles = {.buffer = at(other_buffer, 512, 96)};
    const VkDescriptorBufferInfo table = good.valid().table;
    CHECK(table.buffer == other_buffer);
    CHECK(table.offset == 512);
    CHECK(table.range == 96);
    const Broken rules[] = {
        {"angles.buffer.buffer null",
         [](Given& g) { g.call.angles.buffer.buffer = VK_NULL_HANDLE; }},
        {"angles.buffer.range 92", [](Given& g) { g.call.angles.buffer.range = 92; }},
        {"angles.buffer.offset 64 256", [](Given& g) { g.call.angles.buffer.offset = 64; }},
        {"angles.buffer", [](Given& g) { g.call.angles.buffer = at(q_buffer, 256, 96); }},
        {"angles.layout->bytes 80", [](Given& g) { g.layout.bytes = 80; }},
        {"angles.layout->rows 0", [](Given& g) { g.layout.rows = 0; }},
        {"angles.layout->pairs 7", [](Given& g) { g.layout.pairs = 7; }},
    };
    check_record(good, rules);
    good.limits.uniform_alignment = 64;
    good.call.angles.buffer.offset = 64;
    good.call.positions.ids.offset = 256;
    good.valid();
}

TEST_CASE("record: a cos_sin_cache is two buffers of whole words") {
    Given good;
    good.info.angles = VKROPE_ANGLES_COS_SIN_CACHE;
    good.info.table = VKROPE_F16;
    good.layout = {.source = VKROPE_ANGLES_COS_SIN_CACHE,
                   .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
                   .bytes = 88,
                   .pairs = 8,
                   .rows = 5,
                   .attention_factor = 1,
                   .head_groups = 1,
                   .element = VKROPE_F16,
                   .row_stride = 9};
    good.call.angles = {.buffer = at(other_buffer, 256, 88), .sin = at(other_buffer, 512, 88)};
    CHECK(good.created());
    const Broken rules[] = {
        {"angles.sin.buffer null", [](Given& g) { g.call.angles.sin = {}; }},
        {"angles.buffer.range 84 88", [](Given& g) { g.call.angles.buffer.range = 84; }},
        {"angles.layout->element bf16 f16", [](Given& g) { g.layout.element = VKROPE_BF16; }},
        {"angles.layout->row_stride 7", [](Given& g) { g.layout.row_stride = 7; }},
        {"angles.layout->bytes 88", [](Given& g) { g.layout.rows = 6; }},
        // The bytes of this layout are a little more than 2^64.
        {"angles.layout->bytes",
         [](Given& g) {
             g.layout.rows = 2147437309;
             g.layout.row_stride = 2147529989;
         }},
        {"out[0] angles.sin", [](Given& g) { g.call.angles.sin.buffer = q_buffer; }},
    };
    check_record(good, rules);
}

TEST_CASE("record: the attention factor is applied, omitted or divided out") {
    Given good;
    good.layout.attention_factor = 1.25;
    const auto gain_of = [&](Gain gain) {
        good.call.gain = gain;
        return good.valid().gain;
    };
    CHECK(gain_of(VKROPE_GAIN_APPLY) == 1.0f);
    CHECK(gain_of(VKROPE_GAIN_OMIT) == 0.8f);
    CHECK(gain_of(VKROPE_GAIN_DIVIDE_OUT) == 0.64f);
    for (const double far : {0x1p-64, 0x1p64}) {  // 2^128 and 2^-128 are not normal floats
        good.layout.attention_factor = far;
        gain_of(VKROPE_GAIN_APPLY);
        good.call.gain = VKROPE_GAIN_DIVIDE_OUT;
        refused(good, "angles.layout->attention_factor");
    }
    good.call.gain = VKROPE_GAIN_APPLY;
    for (const double bad : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
        good.layout.attention_factor = bad;
        refused(good, "angles.layout->attention_factor");
    }
}

}  // namespace vkrope
