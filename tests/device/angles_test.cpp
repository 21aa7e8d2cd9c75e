// SPDX-License-Identifier: MIT
// Angles that are more than position times one frequency: phases, sums over axes, frequencies of
// head groups, and angles of channels. Each within the bound of its source, on rows of Q and of K
// with different numbers of heads, and with the same bits from every mapping.
#include <algorithm>
#include <iterator>

#include "meaning.hpp"
#include "support/recording.hpp"

namespace vkrope::test {

namespace {

constexpr std::uint32_t D = 48, R = 40, pairs = R / 2, offset = 4;
constexpr std::uint32_t q_heads = 8, k_heads = 4, batch = 2, tokens = 5;
constexpr std::int32_t covered = 5000;

// Digits of both kinds, on both sides of 0 and of a multiple of 2048; axis after axis.
std::vector<std::int32_t> some_positions(std::uint32_t axes) {
    std::vector<std::int32_t> ids = {0,  1,     -1,    2047, 2048, -2047, -2048, -2049,
                                     -3, -4097, -4999, 4999, 17,   -64,   4095};
    std::mt19937 generator(axes);
    while (ids.size() < std::size_t{axes} * batch * tokens)
        ids.push_back(std::int32_t(generator() % (2 * covered - 1)) - (covered - 1));
    std::rotate(ids.begin(), ids.begin() + axes, ids.end());
    ids.resize(std::size_t{axes} * batch * tokens);
    return ids;
}

// Numbers up to a few radians, of both signs, and one of many turns.
std::vector<double> some_radians(std::size_t count, std::uint32_t seed) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<double> uniform(-4, 4);
    std::vector<double> radians(count);
    for (double& number : radians) number = uniform(generator);
    radians[count / 2] = -1234.56789;
    return radians;
}

RopeParams plain_rotation(Pairing pairing) {
    return rotation(pairing, D, R, offset, offset, 1.25);
}

struct Way {
    AngleSource source;
    Element element;
    Mapping mapping;
};

// A rotation of Q and of K by ids on `axes` axes.
struct Trial {
    RopeParams rotation;
    std::vector<std::int32_t> ids;
    Direction direction = VKROPE_FORWARD;
    bool scatters = false;  // rows of K go to a cache, in reverse order
    std::int32_t table_rows = covered;

    std::uint32_t axes() const { return std::max(rotation.sections.axes, 1u); }

    Bytes input(Element element, std::uint32_t heads) const {
        return random_elements(element, std::size_t{batch} * tokens * heads * D, heads);
    }

    Rotated run(const Way& way) const {
        const AngleTable table = must(
            AngleTable::make(device(), rotation, way.source, std::uint64_t(table_rows)));
        KernelInfo info = must(kernel_info(rotation, table.layout(), way.element, way.element));
        info.mapping = way.mapping;
        info.scatter_kv = scatters;
        if (axes() == 1) info.positions = VKROPE_POSITIONS_IDS;
        const Owned<Kernel> kernel = make_kernel(device(), info);
        const Bytes q = input(way.element, q_heads), k = input(way.element, k_heads);
        Buffer q_in = upload(device(), q), k_in = upload(device(), k);
        Buffer q_out = upload(device(), Bytes(q.size())), k_out = upload(device(), Bytes(k.size()));
        Buffer position_ids = upload(device(), bytes_of(ids));
        std::vector<std::int32_t> slots;
        for (std::int32_t row = batch * tokens; row > 0; --row) slots.push_back(row - 1);
        Buffer slot_mapping = upload(device(), bytes_of(slots));
        Call call{.batch = batch, .tokens = tokens};
        call.in[Q] = {.where = q_in.whole(), .heads = q_heads};
        call.out[Q] = {.where = q_out.whole(), .heads = q_heads};
        call.in[K] = {.where = k_in.whole(), .heads = k_heads};
        call.out[K] = {.where = part(k_out, 0, k.size()), .heads = k_heads};
        call.positions = {.ids = position_ids.whole()};
        if (scatters) call.paged_cache.slot_mapping = slot_mapping.whole();
        call.angles = table.angles();
        call.direction = direction;
        test::run(device(), kernel, call);
        Rotated rotated{download(q_out, q.size()), download(k_out, k.size())};
        if (scatters) {
            const std::size_t row = k.size() / (batch * tokens);
            Bytes in_order;
            for (const std::int32_t slot : slots) {
                const auto at = rotated.k.begin() + std::ptrdiff_t(std::size_t(slot) * row);
                in_order.insert(in_order.end(), at, at + std::ptrdiff_t(row));
            }
            rotated.k = in_order;
        }
        return rotated;
    }

