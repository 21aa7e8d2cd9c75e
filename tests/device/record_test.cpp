// SPDX-License-Identifier: MIT
// Tests record() with views into larger buffers, bytes around the rows, the counter, and tables at
// any offset.
#include <string>

#include "base/meaning.hpp"
#include "support/recording.hpp"

namespace vkrope::test {

TEST_CASE("views with offsets and gaps: the rows are rotated, every other byte keeps its bits") {
    // The buffer is packed [tokens, 8, D] with Q in heads 1 and 2 and K in head 5, at an offset of
    // 3 elements, at which no device can bind a buffer.
    constexpr std::uint32_t D = 20, tokens = 9, row = 8 * D, lead = 3;
    for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16}) {
        for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
            const std::uint32_t size = element_bytes(element);
            const std::size_t elements = lead + std::size_t{tokens} * row + 5;
            const Bytes before = random_elements(element, (elements + 1) / 2 * 2, 21);
            const RopeParams r = rotation(VKROPE_HALF_SPLIT, D, 12, 4, 4);
            AngleTable table = must(
                AngleTable::make(device(), r, VKROPE_ANGLES_FACTORED_TEXTURE, tokens));
            const Owned<Kernel> kernel = make_kernel(
                device(), {.pairing = VKROPE_HALF_SPLIT,
                           .rotary_dim = 12,
                           .tensor = {{element, element, D, 4}, {element, element, D, 4}},
                           .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
                           .mapping = mapping});
            Buffer buffer = upload(device(), before);
            const auto at = [&](std::uint32_t head, std::uint32_t heads) {
                const std::size_t offset = (lead + head * D) * size;
                return Tensor{.where = part(buffer, offset, before.size() - offset),
                              .heads = heads,
                              .token_stride = row,
                              .head_stride = D};
            };
            const Call call{.tokens = tokens,
                            .in = {at(1, 2), at(5, 1)},
                            .out = {at(1, 2), at(5, 1)},
                            .angles = table.angles()};
            run(device(), kernel, call);
            const Bytes after = download(buffer, before.size());

            // The rotated heads, copied to packed rows, must be within the contract's error bound;
            // all other bytes must be unchanged.
            Bytes in, out;
            std::size_t changed_outside = 0;
            for (std::size_t e = 0; e < before.size() / size; ++e) {
                const bool inside = e >= lead && e < lead + std::size_t{tokens} * row;
                const std::size_t head = inside ? (e - lead) % row / D : 0;
                if (inside && (head == 1 || head == 2 || head == 5)) {
                    in.insert(in.end(), &before[e * size], &before[e * size] + size);
                    out.insert(out.end(), &after[e * size], &after[e * size] + size);
                } else {
                    changed_outside += stored(element, before, e) != stored(element, after, e);
                }
            }
            CHECK(changed_outside == 0);
            check_contract(r, {.tokens = tokens, .heads = {3}, .element = element}, false, in, out);
            CHECK(in != out);
        }
    }
}

TEST_CASE("a token whose heads take several workgroups counts once") {
    constexpr std::uint32_t D = 16, heads = 300, tokens = 4;
    const std::vector<std::int32_t> ids = {1, 40, -40, 39};  // the table ends before 40
    const AngleTable table = must(AngleTable::make(device(), rotation(VKROPE_HALF_SPLIT, D, D),
                                                   VKROPE_ANGLES_FACTORED_TEXTURE, 40));
    for (const NormKind norm : {VKROPE_NORM_NONE, VKROPE_NORM_RMS}) {
        CAPTURE(int(norm));
        KernelInfo info = {.pairing = VKROPE_HALF_SPLIT,
                           .rotary_dim = D,
                           .tensor = {{VKROPE_F32, VKROPE_F32, D, 0}},
                           .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
                           .positions = VKROPE_POSITIONS_IDS,
                           .mapping = VKROPE_MAPPING_GPU};
        if (norm != VKROPE_NORM_NONE) info.tensor[Q].ops.norm = {.kind = norm, .eps = 1e-6f};
        Buffer x = upload(device(), random_elements(VKROPE_F32, tokens * heads * D, 35)),
               positions = upload(device(), bytes_of(ids)), counter = upload(device(), Bytes(4));
        Call call{.tokens = tokens,
                  .positions = {.ids = positions.whole()},
                  .angles = table.angles(),
                  .out_of_range = counter.whole()};
        call.in[Q] = call.out[Q] = {.where = x.whole(), .heads = heads};
        run(device(), make_kernel(device(), info), call);
        CHECK(stored(VKROPE_F32, download(counter, 4), 0) == 2);
    }
}

