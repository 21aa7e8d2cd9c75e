// SPDX-License-Identifier: MIT
// cos and sin from the caller: the same bits as our table if the values are equal, and the error or
// result if they are not.
#include "meaning.hpp"
#include "support/recording.hpp"

namespace vkrope::test {

namespace {

constexpr std::uint32_t D = 24, R = 20, pairs = R / 2, rows = 17, heads = 2, tokens = 6;

struct Tables {
    Bytes cos, sin;
};

// Random values, [rows, stride]; the columns after the pairs are NaN.
Tables random_tables(Element element, std::uint32_t stride) {
    Tables tables{random_elements(element, (rows * stride + 1) / 2 * 2, 5),
                  random_elements(element, (rows * stride + 1) / 2 * 2, 6)};
    for (Bytes* bytes : {&tables.cos, &tables.sin}) {
        for (std::uint32_t i = 0; i < rows * stride; ++i) {
            if (i % stride >= pairs)
                std::memset(bytes->data() + i * element_bytes(element), 0xff,
                            element_bytes(element));
        }
    }
    return tables;
}

// The same values in f32, packed.
Tables widened(const Tables& of, Element element, std::uint32_t stride) {
    Tables wide{Bytes(rows * pairs * 4), Bytes(rows * pairs * 4)};
    for (std::uint32_t i = 0; i < rows * pairs; ++i) {
        const float c = value(element, of.cos, i / pairs * stride + i % pairs),
                    s = value(element, of.sin, i / pairs * stride + i % pairs);
        std::memcpy(wide.cos.data() + 4 * i, &c, 4);
        std::memcpy(wide.sin.data() + 4 * i, &s, 4);
    }
    return wide;
}

// Rotates 6 tokens at `positions`; if empty, at implicit positions from 3 on.
Bytes rotate_with(const Tables& tables, Element element, std::uint32_t stride, Mapping mapping,
                  const std::vector<std::int32_t>& positions, const Bytes& in,
                  Direction direction = VKROPE_FORWARD, std::uint32_t* outside = nullptr) {
    const Owned<Kernel> kernel = make_kernel(
        device(),
        {.pairing = VKROPE_HALF_SPLIT,
         .rotary_dim = R,
         .tensor = {{VKROPE_F32, VKROPE_F32, D, 2}},
         .angles = VKROPE_ANGLES_COS_SIN_CACHE,
         .positions = positions.empty() ? VKROPE_POSITIONS_IMPLICIT : VKROPE_POSITIONS_IDS,
         .mapping = mapping,
         .table = element});
    const AngleTableLayout plan = must(plan_cos_sin_cache(pairs, rows, stride, element));
    // cos starts one word into its buffer, sin two words.
    Bytes cos(4), sin(8);
    cos.insert(cos.end(), tables.cos.begin(), tables.cos.end());
    sin.insert(sin.end(), tables.sin.begin(), tables.sin.end());
    Buffer cos_buffer = upload(device(), cos), sin_buffer = upload(device(), sin),
           x = upload(device(), in);
    Buffer ids = upload(device(), positions.empty() ? Bytes(4) : bytes_of(positions)),
           counter = upload(device(), Bytes(4));
    Call call{.tokens = tokens};
    call.in[Q] = call.out[Q] = {.where = x.whole(), .heads = heads};
    if (positions.empty())
        call.positions.first = 3;
    else
        call.positions.ids = ids.whole();
    call.angles = {.layout = &plan,
                   .buffer = part(cos_buffer, 4, plan.bytes),
                   .sin = part(sin_buffer, 8, plan.bytes)};
    call.direction = direction;
    call.out_of_range = counter.whole();
    run(device(), kernel, call);
    if (outside) *outside = stored(VKROPE_F32, download(counter, 4), 0);
    return download(x, in.size());
}

}  // namespace

TEST_CASE("a cos_sin_cache with our values has the bits of our table") {
    const RopeParams r = rotation(VKROPE_HALF_SPLIT, D, R, 2, 2);
    const AngleTableLayout plan = must(plan_angles(r, VKROPE_ANGLES_DIRECT_BUFFER, rows, 0));
    std::vector<float> ours(plan.bytes / 4);
    must(fill_angles(r, plan, ours.data(), plan.bytes));
    Tables tables{Bytes(rows * pairs * 4), Bytes(rows * pairs * 4)};
    for (std::uint32_t i = 0; i < rows * pairs; ++i) {
        std::memcpy(tables.cos.data() + 4 * i, &ours[2 * i], 4);
        std::memcpy(tables.sin.data() + 4 * i, &ours[2 * i + 1], 4);
    }
    const Bytes in = random_elements(VKROPE_F32, tokens * heads * D, 3);
    for (const Direction direction : {VKROPE_FORWARD, VKROPE_INVERSE}) {
        const HostShape shape{.tokens = tokens,
                              .heads = {heads},
                              .first_position = 3,
                              .angles = VKROPE_ANGLES_DIRECT_BUFFER};
        const Bytes expected = rotate(device(), r, shape, in, {}, direction).q;
        for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
            CHECK(rotate_with(tables, VKROPE_F32, pairs, mapping, {}, in, direction) == expected);
        }
    }
}

