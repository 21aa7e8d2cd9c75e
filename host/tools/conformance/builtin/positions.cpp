// SPDX-License-Identifier: MIT
// Checks the position sources: implicit, ids of 32 and 64 bits, negative and out-of-range ids,
// offsets, ragged batches, shards; and slots, factors and the number of tokens of a step.
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::int64_t lowest = INT32_MIN, highest = INT32_MAX;
constexpr std::int64_t no_position = lowest - 1;  // of a token of no sequence

Trial two_sequences(std::uint32_t tokens, PositionSource source) {
    Trial trial = trial_of(VKROPE_F16, 32, tokens);
    trial.info.tensor[K] = trial.info.tensor[Q];
    trial.info.positions = source;
    trial.shape = {.batch = 2, .tokens = tokens, .groups = 1, .q_per_group = 2};
    return trial;
}

// Compares the output of record_positions() with `expected`.
void hold_expanded(Test& test, PositionCall call, const std::vector<std::int64_t>& expected) {
    constexpr std::int32_t around = 77;
    const std::vector<std::int32_t> before(expected.size() + 8, around);
    const std::uint32_t zero = 0;
    Buffer out = test.device.upload(before.data(), before.size() * 4),
           counter = test.device.upload(&zero, sizeof zero);
    call.out = {out.handle(), 16, expected.size() * 4};
    const bool counts = test.device.info().limits->maxPerStageDescriptorStorageBuffers >= 4;
    if (counts) call.out_of_range = counter.whole();
    test.device.expand(call);
    std::vector<std::int32_t> after(before.size());
    test.device.download(out, after.data(), after.size() * 4);
    std::uint32_t outside = 0, expected_outside = 0;
    test.device.download(counter, &outside, sizeof outside);
    for (std::size_t i = 0; i < 4; ++i) {
        test.expect(after[i] == around && after[after.size() - 1 - i] == around,
                    "an id outside the call has changed");
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const bool fits = expected[i] >= lowest && expected[i] <= highest;
        expected_outside += fits ? 0 : 1;
        test.expect(after[i + 4] == (fits ? expected[i] : lowest), "id {} is {}, not {}", i,
                    after[i + 4], fits ? expected[i] : lowest);
    }
    test.expect(!counts || outside == expected_outside, "the counter has grown by {}, not by {}",
                outside, expected_outside);
}

template <class Number>
Buffer numbers(DeviceUnderTest& device, const std::vector<std::int64_t>& values) {
    const std::vector<Number> narrow(values.begin(), values.end());
    return device.upload(narrow.data(), narrow.size() * sizeof(Number));
}

Buffer integers(DeviceUnderTest& device, const std::vector<std::int64_t>& values, bool wide) {
    return wide ? numbers<std::int64_t>(device, values) : numbers<std::int32_t>(device, values);
}

void hold_ragged(Test& test, bool wide) {
    std::mt19937 random(17);
    for (int round = 0; round < 6; ++round) {
        std::vector<std::int64_t> starts = {0};
        const std::uint32_t sequences = 1 + std::uint32_t(random() % 40);
        for (std::uint32_t i = 0; i < sequences; ++i) {
            const bool empty = random() % 3 == 0;
            starts.push_back(starts.back() + (empty ? 0 : int(random() % 50)));
        }
        const std::vector<std::int64_t> offsets = random_positions(sequences, -100, 100,
                                                                   std::uint32_t(round));
        const Buffer starts_buffer = integers(test.device, starts, wide),
                     offsets_buffer = integers(test.device, offsets, wide);
        PositionCall call = {.tokens = std::uint32_t(starts.back()) + 9,
                             .first = 3};  // the last tokens are of no sequence
        call.cu_seqlens = starts_buffer.whole();
        call.cu_seqlens_int64 = wide;
        call.sequences = sequences;
        if (round % 2 == 1) {
            call.offsets = offsets_buffer.whole();
            call.offsets_int64 = wide;
        }
        std::vector<std::int64_t> expected(call.tokens, no_position);
        for (std::uint32_t i = 0; i < sequences; ++i)
            for (std::int64_t t = starts[i]; t < starts[i + 1]; ++t)
                expected[std::size_t(t)] = 3 + t - starts[i] + (round % 2 == 1 ? offsets[i] : 0);
        hold_expanded(test, call, expected);
    }
}