    // The definition; pairs of each group and axis turn one after the other, in long double.
    reference::Operation operation() const {
        reference::Operation made{.interleaved = rotation.pairing == VKROPE_INTERLEAVED,
                                  .inverse = direction == VKROPE_INVERSE,
                                  .rotary_offset = offset,
                                  .inv_freq = {},
                                  .attention_factor = rotation.attention_factor,
                                  .positions = {}};
        made.head_groups = rotation.head_groups;
        made.inv_freq.resize(std::size_t{rotation.head_groups} * pairs);
        for (std::int64_t row = 0; row < batch * tokens; ++row) made.positions.push_back(row);
        made.cos_sin = [this](std::int64_t row, std::size_t index) {
            reference::CosSin turn;
            const std::size_t group = index / pairs, pair = index % pairs;
            const auto turn_on = [&](std::uint32_t axis, double inv_freq) {
                const std::int32_t p = ids[axis * batch * tokens + std::size_t(row)];
                turn = reference::sum_of(turn, reference::exact_cos_sin(p, inv_freq));
            };
            const std::uint32_t summed = summed_axes(rotation.sections);
            for (std::uint32_t axis = 0; axis < summed; ++axis) {
                const std::uint32_t at = summed > 1
                                             ? axis
                                             : axis_of(rotation.sections, std::uint32_t(pair));
                turn_on(at, rotation.inv_freq[(group * summed + axis) * pairs + pair]);
            }
            if (rotation.phase.empty()) return turn;
            return reference::sum_of(turn, reference::exact_cos_sin(1, rotation.phase[index]));
        };
        return made;
    }

    void check(const Way& way, std::uint32_t heads, const Bytes& out) const {
        const reference::Tensor tensor{.type = type_of(way.element),
                                       .batch = batch,
                                       .tokens = tokens,
                                       .heads = heads,
                                       .head_dim = D,
                                       .batch_stride = tokens * heads * D,
                                       .token_stride = heads * D,
                                       .head_stride = D};
        const Bytes in = input(way.element, heads);
        const reference::Verdict verdict = reference::compare(tensor, operation(), in.data(),
                                                              out.data());
        CAPTURE(heads);
        CAPTURE(int(way.source));
        CAPTURE(int(way.element));
        CAPTURE(int(way.mapping));
        CAPTURE(int(rotation.pairing));
        CAPTURE(verdict.worst);
        CHECK(verdict.largest_error_u <= error_bound(way.source, rotation.attention_factor));
        CHECK(!verdict.bits_changed);
        CHECK(!verdict.nan_mismatch);
    }

    // Checks one mapping; the other must have the same bits.
    void check(AngleSource source, Element element) const {
        const Way way{source, element, VKROPE_MAPPING_CPU};
        const Rotated rotated = run(way);
        check(way, q_heads, rotated.q);
        check(way, k_heads, rotated.k);
        const Rotated on_gpu = run({source, element, VKROPE_MAPPING_GPU});
        CHECK(on_gpu.q == rotated.q);
        CHECK(on_gpu.k == rotated.k);
    }
};

constexpr AngleSource sources[] = {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED,
                                   VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_ANGLES_DIRECT_BUFFER};

}  // namespace

TEST_CASE("phases: every source, at positions of both signs, forward and inverse") {
    std::size_t next = 0;
    for (const AngleSource source : sources) {
        for (const Pairing pairing : {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED}) {
            Trial trial{plain_rotation(pairing), some_positions(1)};
            trial.rotation.phase = some_radians(pairs, 3);
            trial.direction = next % 2 == 0 ? VKROPE_FORWARD : VKROPE_INVERSE;
            const Element elements[] = {VKROPE_F32, VKROPE_BF16, VKROPE_F16};
            trial.check(source, elements[next++ % 3]);
        }
    }
}

