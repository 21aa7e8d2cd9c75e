// SPDX-License-Identifier: MIT
// Hadamard transforms and quantised outputs: not a byte differs from the oracle of the same rows of
// f32, for every mapping, access and layout. One list of scenes, so longer than other files.
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <random>

#include "meaning.hpp"
#include "ops_scene.hpp"
#include "reference/code_edges.hpp"
#include "support/ops.hpp"

namespace vkrope::test {

namespace {

constexpr Element stores[] = {VKROPE_E4M3FN, VKROPE_E5M2, VKROPE_INT8, VKROPE_Q8_0,
                              VKROPE_Q4_0,   VKROPE_Q4_1, VKROPE_Q5_0, VKROPE_Q5_1};

reference::Store store_of(Element element) {
    return reference::Store(std::uint32_t(element) - std::uint32_t(VKROPE_E4M3FN));
}

std::vector<float> floats_of(const Bytes& bytes) {
    std::vector<float> floats(bytes.size() / 4);
    if (!bytes.empty()) std::memcpy(floats.data(), bytes.data(), bytes.size());
    return floats;
}

// The scene with every output as f32.
Scene plain_of(Scene scene) {
    for (TensorInfo* width : {&scene.info.tensor[Q], &scene.info.tensor[K], &scene.info.tensor[V]})
        width->out = VKROPE_F32;
    for (Ops* ops :
         {&scene.info.tensor[Q].ops, &scene.info.tensor[K].ops, &scene.info.tensor[V].ops})
        ops->store_scale = VKROPE_STORE_SCALE_NONE, ops->scale_floor = 0;
    return scene;
}

// What the oracle makes of the rows of one tensor.
void check_stored(const TensorInfo& width, const Ops& ops, std::uint32_t heads,
                  const std::vector<float>& given, const Bytes& rows, const Bytes& bytes,
                  const Bytes& scales) {
    if (heads == 0 || !is_quantised(width.out)) return;
    const std::vector<float> numbers = floats_of(rows), made_scales = floats_of(scales);
    std::vector<std::uint8_t> expected;
    std::vector<float> expected_scales;
    for (std::size_t row = 0; row < numbers.size() / width.head_dim; ++row) {
        const std::span<const float> of = std::span(numbers).subspan(row * width.head_dim,
                                                                     width.head_dim);
        std::vector<std::uint8_t> codes;
        if (block_channels(width.out) != 1) {
            codes = reference::quantise_blocks(store_of(width.out), of);
        } else if (is_made(ops.store_scale)) {
            reference::MadeRow made = reference::quantise_made(
                store_of(width.out), of, ops.scale_floor,
                ops.store_scale == VKROPE_STORE_SCALE_MADE_POWER_OF_TWO);
            codes = made.codes;
            expected_scales.push_back(made.scale);
        } else {
            const float factor = given.empty()       ? 1
                                 : given.size() == 1 ? given[0]
                                                     : given[row % heads];
            codes = reference::quantise_given(store_of(width.out), of, factor);
        }
        expected.insert(expected.end(), codes.begin(), codes.end());
    }
    REQUIRE(bytes.size() == expected.size());
    std::size_t differing = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
        differing += std::uint8_t(bytes[i]) != expected[i];
    CHECK(differing == 0);
    CHECK(made_scales == expected_scales);
}

const std::vector<Way> every_way = {{VKROPE_MAPPING_CPU, 1, false, true, 4},
                                    {VKROPE_MAPPING_CPU, 0},
                                    {VKROPE_MAPPING_GPU, 1},
                                    {VKROPE_MAPPING_CPU, 3},
                                    {VKROPE_MAPPING_GPU, 2, false, true}};

// These ways, or this share of them, have the bytes of the oracle.
void check_stores(const Scene& scene, const std::vector<Way>& ways = every_way) {
    const Results plain = carry_out(plain_of(scene), {});
    const Parameters parameters = parameters_of(scene.info);
    for (std::size_t i = 0; i < ways.size(); i += sweep_share()) {
        const Way& way = ways[i];
        if (way.slots && scene.k_heads + scene.v_heads == 0) continue;
        CAPTURE(int(way.mapping));
        CAPTURE(way.lead);
        CAPTURE(way.page_rows);
        const KernelInfo& info = scene.info;
        const Results results = carry_out(scene, way);
        check_stored(info.tensor[Q], info.tensor[Q].ops, scene.q_heads, parameters.store_scales[0],
                     plain.q, results.q, results.q_scales);
        check_stored(info.tensor[K], info.tensor[K].ops, scene.k_heads, parameters.store_scales[1],
                     plain.k, results.k, results.k_scales);
        check_stored(info.tensor[V], info.tensor[V].ops, scene.v_heads, parameters.store_scales[2],
                     plain.v, results.v, results.v_scales);
    }
}

TensorInfo width(Element in, Element out, std::uint32_t head_dim, std::uint32_t offset = 0,
                 std::uint32_t heads = 0, const Ops& ops = {}) {
    return {in, out, head_dim, offset, heads, ops};
}

}  // namespace

TEST_CASE("store: every type, of Q, K and V together, from every type") {
    const Element inputs[] = {VKROPE_F32, VKROPE_F16, VKROPE_BF16};
    for (std::size_t i = 0; i < std::size(stores); ++i) {
        const Element in = inputs[i % std::size(inputs)], out = stores[i];
        CAPTURE(int(out));
        check_stores(
            {.info = {.pairing = i % 2 == 0 ? VKROPE_HALF_SPLIT : VKROPE_INTERLEAVED,
                      .rotary_dim = 64,
                      .tensor = {width(in, out, 96, 32), width(in, out, 96), width(in, out, 96)},
                      .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
             .batch = 2,
             .q_heads = 5,
             .k_heads = 3,
             .v_heads = 3});
    }
}

TEST_CASE("store: scales that are given or made, of a tensor, a head or a row") {
    for (const Element out : {VKROPE_E4M3FN, VKROPE_E5M2, VKROPE_INT8}) {
        CAPTURE(int(out));
        check_stores({.info = {.pairing = VKROPE_HALF_SPLIT,
                               .rotary_dim = 16,
                               .tensor = {width(VKROPE_F16, out, 34, 2, 5,
                                                {.store_scale = VKROPE_STORE_SCALE_GIVEN}),
                                          width(VKROPE_F16, out, 34, 0, 3,
                                                {.store_scale = VKROPE_STORE_SCALE_GIVEN_HEAD}),
                                          width(VKROPE_F16, out, 34, 0, 3,
                                                {.store_scale = VKROPE_STORE_SCALE_MADE})},
                               .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                      .batch = 2,
                      .q_heads = 5,
                      .k_heads = 3,
                      .v_heads = 3});
        check_stores(
            {.info =
                 {.pairing = VKROPE_HALF_SPLIT,
                  .rotary_dim = 64,
                  .tensor = {width(VKROPE_F32, out, 64, 0, 4,
                                   {.store_scale = VKROPE_STORE_SCALE_MADE, .scale_floor = 0.02f}),
                             width(VKROPE_F32, out, 64, 0, 4,
                                   {.store_scale = VKROPE_STORE_SCALE_MADE}),
                             width(VKROPE_F32, out, 64, 0, 4,
                                   {.store_scale = VKROPE_STORE_SCALE_MADE, .scale_floor = 1e-6f})},
                  .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
             .q_heads = 4,
             .k_heads = 4,
             .v_heads = 4});
        check_stores(
            {.info = {.pairing = VKROPE_HALF_SPLIT,
                      .rotary_dim = 32,
                      .tensor = {width(VKROPE_BF16, out, 48, 0, 4,
                                       {.store_scale = VKROPE_STORE_SCALE_MADE_POWER_OF_TWO,
                                        .scale_floor = 0.02f}),
                                 width(VKROPE_BF16, out, 48, 0, 4,
                                       {.store_scale = VKROPE_STORE_SCALE_MADE_POWER_OF_TWO}),
                                 width(VKROPE_BF16, out, 48, 0, 4,
                                       {.store_scale = VKROPE_STORE_SCALE_MADE})},
                      .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
             .batch = 2,
             .q_heads = 4,
             .k_heads = 4,
             .v_heads = 4});
    }
}

TEST_CASE("store: made scales at every power of two that a float has, and beside it") {
    constexpr std::uint32_t D = 32;
    constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
    for (const Element out : {VKROPE_E4M3FN, VKROPE_E5M2, VKROPE_INT8}) {
        CAPTURE(int(out));
        const float largest = reference::largest(store_of(out));
        std::vector<float> numbers;
        const auto add_row = [&](float most) {
            // Fractions of the largest magnitude: halves of codes among them.
            for (std::uint32_t c = 0; c < D; ++c)
                numbers.push_back(most * (c == 1 ? -1.f : float(c) * 0x1p-5f));
            numbers.back() = most;
        };
        for (int exponent = -149; exponent < 128; ++exponent) {
            const float most = std::ldexp(largest, exponent);
            for (const float x : {std::nextafter(most, 0.f), most, std::nextafter(most, inf)}) {
                if (std::isfinite(x)) add_row(x);
            }
        }
        for (const float most : {0.f, -0.f, 0x1p-149f, 0x1p-126f, 0x1.fffffep127f, inf})
            add_row(most);
        add_row(1), numbers[numbers.size() - 3] = nan;
        for (std::uint32_t c = 0; c < D; ++c) numbers.push_back(nan);
        for (const float floor : {0.f, 0x1.8p-20f, 0x1p127f}) {
            const Scene scene = {
                .info = {.pairing = VKROPE_HALF_SPLIT,
                         .rotary_dim = 2,
                         .tensor = {width(VKROPE_F32, VKROPE_F32, D),
                                    {},
                                    width(VKROPE_F32, out, D, 0, 1,
                                          {.store_scale = VKROPE_STORE_SCALE_MADE_POWER_OF_TWO,
                                           .scale_floor = floor})},
                         .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                .tokens = std::uint32_t(numbers.size() / D),
                .q_heads = 1,
                .v_heads = 1,
                .v = bytes_of(numbers)};
            CHECK(carry_out(plain_of(scene), {}).v == scene.v);
            check_stores(scene, {{.mapping = VKROPE_MAPPING_GPU}, {.mapping = VKROPE_MAPPING_CPU}});
        }
    }
}

TEST_CASE("store: after a norm, a bias and a Hadamard transform") {
    const Norm rms = {.kind = VKROPE_NORM_RMS, .eps = 1e-6f, .weight = VKROPE_PARAMETER_CHANNEL};
    Norm token = rms;
    token.span = VKROPE_NORM_SPAN_TOKEN;
    token.weight = VKROPE_PARAMETER_HEAD_CHANNEL;
    check_stores({.info = {.pairing = VKROPE_HALF_SPLIT,
                           .rotary_dim = 128,
                           .tensor = {width(VKROPE_F16, VKROPE_BF16, 128, 0, 0,
                                            {.norm = rms, .hadamard = 128}),
                                      width(VKROPE_F16, VKROPE_Q8_0, 128, 0, 0,
                                            {.norm = rms, .hadamard = 128}),
                                      width(VKROPE_F16, VKROPE_Q4_0, 128, 0, 0, {.hadamard = 64})},
                           .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                  .q_heads = 4,
                  .k_heads = 2,
                  .v_heads = 2});
    check_stores(
        {.info = {.pairing = VKROPE_INTERLEAVED,
                  .rotary_dim = 32,
                  .tensor = {width(VKROPE_F32, VKROPE_Q5_1, 64, 8, 70,
                                   {.norm = token, .hadamard = 16}),
                             width(VKROPE_F32, VKROPE_Q5_0, 64, 8, 3,
                                   {.bias = VKROPE_PARAMETER_CHANNEL, .norm = token}),
                             width(VKROPE_F32, VKROPE_E4M3FN, 64, 0, 3,
                                   {.hadamard = 2, .store_scale = VKROPE_STORE_SCALE_MADE})},
                  .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
         .tokens = 3,
         .q_heads = 70,
         .k_heads = 3,
         .v_heads = 3});
}

TEST_CASE("store: a Hadamard transform is its levels in order, then one product") {
    for (const auto& [head_dim, block] : {std::pair{2u, 2u},
                                          {36u, 4u},
                                          {40u, 8u},
                                          {96u, 32u},
                                          {128u, 128u},
                                          {512u, 512u},
                                          {576u, 64u}}) {
        CAPTURE(block);
        for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
            for (const bool in_place : {false, true}) {
                Scene scene = {.info = {.pairing = VKROPE_HALF_SPLIT,
                                        .rotary_dim = 2,
                                        .tensor = {width(VKROPE_F32, VKROPE_F32, head_dim)},
                                        .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                               .tokens = 3,
                               .q_heads = 3};
                const Way way = {mapping, 1, in_place};
                std::vector<float> expected = floats_of(carry_out(scene, way).q);
                scene.info.tensor[Q].ops.hadamard = block;
                for (std::uint32_t level = 1; level < block; level *= 2) {
                    for (std::size_t a = 0; a < expected.size(); ++a) {
                        if ((a % head_dim % block & level) != 0) continue;
                        const float x = expected[a], y = expected[a + level];
                        expected[a] = x + y;
                        expected[a + level] = x - y;
                    }
                }
                const auto factor = float(1 / std::sqrt(double(block)));
                for (float& x : expected) x *= factor;
                CHECK(floats_of(carry_out(scene, way).q) == expected);
            }
        }
    }
}

TEST_CASE("store: several workgroups or rounds for the heads of a token, some without K and V") {
    const Norm rms = {.kind = VKROPE_NORM_RMS, .eps = 1e-6f, .weight = VKROPE_PARAMETER_CHANNEL};
    Scene scene = {.info = {.pairing = VKROPE_HALF_SPLIT,
                            .rotary_dim = 64,
                            .tensor = {width(VKROPE_F16, VKROPE_INT8, 64, 0, 40,
                                             {.norm = rms, .store_scale = VKROPE_STORE_SCALE_MADE}),
                                       width(VKROPE_F16, VKROPE_Q8_0, 64, 0, 17,
                                             {.norm = rms, .hadamard = 64}),
                                       width(VKROPE_F16, VKROPE_Q5_1, 64, 0, 17, {.hadamard = 32})},
                            .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                   .q_heads = 40,
                   .k_heads = 17,
                   .v_heads = 17};
    check_stores(scene);
    scene.tokens = 1100;  // so many that lanes have several heads
    check_stores(scene, {{.mapping = VKROPE_MAPPING_GPU},
                         {.mapping = VKROPE_MAPPING_GPU, .slots = true, .page_rows = 4}});
}

TEST_CASE("store: calls that a device of small limits needs many dispatches for") {
    const Norm rms = {.kind = VKROPE_NORM_RMS, .eps = 1e-6f};
    const Scene scene = {
        .info = {.pairing = VKROPE_HALF_SPLIT,
                 .rotary_dim = 64,
                 .tensor = {width(VKROPE_F16, VKROPE_INT8, 64, 0, 6,
                                  {.norm = rms, .store_scale = VKROPE_STORE_SCALE_MADE}),
                            width(VKROPE_F16, VKROPE_Q8_0, 64, 0, 3, {.norm = rms, .hadamard = 64}),
                            width(VKROPE_F16, VKROPE_E4M3FN, 64, 0, 3,
                                  {.store_scale = VKROPE_STORE_SCALE_MADE})},
                 .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
        .batch = 3,
        .tokens = 150,
        .q_heads = 6,
        .k_heads = 3,
        .v_heads = 3};
    check_stores(scene, {{.mapping = VKROPE_MAPPING_GPU, .lead = 1, .range = 1u << 16},
                         {.mapping = VKROPE_MAPPING_CPU, .workgroups = 7},
                         {.mapping = VKROPE_MAPPING_GPU, .slots = true, .range = 1u << 14},
                         {.mapping = VKROPE_MAPPING_CPU,
                          .lead = 1,
                          .slots = true,
                          .page_rows = 64,
                          .range = 1u << 14,
                          .workgroups = 7}});
}

TEST_CASE("store: a device with few storage buffers takes several dispatches") {
    check_stores({.info = {.pairing = VKROPE_HALF_SPLIT,
                           .rotary_dim = 32,
                           .tensor = {width(VKROPE_F16, VKROPE_E4M3FN, 32, 0, 3,
                                            {.store_scale = VKROPE_STORE_SCALE_MADE}),
                                      width(VKROPE_F16, VKROPE_INT8, 32, 0, 2,
                                            {.store_scale = VKROPE_STORE_SCALE_MADE}),
                                      width(VKROPE_F16, VKROPE_E5M2, 32, 0, 2,
                                            {.store_scale = VKROPE_STORE_SCALE_MADE})},
                           .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                  .q_heads = 3,
                  .k_heads = 2,
                  .v_heads = 2},
                 {{.mapping = VKROPE_MAPPING_GPU, .storage_buffers = 7},
                  {.mapping = VKROPE_MAPPING_CPU, .lead = 1, .slots = true, .storage_buffers = 9}});
}

TEST_CASE("store: long rows, and rows that no device has room for") {
    check_stores({.info = {.pairing = VKROPE_HALF_SPLIT,
                           .rotary_dim = 64,
                           .tensor = {width(VKROPE_F32, VKROPE_Q8_0, 1024, 512, 0,
                                            {.norm = {.kind = VKROPE_NORM_RMS, .eps = 1e-6f},
                                             .hadamard = 512}),
                                      width(VKROPE_BF16, VKROPE_E5M2, 1000, 512, 1,
                                            {.store_scale = VKROPE_STORE_SCALE_MADE})},
                           .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                  .tokens = 2,
                  .q_heads = 2,
                  .k_heads = 1});
    check_stores({.info = {.pairing = VKROPE_HALF_SPLIT,
                           .rotary_dim = 64,
                           .tensor = {width(VKROPE_F32, VKROPE_Q4_1, 4096)},
                           .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                  .tokens = 2,
                  .q_heads = 1});
    const KernelInfo info = {.pairing = VKROPE_HALF_SPLIT,
                             .rotary_dim = 64,
                             .tensor = {width(VKROPE_F32, VKROPE_Q8_0, 8192)},
                             .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
    const Result<Owned<Kernel>> made = own(create(device().ref(), info));
    CHECK(made.status.code == VKROPE_ERROR_NOT_SUPPORTED);
    CHECK(std::string(made.status.what) ==
          "head_dim is too large for these norms, Hadamard transforms and quantised outputs "
          "together: a row then takes 32768 bytes of shared memory, at most 16384");
}

TEST_CASE("store: zeros, subnormals, huge numbers, an infinity, a NaN, ties and last codes") {
    constexpr std::uint32_t D = 32;
    constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
    const float fills[] = {0, -0.f, 1e-42f, -3e-39f, 3.4e38f, -1e30f, inf, -inf, nan, 0.5f, 1.5f};
    std::vector<float> numbers;
    for (const float fill : fills) {
        for (std::uint32_t c = 0; c < D; ++c)
            numbers.push_back(c % 4 == 1 ? fill : (float(c) - 16) * 0.5f);
        for (std::uint32_t c = 0; c < D; ++c) numbers.push_back(fill);
    }
    const auto add_row = [&](auto&& of_channel) {
        for (std::uint32_t c = 0; c < D; ++c) numbers.push_back(of_channel(c));
    };
    // The first of equal zeros is the smallest channel, the first of equal magnitudes the largest:
    // in one group of four and across them.
    for (const float sign : {1.f, -1.f}) {
        for (const std::uint32_t second : {6u, 25u}) {
            add_row([&](std::uint32_t c) {
                return c == 5 ? sign * 0.f : c == second ? -sign * 0.f : 1.f + float(c);
            });
            add_row([&](std::uint32_t c) {
                return c == 5 ? sign * 9 : c == second ? -sign * 9 : 0.5f;
            });
        }
        add_row([&](std::uint32_t c) { return c < 19 ? sign * 0.f : -sign * 0.f; });
        add_row([&](std::uint32_t c) { return c < 2 ? sign * 0.f : -sign * 0.f; });
    }
    // The last code, in each channel, alone and beside all others.
    for (std::uint32_t at = 0; at < D; ++at) {
        add_row([&](std::uint32_t c) { return c == at ? 3.f : -1.f; });
        add_row([&](std::uint32_t c) { return c == at ? -1.f : 3.f; });
    }
    // Scales of 2^-128, whose reciprocal overflows, and the next ones, whose reciprocal is nearly
    // the largest number.
    for (const float divisor : {127.f, 8.f, 16.f, 15.f, 31.f}) {
        for (const float scale : {0x1p-128f, 0x1p-128f + 0x1p-149f})
            add_row([&](std::uint32_t c) { return divisor * scale * (float(c) / (D - 1)); });
    }
    const auto tokens = std::uint32_t(numbers.size() / D / 2);
    for (const Element out : stores) {
        CAPTURE(int(out));
        for (const StoreScale scale : {VKROPE_STORE_SCALE_NONE, VKROPE_STORE_SCALE_MADE,
                                       VKROPE_STORE_SCALE_MADE_POWER_OF_TWO}) {
            if (is_made(scale) && block_channels(out) != 1) continue;
            check_stores(
                {.info = {.pairing = VKROPE_HALF_SPLIT,
                          .rotary_dim = 2,
                          .tensor = {width(VKROPE_F32, out, D, 0, 2, {.store_scale = scale})},
                          .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                 .tokens = tokens,
                 .q_heads = 2,
                 .q = bytes_of(numbers)});
        }
    }
}

TEST_CASE("store: every code at its edges and ties, as V, which nothing turns") {
    constexpr std::uint32_t D = 32;
    for (const Element out : stores) {
        CAPTURE(int(out));
        const float largest = reference::largest_for_ties(store_of(out));
        const bool alone = block_channels(out) == 1;
        for (const StoreScale scale : {VKROPE_STORE_SCALE_NONE, VKROPE_STORE_SCALE_MADE,
                                       VKROPE_STORE_SCALE_MADE_POWER_OF_TWO}) {
            if (is_made(scale) && !alone) continue;
            std::vector<float> numbers;
            // Without a scale: beyond the largest value, which saturates. A power of two is 1.
            for (const float factor :
                 {alone && scale == VKROPE_STORE_SCALE_NONE ? 1.25f : 1.f, 0.7f}) {
                const std::vector<float> edges = reference::code_edges(
                    store_of(out), factor * largest, scale == VKROPE_STORE_SCALE_MADE);
                numbers.insert(numbers.end(), edges.begin(), edges.end());
            }
            const Scene scene = {
                .info = {.pairing = VKROPE_HALF_SPLIT,
                         .rotary_dim = 2,
                         .tensor = {width(VKROPE_F32, VKROPE_F32, D),
                                    {},
                                    width(VKROPE_F32, out, D, 0, 1, {.store_scale = scale})},
                         .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                .tokens = std::uint32_t(numbers.size() / D),
                .q_heads = 1,
                .v_heads = 1,
                .v = bytes_of(numbers)};
            CHECK(carry_out(plain_of(scene), {}).v == scene.v);
            check_stores(scene, {{.mapping = VKROPE_MAPPING_GPU}, {.mapping = VKROPE_MAPPING_CPU}});
        }
    }
}

TEST_CASE("store: rows of two bytes, which workgroups store to one word, and gaps between rows") {
    const auto scene_of = [](Element q, Element k, Element v, std::uint32_t head_dim) {
        return Scene{
            .info = {.pairing = VKROPE_HALF_SPLIT,
                     .rotary_dim = 2,
                     .tensor = {width(VKROPE_F16, q, head_dim), width(VKROPE_F16, k, head_dim),
                                width(VKROPE_F16, v, head_dim)},
                     .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
            .batch = 2,
            .tokens = 75,
            .q_heads = 5,
            .k_heads = 3,
            .v_heads = 3};
    };
    const std::vector<Way> bytes = {
        {.mapping = VKROPE_MAPPING_GPU, .lead = 1, .gap = 1},
        {.mapping = VKROPE_MAPPING_GPU},
        {.mapping = VKROPE_MAPPING_GPU, .lead = 3, .slots = true},
        {.mapping = VKROPE_MAPPING_GPU, .lead = 1, .slots = true, .page_rows = 4},
        {.mapping = VKROPE_MAPPING_GPU, .slots = true, .page_rows = 4, .gap = 3},
        {.mapping = VKROPE_MAPPING_GPU, .lead = 2, .slots = true, .gap = 1},
        {.mapping = VKROPE_MAPPING_CPU, .lead = 1, .gap = 1},
        {.mapping = VKROPE_MAPPING_CPU, .lead = 3, .slots = true, .page_rows = 4, .gap = 3}};
    check_stores(scene_of(VKROPE_E4M3FN, VKROPE_INT8, VKROPE_E5M2, 2), bytes);
    // Rows of three bytes, each of which shares a word with a neighbour.
    check_stores(scene_of(VKROPE_INT8, VKROPE_E5M2, VKROPE_E4M3FN, 3),
                 {bytes[0], bytes[4], bytes[7]});
    // 34, 22, 18 bytes: every second row starts in the middle of a word.
    const std::vector<Way> blocks = {
        {.mapping = VKROPE_MAPPING_GPU, .lead = 1, .gap = 32},
        {.mapping = VKROPE_MAPPING_GPU, .slots = true, .page_rows = 4, .gap = 32},
        {.mapping = VKROPE_MAPPING_CPU, .slots = true, .gap = 32}};
    check_stores(scene_of(VKROPE_Q8_0, VKROPE_Q5_0, VKROPE_Q4_0, 32), blocks);
}

// A million blocks of each type of blocks, and as many channels of the others; ./dev prove blocks.
// Every eighth block has random bits, so that infinities, NaNs and subnormal numbers come, and
// every eighth has ties and signed zeros; the others have numbers of all magnitudes.
TEST_CASE("store: random blocks, in both mappings and at offsets of 0 and 2 bytes" *
          doctest::skip()) {
    constexpr std::uint32_t head_dim = 128, heads = 8, tokens = 31250;
    std::mt19937 random(7);
    std::vector<float> numbers(std::size_t{tokens} * heads * head_dim);
    for (std::size_t i = 0; i < numbers.size(); i += 32) {
        const int exponent = int(random() % 270) - 145;
        for (std::size_t c = i; c < i + 32; ++c) {
            const auto bits = std::uint32_t(random());
            const float number = std::ldexp(float(bits >> 8) - float(1 << 23), exponent - 23);
            const float tie = std::ldexp(float(int(bits % 511) - 255), exponent);
            numbers[c] = i / 32 % 8 == 0   ? std::bit_cast<float>(bits)
                         : i / 32 % 8 == 1 ? std::copysign(tie, bits & 1024 ? -1.0f : 1.0f)
                                           : number;
        }
    }
    for (const Element out : stores) {
        CAPTURE(int(out));
        const bool alone = block_channels(out) == 1;
        const StoreScale scale = !alone               ? VKROPE_STORE_SCALE_NONE
                                 : out == VKROPE_INT8 ? VKROPE_STORE_SCALE_MADE
                                                      : VKROPE_STORE_SCALE_GIVEN;
        Scene scene = {
            .info = {.pairing = VKROPE_HALF_SPLIT,
                     .rotary_dim = 2,
                     .tensor = {width(VKROPE_F32, VKROPE_F32, head_dim),
                                {},
                                {VKROPE_F32, out, head_dim, 0, heads, {.store_scale = scale}}},
                     .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
            .tokens = alone ? tokens / 32 : tokens,
            .q_heads = 1,
            .v_heads = heads};
        const std::size_t count = std::size_t{scene.tokens} * heads * head_dim;
        scene.v = bytes_of(std::vector(numbers.begin(), numbers.begin() + std::ptrdiff_t(count)));
        check_stores(scene, {{VKROPE_MAPPING_CPU, 0},
                             {VKROPE_MAPPING_GPU, 0},
                             {VKROPE_MAPPING_CPU, 1},
                             {VKROPE_MAPPING_GPU, 1}});
    }
}

}  // namespace vkrope::test