// Converts f32 ids: the ends of int32, numbers around them and far beyond, then any bits.
void hold_f32(Test& test, std::uint32_t fraction_bits) {
    std::mt19937 random(fraction_bits);
    std::vector<float> ids = {0.f, -0.f, HUGE_VALF, -HUGE_VALF};
    for (const int exponent : {-149, -126, -1, 0, 1, 22, 23, 24, 29, 30, 31, 32, 63, 64, 127}) {
        for (const float mantissa : {1.f, 0x1.000002p0f, 1.5f, 0x1.fffffep0f}) {
            ids.push_back(std::ldexp(mantissa, exponent - int(fraction_bits)));
            ids.push_back(-ids.back());
        }
    }
    for (std::size_t i = 0; i < 200; ++i)
        ids.push_back(std::bit_cast<float>(std::uint32_t(random())));
    std::vector<std::int64_t> expected;
    for (const float id : ids) {
        const double units = std::ldexp(double{id}, int(fraction_bits));
        const bool fits = units == std::floor(units) && units >= lowest && units <= highest;
        expected.push_back(fits ? std::int64_t(units) : no_position);
    }
    const Buffer buffer = test.device.upload(ids.data(), ids.size() * sizeof(float));
    hold_expanded(test,
                  {.tokens = std::uint32_t(ids.size()),
                   .ids = buffer.whole(),
                   .ids_f32 = true,
                   .fraction_bits = fraction_bits},
                  expected);
}

void hold_shards(Test& test, std::uint32_t cp_size) {
    constexpr std::uint32_t chunk = 3;
    const std::vector<std::int64_t> starts = {10, -4};
    const Buffer offsets = integers(test.device, starts, false);
    for (std::uint32_t rank = 0; rank < cp_size; ++rank) {
        std::vector<std::int64_t> expected;
        for (const std::int64_t start : starts) {
            for (const std::uint32_t first : {rank * chunk, (2 * cp_size - 1 - rank) * chunk})
                for (std::uint32_t i = 0; i < chunk; ++i) expected.push_back(start + first + i);
        }
        hold_expanded(test,
                      {.batch = 2,
                       .tokens = 2 * chunk,
                       .offsets = offsets.whole(),
                       .cp_size = cp_size,
                       .cp_rank = rank},
                      expected);
        // Ragged: two sequences of different lengths; cu_seqlens counts the tokens of the unsharded
        // sequences.
        const std::int64_t whole = 2 * cp_size * chunk;
        const Buffer cu_seqlens = integers(test.device, {0, whole, 3 * whole}, true);
        expected.clear();
        for (const std::uint32_t length : {chunk, 2 * chunk}) {
            for (const std::uint32_t first : {rank * length, (2 * cp_size - 1 - rank) * length})
                for (std::uint32_t i = 0; i < length; ++i) expected.push_back(first + i);
        }
        hold_expanded(test,
                      {.tokens = std::uint32_t(expected.size()),
                       .cu_seqlens = cu_seqlens.whole(),
                       .sequences = 2,
                       .cu_seqlens_int64 = true,
                       .cp_size = cp_size,
                       .cp_rank = rank},
                      expected);
    }
}

