// SPDX-License-Identifier: MIT
// How calls are cut into boxes, up to tensors of more than 1 TiB, against 128-bit arithmetic: every
// row is in exactly one box, every box is within the limits of bindings, dispatches and the shader,
// and nothing is cut without need.
#include "kernel/geometry/tiling.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

namespace vkrope {

namespace {

__extension__ typedef unsigned __int128 Wide;

#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
constexpr int tuples = 500'000;  // instrumented code is many times slower
#elif defined(__clang__)
constexpr int tuples = __has_feature(address_sanitizer) ? 500'000 : 10'000'000;
#else
constexpr int tuples = 10'000'000;
#endif

// splitmix64: drawing must cost less than the tested code.
struct Random {
    std::uint64_t state;
    std::uint64_t bits() {
        std::uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
    std::uint64_t below(std::uint64_t bound) { return bits() % bound; }
    bool one_in(std::uint64_t n) { return below(n) == 0; }
    // From 1 to `most`, small numbers as likely as large ones.
    std::uint64_t up_to(std::uint64_t most) {
        const int width = 64 - __builtin_clzll(most);
        return std::clamp<std::uint64_t>(bits() >> (64 - 1 - below(std::uint64_t(width))), 1, most);
    }
    template <class T, std::size_t n>
    T of(const T (&all)[n]) {
        return all[below(n)];
    }
};

struct Tuple {
    KernelInfo info;
    Geometry geometry;
    Work work;
    Counts whole;
    std::uint32_t group_heads = 1;
    View views[Bound::most];
    Bound bound;
    StorageLimits storage;
    DispatchLimits dispatch;

    Tuple() = default;
    Tuple(const Tuple&) = delete;

