// SPDX-License-Identifier: MIT
// Strides of position ids on several axes, and ids and tables that end where what is bound does.
#include <algorithm>

#include "meaning.hpp"
#include "rotated_ids.hpp"

namespace vkrope::test {

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

}  // namespace vkrope::test