// Makes ids, slots, factors and the number of tokens of ragged sequences at once. In every third
// round numbers are wrong: lengths below 0 or too large, and pages that no cache has.
void hold_step(Test& test) {
    if (test.device.info().limits->maxPerStageDescriptorStorageBuffers < 6)
        unsupported("a step binds 6 storage buffers");
    constexpr std::uint32_t tokens = 200, sequences = 20, pages = 9, page_size = 8, cache = 60;
    constexpr std::uint32_t size = tokens + 8;  // words of each output, with those around it
    constexpr std::uint32_t around = 77, one = 0x3f800000;
    const QueryScaleLayout layout = value_of(
        plan_query_scales({VKROPE_QUERY_SCALING_LLAMA4, 16, 0.25}, 80));
    std::vector<float> factors(layout.rows);
    check(fill_query_scales(layout, factors.data(), layout.bytes));
    const Buffer factors_buffer = test.device.upload(factors.data(), layout.bytes);
    std::mt19937 random(61);
    for (int round = 0; round < 6; ++round) {
        const bool wrong = round % 3 == 2;
        const auto below = [&](std::uint32_t end) { return std::int32_t(random() % end); };
        std::vector<std::int32_t> lengths, ends, table;
        for (std::uint32_t i = 0; i < sequences; ++i) {
            lengths.push_back(below(14));
            if (wrong && i == 10) lengths[i] = round == 2 ? -5 : INT32_MAX;
            ends.push_back(wrong && below(3) == 0 ? below(300) - 100 : lengths[i] % 16 + below(50));
        }
        for (std::uint32_t i = 0; i < sequences * pages; ++i)
            table.push_back(below(4) == 0 ? -1 : wrong ? below(100) - 20 : below(cache));

        std::vector<std::uint32_t> expected(4 * size, around);
        std::uint32_t outside = 0, t = 0;
        std::int64_t sum = 0;
        bool falls = false;
        std::fill_n(&expected[4], tokens, 0u), std::fill_n(&expected[size + 4], tokens, ~0u);
        std::fill_n(&expected[2 * size + 4], tokens, one);
        for (std::uint32_t i = 0; i < sequences; ++i) {
            falls = lengths[i] < 0;
            if (falls) break;
            sum += lengths[i];
            const std::uint32_t last = std::min(t + std::uint32_t(lengths[i]), tokens), first = t;
            for (; t < last; ++t) {
                const std::int64_t place = std::int64_t{ends[i]} - lengths[i] + (t - first);
                const std::int64_t position = place + 3;
                const bool has_id = place >= 0, in_row = place < pages * page_size;
                expected[4 + t] = has_id ? std::uint32_t(position) : 0x80000000u;
                outside += !has_id;
                if (!has_id) continue;
                const std::int32_t page = in_row ? table[i * pages + std::size_t(place) / page_size]
                                                 : -2;
                if (page >= 0 && page < std::int32_t{cache})
                    expected[size + 4 + t] = std::uint32_t(page * std::int32_t{page_size} +
                                                           place % page_size);
                outside += page != -1 && expected[size + 4 + t] == ~0u;
                const bool covered = position >= 0 && (position + 1) / 16 < layout.rows;
                outside += !covered;
                if (covered)
                    expected[2 * size + 4 + t] = std::bit_cast<std::uint32_t>(
                        factors[std::size_t(position + 1) / 16]);
            }
        }
        outside += falls || sum > tokens;
        expected[3 * size + 4] = t;
        expected[3 * size + 5] = outside;

        std::vector<std::uint32_t> before(4 * size, around);
        before[3 * size + 5] = 0;
        Buffer out = test.device.upload(before.data(), before.size() * 4);
        const auto numbers_of = [&](const std::vector<std::int32_t>& of) {
            return test.device.upload(of.data(), of.size() * 4);
        };
        const Buffer lengths_buffer = numbers_of(lengths), ends_buffer = numbers_of(ends),
                     table_buffer = numbers_of(table);
        const auto part = [&](std::uint32_t word, std::uint32_t words) {
            return VkDescriptorBufferInfo{out.handle(), 4ull * word, 4ull * words};
        };
        PositionCall call{.tokens = tokens, .first = 3, .sequences = sequences};
        call.query_lens = lengths_buffer.whole();
        call.seq_lens = ends_buffer.whole();
        call.block_table = table_buffer.whole();
        call.pages = pages, call.page_size = page_size, call.cache_pages = cache;
        call.query_scales = factors_buffer.whole(), call.query_scale_layout = &layout;
        call.out = part(4, tokens), call.slot_mapping = part(size + 4, tokens);
        call.scale_tokens = part(2 * size + 4, tokens);
        call.token_count = part(3 * size + 4, 1), call.out_of_range = part(3 * size + 5, 1);
        test.device.expand(call);
        std::vector<std::uint32_t> after(before.size());
        test.device.download(out, after.data(), after.size() * 4);
        for (std::uint32_t i = 0; i < after.size(); ++i)
            test.expect(after[i] == expected[i], "round {}: word {} of {} is {:#x}, not {:#x}",
                        round, i % size, i / size, after[i], expected[i]);
    }
}

}  // namespace