    Result<Tiling> tile() const {
        return vkrope::tile(info, geometry, whole, group_heads, bound, storage, dispatch);
    }
};

std::string text(const Tuple& t) {
    std::ostringstream out;
    out << "group_heads " << t.group_heads << ", batch " << t.whole.batch << ", groups "
        << t.whole.groups << ", tokens " << t.whole.tokens << ", pages " << t.whole.pages
        << ", range " << t.storage.range << ", alignment " << t.storage.offset_alignment
        << ", workgroups " << t.dispatch.workgroup_count[0] << ' ' << t.dispatch.workgroup_count[1]
        << ' ' << t.dispatch.workgroup_count[2];
    for (std::uint32_t i = 0; i < t.bound.count; ++i) {
        const View& v = *t.bound.views[i];
        out << "; " << t.bound.names[i] << ": byte " << v.first_byte << ", " << v.element_bytes
            << " bytes, head_dim " << v.head_dim << ", heads " << v.heads << " of "
            << v.heads_per_group << ", strides " << v.batch << ' ' << v.token << ' ' << v.group
            << ' ' << v.head << ", page_size " << v.page_size;
    }
    return out.str();
}

// ---- The oracle ----

// First byte of a row. `slow` is the sequence, or the page; `fast` the token, or the row of the
// page.
Wide byte_of(const View& v, std::uint32_t group_heads, std::uint64_t slow, std::uint64_t fast,
             std::uint64_t group, std::uint64_t head) {
    const std::uint64_t index = group * group_heads + head;
    const Wide elements = Wide{slow} * v.batch + Wide{fast} * v.token +
                          Wide{index / v.heads_per_group} * v.group +
                          Wide{index % v.heads_per_group} * v.head;
    return Wide{v.first_byte} + elements * v.element_bytes;
}

Wide steps(std::uint32_t whole, std::uint32_t box) {
    return (Wide{whole} + box - 1) / box;
}

// The most bytes of a binding besides its rows: it starts at an aligned offset, and ends with a
// whole word.
std::uint64_t max_lost(const StorageLimits& limits) {
    return std::max<std::uint64_t>(limits.offset_alignment, 16) - 1 + 3;
}

const char* wrong_in_view(const Tuple& t, const View& v, const Box& box, Random& random) {
    const bool paged = v.page_size != 0;
    const std::uint64_t slow = paged ? box.first.pages : box.first.batch,
                        fast = paged ? box.first.rows : box.first.tokens;
    const std::uint64_t slows = paged ? box.count.pages : box.count.batch,
                        fasts = paged ? box.count.rows : box.count.tokens;
    const auto at = [&](std::uint64_t s, std::uint64_t f, std::uint64_t g, std::uint64_t h) {
        return byte_of(v, t.group_heads, slow + s, fast + f, box.first.groups + g,
                       box.first.heads + h);
    };
    const std::uint64_t row_bytes = std::uint64_t{v.head_dim} * v.element_bytes;
    const Wide first = at(0, 0, 0, 0);
    const Wide end = at(slows - 1, fasts - 1, box.count.groups - 1, box.count.heads - 1) +
                     row_bytes;
    // The library's values: dispatch_sequence.cpp places boxes with these.
    const std::uint64_t offset = offset_of(v, t.group_heads, box.first),
                        span = span_of(v, t.group_heads, box.count);
    if (Wide{v.first_byte} + Wide{offset} * v.element_bytes != first)
        return "offset_of is not where the first row is";
    if (first + Wide{span} * v.element_bytes != end)
        return "span_of does not end with the last row";
    const VkDescriptorBufferInfo binding = binding_of(
        v.buffer, v.first_byte + offset * v.element_bytes, span * v.element_bytes, t.storage);
    if (binding.offset % t.storage.offset_alignment != 0)
        return "the binding starts where the device can not bind";
    if (binding.offset > first || Wide{binding.offset} + binding.range < end)
        return "the binding does not hold the rows";
    if (binding.range > t.storage.range) return "the binding exceeds maxStorageBufferRange";
    // The shader computes element offsets from the start of the binding in 32 bits.
    if ((end - binding.offset + v.element_bytes - 1) / v.element_bytes > UINT32_MAX)
        return "an element offset needs more than 32 bits";
    // A random row is where multiples of the strides lead.
    const std::uint64_t s = random.below(slows), f = random.below(fasts),
                        g = random.below(box.count.groups), h = random.below(box.count.heads);
    const std::uint64_t group_step = box.count.groups > 1 ? v.group_step(t.group_heads) : 0;
    if (box.count.groups > 1 && !v.steps_evenly(t.group_heads))
        return "groups that do not step evenly are in one box";
    const Wide row = first + (Wide{s} * v.batch + Wide{f} * v.token + Wide{g} * group_step +
                              Wide{h} * v.head) *
                                 v.element_bytes;
    if (row != at(s, f, g, h)) return "a row is not where the strides lead to";
    if (row + row_bytes > end) return "a row is outside its binding";
    return nullptr;
}

const char* wrong_in_box(const Tuple& t, const Tiling& tiling, std::uint64_t index,
                         Random& random) {
    const Box box = tiling.at(index);
    // The boxes are the cells of a grid, numbered in mixed radix: different numbers are different
    // cells.
    using Along = std::uint32_t Counts::*;
    constexpr Along by_token[] = {&Counts::pages,  &Counts::rows,   &Counts::batch,
                                  &Counts::groups, &Counts::tokens, &Counts::heads};
    constexpr Along by_head[] = {&Counts::pages,  &Counts::rows,  &Counts::batch,
                                 &Counts::groups, &Counts::heads, &Counts::tokens};
    Wide number = 0;
    for (const Along along : tiling.heads_outer ? by_head : by_token) {
        const std::uint32_t whole = t.whole.*along, size = tiling.box.*along,
                            first = box.first.*along;
        if (first % size != 0 || first >= whole) return "a box is not in the grid";
        if (box.count.*along != std::min(size, whole - first))
            return "a box is not as large as its cell";
        number = number * steps(whole, size) + first / size;
    }
    if (number != index) return "a box is not the one of its number";
    for (std::uint32_t i = 0; i < t.bound.count; ++i) {
        if (const char* wrong = wrong_in_view(t, *t.bound.views[i], box, random)) return wrong;
    }
    Work work = t.work;
    work.z = std::max(box.count.batch, box.count.groups);
    work.tokens = box.count.tokens;
    work.q_heads = box.count.heads;
    const DispatchShape shape = shape_of(t.geometry, work);
    for (int i = 0; i < 3; ++i) {
        if (shape.groups[i] == 0 || shape.groups[i] > t.dispatch.workgroup_count[i])
            return "more workgroups than the device dispatches";
    }
    if (Wide{shape.groups[0]} * t.geometry.group_tokens < work.tokens)
        return "too few workgroups for its tokens";
    const Wide heads = t.geometry.q_batch == 0 ? work.q_heads
                                               : Wide{t.geometry.head_lanes} * t.geometry.q_batch;
    if (Wide{shape.groups[1]} * heads < work.q_heads) return "too few workgroups for its heads";
    return nullptr;
}

// Whether the call needs no cut.
bool fits_whole(const Tuple& t) {
    if (t.whole.batch > 1 && t.whole.groups > 1) return false;
    bool fits = t.whole.batch <= t.dispatch.workgroup_count[2] &&
                t.whole.groups <= t.dispatch.workgroup_count[2] &&
                t.whole.heads <= max_heads(t.info, t.geometry, t.dispatch);
    for (std::uint32_t i = 0; i < t.bound.count; ++i) {
        const View& v = *t.bound.views[i];
        if (t.whole.groups > 1 && !v.steps_evenly(t.group_heads)) return false;
        const std::uint64_t slow = v.page_size ? t.whole.pages : t.whole.batch,
                            fast = v.page_size ? v.page_size : t.whole.tokens;
        const Wide end = byte_of(v, t.group_heads, slow - 1, fast - 1, t.whole.groups - 1,
                                 t.whole.heads - 1) +
                         Wide{v.head_dim} * v.element_bytes;
        const std::uint64_t alignment = std::max<std::uint64_t>(t.storage.offset_alignment, 16);
        fits = fits && (end + 3) / 4 * 4 - v.first_byte / alignment * alignment <= t.storage.range;
    }
    return fits && t.whole.tokens <= max_tokens(t.geometry, t.dispatch);
}

// Whether one row of a view, or one page of one head, may need more than a binding holds, since its
// start and end need not be aligned.
bool row_may_not_fit(const Tuple& t) {
    for (std::uint32_t i = 0; i < t.bound.count; ++i) {
        const View& v = *t.bound.views[i];
        if (Wide{v.head_dim} * v.element_bytes + max_lost(t.storage) > t.storage.range) return true;
    }
    return false;
}

struct Seen {
    std::uint64_t whole = 0, cut = 0, refused = 0, terabyte = 0, paged = 0, uneven = 0, boxes = 0;
};

const char* wrong_in(const Tuple& t, Random& random, Seen& seen) {
    const Result<Tiling> result = t.tile();
    if (!result) {
        ++seen.refused;
        if (result.status.code != Code::limit_exceeded)
            return "an error that is not limit_exceeded";
        return row_may_not_fit(t) ? nullptr : "refused, though every row fits";
    }
    const Tiling& tiling = result.value;
    const Counts& box = tiling.box;
    if (box.pages > 1 && box.rows != t.whole.rows) return "slots of a box do not follow each other";
    if (box.batch > 1 && box.groups > 1) return "both sequences and groups fall along z";
    if (box.heads > max_heads(t.info, t.geometry, t.dispatch))
        return "more heads than a dispatch counts";
    const Wide count = steps(t.whole.batch, box.batch) * steps(t.whole.groups, box.groups) *
                       steps(t.whole.heads, box.heads) * steps(t.whole.tokens, box.tokens) *
                       steps(t.whole.pages, box.pages) * steps(t.whole.rows, box.rows);
    if (count >> 64 == 0 && tiling.count() != count) return "count() is not the number of cells";
    if (count >> 64 != 0) return nullptr;  // too many dispatches to record
    const bool whole = count == 1;
    if (!whole && fits_whole(t)) return "what fits is cut";
    ++(whole ? seen.whole : seen.cut);
    if (count <= 24) {
        Wide rows = 0;
        for (std::uint64_t i = 0; i < count; ++i) {
            if (const char* wrong = wrong_in_box(t, tiling, i, random)) return wrong;
            const Counts part = tiling.at(i).count;
            rows += Wide{part.batch} * part.groups * part.heads * part.tokens * part.pages *
                    part.rows;
        }
        seen.boxes += std::uint64_t(count);
        if (rows != Wide{t.whole.batch} * t.whole.groups * t.whole.heads * t.whole.tokens *
                        t.whole.pages * t.whole.rows)
            return "the boxes do not hold as many rows as the call";
        return nullptr;
    }
    for (const std::uint64_t i :
         {std::uint64_t{0}, random.below(std::uint64_t(count)), std::uint64_t(count) - 1}) {
        if (const char* wrong = wrong_in_box(t, tiling, i, random)) return wrong;
    }
    seen.boxes += 3;
    return nullptr;
}

// ---- Draws ----

// Strides that nest in any order, with or without gaps.
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
    const Element elements[] = {Element::f32, Element::f16};
    const Element from = random.of(elements), to = random.one_in(4) ? random.of(elements) : from;
    t.info = {.rotary_dim = head_dim / 2 * 2, .q = {from, to, head_dim, 0}};
    // At most 2^40 bytes in total, in any shape.
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
    if (!widths_allow(t.info, access)) access = shader::access_narrow;
    constexpr Load loads[] = {Load::many_tokens, Load::few_tokens, Load::processor};
    t.info.q_heads = random.one_in(2) ? t.whole.heads : 0;
    t.geometry = geometry_for(t.info, access, random.of(loads), t.dispatch);
    t.work = {.z = t.whole.batch, .tokens = t.whole.tokens, .q_heads = t.whole.heads};
}

// [batch, tokens, heads, 128] f16, in place, from byte `first` on, on a device of 128 MiB and
// 256-byte offsets.
struct Packed : Tuple {
    Packed(std::uint32_t batch, std::uint32_t tokens, std::uint32_t heads,
           std::uint64_t first = 0) {
        info = {.rotary_dim = 128, .q = {Element::f16, Element::f16, 128, 0}};
        whole = {.batch = batch, .heads = heads, .tokens = tokens};
        group_heads = heads;
        views[0] = {.first_byte = first,
                    .element_bytes = 2,
                    .head_dim = 128,
                    .heads = heads,
                    .heads_per_group = heads};
        views[0].head = 128;
        views[0].token = 128 * heads;
        views[0].batch = std::uint64_t{128} * heads * tokens;
        bound.add("in", views[0]);
        bound.add("out", views[0]);
        work = {.z = batch, .tokens = tokens, .q_heads = heads};
        dispatch.workgroup_count[0] = UINT32_MAX;  // one workgroup per token
        geometry = geometry_for(info, shader::access_wide, Load::many_tokens, dispatch);
    }
};

std::uint64_t boxes_of(const Tuple& t) {
    Random random{1};
    Seen seen;
    const char* wrong = wrong_in(t, random, seen);
    INFO(text(t));
    CHECK(std::string(wrong ? wrong : "") == "");
    const Result<Tiling> tiling = t.tile();
    return tiling ? tiling->count() : 0;
}

}  // namespace

TEST_CASE("random calls of up to 1 TiB: 10 000 000 (500 000 where the code is instrumented)") {
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
                       << seen.boxes << " boxes checked; " << seen.terabyte
                       << " of 512 GiB or more, " << seen.paged << " scattered, " << seen.uneven
                       << " with uneven groups");
    CHECK(seen.whole > tuples / 10);
    CHECK(seen.cut > tuples / 10);
    CHECK(seen.refused > tuples / 1000);
    CHECK(seen.terabyte > tuples / 1000);
    CHECK(seen.uneven > tuples / 500);
}

