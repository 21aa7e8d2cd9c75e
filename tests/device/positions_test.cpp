// SPDX-License-Identifier: MIT
// Sources of positions: 64-bit ids, ids on several axes, offsets, ragged batches, shards. Each must
// give the bits of plain int32 ids, which other tests check against the contract.
#include <algorithm>

#include "support/recording.hpp"

namespace vkrope::test {

namespace {

constexpr std::uint32_t D = 48, R = 40, offset = 4, heads = 3;
constexpr std::int64_t lowest = INT32_MIN;

KernelInfo info_for(Element element, PositionSource source, Pairing pairing = Pairing::half_split) {
    return {.pairing = pairing,
            .rotary_dim = R,
            .q = {element, element, D, offset},
            .positions = source};
}

struct Rotating {
    Element element = Element::f32;
    std::uint32_t batch = 1, tokens = 1;
    Bytes in = {};

    Rotating(Element of, std::uint32_t sequences, std::uint32_t count, std::uint32_t seed)
        : element(of), batch(sequences), tokens(count),
          in(random_elements(of, std::size_t{sequences} * count * heads * D, seed)) {}

    // Rotates `in` at these positions.
    Bytes operator()(Device& on, const KernelInfo& info, const AngleTable& table,
                     const Positions& positions, Buffer* counter = nullptr) const {
        return (*this)(on, make_kernel(on, info), table, positions, counter);
    }