TEST_CASE("tables of any values, in f32, f16 and bf16, half and full width, at any stride") {
    const Bytes in = random_elements(VKROPE_F32, tokens * heads * D, 3);
    const std::vector<std::int32_t> positions = {16, 0, 7, 7, 1, 15};
    for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16}) {
        for (const std::uint32_t stride : {pairs, R, pairs + 3}) {
            const Tables tables = random_tables(element, stride);
            const Tables wide = widened(tables, element, stride);
            const Bytes got = rotate_with(tables, element, stride, VKROPE_MAPPING_CPU, positions,
                                          in);
            CHECK(got == rotate_with(wide, VKROPE_F32, pairs, VKROPE_MAPPING_GPU, positions, in));
            CHECK(got != in);
            // The definition rounds as the shader does: each product and each sum to f32.
            std::size_t wrong = 0;
            for (std::uint32_t e = 0; e < tokens * heads * D; ++e) {
                const std::uint32_t channel = e % D - 2, pair = channel % pairs;
                if (e % D < 2 || channel >= R) {
                    wrong += stored(VKROPE_F32, got, e) != stored(VKROPE_F32, in, e);
                    continue;
                }
                const std::uint32_t row = std::uint32_t(positions[e / (heads * D)]);
                const float c = value(VKROPE_F32, wide.cos, row * pairs + pair),
                            s = value(VKROPE_F32, wide.sin, row * pairs + pair);
                const std::uint32_t first = e - channel + pair;
                const float x0 = value(VKROPE_F32, in, first),
                            x1 = value(VKROPE_F32, in, first + pairs);
                const volatile float a = channel < pairs ? x0 * c : x0 * s,
                                     b = channel < pairs ? -(x1 * s) : x1 * c;
                const volatile float sum = a + b;
                wrong += value(VKROPE_F32, got, e) != sum;
            }
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE(
    "a cos_sin_cache covers positions 0 to rows - 1: others leave their rows unrotated, and "
    "count") {
    const Tables tables = random_tables(VKROPE_F16, pairs);
    const Bytes in = random_elements(VKROPE_F32, tokens * heads * D, 3);
    std::uint32_t outside = 0;
    const Bytes got = rotate_with(tables, VKROPE_F16, pairs, VKROPE_MAPPING_CPU,
                                  {-1, 5, 17, 0, INT32_MIN, INT32_MAX}, in, VKROPE_FORWARD,
                                  &outside);
    CHECK(outside == 4);
    const std::size_t row = heads * D * 4;
    for (std::size_t t = 0; t < tokens; ++t)
        CHECK((std::memcmp(&in[t * row], &got[t * row], row) == 0) == (t != 1 && t != 3));
}

}  // namespace vkrope::test