TEST_CASE("128 MiB at offset 0 are one box; a token more, or an offset of one element, are two") {
    CHECK(boxes_of(Packed(1, 1u << 16, 8)) == 1);
    CHECK(boxes_of(Packed(1, (1u << 16) + 1, 8)) == 2);
    CHECK(boxes_of(Packed(1, 1u << 16, 8, 2)) == 2);
    CHECK(boxes_of(Packed(1, 1u << 16, 8, 256)) == 1);
    CHECK(boxes_of(Packed(1, 1u << 16, 8, 258)) == 2);
    // 512 GiB and 1 TiB: boxes of 65535 tokens, since a box in the middle may start at any byte.
    CHECK(boxes_of(Packed(1, 1u << 28, 8)) == ((1u << 28) + 65534) / 65535);
    CHECK(boxes_of(Packed(1u << 12, 1u << 17, 8)) == (1u << 12) * 3);
    CHECK(boxes_of(Packed(1u << 20, 512, 8)) == ((1u << 20) + 126) / 127);
}

TEST_CASE("z, heads and workgroups are cut where the device or the shader counts no further") {
    CHECK(boxes_of(Packed(65535, 1, 1)) == 1);
    CHECK(boxes_of(Packed(65536, 1, 1)) == 2);
    Packed heads(1, 1, 65536);
    CHECK(boxes_of(heads) == 2);
    Packed few(1, 7, 8);
    few.dispatch.workgroup_count[0] = few.dispatch.workgroup_count[1] = 7;
    few.geometry = geometry_for(few.info, shader::access_wide, Load::few_tokens, few.dispatch);
    CHECK(boxes_of(few) == 1);  // one workgroup per token: 8 heads of 8 lanes
    few.whole.tokens = few.work.tokens = 8;
    CHECK(boxes_of(few) == 2);
}