    Bytes operator()(Device& on, const Owned<Kernel>& kernel, const AngleTable& table,
                     const Positions& positions, Buffer* counter = nullptr) const {
        Buffer from = upload(on, in), to = upload(on, Bytes(in.size()));
        Call call{.batch = batch, .tokens = tokens};
        call.q_in = {.where = from.whole(), .heads = heads};
        call.q_out = {.where = to.whole(), .heads = heads};
        call.positions = positions;
        call.angles = table.angles();
        if (counter) call.out_of_range = counter->whole();
        run(on, kernel, call);
        return download(to, in.size());
    }
};

template <class Number>
std::vector<Number> random_positions(std::size_t count, std::int64_t from, std::int64_t to,
                                     std::uint32_t seed) {
    std::mt19937_64 generator(seed);
    std::vector<Number> numbers(count);
    for (Number& number : numbers)
        number = Number(from + std::int64_t(generator() % std::uint64_t(to - from + 1)));
    return numbers;
}

std::uint32_t count_in(Buffer& counter) {
    return stored(Element::f32, download(counter, 4), 0);
}

// The ids that record_positions() writes.
std::vector<std::int32_t> expand(Device& on, PositionCall call, std::uint32_t* outside = nullptr) {
    const Owned<PositionKernel> kernel(must(create_positions(on.ref())));
    const std::size_t count = std::size_t{call.batch} * call.tokens;
    // Writes to the middle of the buffer, so that changes around it are detected.
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
    if (outside) *outside = count_in(counter);
    return {after.begin() + 4, after.end() - 4};
}

}  // namespace

TEST_CASE(
    "ids of 64 bits: the same bits as of 32; outside int32 a token stays unrotated and counts") {
    const std::vector<std::int32_t> narrow = {5, -7, 0, 63, -63, 12};
    std::vector<std::int64_t> wide(narrow.begin(), narrow.end());
    for (const Element element : {Element::f32, Element::f16}) {
        const Rotating rotate(element, 1, 6, 7);
        AngleTable table = must(AngleTable::make(device(),
                                                 rotation(Pairing::half_split, D, R, offset, 0),
                                                 AngleSource::factored_texture, 64));
        Buffer ids = upload(device(), bytes_of(narrow)), ids64 = upload(device(), bytes_of(wide));
        const KernelInfo info = info_for(element, PositionSource::ids);
        const Bytes expected = rotate(device(), info, table, {.ids = ids.whole()});
        CHECK(rotate(device(), info, table, {.ids = ids64.whole(), .int64 = true}) == expected);

        std::vector<std::int64_t> far = wide;
        far[1] = (std::int64_t{1} << 32) - 7;  // its low word is that of -7
        far[2] = std::int64_t{1} << 32;
        far[4] = INT64_MIN;
        Buffer ids_far = upload(device(), bytes_of(far)), counter = upload(device(), Bytes(4));
        const Bytes after = rotate(device(), info, table, {.ids = ids_far.whole(), .int64 = true},
                                   &counter);
        CHECK(count_in(counter) == 3);
        const std::size_t row = heads * D * element_bytes(element);
        for (std::size_t t = 0; t < 6; ++t) {
            const Bytes& want = t == 1 || t == 2 || t == 4 ? rotate.in : expected;
            CHECK(std::equal(after.begin() + t * row, after.begin() + (t + 1) * row,
                             want.begin() + t * row));
        }
    }
}

TEST_CASE("several axes: each pair has the bits that its axis alone would give it") {
    struct Case {
        Sections sections;
        std::uint32_t axes[R / 2];  // axis of each pair
    };
    const Case cases[] = {
        {{.axes = 3, .pairs = {6, 7, 7}},
         {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2}},
        {{.axes = 3, .pairs = {3, 0, 2}},
         {0, 0, 0, 2, 2, 0, 0, 0, 2, 2, 0, 0, 0, 2, 2, 0, 0, 0, 2, 2}},  // sections repeat
        {{.axes = 3, .pairs = {4, 8, 8}},
         {0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2}},  // multiples of a unit
        {{.axes = 2, .pairs = {10, 10}},
         {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
        {{.order = SectionOrder::interleaved, .axes = 3, .pairs = {10, 5, 5}},
         {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0, 0, 0, 0}},
        {{.order = SectionOrder::interleaved, .axes = 4, .pairs = {4, 4, 4, 8}, .leftover_axis = 3},
         {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3}},
        {{.axes = 8, .pairs = {1, 2, 3, 4, 4, 3, 2, 1}},
         {0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 6, 6, 7}},
    };
    // The first case runs with every combination; the other cases take turns.
    std::vector<KernelInfo> ways;
    for (const AngleSource source : {AngleSource::factored_texture, AngleSource::direct_buffer}) {
        for (const Pairing pairing : {Pairing::half_split, Pairing::interleaved}) {
            for (const Mapping mapping : {Mapping::cpu, Mapping::gpu}) {
                for (const Element element : {Element::f32, Element::bf16}) {
                    KernelInfo info = info_for(element, PositionSource::ids, pairing);
                    info.angles = source;
                    info.mapping = mapping;
                    ways.push_back(info);
                }
            }
        }
    }
    constexpr std::uint32_t batch = 2, tokens = 5;
    std::size_t next_way = 0;
    for (const Case& of : cases) {
        const std::uint32_t axes = of.sections.axes;
        const auto ids = random_positions<std::int32_t>(std::size_t{axes} * batch * tokens, -63, 63,
                                                        axes);
        Buffer buffer = upload(device(), bytes_of(ids));
        for (std::size_t n = 0; n < (&of == cases ? ways.size() : 3); ++n) {
            KernelInfo info = ways[next_way++ % ways.size()];
            const Element element = info.q.in;
            Rotation r = rotation(info.pairing, D, R, offset, 0);
            const AngleTable without = must(AngleTable::make(device(), r, info.angles, 64));
            r.sections = of.sections;
            const AngleTable table = must(AngleTable::make(device(), r, info.angles, 64));
            const Rotating rotate(element, batch, tokens, axes);
            const Owned<Kernel> one_axis = make_kernel(device(), info);
            info.positions = PositionSource::axis_ids;
            info.sections = of.sections;
            const Positions all{
                .ids = buffer.whole(), .batch_stride = tokens, .axis_stride = batch * tokens};
            const Bytes together = rotate(device(), info, table, all);
            for (std::uint32_t axis = 0; axis < axes; ++axis) {
                const Positions one{
                    .ids = part(buffer, std::size_t{axis} * batch * tokens * 4, batch * tokens * 4),
                    .batch_stride = tokens};
                const Bytes alone = rotate(device(), one_axis, without, one);
                std::size_t wrong = 0;
                for (std::size_t e = 0; e < std::size_t{batch} * tokens * heads * D; ++e) {
                    const std::size_t channel = e % D - offset;
                    if (e % D < offset || channel >= R) continue;
                    const std::size_t pair = info.pairing == Pairing::half_split ? channel % (R / 2)
                                                                                 : channel / 2;
                    wrong += of.axes[pair] == axis &&
                             stored(element, together, e) != stored(element, alone, e);
                }
                CHECK(wrong == 0);
            }
        }
    }
}

TEST_CASE(
    "ids lie in any order; one row may serve all axes; one axis outside leaves the token "
    "unrotated") {
    constexpr std::uint32_t batch = 2, tokens = 4, axes = 3;
    const Rotating rotate(Element::f32, batch, tokens, 11);
    Rotation r = rotation(Pairing::half_split, D, R, offset, 0);
    const AngleTable without = must(
        AngleTable::make(device(), r, AngleSource::factored_texture, 64));
    KernelInfo info = info_for(Element::f32, PositionSource::axis_ids);
    info.sections = r.sections = {.axes = axes, .pairs = {6, 7, 7}};
    const AngleTable table = must(AngleTable::make(device(), r, AngleSource::factored_texture, 64));
    const auto abs = random_positions<std::int32_t>(axes * batch * tokens, -63, 63, 3);
    std::vector<std::int64_t> bsa(abs.size());  // [batch, tokens, axes], 64 bits
    for (std::uint32_t a = 0; a < axes; ++a) {
        for (std::uint32_t t = 0; t < batch * tokens; ++t)
            bsa[t * axes + a] = abs[a * batch * tokens + t];
    }
    Buffer ids = upload(device(), bytes_of(abs)), ids64 = upload(device(), bytes_of(bsa));
    const Bytes expected = rotate(
        device(), info, table,
        {.ids = ids.whole(), .batch_stride = tokens, .axis_stride = batch * tokens});
    CHECK(rotate(device(), info, table,
                 {.ids = ids64.whole(),
                  .int64 = true,
                  .batch_stride = tokens * axes,
                  .axis_stride = 1,
                  .token_stride = axes}) == expected);
    // Text: one row of ids for all axes gives the bits of a single axis.
    const Bytes text = rotate(device(), info, table, {.ids = part(ids, 0, tokens * 4)});
    CHECK(text == rotate(device(), info_for(Element::f32, PositionSource::ids), without,
                         {.ids = part(ids, 0, tokens * 4)}));
    // The second axis of token 1 is outside the table.
    std::vector<std::int32_t> far = abs;
    far[batch * tokens + 1] = 64;
    Buffer ids_far = upload(device(), bytes_of(far)), counter = upload(device(), Bytes(4));
    const Bytes after = rotate(
        device(), info, table,
        {.ids = ids_far.whole(), .batch_stride = tokens, .axis_stride = batch * tokens}, &counter);
    CHECK(count_in(counter) == 1);
    const std::size_t row = heads * D * 4;
    CHECK(std::equal(after.begin() + row, after.begin() + 2 * row, rotate.in.begin() + row));
    CHECK(std::equal(after.begin() + 2 * row, after.end(), expected.begin() + 2 * row));
}

TEST_CASE(
    "the last id of the last axis, and the last of a caller's odd table, stand at the very end of "
    "what is bound") {
    constexpr std::uint32_t tokens = 3, axes = 3, pairs = R / 2, rows = 5,
                            stride = pairs + 1;  // 16-bit rows that start in the middle of a word
    const std::vector<std::int64_t> ids = {0, 4, 1, 2, 3, 4, 4, 0, 4};  // [tokens, axes]
    KernelInfo info = info_for(Element::f32, PositionSource::axis_ids);
    info.sections = {.axes = axes, .pairs = {6, 7, 7}};
    info.angles = AngleSource::cos_sin_cache;
    info.table = Element::f16;
    const AnglePlan plan = must(plan_cos_sin_cache(pairs, rows, stride, Element::f16));
    const Bytes numbers = random_elements(Element::f16, plan.bytes / 2, 5),
                in = random_elements(Element::f32, tokens * heads * D, 6);
    Buffer ids_buffer = upload(device(), bytes_of(ids)), cos = upload(device(), numbers),
           sin = upload(device(), numbers);
    Buffer x = upload(device(), in), counter = upload(device(), Bytes(4));
    Call call{.tokens = tokens};
    call.q_in = call.q_out = {.where = x.whole(), .heads = heads};
    call.positions = {
        .ids = ids_buffer.whole(), .int64 = true, .axis_stride = 1, .token_stride = axes};
    call.angles = {
        .plan = &plan, .buffer = part(cos, 0, plan.bytes), .sin = part(sin, 0, plan.bytes)};
    call.out_of_range = counter.whole();
    run(device(), make_kernel(device(), info), call);
    CHECK(count_in(counter) == 0);
    const Bytes out = download(x, in.size());
    // The last pair belongs to the last axis; for the last token it reads the last number of the
    // table.
    const float c = value(Element::f16, numbers, (rows - 1) * stride + pairs - 1);
    const std::size_t first = ((tokens - 1) * heads + heads - 1) * D + offset + pairs - 1;
    const float x0 = value(Element::f32, in, first), x1 = value(Element::f32, in, first + pairs);
    const volatile float a = x0 * c, b = x1 * c;
    const volatile float y0 = a - b, y1 = a + b;
    CHECK(value(Element::f32, out, first) == y0);
    CHECK(value(Element::f32, out, first + pairs) == y1);
}

TEST_CASE("implicit positions: each sequence may start further on") {
    constexpr std::uint32_t batch = 3, tokens = 4;
    const Rotating rotate(Element::f16, batch, tokens, 13);
    AngleTable table = must(AngleTable::make(device(),
                                             rotation(Pairing::half_split, D, R, offset, 0),
                                             AngleSource::factored_texture, 64));
    const Bytes after = rotate(device(), info_for(Element::f16, PositionSource::implicit), table,
                               {.first = -5, .batch_stride = 20});
    std::vector<std::int32_t> positions;
    for (std::int32_t b = 0; b < 3; ++b) {
        for (std::int32_t t = 0; t < 4; ++t) positions.push_back(-5 + 20 * b + t);
    }
    Buffer ids = upload(device(), bytes_of(positions));
    CHECK(after == rotate(device(), info_for(Element::f16, PositionSource::ids), table,
                          {.ids = ids.whole(), .batch_stride = tokens}));
}

TEST_CASE(
    "offsets of sequences and ids of 64 bits become int32 ids; what does not fit is -2^31, and "
    "counts") {
    for (const bool push_descriptors : {true, false}) {
        Device& on = device(push_descriptors);
        constexpr std::uint32_t batch = 5, tokens = 131;
        const std::vector<std::int64_t> offsets = {0, -1000, INT32_MAX - 130, INT32_MAX, INT64_MAX};
        const std::vector<std::int32_t> narrow = {0, -1000, INT32_MAX - 130, INT32_MAX, INT32_MIN};
        Buffer offsets64 = upload(on, bytes_of(offsets)), offsets32 = upload(on, bytes_of(narrow));
        std::uint32_t outside = 0, expected_outside = 0;
        const auto check = [&](const std::vector<std::int32_t>& got, const auto& starts,
                               std::int64_t first) {
            expected_outside = 0;
            std::size_t wrong = 0;
            for (std::uint32_t i = 0; i < batch * tokens; ++i) {
                const __int128 position = static_cast<__int128>(starts[i / tokens]) + first +
                                          i % tokens;
                const bool fits = position >= lowest && position <= INT32_MAX;
                expected_outside += !fits;
                wrong += got[i] != (fits ? std::int64_t(position) : lowest);
            }
            CHECK(wrong == 0);
            CHECK(outside == expected_outside);
        };
        PositionCall call{.batch = batch, .tokens = tokens};
        check(expand(on, call, &outside), std::vector<std::int64_t>(batch), 0);
        call.first = -7;
        check(expand(on, call, &outside), std::vector<std::int64_t>(batch), -7);
        call.offsets = offsets32.whole();
        check(expand(on, call, &outside), narrow, -7);
        call.offsets = offsets64.whole();
        call.offsets_int64 = true;
        check(expand(on, call, &outside), offsets, -7);
        CHECK(outside > 0);

        auto ids = random_positions<std::int64_t>(batch * tokens, INT64_MIN / 4, INT64_MAX / 4, 9);
        for (std::size_t i = 0; i < ids.size(); i += 2)
            ids[i] >>= 31;  // half of them fit into int32, or nearly
        Buffer ids_buffer = upload(on, bytes_of(ids));
        const auto got = expand(on, {.batch = batch, .tokens = tokens, .ids = ids_buffer.whole()},
                                &outside);
        std::size_t wrong = 0, far = 0;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const bool fits = ids[i] >= lowest && ids[i] <= INT32_MAX;
            far += !fits;
            wrong += got[i] != (fits ? ids[i] : lowest);
        }
        CHECK(wrong == 0);
        CHECK(outside == far);
        CHECK(far < ids.size());
    }
}

TEST_CASE("ragged batches: a token's place in its sequence, empty sequences and padding included") {
    std::mt19937 generator(17);
    for (const bool wide : {false, true}) {
        for (int round = 0; round < 6; ++round) {
            std::vector<std::int64_t> starts = {0};
            const std::uint32_t sequences = 1 + std::uint32_t(generator() % 40);
            for (std::uint32_t i = 0; i < sequences; ++i)
                starts.push_back(starts.back() + (generator() % 3 ? generator() % 50 : 0));
            const std::uint32_t tokens = std::uint32_t(starts.back()) +
                                         9;  // the last tokens are padding
            const auto offsets = random_positions<std::int32_t>(sequences, -100, 100,
                                                                std::uint32_t(round));
            Buffer starts_buffer = upload(
                device(), wide ? bytes_of(starts)
                               : bytes_of(std::vector<std::int32_t>(starts.begin(), starts.end())));
            Buffer offsets_buffer = upload(device(), bytes_of(offsets));
            PositionCall call{.tokens = tokens, .first = 3};
            call.cu_seqlens = starts_buffer.whole();
            call.sequences = sequences;
            call.cu_seqlens_int64 = wide;
            if (round % 2) call.offsets = offsets_buffer.whole();
            const auto got = expand(device(), call);
            for (std::uint32_t t = 0; t < tokens; ++t) {
                const auto end = std::upper_bound(starts.begin(), starts.end(), std::int64_t{t});
                const std::size_t sequence = std::size_t(end - starts.begin()) - 1;
                const bool member = end != starts.end();
                const std::int64_t expected = member ? 3 + std::int64_t{t} - starts[sequence] +
                                                           (round % 2 ? offsets[sequence] : 0)
                                                     : 0;
                REQUIRE(got[t] == expected);
            }
        }
    }
}

TEST_CASE("cu_seqlens of any values: every id is written, nothing else is touched") {
    std::mt19937 generator(23);
    for (int round = 0; round < 20; ++round) {
        const auto values = round == 0 ? std::vector<std::int32_t>{90, 60, 30, 0}  // descending
                                       : random_positions<std::int32_t>(
                                             2 + generator() % 30, round % 2 ? -50 : INT32_MIN,
                                             round % 2 ? 200 : INT32_MAX, std::uint32_t(round));
        Buffer starts = upload(device(), bytes_of(values));
        PositionCall call{.tokens = 100};
        call.cu_seqlens = starts.whole();
        call.sequences = std::uint32_t(values.size()) - 1;
        call.cp_size = 1 + round % 3;
        CHECK(expand(device(), call).size() == 100);
    }
}

TEST_CASE(
    "zig-zag shards: together they are the whole sequence, and their bits are those of the whole") {
    constexpr std::uint32_t chunk = 3;
    for (const std::uint32_t cp_size : {1u, 2u, 4u}) {
        const std::uint32_t whole = 2 * cp_size * chunk, local = 2 * chunk, batch = 2;
        AngleTable table = must(AngleTable::make(device(),
                                                 rotation(Pairing::half_split, D, R, offset, 0),
                                                 AngleSource::factored_texture, 64));
        const Rotating all(Element::f16, batch, whole, 19);
        const std::vector<std::int32_t> starts = {10, -4};
        Buffer offsets = upload(device(), bytes_of(starts));
        const auto positions = expand(
            device(), {.batch = batch, .tokens = whole, .offsets = offsets.whole()});
        Buffer ids = upload(device(), bytes_of(positions));
        const KernelInfo info = info_for(Element::f16, PositionSource::ids);
        const Bytes expected = all(device(), info, table,
                                   {.ids = ids.whole(), .batch_stride = whole});
        const std::size_t row = heads * D * 2;
        for (std::uint32_t rank = 0; rank < cp_size; ++rank) {
            PositionCall call{.batch = batch,
                              .tokens = local,
                              .offsets = offsets.whole(),
                              .cp_size = cp_size,
                              .cp_rank = rank};
            Buffer shard_ids = upload(device(), bytes_of(expand(device(), call)));
            Rotating shard(Element::f16, batch, local, 0);
            Bytes want(shard.in.size());
            for (std::uint32_t t = 0; t < batch * local; ++t) {
                const std::uint32_t place = t % local;
                const std::uint32_t of_whole = place < chunk ? rank * chunk + place
                                                             : (2 * cp_size - 1 - rank) * chunk +
                                                                   place - chunk;
                const std::size_t from = (t / local * whole + of_whole) * row;
                std::copy_n(all.in.begin() + from, row, shard.in.begin() + t * row);
                std::copy_n(expected.begin() + from, row, want.begin() + t * row);
            }
            CHECK(shard(device(), info, table, {.ids = shard_ids.whole(), .batch_stride = local}) ==
                  want);
        }
        // Ragged: two sequences of different lengths; cu_seqlens of the whole.
        const std::vector<std::int32_t> cu = {0, std::int32_t(whole), std::int32_t(3 * whole)};
        Buffer cu_buffer = upload(device(), bytes_of(cu));
        for (std::uint32_t rank = 0; rank < cp_size; ++rank) {
            PositionCall call{.tokens = 3 * local,
                              .cu_seqlens = cu_buffer.whole(),
                              .sequences = 2,
                              .cp_size = cp_size,
                              .cp_rank = rank};
            std::vector<std::int32_t> expected_ids;
            for (const std::uint32_t size : {chunk, 2 * chunk}) {  // chunk length of each sequence
                for (const std::uint32_t held : {rank, 2 * cp_size - 1 - rank}) {
                    for (std::uint32_t t = 0; t < size; ++t)
                        expected_ids.push_back(std::int32_t(held * size + t));
                }
            }
            CHECK(expand(device(), call) == expected_ids);
        }
    }
}

TEST_CASE("record_positions: each broken rule is named, and nothing is recorded") {
    const Owned<PositionKernel> kernel(must(create_positions(device().ref())));
    Buffer buffer = upload(device(), Bytes(4096));
    PositionCall good{.batch = 2, .tokens = 8};
    good.out = part(buffer, 0, 64);
    const auto breaks = [&](auto change, const char* names, Code code = Code::invalid_argument) {
        PositionCall call = good;
        change(call);
        const Status status = record_positions(VkCommandBuffer(1), kernel.get(), call,
                                               nullptr);  // no Vulkan call is made
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
    breaks([&](PositionCall& c) { c.cu_seqlens = part(buffer, 128, 8); }, "sequences is 0");
    breaks([](PositionCall& c) { c.sequences = 2; },
           "sequences is 2: it must be 0 without cu_seqlens");
    breaks([&](PositionCall& c) { c.cu_seqlens = part(buffer, 128, 12), c.sequences = 2; },
           "batch is 2");
    breaks(
        [&](PositionCall& c) { c.batch = 1, c.cu_seqlens = part(buffer, 128, 8), c.sequences = 2; },
        "cu_seqlens.range is 8 bytes");
    breaks([](PositionCall& c) { c.cp_size = 0; }, "cp_size is 0");
    breaks([](PositionCall& c) { c.cp_size = 2, c.cp_rank = 2; }, "cp_rank is 2");
    breaks([](PositionCall& c) { c.cp_size = 2, c.tokens = 7; }, "tokens is 7");
    breaks([&](PositionCall& c) { c.out_of_range = part(buffer, 0, 4); },
           "out and out_of_range overlap");
}

}  // namespace vkrope::test