void add_positions(Checks& checks) {
    for (const std::int32_t first :
         {0, 5, -3, -60, 40}) {  // the last two exceed the table of 64 rows
        checks.add(
            fmt::format("implicit_from_{}", first),
            [=](Test& test) {
                Trial trial = two_sequences(30, VKROPE_POSITIONS_IMPLICIT);
                trial.call.positions.first = first;
                test.run(trial);
            });
    }
    checks.add("implicit_each_sequence_further_on", [](Test& test) {
        Trial trial = two_sequences(30, VKROPE_POSITIONS_IMPLICIT);
        trial.call.positions.first = -20;
        trial.call.positions.batch_stride = 33;
        test.run(trial);
    });
    for (const bool wide : {false, true}) {
        const char* bits = wide ? "64" : "32";
        checks.add(
            fmt::format("ids_of_{}_bits", bits),
            [=](Test& test) {
                Trial trial = two_sequences(50, VKROPE_POSITIONS_IDS);
                trial.ids = random_positions(100, -63, 63, 31);
                trial.call.positions.int64 = wide;
                test.run(trial);
            });
        checks.add(
            fmt::format("ids_of_{}_bits_outside", bits),
            [=](Test& test) {
                for (const Element element : elements) {
                    Trial trial = two_sequences(8, VKROPE_POSITIONS_IDS);
                    trial.info.tensor[Q].in = trial.info.tensor[Q].out = trial.info.tensor[K].in =
                        trial.info.tensor[K].out = element;
                    trial.ids = {0, 63, 64, -63, -64,  5, highest, lowest,
                                 1, -1, 2,  100, -100, 3, 65535,   4};
                    trial.call.positions.int64 = wide;
                    if (wide) {  // the low words of these ids are in range
                        trial.ids[1] = (std::int64_t{1} << 32) + 5;
                        trial.ids[5] = (std::int64_t{1} << 32) - 7;
                        trial.ids[8] = INT64_MIN;
                    }
                    const Rotated rotated = test.run(trial);
                    test.expect(rotated.has_outside((wide ? 10u : 7u)),
                                "other tokens than these are counted as outside");
                }
            });
        checks.add(
            fmt::format("offsets_of_{}_bits", bits),
            [=](Test& test) {
                std::vector<std::int64_t> offsets = {0, -1000, highest - 130, highest, lowest + 5};
                if (wide) {
                    offsets[4] = std::int64_t{1} << 60;
                }
                const Buffer buffer = integers(test.device, offsets, wide);
                std::vector<std::int64_t> expected;
                for (const std::int64_t offset : offsets) {
                    for (std::int64_t t = 0; t < 131; ++t) {
                        expected.push_back(offset - 7 + t);
                    }
                }
                hold_expanded(test,
                              {.batch = 5,
                               .tokens = 131,
                               .first = -7,
                               .offsets = buffer.whole(),
                               .offsets_int64 = wide},
                              expected);
            });
        checks.add(fmt::format("ragged_of_{}_bits", bits),
                   [=](Test& test) { hold_ragged(test, wide); });
    }
    checks.add("ids_of_64_bits_made_32", [](Test& test) {
        std::vector<std::int64_t> ids = random_positions(5 * 131, INT64_MIN / 4, INT64_MAX / 4, 9);
        for (std::size_t i = 0; i < ids.size(); i += 2)
            ids[i] >>= 31;  // half of the ids fit in int32, or nearly
        const Buffer buffer = integers(test.device, ids, true);
        hold_expanded(test, {.batch = 5, .tokens = 131, .ids = buffer.whole()}, ids);
    });
    for (const std::uint32_t fraction_bits : {0u, 8u, 31u, 63u}) {
        checks.add(
            fmt::format("ids_of_f32_with_{}_fraction_bits", fraction_bits),
            [=](Test& test) { hold_f32(test, fraction_bits); });
    }
    checks.add("slots_factors_and_number_of_tokens", hold_step);
    for (const std::uint32_t cp_size : {1u, 2u, 4u}) {
        checks.add(
            fmt::format("zig_zag_shards_of_{}", cp_size),
            [=](Test& test) { hold_shards(test, cp_size); });
    }
}

}  // namespace vkrope::conformance
