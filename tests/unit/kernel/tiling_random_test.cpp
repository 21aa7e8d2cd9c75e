// SPDX-License-Identifier: MIT
// Checks how random calls are cut into tiles, up to tensors of more than 1 TiB.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "base/meaning.hpp"
#include "tiling_oracle.hpp"

namespace vkrope {

namespace {

constexpr int tuples = 1'000'000;

// Draws strides that nest in any order, with or without gaps.
void draw_strides(View& v, std::uint64_t slow, std::uint64_t fast, Random& random) {
    struct Axis {
        std::uint64_t* stride;
        std::uint64_t count;
    };
    Axis axes[] = {{&v.head, v.heads_per_group},
                   {&v.group, v.heads / v.heads_per_group},
                   {&v.token, fast},
                   {&v.batch, slow}};
    const std::uint64_t order = random.bits();
    for (std::uint32_t i = 3; i > 0 && order % 3 != 0; --i)
        std::swap(axes[i], axes[(order >> (8 * i)) % (i + 1)]);
    std::uint64_t covered = v.head_dim;
    for (const Axis& axis : axes) {
        *axis.stride = covered;
        if (random.one_in(4)) *axis.stride += random.up_to(covered);
        covered = *axis.stride * axis.count;
        if (axis.count == 1) *axis.stride = 0;
    }
}

void draw_heads(View& v, std::uint64_t a, std::uint64_t b, std::uint64_t c, Random& random) {
    const std::uint64_t per_group[] = {a * b * c, a * b * c, a, b, a * b};
    v.heads = std::uint32_t(a * b * c);
    v.heads_per_group = std::uint32_t(random.of(per_group));
    if (v.heads_per_group == 1) v.heads_per_group = v.heads;
}

void draw(Tuple& t, Random& random) {
    const std::uint32_t dims[] = {2,
                                  64,
                                  80,
                                  128,
                                  128,
                                  128,
                                  256,
                                  std::uint32_t(2 + random.below(1000)),
                                  std::uint32_t(1 + random.up_to(65533))};
    const std::uint32_t head_dim = random.of(dims);
    const Element elements[] = {VKROPE_F32, VKROPE_F16};
    const Element from = random.of(elements), to = random.one_in(4) ? random.of(elements) : from;
    t.info = {.pairing = VKROPE_HALF_SPLIT,
              .rotary_dim = head_dim / 2 * 2,
              .tensor = {{from, to, head_dim, 0}},
              .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
    // A random size of at most about 2^40 bytes, divided among heads, tokens and batch.
    std::uint64_t left =
        (std::uint64_t{1} << (10 + random.below(31))) / (std::uint64_t{head_dim} * 4) + 1;
    const auto take = [&](std::uint64_t most) {
        const std::uint64_t taken = random.up_to(std::min(most, left));
        left /= taken;
        return taken;
    };
    const std::uint64_t a = take(random.one_in(50) ? 1u << 18 : 64),
                        b = random.one_in(3) ? take(8) : 1, c = random.one_in(3) ? take(64) : 1;
    const std::uint64_t batch = random.one_in(3) ? 1 : take(random.one_in(10) ? 1u << 20 : 256);
    const std::uint64_t tokens = std::clamp<std::uint64_t>(
        random.one_in(4) ? take(UINT32_MAX) : left, 1, UINT32_MAX);
    View &in = t.views[0], &out = t.views[1], &ids = t.views[2], &slots = t.views[3];
    in = {.element_bytes = element_bytes(from), .head_dim = head_dim};
    out = {.element_bytes = element_bytes(to), .head_dim = head_dim};
    draw_heads(in, a, b, c, random);
    draw_heads(out, a, b, c, random);
    t.whole = {.batch = std::uint32_t(batch), .tokens = std::uint32_t(tokens)};
    const bool paged = random.one_in(8);
    draw_strides(in, batch, tokens, random);
    bool in_place = false;
    if (paged) {
        out.page_size = std::uint32_t(random.up_to(512));
        t.whole.pages = std::uint32_t(
            random.up_to(std::min<std::uint64_t>((1u << 31) / out.page_size, batch * tokens)));
        t.whole.rows = out.page_size;
        draw_strides(out, t.whole.pages, out.page_size, random);
    } else {
        in_place = random.one_in(2) && from == to;
        if (in_place)
            out = in;
        else
            draw_strides(out, batch, tokens, random);
    }
    if (!in_place && random.one_in(10))
        in.head = in.group = 0, in.heads_per_group = in.heads;  // broadcast
    in.first_byte = random.one_in(2) ? 0 : random.up_to(std::uint64_t{1} << 40) * in.element_bytes;
    out.first_byte = in_place           ? in.first_byte
                     : random.one_in(2) ? 0
                                        : random.up_to(1u << 20) * out.element_bytes;
    t.bound = {};
    t.bound.add("in", in);
    t.bound.add("out", out);
    if (random.one_in(3)) {
        ids = {.first_byte = 4 * random.below(300)};
        ids.token = tokens > 1;
        ids.batch = batch == 1 || random.one_in(2) ? 0
                                                   : tokens + random.below(1u << random.below(31));
        t.bound.add("ids", ids);
    }
    if (paged) {
        slots = {.first_byte = 4 * random.below(300)};
        slots.head_dim = 1 + std::uint32_t(random.below(2));
        slots.token = tokens > 1 ? slots.head_dim : 0;
        slots.batch = batch == 1 ? 0 : tokens * slots.head_dim;
        t.bound.add("slots", slots);
    }
    t.group_heads = std::gcd(in.heads_per_group, out.heads_per_group);
    t.whole.groups = in.heads / t.group_heads;
    t.whole.heads = t.group_heads;

    constexpr std::uint64_t alignments[] = {1, 4, 16, 16, 32, 64, 256, 256};
    t.storage.offset_alignment = random.of(alignments);
    const std::uint64_t ranges[] = {1u << 27,
                                    1u << 27,
                                    1u << 30,
                                    (1u << 31) - 1,
                                    UINT32_MAX,
                                    1u << 16,
                                    std::uint64_t{1} << (10 + random.below(22))};
    t.storage.range = random.of(ranges);
    if (random.one_in(3)) {  // near the size of a part, where one byte decides
        Counts part = t.whole;
        if (random.one_in(2)) part.tokens = std::uint32_t(random.up_to(part.tokens));
        part.heads = std::uint32_t(random.up_to(part.heads));
        part.groups = t.whole.groups == 1 ? 1 : std::uint32_t(random.up_to(part.groups));
        if (random.one_in(2)) part.batch = 1;
        const View& v = *t.bound.views[random.below(t.bound.count)];
        if (!v.steps_evenly(t.group_heads)) part.groups = 1;
        const std::uint64_t bytes = span_of(v, t.group_heads, part) * v.element_bytes +
                                    random.below(600);
        if (bytes > 1000 && bytes - 300 <= UINT32_MAX) t.storage.range = bytes - 300;
    }
    const std::uint32_t few = 1 + std::uint32_t(random.below(9));
    const DispatchLimits all[] = {{},
                                  {},
                                  {.workgroup_count = {7, 7, 7}},
                                  {.workgroup_count = {few, 1, few}},
                                  {.workgroup_count = {UINT32_MAX, 65535, 65535}},
                                  {.workgroup_count = {UINT32_MAX, UINT32_MAX, UINT32_MAX}}};
    t.dispatch = random.of(all);
    constexpr std::uint32_t sizes[] = {64, 128, 256, 1024};
    t.dispatch.workgroup_invocations = random.of(sizes);
    std::uint32_t access = std::uint32_t(random.below(3));
    if (!formats_allow(t.info, access)) access = shader::access_narrow;
    constexpr Load loads[] = {Load::many_tokens, Load::few_tokens, Load::processor};
    t.info.tensor[Q].heads = random.one_in(2) ? t.whole.heads : 0;
    t.geometry = geometry_for(t.info, access, random.of(loads), t.dispatch);
    t.work = {.z = t.whole.batch, .tokens = t.whole.tokens, .q_heads = t.whole.heads};
}

}  // namespace

TEST_CASE("random calls of up to 1 TiB") {
    Random random{74};
    Seen seen;
    Tuple t;
    for (int i = 0; i < tuples; ++i) {
        draw(t, random);
        const char* wrong = wrong_in(t, random, seen);
        if (wrong) FAIL("tuple " << i << ": " << std::string(wrong) << ": " << text(t));
        Wide bytes = Wide{t.whole.batch} * t.whole.tokens * t.views[0].heads * t.views[0].head_dim *
                     t.views[0].element_bytes;
        seen.terabyte += bytes >> 39 != 0;
        seen.paged += t.views[1].page_size != 0;
        seen.uneven += !t.views[0].steps_evenly(t.group_heads) ||
                       !t.views[1].steps_evenly(t.group_heads);
    }
    MESSAGE(seen.whole << " whole, " << seen.cut << " cut, " << seen.refused << " refused; "
                       << seen.tiles << " tiles checked; " << seen.terabyte
                       << " of 512 GiB or more, " << seen.paged << " scattered, " << seen.uneven
                       << " with uneven groups");
    CHECK(seen.whole > tuples / 10);
    CHECK(seen.cut > tuples / 10);
    CHECK(seen.refused > tuples / 1000);
    CHECK(seen.terabyte > tuples / 1000);
    CHECK(seen.uneven > tuples / 500);
}

}  // namespace vkrope