TEST_CASE("a binding of another view fits at the start of the tensor, but not at every box") {
    // The input, one row for all heads, is cut at the number of tokens of the output that fit at
    // byte 0.
    for (std::uint32_t tokens = 1; tokens < 60; ++tokens) {
        for (std::uint64_t spare = 0; spare < 300; spare += 4) {
            Packed t(1, 1000, 8);
            t.views[0].head = 0;
            t.views[0].token = 2040;
            t.views[1] = t.views[0];
            t.views[1].head = 128;
            t.views[1].token = 2050;
            t.bound = {};
            t.bound.add("in", t.views[0]);
            t.bound.add("out", t.views[1]);
            t.storage.range = (std::uint64_t{tokens} - 1) * 4100 + 2048 + spare;
            boxes_of(t);
        }
    }
}

TEST_CASE("heads step more slowly than tokens: boxes ascend in the output") {
    Packed t(2, 1u << 16, 8);
    t.views[0].token = 128;
    t.views[0].head = std::uint64_t{128} << 16;
    CHECK(boxes_of(t) == 4);
    const Tiling tiling = t.tile().value;
    CHECK(tiling.heads_outer);
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < tiling.count(); ++i) {
        const std::uint64_t at = offset_of(t.views[0], 8, tiling.at(i).first);
        CHECK((i == 0 || at > last));
        last = at;
    }
}