TEST_CASE(
    "the last id of the last axis, and the last of a caller's odd table, stand at the very end of "
    "what is bound") {
    constexpr std::uint32_t D = 48, tokens = 3, heads = 3, axes = 3, pairs = 20, first_channel = 4,
                            rows = 5,
                            stride = pairs + 1;  // 16-bit rows that begin in the middle of a word
    const std::vector<std::int64_t> ids = {0, 4, 1, 2, 3, 4, 4, 0, 4};  // [tokens, axes]
    const KernelInfo info = {.pairing = VKROPE_HALF_SPLIT,
                             .rotary_dim = 2 * pairs,
                             .tensor = {{VKROPE_F32, VKROPE_F32, D, first_channel}},
                             .angles = VKROPE_ANGLES_COS_SIN_CACHE,
                             .positions = VKROPE_POSITIONS_AXIS_IDS,
                             .sections = {.axes = axes, .pairs = {6, 7, 7}},
                             .table = VKROPE_F16};
    const AngleTableLayout plan = must(plan_cos_sin_cache(pairs, rows, stride, VKROPE_F16));
    const Bytes numbers = random_elements(VKROPE_F16, plan.bytes / 2, 5),
                in = random_elements(VKROPE_F32, tokens * heads * D, 6);
    Buffer positions = upload(device(), bytes_of(ids)), cos = upload(device(), numbers),
           sin = upload(device(), numbers), x = upload(device(), in),
           counter = upload(device(), Bytes(4));
    Call call{.tokens = tokens,
              .positions = {.ids = positions.whole(),
                            .int64 = true,
                            .axis_stride = 1,
                            .token_stride = axes},
              .angles = {.layout = &plan,
                         .buffer = part(cos, 0, plan.bytes),
                         .sin = part(sin, 0, plan.bytes)},
              .out_of_range = counter.whole()};
    call.in[Q] = call.out[Q] = {.where = x.whole(), .heads = heads};
    run(device(), make_kernel(device(), info), call);
    CHECK(stored(VKROPE_F32, download(counter, 4), 0) == 0);
    const Bytes out = download(x, in.size());
    // The last pair belongs to the last axis, and reads the last number of the table for the last
    // token.
    const float c = value(VKROPE_F16, numbers, (rows - 1) * stride + pairs - 1);
    const std::size_t first = ((tokens - 1) * heads + heads - 1) * D + first_channel + pairs - 1;
    const float x0 = value(VKROPE_F32, in, first), x1 = value(VKROPE_F32, in, first + pairs);
    const volatile float a = x0 * c, b = x1 * c;
    const volatile float y0 = a - b, y1 = a + b;
    CHECK(value(VKROPE_F32, out, first) == y0);
    CHECK(value(VKROPE_F32, out, first + pairs) == y1);
}

TEST_CASE(
    "a table at any offset in a buffer gives the bits of a table at a multiple of 16 "
    "bytes") {
    constexpr std::uint32_t D = 32, tokens = 5, heads = 2, room = 64;
    for (const Element element : {VKROPE_F32, VKROPE_F16}) {
        for (const Pairing pairing : {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED}) {
            if (gpu_assisted() && (element == VKROPE_F32 || pairing == VKROPE_INTERLEAVED))
                continue;
            const RopeParams r = rotation(pairing, D, D);
            const AngleTableLayout plan = must(
                plan_angles(r, VKROPE_ANGLES_DIRECT_BUFFER, tokens + 2, 0));
            Bytes table(plan.bytes);
            must(fill_angles(r, plan, table.data(), table.size()));
            const Bytes in = random_elements(element, tokens * heads * D, 41);
            for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
                const Owned<Kernel> kernel = make_kernel(device(),
                                                         {.pairing = pairing,
                                                          .rotary_dim = D,
                                                          .tensor = {{element, element, D, 0}},
                                                          .angles = VKROPE_ANGLES_DIRECT_BUFFER,
                                                          .mapping = mapping});
                Bytes expected;
                for (const std::size_t offset : {0u, 4u, 8u, 12u, 16u, 20u}) {
                    CAPTURE(int(element));
                    CAPTURE(int(pairing));
                    CAPTURE(int(mapping));
                    CAPTURE(offset);
                    Bytes around(table.size() + room, std::byte{0x3f});  // 0.747 as f32
                    std::memcpy(around.data() + offset, table.data(), table.size());
                    Buffer angles = upload(device(), around), x = upload(device(), in);
                    Call call{.tokens = tokens, .positions = {.first = 2}};
                    call.in[Q] = call.out[Q] = {.where = x.whole(), .heads = heads};
                    call.angles = {.layout = &plan, .buffer = part(angles, offset, table.size())};
                    run(device(), kernel, call);
                    const Bytes got = download(x, in.size());
                    if (offset == 0) {
                        expected = got;
                        const HostShape shape{.tokens = tokens,
                                              .heads = {heads},
                                              .element = element,
                                              .first_position = 2};
                        check_contract(r, shape, false, in, got);
                    }
                    CHECK(got == expected);
                }
            }
        }
    }
}

}  // namespace vkrope::test
