// SPDX-License-Identifier: MIT
// Checks every value against the definition: pairings, element types, windows, layouts, head
// counts, angle sources, mappings.
#include <string>

#include "meaning.hpp"
#include "support/recording.hpp"
#include "support/test_device.hpp"

namespace vkrope::test {

namespace {

constexpr Pairing pairings[] = {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED};
constexpr Element elements[] = {VKROPE_F32, VKROPE_F16, VKROPE_BF16};
constexpr Mapping mappings[] = {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU};

std::size_t count_of(const HostShape& shape, std::uint32_t heads, std::uint32_t head_dim) {
    return std::size_t{std::max(shape.batch, 1u)} * shape.tokens * heads * head_dim;
}

// Rotates random Q and K and checks both against the contract.
Rotated check(Device& on, const RopeParams& r, const HostShape& shape,
              Direction direction = VKROPE_FORWARD) {
    const Bytes q = random_elements(
        shape.element,
        count_of(shape, shape.heads[Q], shape.head_dim[Q] ? shape.head_dim[Q] : r.head_dim), 1);
    const Bytes k = random_elements(
        shape.element,
        count_of(shape, shape.heads[K], shape.head_dim[K] ? shape.head_dim[K] : r.head_dim), 2);
    Rotated out = rotate(on, r, shape, q, k, direction);
    if (!q.empty()) check_contract(r, shape, false, q, out.q, direction);
    if (!k.empty()) check_contract(r, shape, true, k, out.k, direction);
    return out;
}

constexpr AngleSource sources[] = {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED,
                                   VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_ANGLES_DIRECT_BUFFER};

}  // namespace

TEST_CASE("pairings, element types, mappings and windows hold the contract") {
    struct Window {
        std::uint32_t head_dim, rotary_dim, offset;
    };
    // Whole heads; partial windows as in GPT-NeoX and StableLM; with an offset as in MLA; halves
    // that end within a word or a vector.
    constexpr Window windows[] = {{128, 128, 0}, {64, 64, 0},  {80, 80, 0},    {96, 24, 0},
                                  {80, 20, 0},   {64, 16, 48}, {192, 64, 128}, {6, 6, 0},
                                  {2, 2, 0},     {10, 4, 3},   {7, 6, 1},      {9, 2, 5},
                                  {34, 30, 2}};
    std::size_t combination = 0;
    for (const Window& window : windows) {
        for (const Pairing pairing : pairings) {
            for (const Element element : elements) {
                if (element != VKROPE_F32 && window.head_dim % 2 != 0)
                    continue;  // rows of half words: see the next case
                for (const Mapping mapping : mappings) {
                    if (combination++ % sweep_share() != 0) continue;
                    CAPTURE(window.head_dim);
                    CAPTURE(window.rotary_dim);
                    CAPTURE(window.offset);
                    CAPTURE(int(pairing));
                    CAPTURE(int(element));
                    CAPTURE(int(mapping));
                    const RopeParams r = rotation(pairing, window.head_dim, window.rotary_dim,
                                                  window.offset, window.offset);
                    HostShape shape{.batch = 2,
                                    .tokens = 5,
                                    .heads = {6, 2},
                                    .element = element,
                                    .mapping = mapping};
                    shape.first_position = 3;
                    const Rotated apart = check(device(), r, shape);
                    shape.in_place = true;
                    const Rotated in_place = check(device(), r, shape);
                    CHECK(apart.q == in_place.q);
                    CHECK(apart.k == in_place.k);
                }
            }
        }
    }
}

TEST_CASE(
    "16-bit rows that end in half a word hold the contract, and their neighbours keep their bits") {
    for (const Element element : {VKROPE_F16, VKROPE_BF16}) {
        for (const Pairing pairing : pairings) {
            for (const Mapping mapping : mappings) {
                for (const bool in_place : {false, true}) {
                    const RopeParams r = rotation(pairing, 7, 6, 1, 0);
                    const HostShape shape{.batch = 3,
                                          .tokens = 4,
                                          .heads = {3, 1},
                                          .element = element,
                                          .mapping = mapping,
                                          .in_place = in_place};
                    check(device(), r, shape);
                }
            }
        }
    }
}

TEST_CASE("any number of tokens from 1 to 300") {
    for (const Element element : {VKROPE_F32, VKROPE_F16}) {
        for (std::uint32_t tokens = 1; tokens <= 300; ++tokens) {
            CAPTURE(tokens);
            const RopeParams r = rotation(tokens % 2 ? VKROPE_HALF_SPLIT : VKROPE_INTERLEAVED, 32,
                                          32);
            const HostShape shape{.tokens = tokens,
                                  .heads = {3, 1},
                                  .element = element,
                                  .mapping = mappings[tokens / 2 % 2]};
            check(device(), r, shape);
        }
    }
}

TEST_CASE("head counts: MHA, GQA, MQA, Q alone, K alone") {
    struct Heads {
        std::uint32_t q, k;
    };
    for (const Heads heads :
         {Heads{8, 8}, {32, 8}, {71, 1}, {5, 0}, {0, 3}, {1, 1}, {4, 4}, {6, 5}}) {
        for (const Mapping mapping : mappings) {
            CAPTURE(heads.q);
            CAPTURE(heads.k);
            const RopeParams r = rotation(VKROPE_HALF_SPLIT, 64, 64);
            check(device(), r,
                  {.tokens = 7,
                   .heads = {heads.q, heads.k},
                   .element = VKROPE_F16,
                   .mapping = mapping});
        }
    }
}

TEST_CASE("four heads a lane, where enough lanes remain: same bits as one") {
    // 2^16 lanes of four heads with stride 8; with odd head counts some lanes have fewer.
    const RopeParams r = rotation(VKROPE_HALF_SPLIT, 64, 32, 16, 16);
    HostShape shape{
        .tokens = 4100, .heads = {19, 2}, .element = VKROPE_F16, .mapping = VKROPE_MAPPING_GPU};
    const Rotated four = check(device(), r, shape);
    shape.mapping = VKROPE_MAPPING_CPU;
    const Bytes q = random_elements(shape.element, count_of(shape, 19, 64), 1),
                k = random_elements(shape.element, count_of(shape, 2, 64), 2);
    const Rotated all = rotate(device(), r, shape, q, k);
    CHECK(four.q == all.q);
    CHECK(four.k == all.k);
}

TEST_CASE("Q and K with their own head_dim and window") {
    // DeepSeek's MLA: 64 channels of 192 at 128, and 64 of 576 at 512.
    for (const Pairing pairing : pairings) {
        for (const Mapping mapping : mappings) {
            const RopeParams r = rotation(pairing, 192, 64, 128, 512);
            check(device(), r,
                  {.tokens = 9,
                   .heads = {16, 1},
                   .head_dim = {0, 576},
                   .element = VKROPE_BF16,
                   .mapping = mapping});
        }
    }
}

TEST_CASE("layouts, angle sources and descriptors change nothing but where the rows are") {
    const RopeParams r = rotation(VKROPE_HALF_SPLIT, 32, 32);
    for (const Element element : elements) {
        HostShape shape{.batch = 3, .tokens = 6, .heads = {4, 2}, .element = element};
        const Rotated expected = check(device(), r, shape);
        HostShape direct = shape;
        direct.angles = VKROPE_ANGLES_DIRECT_BUFFER;
        const Rotated direct_bits = check(device(), r, direct);
        for (const AngleSource source : sources) {
            for (const bool push : {true, false}) {
                HostShape same = shape;
                same.angles = source;
                const Rotated got = check(device(push), r, same);
                if (source == VKROPE_ANGLES_COMPUTED) continue;  // has different bits
                CHECK(got.q ==
                      (source == VKROPE_ANGLES_FACTORED_TEXTURE ? expected : direct_bits).q);
                CHECK(got.k ==
                      (source == VKROPE_ANGLES_FACTORED_TEXTURE ? expected : direct_bits).k);
            }
        }
        for (const Layout layout : {VKROPE_LAYOUT_BHSD, VKROPE_LAYOUT_SBHD}) {
            HostShape other = shape;
            other.layout = layout;
            check(device(), r, other);
        }
        HostShape packed = shape;
        packed.batch = 1;
        packed.layout = VKROPE_LAYOUT_THD;
        check(device(), r, packed);
    }
}

TEST_CASE(
    "positions: implicit, negative, one row for all sequences, one row each; far out; both "
    "directions") {
    const RopeParams r = rotation(VKROPE_INTERLEAVED, 16, 16);
    HostShape shape{.batch = 2, .tokens = 4, .heads = {2, 1}, .element = VKROPE_F32};
    std::vector<std::int32_t> positions;
    const auto place = [&](HostShape& of, const std::vector<std::int32_t>& at) {
        positions = at;
        of.positions = at.empty() ? nullptr : positions.data();
        of.position_count = at.size();
    };
    for (const Mapping mapping : mappings) {
        shape.mapping = mapping;
        for (const AngleSource source : sources) {
            shape.angles = source;
            for (const Direction direction : {VKROPE_FORWARD, VKROPE_INVERSE}) {
                place(shape, {});
                for (const std::int32_t first : {0, 1, -2, -1000, 131068, 1 << 20}) {
                    shape.first_position = first;
                    check(device(), r, shape, direction);
                }
                shape.first_position = 0;
                place(shape, {7, 0, -3, 4096});
                check(device(), r, shape, direction);
                place(shape, {7, 0, -3, 4096, 1, 2, 3, 65535});
                check(device(), r, shape, direction);
                if (source == VKROPE_ANGLES_FACTORED_TEXTURE || source == VKROPE_ANGLES_COMPUTED) {
                    place(shape, {2047, 2048, -2049, (1 << 22) - 1, 1 - (1 << 22), -131073, 4096,
                                  3000001});
                    check(device(), r, shape, direction);
                }
                if (source == VKROPE_ANGLES_COMPUTED) {
                    place(shape, {INT32_MAX, INT32_MIN, INT32_MIN + 1, 1 << 30, (1 << 24) + 1,
                                  -(1 << 29), 1 << 22, -5});
                    check(device(), r, shape, direction);
                }
            }
        }
    }
}

TEST_CASE("a table grows on demand, and keeps the bits that it has") {
    const RopeParams r = rotation(VKROPE_HALF_SPLIT, 8, 8);
    for (const AngleSource source : sources) {
        AngleTable table = must(AngleTable::make(device(), r, source, 100));
        const std::uint32_t before = table.layout().rows;
        must(table.reach(r, 100));
        CHECK(table.layout().rows == before);
        must(table.reach(r, 101));
        CHECK(table.layout().rows == (source == VKROPE_ANGLES_COMPUTED ? before : 200));
        must(table.reach(r, 5000));
        CHECK(table.layout().rows == (source == VKROPE_ANGLES_COMPUTED ? before : 5000));
        if (source == VKROPE_ANGLES_COMPUTED) continue;
        CHECK_FALSE(table.reach(r, (std::uint64_t{1} << 31) + 7));
        CHECK(table.layout().rows == 5000);  // unchanged
        const Owned<Kernel> kernel = make_kernel(device(), {.pairing = VKROPE_HALF_SPLIT,
                                                            .rotary_dim = 8,
                                                            .tensor = {{.head_dim = 8}},
                                                            .angles = source});
        const Bytes q = random_elements(VKROPE_F32, 4 * 8, 5);
        Buffer rows = must(Buffer::make(device(), q.size()));
        must(rows.upload(q.data(), q.size()));
        const Tensor tensor{.where = rows.whole(), .heads = 1};
        const Call call{.tokens = 4,
                        .in = {tensor},
                        .out = {tensor},
                        .positions = {.first = 96},
                        .angles = table.angles()};
        run(device(), kernel, call);
        Bytes grown(q.size());
        must(rows.download(grown.data(), grown.size()));
        HostShape shape{.tokens = 4, .heads = {1}, .first_position = 96, .angles = source};
        CHECK(grown == rotate(device(), r, shape, q, {}).q);
    }
}

TEST_CASE("an attention factor multiplies once") {
    for (const double factor : {1.01, 1.1386294361119891, 0.5}) {
        const RopeParams r = rotation(VKROPE_HALF_SPLIT, 64, 64, 0, 0, factor);
        for (const Element element : elements) {
            for (const AngleSource source : sources) {
                HostShape shape{
                    .tokens = 33, .heads = {2, 1}, .element = element, .first_position = 2030};
                shape.angles = source;
                check(device(), r, shape);
            }
        }
    }
}

TEST_CASE("special values: infinities and NaNs stay in their pair, subnormal halves are numbers") {
    for (const Element element : {VKROPE_F16, VKROPE_BF16, VKROPE_F32}) {
        const RopeParams r = rotation(VKROPE_HALF_SPLIT, 16, 16);
        const HostShape shape{.tokens = 64, .heads = {1}, .element = element, .first_position = 1};
        Bytes q(count_of(shape, 1, 16) * element_bytes(element));
        std::mt19937 generator(7);
        for (std::size_t i = 0; i < q.size() / element_bytes(element); ++i) {
            std::uint32_t bits = std::uint32_t(generator());
            if (element == VKROPE_F32) {
                const std::uint32_t exponent = (bits >> 23) & 0xff;
                if (exponent == 0 || exponent > 0xf0)
                    bits ^= 0x40000000;  // subnormals may be flushed; overflow is tested below
                if (i % 97 == 0) bits = 0x7f800000;
                if (i % 89 == 0) bits = 0x7fc00000;
            }
            std::memcpy(q.data() + i * element_bytes(element), &bits, element_bytes(element));
        }
        const Rotated out = rotate(device(), r, shape, q, {});
        check_contract(r, shape, false, q, out.q);
    }
}

}  // namespace vkrope::test