TEST_CASE(
    "a cache of pages is cut between pages, where one page is too large between heads, and then "
    "between rows") {
    Packed t(1, 4, 8);
    t.views[1] = t.views[0];
    t.views[1].page_size = 16;
    t.views[1].token = 8 * 128;
    t.views[1].batch = 16 * 8 * 128;
    t.whole.pages = 1u << 15;  // 1 GiB
    t.whole.rows = 16;
    t.bound = {};
    t.bound.add("in", t.views[0]);
    t.bound.add("out", t.views[1]);
    CHECK(boxes_of(t) == ((1u << 15) + 4094) / 4095);
    // [pages, heads, page_size, head_dim]: pages of 256 MiB, of which 4 heads, minus alignment, fit
    // a binding.
    t.views[1].page_size = 1u << 17;
    t.views[1].token = 128;
    t.views[1].head = std::uint64_t{128} << 17;
    t.views[1].batch = std::uint64_t{8 * 128} << 17;
    t.whole.pages = 3;
    t.whole.rows = 1u << 17;
    CHECK(boxes_of(t) == 3 * 3);
    t.storage.range = 1u << 24;  // a head of a page has 32 MiB
    CHECK(boxes_of(t) == 3 * 8 * 3);
}

TEST_CASE("limit_exceeded where one row does not fit, and nowhere else") {
    Packed t(4, 1000, 8, 2);
    t.storage.range = 256 + 258;
    CHECK(boxes_of(t) == 4 * 1000 * 8);
    t.storage.range -= 1;
    const Result<Tiling> refused = t.tile();
    CHECK(refused.status.code == Code::limit_exceeded);
    CHECK(std::string(refused.status.what)
              .find("in: one row spans 256 bytes, but the device binds at most 513") !=
          std::string::npos);
}

}  // namespace vkrope
