// SPDX-License-Identifier: MIT
// Norms, biases, clip and scale around the rotation: within the contract of the oracle, and the
// same bits for every mapping, access and layout. One list of scenes, so longer than other files.
#include <cmath>
#include <iterator>
#include <limits>

#include "finish_scene.hpp"

namespace vkrope::test {

namespace {

Norm rms(ParameterShape weight = ParameterShape::channel) {
    return {.kind = NormKind::rms, .eps = 1e-6f, .weight = weight};
}

TensorInfo width(std::uint32_t head_dim, Element element = Element::f32, std::uint32_t offset = 0,
                 std::uint32_t head_count = 0, const Finish& ops = {}) {
    return {element, element, head_dim, offset, head_count, ops};
}

}  // namespace

TEST_CASE("finish: an RMS norm of each head before the rotation, in every type and pairing") {
    const struct {
        Element element;
        Pairing pairing;
    } kinds[] = {{Element::f32, Pairing::half_split},
                 {Element::f16, Pairing::interleaved},
                 {Element::bf16, Pairing::half_split}};
    for (const auto& [element, pairing] : kinds) {
        CAPTURE(int(element));
        check_ways({.info = {.pairing = pairing,
                             .rotary_dim = 64,
                             .tensor = {width(64, element, 0, 0, {.norm = rms()}),
                                        width(64, element, 0, 0, {.norm = rms()})}},
                    .batch = 2,
                    .q_heads = 5,
                    .k_heads = 2});
    }
}

TEST_CASE("finish: a norm spans the whole row, whatever part of it turns") {
    // Rows of any length, windows in the middle, and several of them.
    const struct {
        std::uint32_t head_dim, rotary_dim, offset;
        Element element;
    } rows[] = {{80, 32, 16, Element::f32}, {96, 48, 0, Element::bf16}, {112, 64, 48, Element::f16},
                {66, 22, 6, Element::bf16}, {2, 2, 0, Element::f32},    {34, 6, 3, Element::f16}};
    for (const auto& [head_dim, rotary_dim, offset, element] : rows) {
        CAPTURE(head_dim);
        check_ways({.info = {.rotary_dim = rotary_dim,
                             .tensor = {width(head_dim, element, offset, 0, {.norm = rms()}),
                                        width(head_dim, element, offset, 0,
                                              {.norm = rms(ParameterShape::none), .clip = 1})}},
                    .q_heads = 3,
                    .k_heads = 2});
    }
    check_ways({.info = {.pairing = Pairing::interleaved,
                         .rotary_dim = 24,
                         .tensor = {width(48, Element::f32, 0, 0, {.norm = rms()})},
                         .windows = {{0, 8}, {16, 16}}},
                .q_heads = 2});
}

TEST_CASE("finish: long rows, which a lane loads again") {
    for (const Element element : {Element::f32, Element::f16}) {
        Norm after = rms();
        after.place = NormPlace::after;
        check_ways({.info = {.rotary_dim = 64,
                             .tensor = {width(1024, element, 512, 0, {.norm = rms()}),
                                        width(1024, element, 512, 0, {.norm = after})}},
                    .tokens = 2,
                    .q_heads = 2,
                    .k_heads = 1});
    }
    check_ways(
        {.info = {.rotary_dim = 64, .tensor = {width(4096, Element::bf16, 0, 0, {.norm = rms()})}},
         .tokens = 2,
         .q_heads = 1});
}

TEST_CASE("finish: a norm after the rotation, over a token, of Q, K and V each its own") {
    Norm after = rms(ParameterShape::head_channel), token = rms(ParameterShape::head_channel);
    after.place = NormPlace::after;
    token.span = NormSpan::token;
    Norm layer = {.kind = NormKind::layer,
                  .eps = 1e-5f,
                  .weight = ParameterShape::head_channel,
                  .bias = ParameterShape::channel};
    Norm gemma = rms();
    gemma.weight_offset = 1;
    Norm token_after = token;
    token_after.place = NormPlace::after;
    Norm layer_of_token = layer;
    layer_of_token.span = NormSpan::token;
    layer_of_token.place = NormPlace::after;
    const struct {
        Norm q, k, v;
        Element element;
    } kinds[] = {{after, token, rms(ParameterShape::none), Element::f32},
                 {layer, gemma, layer, Element::f16},
                 {token_after, layer_of_token, {}, Element::bf16}};
    for (const auto& [q, k, v, element] : kinds) {
        CAPTURE(int(q.kind));
        CAPTURE(int(element));
        check_ways({.info = {.rotary_dim = 32,
                             .tensor = {width(48, element, 8, 5, {.norm = q}),
                                        width(48, element, 8, 3, {.norm = k}),
                                        width(48, element, 0, 3, {.norm = v})}},
                    .batch = 2,
                    .q_heads = 5,
                    .k_heads = 3,
                    .v_heads = 3});
    }
}

TEST_CASE("finish: a norm over a token of more heads than the norms that a lane holds") {
    // A lane of a processor stores 64 heads at a time, in place before it loads the next ones.
    Norm before = rms(), after = rms(ParameterShape::head_channel);
    before.span = after.span = NormSpan::token;
    after.place = NormPlace::after;
    check_ways({.info = {.rotary_dim = 8,
                         .tensor = {width(16, Element::f32, 0, 130, {.norm = before}),
                                    width(16, Element::f32, 0, 70, {.norm = after}),
                                    width(16, Element::f32, 0, 70, {.norm = before})}},
                .tokens = 3,
                .q_heads = 130,
                .k_heads = 70,
                .v_heads = 70});
}

TEST_CASE("finish: few tokens, whose heads lanes of a processor share, and one token more") {
    // Up to 16 tokens eight lanes share the heads; 520 heads are more than they hold at a time.
    struct Size {
        std::uint32_t tokens, q_heads, k_heads;
    };
    for (const auto& [tokens, q_heads, k_heads] :
         {Size{16, 9, 8}, Size{17, 9, 8}, Size{2, 520, 70}}) {
        CAPTURE(tokens);
        check_ways({.info = {.rotary_dim = 16,
                             .tensor = {width(24, Element::f16, 0, 0, {.norm = rms()}),
                                        width(24, Element::f16, 0, 0, {.norm = rms()}),
                                        width(24, Element::f16)}},
                    .batch = 2,
                    .tokens = tokens,
                    .q_heads = q_heads,
                    .k_heads = k_heads,
                    .v_heads = k_heads});
    }
}

TEST_CASE("finish: bias, clip and scales, alone and around a norm; other types and pairing out") {
    check_ways({.info = {.rotary_dim = 16,
                         .tensor = {width(24, Element::f32, 0, 4,
                                          {.bias = ParameterShape::head_channel,
                                           .clip = 2.5f,
                                           .scale = 0.3f,
                                           .scale_call = true,
                                           .scale_tokens = true}),
                                    width(24, Element::f32, 0, 2,
                                          {.bias = ParameterShape::channel, .norm = rms()}),
                                    width(24, Element::f32, 0, 2,
                                          {.clip = 3, .scale = 1.7f, .scale_tokens = true})}},
                .batch = 2,
                .q_heads = 4,
                .k_heads = 2,
                .v_heads = 2,
                .q_scale = 0.7f});
    check_ways({.info = {.pairing = Pairing::interleaved,
                         .rotary_dim = 16,
                         .tensor = {{.in = Element::bf16,
                                     .out = Element::f32,
                                     .head_dim = 32,
                                     .rotary_offset = 8,
                                     .ops = {.norm = rms()}},
                                    {.in = Element::f16,
                                     .out = Element::bf16,
                                     .head_dim = 32,
                                     .rotary_offset = 8,
                                     .ops = {.scale_tokens = true}},
                                    {Element::f32, Element::f16, 32}},
                         .pairing_out = Pairing::half_split},
                .q_heads = 3,
                .k_heads = 2,
                .v_heads = 2});
}

TEST_CASE("finish: round_between rounds to the type of the input, twice, as the oracle does") {
    Norm before = rms(), after = rms(ParameterShape::head_channel);
    before.weight_offset = 1;
    after.place = NormPlace::after;
    for (auto [element, norm] : {std::pair{Element::f16, before}, {Element::bf16, after}}) {
        CAPTURE(int(element));
        norm.round_between = true;
        // In f32, so that the store hides no rounding.
        Scene scene = {.info = {.rotary_dim = 16,
                                .tensor = {{.in = element,
                                            .out = Element::f32,
                                            .head_dim = 16,
                                            .heads = 3,
                                            .ops = {.norm = norm}}}},
                       .q_heads = 3};
        check_ways(scene);
        const Results rounded = carry_out(scene, {});
        scene.info.tensor[Q].ops.norm.round_between = false;
        CHECK(rounded.q != carry_out(scene, {}).q);
    }
}

TEST_CASE("finish: rows of zeros, of huge and tiny numbers, with an infinity or a NaN") {
    constexpr std::uint32_t D = 32;
    constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
    const float fills[] = {0, 3e38f, -3.4e38f, 1e20f, 1e-3f, inf, nan};
    constexpr std::uint32_t rows = std::size(fills);
    std::vector<float> numbers;
    for (const float fill : fills) {
        const bool special = !std::isfinite(fill);
        for (std::uint32_t c = 0; c < D; ++c)
            numbers.push_back(special && c != 5 ? float(c) : fill);
    }
    for (const NormKind kind : {NormKind::rms, NormKind::layer}) {
        for (const Mapping mapping : {Mapping::cpu, Mapping::gpu}) {
            CAPTURE(int(kind));
            CAPTURE(int(mapping));
            // No pair turns at position 0 + 3 by an angle that matters: the last channels are read.
            const Scene scene = {
                .info = {.rotary_dim = 2,
                         .tensor = {width(D, Element::f32, 0, 0,
                                          {.norm = {.kind = kind, .eps = 1e-6f}})}},
                .tokens = rows,
                .q_heads = 1,
                .q = bytes_of(numbers)};
            const Results results = carry_out(scene, {mapping});
            const auto at = [&](std::uint32_t row, std::uint32_t channel) {
                return value(Element::f32, results.q, row * D + channel);
            };
            for (std::uint32_t c = 2; c < D; ++c) {
                CAPTURE(c);
                const float equal = kind == NormKind::rms ? 1.f : 0.f;
                CHECK(at(0, c) == 0);
                CHECK(std::fabs(at(1, c) - equal) <= 10 * 0x1p-24f);
                CHECK(std::fabs(at(2, c) + equal) <= 10 * 0x1p-24f);
                CHECK(std::fabs(at(3, c) - equal) <= 10 * 0x1p-24f);
                if (kind == NormKind::rms) {
                    CHECK(std::fabs(at(4, c) - std::sqrt(0.5f)) <= 1e-6f);
                    CHECK((c == 5 ? std::isnan(at(5, c)) : at(5, c) == 0));
                } else {
                    CHECK(std::fabs(at(4, c)) <= 1e-6f);
                    CHECK(std::isnan(at(5, c)));
                }
                CHECK(std::isnan(at(6, c)));
            }
        }
    }
}

TEST_CASE("finish: rows whose squares overflow have no eps, with their sums and without") {
    constexpr std::uint32_t D = 32;
    constexpr float inf = std::numeric_limits<float>::infinity();
    // The mean is 0, so that both norms give 1 and -1. Of 2e18 the squares do not overflow, of
    // 1.2e19 only their sum does. 65000 and infinity are also numbers of f16, whose kernel has no
    // scaled sum.
    const float fills[] = {65000, 2e18f, 1.2e19f, 1e20f, 3e38f, inf};
    const struct {
        Element element;
        NormKind kind;
        std::vector<std::uint32_t> rows;  // of fills
    } kinds[] = {{Element::f32, NormKind::layer, {1, 2, 3, 4}},
                 {Element::bf16, NormKind::rms, {1, 2, 3, 4, 5}},
                 {Element::f16, NormKind::rms, {0, 5}}};
    for (const auto& [element, kind, rows] : kinds) {
        Bytes numbers(rows.size() * D * element_bytes(element));
        for (std::size_t i = 0; i < rows.size() * D; ++i) {
            const float fill = fills[rows[i / D]], x = i % 2 == 0 ? fill : -fill;
            const std::uint32_t bits = reference::narrow(
                type_of(element), fill == inf && i % D != 5 ? 1.0L : static_cast<long double>(x));
            std::memcpy(numbers.data() + i * element_bytes(element), &bits, element_bytes(element));
        }
        for (const Mapping mapping : {Mapping::cpu, Mapping::gpu}) {
            CAPTURE(int(element));
            CAPTURE(int(mapping));
            const Scene scene = {.info = {.rotary_dim = 2,
                                          .tensor = {{.in = element,
                                                      .out = Element::f32,
                                                      .head_dim = D,
                                                      .ops = {.norm = {.kind = kind, .eps = 1}}}}},
                                 .tokens = std::uint32_t(rows.size()),
                                 .q_heads = 1,
                                 .q = numbers};
            const Results results = carry_out(scene, {mapping});
            for (std::size_t row = 0; row < rows.size(); ++row) {
                for (std::uint32_t c = 2; c < D; ++c) {  // that do not rotate
                    CAPTURE(fills[rows[row]]);
                    CAPTURE(c);
                    const float got = value(Element::f32, results.q, row * D + c);
                    if (fills[rows[row]] == inf)
                        CHECK((c == 5 ? std::isnan(got) : got == 0));
                    else
                        CHECK(std::fabs(got - (c % 2 == 0 ? 1.f : -1.f)) <= 10 * 0x1p-24f);
                }
            }
        }
    }
}

TEST_CASE("finish: tokens of two streams take parameters of their own") {
    const Norm layer = {.kind = NormKind::layer,
                        .span = NormSpan::token,
                        .place = NormPlace::after,
                        .eps = 1e-5f,
                        .weight = ParameterShape::head_channel,
                        .bias = ParameterShape::channel};
    const auto scene_of = [](const KernelInfo& info, std::uint32_t tokens,
                             std::uint32_t first_set_tokens) {
        Scene scene = {.info = info,
                       .batch = 2,
                       .tokens = tokens,
                       .q_heads = 6,
                       .k_heads = 3,
                       .v_heads = 3,
                       .first_set_tokens = first_set_tokens};
        scene.info.tensor[Q].heads = 6, scene.info.tensor[K].heads = scene.info.tensor[V].heads = 3;
        return scene;
    };
    const struct {
        Scene scene;
        std::vector<Way> ways;
    } scenes[] = {
        {scene_of(
             {.rotary_dim = 64,
              .tensor = {width(64, Element::f16, 0, 0, {.norm = rms()}),
                         width(64, Element::f16, 0, 0, {.norm = rms(ParameterShape::head_channel)}),
                         width(64, Element::f16, 0, 0, {.bias = ParameterShape::head_channel})}},
             150, 47),
         {{Mapping::cpu, 0, false, true, 4},
          {.mapping = Mapping::gpu, .range = 1u << 14},
          {.mapping = Mapping::gpu, .workgroups = 7},
          {.mapping = Mapping::cpu, .workgroups = 1}}},
        {scene_of({.pairing = Pairing::interleaved,
                   .rotary_dim = 24,
                   .tensor = {width(40, Element::f32, 0, 0,
                                    {.bias = ParameterShape::channel, .norm = layer}),
                              width(40, Element::f32, 8, 0, {.norm = layer}),
                              width(40, Element::f32, 0, 0, {.norm = rms()})},
                   .positions = PositionSource::ids},
                  9, 8),
         {{Mapping::gpu}, {Mapping::cpu, 1}}},
        {scene_of({.rotary_dim = 32,
                   .tensor = {{.in = Element::f16,
                               .out = Element::int8,
                               .head_dim = 32,
                               .ops = {.norm = rms(), .store_scale = StoreScale::given}},
                              {.in = Element::f16,
                               .out = Element::e4m3fn,
                               .head_dim = 32,
                               .ops = {.store_scale = StoreScale::given_head}},
                              {.in = Element::f16,
                               .out = Element::q8_0,
                               .head_dim = 32,
                               .ops = {.bias = ParameterShape::channel, .hadamard = 32}}},
                   .positions = PositionSource::ids},
                  33, 1),
         {{Mapping::gpu, 1, false, true},
          {.mapping = Mapping::gpu, .storage_buffers = 6},
          {.mapping = Mapping::cpu}}}};
    // What tokens have of the results of two kernels with one set each.
    const auto joined = [](const Scene& scene, const Bytes& first, const Bytes& second) {
        Bytes both = second;
        const std::size_t token = both.size() / (scene.batch * scene.tokens);
        for (std::size_t b = 0; b < scene.batch; ++b)
            std::copy_n(first.begin() + std::ptrdiff_t(b * scene.tokens * token),
                        scene.first_set_tokens * token,
                        both.begin() + std::ptrdiff_t(b * scene.tokens * token));
        return both;
    };
    for (const auto& [of_one, ways] : scenes) {
        Scene one = of_one;
        one.first_set_tokens = 0;
        const Results first = carry_out(one, {});
        one.parameter_seed = second_seed;
        const Results second = carry_out(one, {});
        Scene scene = of_one;
        scene.info.two_parameter_sets = true;
        for (std::size_t i = 0; i < ways.size(); i += sweep_share()) {
            CAPTURE(i);
            const Results results = carry_out(scene, ways[i]);
            CHECK(results.q == joined(scene, first.q, second.q));
            CHECK(results.k == joined(scene, first.k, second.k));
            CHECK(results.v == joined(scene, first.v, second.v));
        }
        CHECK(first.q != second.q);
        CHECK(first.k != second.k);
        CHECK(first.v != second.v);
    }
}

// Lanes that have rows for themselves wait for each other where a tensor takes the place of
// another.
TEST_CASE("finish: tensors with sums and rows of other sizes follow each other") {
    const auto of = [](Element out, std::uint32_t dim, std::uint32_t heads, const Finish& ops) {
        return TensorInfo{Element::f16, out, dim, 0, heads, ops};
    };
    const auto scene_of = [](const KernelInfo& info) {
        return Scene{.info = info,
                     .tokens = 70,
                     .q_heads = info.tensor[Q].heads,
                     .k_heads = info.tensor[K].heads,
                     .v_heads = info.tensor[V].heads};
    };
    const Norm of_tokens = {.kind = NormKind::rms, .span = NormSpan::token, .eps = 1e-6f};
    const Finish biased = {.bias = ParameterShape::channel, .norm = rms()};
    const Finish made = {.store_scale = StoreScale::made};
    const Scene scenes[] = {
        scene_of({.rotary_dim = 64,
                  .tensor = {of(Element::f16, 64, 4, {.norm = of_tokens}),
                             of(Element::f16, 64, 4, biased), of(Element::q8_0, 64, 4, {})}}),
        scene_of({.rotary_dim = 16,
                  .tensor = {of(Element::f16, 16, 8, {.norm = of_tokens}),
                             of(Element::f16, 16, 8, biased), of(Element::f16, 8, 8, {})}}),
        scene_of({.rotary_dim = 16,
                  .tensor = {of(Element::int8, 32, 4, made), of(Element::int8, 16, 4, made),
                             of(Element::int8, 8, 4, made)}})};
    for (const Scene& scene : scenes) {
        const Results wide = carry_out(scene, {});
        for (const Way way : {Way{.mapping = Mapping::gpu}, Way{.mapping = Mapping::gpu, .lead = 1},
                              Way{.mapping = Mapping::cpu, .lead = 1}}) {
            const Results other = carry_out(scene, way);
            CHECK(other.q == wide.q);
            CHECK(other.k == wide.k);
            CHECK(other.v == wide.v);
        }
    }
}

}  // namespace vkrope::test