TEST_CASE("phases: a factored table whose last position is a multiple of 2048") {
    for (const std::int32_t last : {2048, 4096}) {
        Trial trial{plain_rotation(VKROPE_HALF_SPLIT),
                    {0, 1, -1, 2047, -2047, last, -last, last - 1, 1 - last, 2048}};
        trial.rotation.phase = some_radians(pairs, 5);
        trial.table_rows = last + 1;
        trial.check(VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_F32);
    }
}

TEST_CASE("phases: positions outside the table leave their rows, and count") {
    RopeParams rotation = plain_rotation(VKROPE_HALF_SPLIT);
    rotation.phase = some_radians(pairs, 4);
    const std::vector<std::int32_t> ids = {covered, -covered, 4999, -4999, INT32_MIN, INT32_MAX, 0};
    const auto count = std::uint32_t(ids.size());
    const Bytes in = random_elements(VKROPE_F32, ids.size() * D, 9);
    for (const AngleSource source : sources) {
        const AngleTable table = must(
            AngleTable::make(device(), rotation, source, std::uint64_t(covered)));
        KernelInfo info = must(kernel_info(rotation, table.layout(), VKROPE_F32, std::nullopt));
        info.positions = VKROPE_POSITIONS_IDS;
        const Owned<Kernel> kernel = make_kernel(device(), info);
        Buffer x = upload(device(), in), position_ids = upload(device(), bytes_of(ids)),
               counter = upload(device(), Bytes(4));
        Call call{.tokens = count};
        call.in[Q] = call.out[Q] = {.where = x.whole(), .heads = 1};
        call.positions.ids = position_ids.whole();
        call.angles = table.angles();
        call.out_of_range = counter.whole();
        run(device(), kernel, call);
        const Bytes out = download(x, in.size());
        const bool all = source == VKROPE_ANGLES_COMPUTED;  // it covers every int32
        CHECK(stored(VKROPE_F32, download(counter, 4), 0) == (all ? 0 : 4));
        for (std::uint32_t t = 0; t < count; ++t) {
            const bool kept = std::memcmp(&in[t * D * 4], &out[t * D * 4], D * 4) == 0;
            CHECK(kept == (!all && (std::abs(std::int64_t{ids[t]}) >= covered)));
        }
    }
}

TEST_CASE("phases with sections: each pair has the position of its axis") {
    const Sections orders[] = {
        {.axes = 3, .pairs = {6, 7, 7}},
        {.order = VKROPE_SECTIONS_INTERLEAVED, .axes = 3, .pairs = {10, 5, 5}}};
    for (std::size_t i = 0; i < std::size(orders); ++i) {
        Trial trial{plain_rotation(VKROPE_INTERLEAVED), some_positions(3)};
        trial.rotation.sections = orders[i];
        trial.rotation.phase = some_radians(pairs, 5);
        trial.check(sources[i], i == 0 ? VKROPE_F32 : VKROPE_F16);
        trial.check(sources[i + 2], VKROPE_BF16);
    }
}

TEST_CASE("a sum over axes: 2, 3 and 8 axes, with and without phases") {
    for (const std::uint32_t axes : {2u, 3u, 8u}) {
        for (const bool phased : {false, true}) {
            Trial trial{plain_rotation(axes == 3 ? VKROPE_INTERLEAVED : VKROPE_HALF_SPLIT),
                        some_positions(axes)};
            trial.rotation.sections = {.order = VKROPE_SECTIONS_SUM, .axes = axes};
            trial.rotation.inv_freq = some_radians(std::size_t{axes} * pairs, axes);
            if (phased) trial.rotation.phase = some_radians(pairs, 6);
            trial.ids.front() = INT32_MIN;
            trial.ids.back() = INT32_MAX;
            trial.check(VKROPE_ANGLES_COMPUTED, phased ? VKROPE_F16 : VKROPE_F32);
        }
    }
}

