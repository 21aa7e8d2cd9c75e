// SPDX-License-Identifier: MIT
// Tests record_positions() with ids of f32, calls of many workgroups and any cu_seqlens, and tests
// its rules. The conformance suite tests offsets, ragged batches and shards.
#include <bit>
#include <cmath>
#include <limits>

#include "support/recording.hpp"

namespace vkrope::test {

namespace {

constexpr std::int64_t lowest = INT32_MIN;

// Returns the ids that record_positions() writes on a device that reports `limits`.
std::vector<std::int32_t> expand(Device& on, PositionCall call, std::uint32_t* outside = nullptr,
                                 const ReportedLimits& limits = {}) {
    const Owned<PositionKernel> kernel(must(create_positions(reporting(on, limits))));
    const std::size_t count = std::size_t{std::max(call.batch, 1u)} * call.tokens;
    // The ids are in the middle of the buffer, so that writes outside them are detected.
    const std::vector<std::int32_t> before(count + 8, 77);
    Buffer out = upload(on, bytes_of(before)), counter = upload(on, Bytes(4));
    call.out = part(out, 16, count * 4);
    if (outside) call.out_of_range = counter.whole();
    const Owned<DescriptorArena> arena = make_arena(on, kernel, 1);
    must(on.submit([&](VkCommandBuffer commands) {
        return record_positions(commands, kernel.get(), call, arena.get());
    }));
    const Bytes bytes = download(out, before.size() * 4);
    std::vector<std::int32_t> after(before.size());
    std::memcpy(after.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < 4; ++i) CHECK((after[i] == 77 && after[count + 4 + i] == 77));
    if (outside) *outside = stored(VKROPE_F32, download(counter, 4), 0);
    return {after.begin() + 4, after.end() - 4};
}

}  // namespace

TEST_CASE("more tokens than one row of workgroups takes: each token has the id of its index") {
    constexpr std::uint32_t tokens = 1500;  // 24 workgroups: 3 along x, 8 along y
    std::vector<std::int32_t> expected(tokens);
    for (std::uint32_t t = 0; t < tokens; ++t) expected[t] = std::int32_t(t) + 5;
    CHECK(expand(device(), {.tokens = tokens, .first = 5}, nullptr, {.workgroups_x = 3}) ==
          expected);
}

TEST_CASE(
    "ids of f32 times 2^fraction_bits must be whole numbers of int32; any other id becomes -2^31 "
    "and is counted") {
    constexpr float infinity = std::numeric_limits<float>::infinity(),
                    nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> special = {0.0f,        -0.0f,      1.0f,       -1.0f,    0.5f,
                                  -0.5f,       0.75f,      2.5f,       -3.25f,   1.0f / 256,
                                  3.0f / 256,  1.0f / 512, 0x1p31f,    -0x1p31f, 0x1.fffffep30f,
                                  0x1p30f,     -0x1p30f,   0x1p23f,    0x1p24f,  0x1.000002p23f,
                                  -0x1.fep31f, 0x1p32f,    -0x1p32f,   0x1p63f,  0x1p64f,
                                  0x1p-31f,    -0x1p-32f,  0x1p-63f,   0x3p-63f, 0x1p-64f,
                                  0x1p-126f,   0x1p-149f,  -0x1p-149f, 0x1p127f, -0x1.fffffep127f,
                                  infinity,    -infinity,  nan,        -nan};
    std::mt19937 generator(29);
    for (const std::uint32_t fraction_bits : {0u, 1u, 8u, 31u, 63u}) {
        // Multiples of 2^-fraction_bits of any size, some of them plus half a unit; then any bits.
        std::vector<float> ids = special;
        for (int i = 0; i < 400; ++i) {
            const auto whole = std::int32_t(generator()) >> generator() % 32;
            const auto units = float(whole) + (i % 4 == 0 ? 0.5f : 0.0f);
            ids.push_back(std::ldexp(units, -int(fraction_bits)));
        }
        for (int i = 0; i < 400; ++i)
            ids.push_back(std::bit_cast<float>(std::uint32_t(generator())));
        const auto count = std::uint32_t(ids.size());
        Buffer buffer = upload(device(), bytes_of(ids));
        std::uint32_t outside = 0, expected_outside = 0;
        const auto got = expand(device(),
                                {.tokens = count,
                                 .ids = buffer.whole(),
                                 .ids_f32 = true,
                                 .fraction_bits = fraction_bits},
                                &outside);
        std::size_t fractions = 0;
        for (std::uint32_t i = 0; i < count; ++i) {
            const long double units = std::ldexp(static_cast<long double>(ids[i]),
                                                 int(fraction_bits));
            const bool fits = units == std::floor(units) && units >= lowest && units <= INT32_MAX;
            expected_outside += !fits;
            fractions += std::isfinite(ids[i]) && units != std::floor(units);
            INFO(ids[i], " with ", fraction_bits, " fraction bits");
            CHECK(got[i] == (fits ? std::int64_t(units) : lowest));
        }
        CHECK(outside == expected_outside);
        CHECK(expected_outside > 5);
        CHECK(fractions > 10);
        CHECK(count - expected_outside > 200);
    }
}

namespace {

// Returns the ids of a ragged batch of one rank: a token of the first sequence that ends after it,
// if the sums rise from 0 or more up to that end.
std::vector<std::int32_t> ragged_ids(const std::vector<std::int64_t>& sums, std::uint32_t tokens) {
    std::vector<std::int32_t> ids(tokens, INT32_MIN);
    for (std::uint32_t t = 0; t < tokens; ++t) {
        for (std::size_t i = 0; i + 1 < sums.size() && sums[i] >= 0; ++i) {
            if (sums[i] > t || sums[i + 1] < sums[i]) break;
            if (t < sums[i + 1]) {
                ids[t] = std::int32_t(t - sums[i]);
                break;
            }
        }
    }
    return ids;
}

}  // namespace

TEST_CASE("a token of no sequence, and one from where cu_seqlens fall on, has no position") {
    std::vector<std::vector<std::int64_t>> batches = {
        {0, 30, 100},           // as they should be
        {0, 30, 30, 100},       // with an empty sequence
        {0, 30, 90},            // do not reach the tokens
        {0, 30, 120},           // beyond the tokens
        {10, 30, 100},          // begin above 0
        {-10, 30, 100},         // begin below 0
        {30, 70, 40},           // lengths instead of sums
        {0, 30, 70, 40},        // the same after a 0
        {0, 60, 20, 100},       // fall, and rise again
        {0, 60, -20, 100},      // fall below 0
        {0, -1},                // has no sequence
        {0, 0, 0},              // has only empty ones
        {90, 60, 30, 0},        // descend
        {0, 50, (1LL << 32)},   // beyond 32 bits
        {0, -(1LL << 40), 100}  // below 32 bits
    };
    std::mt19937 generator(23);
    for (int round = 0; round < 12; ++round) {
        std::vector<std::int64_t>& sums = batches.emplace_back(2 + generator() % 30);
        for (std::int64_t& number : sums)
            number = std::int32_t(generator()) % (round < 8 ? 200 : 1 << 30);
        if (round % 2) std::sort(sums.begin(), sums.end() - 1), sums[0] = 0;
    }
    for (const std::vector<std::int64_t>& sums : batches) {
        const bool fits = std::all_of(sums.begin(), sums.end(),
                                      [](std::int64_t sum) { return sum == std::int32_t(sum); });
        const std::vector<std::int32_t> narrow(sums.begin(), sums.end());
        const Buffer starts = upload(device(), bytes_of(sums)),
                     narrow_starts = upload(device(), bytes_of(narrow));
        for (const bool wide : {true, false}) {
            if (!wide && !fits) continue;
            CAPTURE(&sums - batches.data());
            CAPTURE(wide);
            PositionCall call{.tokens = 100};
            call.cu_seqlens = wide ? starts.whole() : narrow_starts.whole();
            call.cu_seqlens_int64 = wide;
            call.sequences = std::uint32_t(sums.size()) - 1;
            const std::vector<std::int32_t> expected = ragged_ids(sums, 100);
            std::uint32_t outside = 0;
            CHECK(expand(device(), call, &outside) == expected);
            CHECK(outside == std::count(expected.begin(), expected.end(), INT32_MIN));
        }
    }
}

TEST_CASE("shards of a sequence whose length is no multiple of 2 cp_size have no positions") {
    for (const std::uint32_t length : {16u, 18u, 19u}) {
        const std::vector<std::int32_t> sums = {0, std::int32_t(length)};
        const Buffer starts = upload(device(), bytes_of(sums));
        PositionCall call{.tokens = length / 2, .cp_size = 2};
        call.cu_seqlens = starts.whole();
        call.sequences = 1;
        std::uint32_t outside = 0;
        expand(device(), call, &outside);
        CHECK(outside == (length % 4 == 0 ? 0 : call.tokens));
    }
}

TEST_CASE("record_positions: each broken rule is named, and nothing is recorded") {
    const Owned<PositionKernel> kernel(must(create_positions(device().ref())));
    Buffer buffer = upload(device(), Bytes(4096));
    PositionCall good{.batch = 2, .tokens = 8};
    good.out = part(buffer, 0, 64);
    const auto breaks = [&](auto change, const char* names,
                            ErrorCode code = VKROPE_ERROR_INVALID_ARGUMENT) {
        PositionCall call = good;
        change(call);
        const Status status = record_positions(VkCommandBuffer(1), kernel.get(), call,
                                               nullptr);  // makes no Vulkan call
        INFO(status.what);
        CHECK(status.code == code);
        CHECK(std::string(status.what).find(names) != std::string::npos);
    };
    breaks([](PositionCall& c) { c.out = {}; }, "out.buffer is null");
    breaks([](PositionCall& c) { c.out.range = 60; },
           "out.range is 60 bytes: it must be at least 64");
    breaks([](PositionCall& c) { c.out.offset = 2; }, "out.offset is 2");
    breaks([&](PositionCall& c) { c.offsets = part(buffer, 60, 8); }, "out and offsets overlap");
    breaks([&](PositionCall& c) { c.ids = part(buffer, 128, 124); },
           "ids.range is 124 bytes: it must be at least 128");
    breaks([&](PositionCall& c) { c.ids = part(buffer, 128, 128), c.first = 1; }, "ids is given");
    breaks([](PositionCall& c) { c.ids_f32 = true; }, "ids_f32 is set: ids must then be given");
    breaks([&](PositionCall& c) { c.ids = part(buffer, 128, 128), c.fraction_bits = 1; },
           "fraction_bits is 1: it must be 0 to 63, and 0 without ids_f32");
    breaks(
        [&](PositionCall& c) {
            c.ids = part(buffer, 128, 64), c.ids_f32 = true, c.fraction_bits = 64;
        },
        "fraction_bits is 64");
    breaks([&](PositionCall& c) { c.ids = part(buffer, 128, 60), c.ids_f32 = true; },
           "ids.range is 60 bytes: it must be at least 64");
    breaks(
        [&](PositionCall& c) {
            c.ids = part(buffer, 128, 64), c.ids_f32 = true, c.offsets = part(buffer, 256, 8);
        },
        "ids is given");
    breaks([&](PositionCall& c) { c.cu_seqlens = part(buffer, 128, 8); }, "sequences is 0");
    breaks([](PositionCall& c) { c.sequences = 2; },
           "sequences is 2: it must be 0 without cu_seqlens");
    breaks(
        [&](PositionCall& c) {
            c.batch = 1, c.cu_seqlens = part(buffer, 128, 8), c.sequences = 32769;
        },
        "sequences is 32769: it must be at most 32768");
    breaks([&](PositionCall& c) { c.cu_seqlens = part(buffer, 128, 12), c.sequences = 2; },
           "batch is 2");
    breaks(
        [&](PositionCall& c) { c.batch = 1, c.cu_seqlens = part(buffer, 128, 8), c.sequences = 2; },
        "cu_seqlens.range is 8 bytes");
    breaks([](PositionCall& c) { c.cp_size = 65537; }, "cp_size is 65537");
    breaks([](PositionCall& c) { c.cp_size = 2, c.cp_rank = 2; }, "cp_rank is 2");
    breaks([](PositionCall& c) { c.cp_size = 2, c.tokens = 7; }, "tokens is 7");
    breaks([&](PositionCall& c) { c.out_of_range = part(buffer, 0, 4); },
           "out and out_of_range overlap");

    // A step: two sequences in 16 tokens, with slots, factors and the number of tokens.
    const QueryScaleLayout layout = must(
        plan_query_scales({VKROPE_QUERY_SCALING_LLAMA4, 16, 0.1}, 64));
    good = {.tokens = 16, .sequences = 2};
    good.query_lens = part(buffer, 512, 8), good.seq_lens = part(buffer, 520, 8);
    good.out = part(buffer, 0, 64), good.slot_mapping = part(buffer, 64, 64);
    good.block_table = part(buffer, 528, 28), good.pages = 3, good.block_table_stride = 4;
    good.page_size = 8, good.cache_pages = 40;
    good.query_scales = part(buffer, 640, layout.bytes), good.query_scale_layout = &layout;
    good.scale_tokens = part(buffer, 128, 64), good.token_count = part(buffer, 192, 4);
    good.out_of_range = part(buffer, 196, 4);
    breaks([&](PositionCall& c) { c.cu_seqlens = part(buffer, 512, 12); },
           "query_lens is given: cu_seqlens must then not be set");
    breaks([](PositionCall& c) { c.query_lens.range = 4; },
           "query_lens.range is 4 bytes: it must be at least 8");
    breaks([](PositionCall& c) { c.query_lens.range = 16; }, "convert them to int32");
    breaks([](PositionCall& c) { c.sequences = 0; }, "sequences is 0");
    breaks([](PositionCall& c) { c.cp_size = 2, c.block_table = c.slot_mapping = {}; },
           "seq_lens is given: cp_size must then not be set");
    breaks([](PositionCall& c) { c.cp_size = 2, c.seq_lens = {}; },
           "block_table is given: ids_f32 and cp_size must then not be set");
    breaks(
        [&](PositionCall& c) {
            c = {.tokens = 16, .ids = part(buffer, 1024, 64), .ids_f32 = true, .out = c.out};
            c.query_scales = good.query_scales, c.query_scale_layout = &layout;
            c.scale_tokens = good.scale_tokens;
        },
        "query_scales is given: ids_f32 must then not be set");
    breaks([](PositionCall& c) { c.slot_mapping = {}; },
           "block_table is set: slot_mapping must then be given");
    breaks([](PositionCall& c) { c.block_table = {}; },
           "slot_mapping is set: block_table must then be given");
    const auto without_table = [](PositionCall& c) { c.block_table = c.slot_mapping = {}; };
    breaks(without_table, "pages is set: block_table must then be given");
    breaks([&](PositionCall& c) { without_table(c), c.pages = 0; }, "block_table_stride is set");
    breaks([&](PositionCall& c) { without_table(c), c.pages = c.block_table_stride = 0; },
           "page_size is set");
    breaks(
        [&](PositionCall& c) {
            without_table(c), c.pages = c.block_table_stride = c.page_size = 0;
        },
        "cache_pages is set");
    breaks([](PositionCall& c) { c.pages = 0; }, "pages is 0");
    breaks([](PositionCall& c) { c.block_table_stride = 2; },
           "block_table_stride is 2: it must be 0 or at least pages, 3");
    breaks([](PositionCall& c) { c.cache_pages = 0; }, "cache_pages is 0");
    breaks([](PositionCall& c) { c.page_size = (1u << 31) + 1; },
           "page_size is 2147483649: it must be 1 to 2^31");
    breaks([](PositionCall& c) { c.cache_pages = (1u << 28) + 1; },
           "cache_pages is 268435457: with page_size 8 it must be 1 to 268435456");
    breaks([](PositionCall& c) { c.block_table.range = 24; },
           "block_table.range is 24 bytes: it must be at least 28");
    breaks([](PositionCall& c) { c.block_table_stride = 0, c.block_table.range = 48; },
           "block_table.range is 48 bytes, twice those of 32-bit numbers: convert them to int32");
    breaks([](PositionCall& c) { c.seq_lens.range = 16; }, "convert them to int32");
    breaks([](PositionCall& c) { c.scale_tokens = {}; }, "query_scales is set: scale_tokens");
    breaks([](PositionCall& c) { c.query_scales = {}; }, "scale_tokens is set: query_scales");
    breaks([](PositionCall& c) { c.query_scale_layout = nullptr; },
           "query_scales is set: query_scale_layout must then be given");
    breaks([](PositionCall& c) { c.query_scales = c.scale_tokens = {}; },
           "query_scale_layout is set: query_scales must then be given");
    breaks([](PositionCall& c) { c.query_scales.range = 16; }, "query_scales.range is 16 bytes");
    const auto breaks_layout = [&](auto change, const char* names) {
        QueryScaleLayout changed = layout;
        change(changed);
        breaks([&](PositionCall& c) { c.query_scale_layout = &changed; }, names);
    };
    breaks_layout([](QueryScaleLayout& l) { l.shift = 0; },
                  "query_scale_layout->shift is 0: a plan with the other fields");
    breaks_layout([](QueryScaleLayout& l) { l.positions_per_row = 0; },
                  "query_scale_layout->positions_per_row is 0");
    breaks_layout([](QueryScaleLayout& l) { l.rows = 0; }, "query_scale_layout->rows is 0");
    breaks_layout([](QueryScaleLayout& l) { ++l.rows; }, "query_scale_layout->bytes is 20");
    breaks_layout([](QueryScaleLayout& l) { l.scale.kind = VKROPE_QUERY_SCALING_NONE; },
                  "query_scale_layout->scale.kind is 0");
    const auto uniform = [](PositionCall& c) {
        c.query_lens = {}, c.sequences = 0, c.batch = 2, c.tokens = 8;
    };
    breaks(uniform, "token_count is set: cu_seqlens or query_lens must then be given");
    breaks(
        [](PositionCall& c) {
            c.out_of_range = {nullptr, 4, 0};
        },
        "out_of_range.buffer is null");
    // Each output may overlap no other buffer.
    VkDescriptorBufferInfo PositionCall::*const written[] = {
        &PositionCall::out, &PositionCall::slot_mapping, &PositionCall::scale_tokens,
        &PositionCall::token_count, &PositionCall::out_of_range};
    VkDescriptorBufferInfo PositionCall::*const read[] = {
        &PositionCall::query_lens, &PositionCall::seq_lens, &PositionCall::block_table,
        &PositionCall::query_scales};
    for (const auto output : written) {
        for (const auto other : written)
            if (other != output)
                breaks([&](PositionCall& c) { (c.*output).offset = (c.*other).offset; }, "overlap");
        for (const auto other : read)
            breaks([&](PositionCall& c) { (c.*other).offset = (c.*output).offset; }, "overlap");
    }
    // The number of tokens does not follow from every field.
    PositionCall alone{.tokens = 16, .sequences = 2};
    alone.query_lens = good.query_lens, alone.token_count = good.token_count;
    good = alone;
    breaks([](PositionCall& c) { c.token_count = {}; }, "out.buffer is null");
    breaks([](PositionCall& c) { c.first = 1; }, "first is set");
    breaks([](PositionCall& c) { c.cp_size = 2, c.cp_rank = 1; }, "cp_rank is set");
    breaks([&](PositionCall& c) { c.offsets = part(buffer, 1024, 8); }, "offsets is set");
    breaks([&](PositionCall& c) { c.seq_lens = part(buffer, 1024, 8); }, "seq_lens is set");
}

}  // namespace vkrope::test
