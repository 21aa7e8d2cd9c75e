// SPDX-License-Identifier: MIT
// Positions that record() reads: counted, or ids of 32 and 64 bits, on one axis or several. Each
// must give the bits of plain int32 ids, which other tests check against the contract.
#include <algorithm>

#include "meaning.hpp"
#include "rotated_ids.hpp"

namespace vkrope::test {

TEST_CASE(
    "ids of 64 bits: the same bits as of 32; outside int32 a token stays unrotated and counts") {
    const std::vector<std::int32_t> narrow = {5, -7, 0, 63, -63, 12};
    std::vector<std::int64_t> wide(narrow.begin(), narrow.end());
    for (const Element element : {VKROPE_F32, VKROPE_F16}) {
        const Rotating rotate(element, 1, 6, 7);
        AngleTable table = must(AngleTable::make(device(),
                                                 rotation(VKROPE_HALF_SPLIT, D, R, offset, 0),
                                                 VKROPE_ANGLES_FACTORED_TEXTURE, 64));
        Buffer ids = upload(device(), bytes_of(narrow)), ids64 = upload(device(), bytes_of(wide));
        const KernelInfo info = info_for(element, VKROPE_POSITIONS_IDS);
        const Bytes expected = rotate(device(), info, table, {.ids = ids.whole()});
        CHECK(rotate(device(), info, table, {.ids = ids64.whole(), .int64 = true}) == expected);

        std::vector<std::int64_t> far = wide;
        far[1] = (std::int64_t{1} << 32) - 7;  // its low word equals the low word of -7
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
        {{.order = VKROPE_SECTIONS_INTERLEAVED, .axes = 3, .pairs = {10, 5, 5}},
         {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0, 0, 0, 0}},
        {{.order = VKROPE_SECTIONS_INTERLEAVED,
          .axes = 4,
          .pairs = {4, 4, 4, 8},
          .leftover_axis = 3},
         {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3}},
        {{.axes = 8, .pairs = {1, 2, 3, 4, 4, 3, 2, 1}},
         {0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 6, 6, 7}},
    };
    // The first case runs with every combination; the other cases take turns.
    std::vector<KernelInfo> ways;
    for (const AngleSource source : {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_DIRECT_BUFFER}) {
        for (const Pairing pairing : {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED}) {
            for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
                for (const Element element : {VKROPE_F32, VKROPE_BF16}) {
                    KernelInfo info = info_for(element, VKROPE_POSITIONS_IDS, pairing);
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
            const Element element = info.tensor[Q].in;
            RopeParams r = rotation(info.pairing, D, R, offset, 0);
            const AngleTable without = must(AngleTable::make(device(), r, info.angles, 64));
            r.sections = of.sections;
            const AngleTable table = must(AngleTable::make(device(), r, info.angles, 64));
            const Rotating rotate(element, batch, tokens, axes);
            const Owned<Kernel> one_axis = make_kernel(device(), info);
            info.positions = VKROPE_POSITIONS_AXIS_IDS;
            info.sections = of.sections;
            const Positions all{.ids = buffer.whole()};
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
                    const std::size_t pair = info.pairing == VKROPE_HALF_SPLIT ? channel % (R / 2)
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
    const Rotating rotate(VKROPE_F32, batch, tokens, 11);
    RopeParams r = rotation(VKROPE_HALF_SPLIT, D, R, offset, 0);
    const AngleTable without = must(
        AngleTable::make(device(), r, VKROPE_ANGLES_FACTORED_TEXTURE, 64));
    KernelInfo info = info_for(VKROPE_F32, VKROPE_POSITIONS_AXIS_IDS);
    info.sections = r.sections = {.axes = axes, .pairs = {6, 7, 7}};
    const AngleTable table = must(
        AngleTable::make(device(), r, VKROPE_ANGLES_FACTORED_TEXTURE, 64));
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
    const Bytes text = rotate(
        device(), info, table,
        {.ids = part(ids, 0, tokens * 4), .batch_stride = broadcast, .axis_stride = broadcast});
    CHECK(text == rotate(device(), info_for(VKROPE_F32, VKROPE_POSITIONS_IDS), without,
                         {.ids = part(ids, 0, tokens * 4), .batch_stride = broadcast}));
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
    KernelInfo info = info_for(VKROPE_F32, VKROPE_POSITIONS_AXIS_IDS);
    info.sections = {.axes = axes, .pairs = {6, 7, 7}};
    info.angles = VKROPE_ANGLES_COS_SIN_CACHE;
    info.table = VKROPE_F16;
    const AngleTableLayout plan = must(plan_cos_sin_cache(pairs, rows, stride, VKROPE_F16));
    const Bytes numbers = random_elements(VKROPE_F16, plan.bytes / 2, 5),
                in = random_elements(VKROPE_F32, tokens * heads * D, 6);
    Buffer ids_buffer = upload(device(), bytes_of(ids)), cos = upload(device(), numbers),
           sin = upload(device(), numbers);
    Buffer x = upload(device(), in), counter = upload(device(), Bytes(4));
    Call call{.tokens = tokens};
    call.in[Q] = call.out[Q] = {.where = x.whole(), .heads = heads};
    call.positions = {
        .ids = ids_buffer.whole(), .int64 = true, .axis_stride = 1, .token_stride = axes};
    call.angles = {
        .layout = &plan, .buffer = part(cos, 0, plan.bytes), .sin = part(sin, 0, plan.bytes)};
    call.out_of_range = counter.whole();
    run(device(), make_kernel(device(), info), call);
    CHECK(count_in(counter) == 0);
    const Bytes out = download(x, in.size());
    // The last pair belongs to the last axis; for the last token it reads the last number of the
    // table.
    const float c = value(VKROPE_F16, numbers, (rows - 1) * stride + pairs - 1);
    const std::size_t first = ((tokens - 1) * heads + heads - 1) * D + offset + pairs - 1;
    const float x0 = value(VKROPE_F32, in, first), x1 = value(VKROPE_F32, in, first + pairs);
    const volatile float a = x0 * c, b = x1 * c;
    const volatile float y0 = a - b, y1 = a + b;
    CHECK(value(VKROPE_F32, out, first) == y0);
    CHECK(value(VKROPE_F32, out, first + pairs) == y1);
}

TEST_CASE("implicit positions: each sequence may start further on") {
    constexpr std::uint32_t batch = 3, tokens = 4;
    const Rotating rotate(VKROPE_F16, batch, tokens, 13);
    AngleTable table = must(AngleTable::make(device(), rotation(VKROPE_HALF_SPLIT, D, R, offset, 0),
                                             VKROPE_ANGLES_FACTORED_TEXTURE, 64));
    const Bytes after = rotate(device(), info_for(VKROPE_F16, VKROPE_POSITIONS_IMPLICIT), table,
                               {.first = -5, .batch_stride = 20});
    std::vector<std::int32_t> positions;
    for (std::int32_t b = 0; b < 3; ++b) {
        for (std::int32_t t = 0; t < 4; ++t) positions.push_back(-5 + 20 * b + t);
    }
    Buffer ids = upload(device(), bytes_of(positions));
    CHECK(after == rotate(device(), info_for(VKROPE_F16, VKROPE_POSITIONS_IDS), table,
                          {.ids = ids.whole(), .batch_stride = tokens}));
}

}  // namespace vkrope::test