TEST_CASE("head groups: heads of Q and K in groups of their own, also in a cache") {
    struct Case {
        std::uint32_t groups, axes;
        bool phased, scatters;
    };
    for (const Case of : {Case{4, 1, false, false}, Case{2, 3, true, true}, Case{4, 2, true, false},
                          Case{4, 1, true, true}}) {
        Trial trial{plain_rotation(VKROPE_HALF_SPLIT), some_positions(of.axes)};
        trial.scatters = of.scatters;
        trial.rotation.head_groups = of.groups;
        if (of.axes > 1) trial.rotation.sections = {.order = VKROPE_SECTIONS_SUM, .axes = of.axes};
        trial.rotation.inv_freq = some_radians(std::size_t{of.groups} * of.axes * pairs, 11);
        if (of.phased) trial.rotation.phase = some_radians(std::size_t{of.groups} * pairs, 12);
        trial.check(VKROPE_ANGLES_COMPUTED, of.phased ? VKROPE_BF16 : VKROPE_F32);
    }
}

TEST_CASE("angles of channels: two angles a pair, and the gradient") {
    constexpr std::uint32_t rows = 9, stride = R + 3, heads = 3;
    const std::vector<std::int32_t> ids = {8, 0, 3, 3, 1};
    for (const Pairing pairing : {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED}) {
        for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16}) {
            const Bytes cos = random_elements(element, rows * stride + 1, 21),
                        sin = random_elements(element, rows * stride + 1, 22),
                        in = random_elements(VKROPE_F32, tokens * heads * D, 23);
            const AngleTableLayout plan = must(
                plan_cos_sin_cache(pairs, rows, stride, element, true));
            Buffer cos_buffer = upload(device(), cos), sin_buffer = upload(device(), sin),
                   position_ids = upload(device(), bytes_of(ids));
            for (const Direction direction : {VKROPE_FORWARD, VKROPE_INVERSE}) {
                for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
                    const Owned<Kernel> kernel = make_kernel(
                        device(), {.pairing = pairing,
                                   .rotary_dim = R,
                                   .tensor = {{VKROPE_F32, VKROPE_F32, D, offset}},
                                   .angles = VKROPE_ANGLES_COS_SIN_CACHE,
                                   .positions = VKROPE_POSITIONS_IDS,
                                   .mapping = mapping,
                                   .table = element,
                                   .channel_angles = true});
                    Buffer x = upload(device(), in);
                    Call call{.tokens = tokens};
                    call.in[Q] = call.out[Q] = {.where = x.whole(), .heads = heads};
                    call.positions.ids = position_ids.whole();
                    call.angles = {.layout = &plan,
                                   .buffer = part(cos_buffer, 0, plan.bytes),
                                   .sin = part(sin_buffer, 0, plan.bytes)};
                    call.direction = direction;
                    run(device(), kernel, call);
                    const Bytes out = download(x, in.size());
                    std::size_t wrong = 0;
                    for (std::uint32_t e = 0; e < tokens * heads * D; ++e) {
                        const std::uint32_t channel = e % D - offset;  // wraps before the window
                        if (channel >= R) {
                            wrong += stored(VKROPE_F32, out, e) != stored(VKROPE_F32, in, e);
                            continue;
                        }
                        const bool half = pairing == VKROPE_HALF_SPLIT;
                        const std::uint32_t other = half ? (channel + pairs) % R : channel ^ 1u;
                        const bool second = half ? channel >= pairs : channel % 2 == 1;
                        const std::uint32_t row = std::uint32_t(ids[e / (heads * D)]) * stride;
                        // The gradient has the sine of the other channel.
                        const std::uint32_t of_sin = direction == VKROPE_FORWARD ? channel : other;
                        const float c = value(element, cos, row + channel),
                                    s = value(element, sin, row + of_sin);
                        const bool negative = second == (direction == VKROPE_INVERSE);
                        const volatile float a = value(VKROPE_F32, in, e) * c,
                                             b = value(VKROPE_F32, in, e - channel + other) * s;
                        const volatile float sum = negative ? a - b : a + b;
                        wrong += value(VKROPE_F32, out, e) != sum;
                    }
                    CHECK(wrong == 0);
                }
            }
        }
    }
}

}  // namespace vkrope::test
