// SPDX-License-Identifier: MIT
// Norms, biases, clip and scale around the rotation: within the contract of the oracle, and the
// same bits for every mapping, access and layout. One list of scenes, so longer than other files.
#include <cmath>
#include <iterator>
#include <limits>

#include "meaning.hpp"
#include "ops_scene.hpp"

namespace vkrope::test {

namespace {

Norm rms(ParameterShape weight = VKROPE_PARAMETER_CHANNEL) {
    return {.kind = VKROPE_NORM_RMS, .eps = 1e-6f, .weight = weight};
}

TensorInfo width(std::uint32_t head_dim, Element element = VKROPE_F32, std::uint32_t offset = 0,
                 std::uint32_t head_count = 0, const Ops& ops = {}) {
    return {element, element, head_dim, offset, head_count, ops};
}

}  // namespace

TEST_CASE("ops: an RMS norm of each head before the rotation, in every type and pairing") {
    const struct {
        Element element;
        Pairing pairing;
    } kinds[] = {{VKROPE_F32, VKROPE_HALF_SPLIT},
                 {VKROPE_F16, VKROPE_INTERLEAVED},
                 {VKROPE_BF16, VKROPE_HALF_SPLIT}};
    for (const auto& [element, pairing] : kinds) {
        CAPTURE(int(element));
        check_ways({.info = {.pairing = pairing,
                             .rotary_dim = 64,
                             .tensor = {width(64, element, 0, 0, {.norm = rms()}),
                                        width(64, element, 0, 0, {.norm = rms()})},
                             .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                    .batch = 2,
                    .q_heads = 5,
                    .k_heads = 2});
    }
}

TEST_CASE("ops: a norm spans the whole row, whatever part of it turns") {
    // Rows of any length, windows in the middle, and several of them.
    const struct {
        std::uint32_t head_dim, rotary_dim, offset;
        Element element;
    } rows[] = {{80, 32, 16, VKROPE_F32}, {96, 48, 0, VKROPE_BF16}, {112, 64, 48, VKROPE_F16},
                {66, 22, 6, VKROPE_BF16}, {2, 2, 0, VKROPE_F32},    {34, 6, 3, VKROPE_F16}};
    for (const auto& [head_dim, rotary_dim, offset, element] : rows) {
        CAPTURE(head_dim);
        check_ways({.info = {.pairing = VKROPE_HALF_SPLIT,
                             .rotary_dim = rotary_dim,
                             .tensor = {width(head_dim, element, offset, 0, {.norm = rms()}),
                                        width(head_dim, element, offset, 0,
                                              {.norm = rms(VKROPE_PARAMETER_NONE), .clip = 1})},
                             .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                    .q_heads = 3,
                    .k_heads = 2});
    }
    check_ways({.info = {.pairing = VKROPE_INTERLEAVED,
                         .rotary_dim = 24,
                         .tensor = {width(48, VKROPE_F32, 0, 0, {.norm = rms()})},
                         .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
                         .windows = {{0, 8}, {16, 16}}},
                .q_heads = 2});
}

TEST_CASE("ops: long rows, which a lane loads again") {
    for (const Element element : {VKROPE_F32, VKROPE_F16}) {
        Norm after = rms();
        after.place = VKROPE_NORM_PLACE_AFTER;
        check_ways({.info = {.pairing = VKROPE_HALF_SPLIT,
                             .rotary_dim = 64,
                             .tensor = {width(1024, element, 512, 0, {.norm = rms()}),
                                        width(1024, element, 512, 0, {.norm = after})},
                             .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                    .tokens = 2,
                    .q_heads = 2,
                    .k_heads = 1});
    }
    check_ways({.info = {.pairing = VKROPE_HALF_SPLIT,
                         .rotary_dim = 64,
                         .tensor = {width(4096, VKROPE_BF16, 0, 0, {.norm = rms()})},
                         .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                .tokens = 2,
                .q_heads = 1});
}

TEST_CASE("ops: a norm after the rotation, over a token, of Q, K and V each its own") {
    Norm after = rms(VKROPE_PARAMETER_HEAD_CHANNEL), token = rms(VKROPE_PARAMETER_HEAD_CHANNEL);
    after.place = VKROPE_NORM_PLACE_AFTER;
    token.span = VKROPE_NORM_SPAN_TOKEN;
    Norm layer = {.kind = VKROPE_NORM_LAYER,
                  .eps = 1e-5f,
                  .weight = VKROPE_PARAMETER_HEAD_CHANNEL,
                  .bias = VKROPE_PARAMETER_CHANNEL};
    Norm gemma = rms();
    gemma.weight_offset = 1;
    Norm token_after = token;
    token_after.place = VKROPE_NORM_PLACE_AFTER;
    Norm layer_of_token = layer;
    layer_of_token.span = VKROPE_NORM_SPAN_TOKEN;
    layer_of_token.place = VKROPE_NORM_PLACE_AFTER;
    const struct {
        Norm q, k, v;
        Element element;
    } kinds[] = {{after, token, rms(VKROPE_PARAMETER_NONE), VKROPE_F32},
                 {layer, gemma, layer, VKROPE_F16},
                 {token_after, layer_of_token, {}, VKROPE_BF16}};
    for (const auto& [q, k, v, element] : kinds) {
        CAPTURE(int(q.kind));
        CAPTURE(int(element));
        check_ways({.info = {.pairing = VKROPE_HALF_SPLIT,
                             .rotary_dim = 32,
                             .tensor = {width(48, element, 8, 5, {.norm = q}),
                                        width(48, element, 8, 3, {.norm = k}),
                                        width(48, element, 0, 3, {.norm = v})},
                             .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                    .batch = 2,
                    .q_heads = 5,
                    .k_heads = 3,
                    .v_heads = 3});
    }
}

TEST_CASE("ops: a norm over a token of more heads than the norms that a lane holds") {
    // A lane of a processor stores 64 heads at a time, in place before it loads the next ones.
    Norm before = rms(), after = rms(VKROPE_PARAMETER_HEAD_CHANNEL);
    before.span = after.span = VKROPE_NORM_SPAN_TOKEN;
    after.place = VKROPE_NORM_PLACE_AFTER;
    check_ways({.info = {.pairing = VKROPE_HALF_SPLIT,
                         .rotary_dim = 8,
                         .tensor = {width(16, VKROPE_F32, 0, 130, {.norm = before}),
                                    width(16, VKROPE_F32, 0, 70, {.norm = after}),
                                    width(16, VKROPE_F32, 0, 70, {.norm = before})},
                         .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                .tokens = 3,
                .q_heads = 130,
                .k_heads = 70,
                .v_heads = 70});
}

TEST_CASE("ops: few tokens, whose heads lanes of a processor share, and one token more") {
    // Up to 16 tokens eight lanes share the heads; 520 heads are more than they hold at a time.
    struct Size {
        std::uint32_t tokens, q_heads, k_heads;
    };
    for (const auto& [tokens, q_heads, k_heads] :
         {Size{16, 9, 8}, Size{17, 9, 8}, Size{2, 520, 70}}) {
        CAPTURE(tokens);
        check_ways({.info = {.pairing = VKROPE_HALF_SPLIT,
                             .rotary_dim = 16,
                             .tensor = {width(24, VKROPE_F16, 0, 0, {.norm = rms()}),
                                        width(24, VKROPE_F16, 0, 0, {.norm = rms()}),
                                        width(24, VKROPE_F16)},
                             .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                    .batch = 2,
                    .tokens = tokens,
                    .q_heads = q_heads,
                    .k_heads = k_heads,
                    .v_heads = k_heads});
    }
}

TEST_CASE("ops: bias, clip and scales, alone and around a norm; other types and pairing out") {
    check_ways({.info = {.pairing = VKROPE_HALF_SPLIT,
                         .rotary_dim = 16,
                         .tensor = {width(24, VKROPE_F32, 0, 4,
                                          {.bias = VKROPE_PARAMETER_HEAD_CHANNEL,
                                           .clip = 2.5f,
                                           .scale = 0.3f,
                                           .scale_call = true,
                                           .scale_tokens = true}),
                                    width(24, VKROPE_F32, 0, 2,
                                          {.bias = VKROPE_PARAMETER_CHANNEL, .norm = rms()}),
                                    width(24, VKROPE_F32, 0, 2,
                                          {.clip = 3, .scale = 1.7f, .scale_tokens = true})},
                         .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                .batch = 2,
                .q_heads = 4,
                .k_heads = 2,
                .v_heads = 2,
                .q_scale = 0.7f});
    check_ways({.info = {.pairing = VKROPE_INTERLEAVED,
                         .rotary_dim = 16,
                         .tensor = {{.in = VKROPE_BF16,
                                     .out = VKROPE_F32,
                                     .head_dim = 32,
                                     .rotary_offset = 8,
                                     .ops = {.norm = rms()}},
                                    {.in = VKROPE_F16,
                                     .out = VKROPE_BF16,
                                     .head_dim = 32,
                                     .rotary_offset = 8,
                                     .ops = {.scale_tokens = true}},
                                    {VKROPE_F32, VKROPE_F16, 32}},
                         .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
                         .pairing_out = VKROPE_HALF_SPLIT},
                .q_heads = 3,
                .k_heads = 2,
                .v_heads = 2});
}

TEST_CASE("ops: round_between rounds to the type of the input, twice, as the oracle does") {
    Norm before = rms(), after = rms(VKROPE_PARAMETER_HEAD_CHANNEL);
    before.weight_offset = 1;
    after.place = VKROPE_NORM_PLACE_AFTER;
    for (auto [element, norm] : {std::pair{VKROPE_F16, before}, {VKROPE_BF16, after}}) {
        CAPTURE(int(element));
        norm.round_between = true;
        // In f32, so that the store hides no rounding.
        Scene scene = {.info = {.pairing = VKROPE_HALF_SPLIT,
                                .rotary_dim = 16,
                                .tensor = {{.in = element,
                                            .out = VKROPE_F32,
                                            .head_dim = 16,
                                            .heads = 3,
                                            .ops = {.norm = norm}}},
                                .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                       .q_heads = 3};
        check_ways(scene);
        const Results rounded = carry_out(scene, {});
        scene.info.tensor[Q].ops.norm.round_between = false;
        CHECK(rounded.q != carry_out(scene, {}).q);
    }
}

TEST_CASE("ops: rows of zeros, of huge and tiny numbers, with an infinity or a NaN") {
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
    for (const NormKind kind : {VKROPE_NORM_RMS, VKROPE_NORM_LAYER}) {
        for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
            CAPTURE(int(kind));
            CAPTURE(int(mapping));
            // No pair turns at position 0 + 3 by an angle that matters: the last channels are read.
            const Scene scene = {.info = {.pairing = VKROPE_HALF_SPLIT,
                                          .rotary_dim = 2,
                                          .tensor = {width(D, VKROPE_F32, 0, 0,
                                                           {.norm = {.kind = kind, .eps = 1e-6f}})},
                                          .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                                 .tokens = rows,
                                 .q_heads = 1,
                                 .q = bytes_of(numbers)};
            const Results results = carry_out(scene, {mapping});
            const auto at = [&](std::uint32_t row, std::uint32_t channel) {
                return value(VKROPE_F32, results.q, row * D + channel);
            };
            for (std::uint32_t c = 2; c < D; ++c) {
                CAPTURE(c);
                const float equal = kind == VKROPE_NORM_RMS ? 1.f : 0.f;
                CHECK(at(0, c) == 0);
                CHECK(std::fabs(at(1, c) - equal) <= 10 * 0x1p-24f);
                CHECK(std::fabs(at(2, c) + equal) <= 10 * 0x1p-24f);
                CHECK(std::fabs(at(3, c) - equal) <= 10 * 0x1p-24f);
                if (kind == VKROPE_NORM_RMS) {
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

TEST_CASE("ops: rows whose squares overflow have no eps, with their sums and without") {
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
    } kinds[] = {{VKROPE_F32, VKROPE_NORM_LAYER, {1, 2, 3, 4}},
                 {VKROPE_BF16, VKROPE_NORM_RMS, {1, 2, 3, 4, 5}},
                 {VKROPE_F16, VKROPE_NORM_RMS, {0, 5}}};
    for (const auto& [element, kind, rows] : kinds) {
        Bytes numbers(rows.size() * D * element_bytes(element));
        for (std::size_t i = 0; i < rows.size() * D; ++i) {
            const float fill = fills[rows[i / D]], x = i % 2 == 0 ? fill : -fill;
            const std::uint32_t bits = reference::narrow(
                type_of(element), fill == inf && i % D != 5 ? 1.0L : static_cast<long double>(x));
            std::memcpy(numbers.data() + i * element_bytes(element), &bits, element_bytes(element));
        }
        for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
            CAPTURE(int(element));
            CAPTURE(int(mapping));
            const Scene scene = {.info = {.pairing = VKROPE_HALF_SPLIT,
                                          .rotary_dim = 2,
                                          .tensor = {{.in = element,
                                                      .out = VKROPE_F32,
                                                      .head_dim = D,
                                                      .ops = {.norm = {.kind = kind, .eps = 1}}}},
                                          .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                                 .tokens = std::uint32_t(rows.size()),
                                 .q_heads = 1,
                                 .q = numbers};
            const Results results = carry_out(scene, {mapping});
            for (std::size_t row = 0; row < rows.size(); ++row) {
                for (std::uint32_t c = 2; c < D; ++c) {  // that do not rotate
                    CAPTURE(fills[rows[row]]);
                    CAPTURE(c);
                    const float got = value(VKROPE_F32, results.q, row * D + c);
                    if (fills[rows[row]] == inf)
                        CHECK((c == 5 ? std::isnan(got) : got == 0));
                    else
                        CHECK(std::fabs(got - (c % 2 == 0 ? 1.f : -1.f)) <= 10 * 0x1p-24f);
                }
            }
        }
    }
}

TEST_CASE("ops: tokens of two streams take parameters of their own") {
    const Norm layer = {.kind = VKROPE_NORM_LAYER,
                        .span = VKROPE_NORM_SPAN_TOKEN,
                        .place = VKROPE_NORM_PLACE_AFTER,
                        .eps = 1e-5f,
                        .weight = VKROPE_PARAMETER_HEAD_CHANNEL,
                        .bias = VKROPE_PARAMETER_CHANNEL};
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
             {.pairing = VKROPE_HALF_SPLIT,
              .rotary_dim = 64,
              .tensor = {width(64, VKROPE_F16, 0, 0, {.norm = rms()}),
                         width(64, VKROPE_F16, 0, 0, {.norm = rms(VKROPE_PARAMETER_HEAD_CHANNEL)}),
                         width(64, VKROPE_F16, 0, 0, {.bias = VKROPE_PARAMETER_HEAD_CHANNEL})},
              .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
             150, 47),
         {{VKROPE_MAPPING_CPU, 0, false, true, 4},
          {.mapping = VKROPE_MAPPING_GPU, .range = 1u << 14},
          {.mapping = VKROPE_MAPPING_GPU, .workgroups = 7},
          {.mapping = VKROPE_MAPPING_CPU, .workgroups = 1}}},
        {scene_of({.pairing = VKROPE_INTERLEAVED,
                   .rotary_dim = 24,
                   .tensor = {width(40, VKROPE_F32, 0, 0,
                                    {.bias = VKROPE_PARAMETER_CHANNEL, .norm = layer}),
                              width(40, VKROPE_F32, 8, 0, {.norm = layer}),
                              width(40, VKROPE_F32, 0, 0, {.norm = rms()})},
                   .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
                   .positions = VKROPE_POSITIONS_IDS},
                  9, 8),
         {{VKROPE_MAPPING_GPU}, {VKROPE_MAPPING_CPU, 1}}},
        {scene_of({.pairing = VKROPE_HALF_SPLIT,
                   .rotary_dim = 32,
                   .tensor = {{.in = VKROPE_F16,
                               .out = VKROPE_INT8,
                               .head_dim = 32,
                               .ops = {.norm = rms(), .store_scale = VKROPE_STORE_SCALE_GIVEN}},
                              {.in = VKROPE_F16,
                               .out = VKROPE_E4M3FN,
                               .head_dim = 32,
                               .ops = {.store_scale = VKROPE_STORE_SCALE_GIVEN_HEAD}},
                              {.in = VKROPE_F16,
                               .out = VKROPE_Q8_0,
                               .head_dim = 32,
                               .ops = {.bias = VKROPE_PARAMETER_CHANNEL, .hadamard = 32}}},
                   .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
                   .positions = VKROPE_POSITIONS_IDS},
                  33, 1),
         {{VKROPE_MAPPING_GPU, 1, false, true},
          {.mapping = VKROPE_MAPPING_GPU, .storage_buffers = 6},
          {.mapping = VKROPE_MAPPING_CPU}}}};
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
TEST_CASE("ops: tensors with sums and rows of other sizes follow each other") {
    const auto of = [](Element out, std::uint32_t dim, std::uint32_t heads, const Ops& ops) {
        return TensorInfo{VKROPE_F16, out, dim, 0, heads, ops};
    };
    const auto scene_of = [](const KernelInfo& info) {
        return Scene{.info = info,
                     .tokens = 70,
                     .q_heads = info.tensor[Q].heads,
                     .k_heads = info.tensor[K].heads,
                     .v_heads = info.tensor[V].heads};
    };
    const Norm of_tokens = {.kind = VKROPE_NORM_RMS, .span = VKROPE_NORM_SPAN_TOKEN, .eps = 1e-6f};
    const Ops biased = {.bias = VKROPE_PARAMETER_CHANNEL, .norm = rms()};
    const Ops made = {.store_scale = VKROPE_STORE_SCALE_MADE};
    const Scene scenes[] = {
        scene_of({.pairing = VKROPE_HALF_SPLIT,
                  .rotary_dim = 64,
                  .tensor = {of(VKROPE_F16, 64, 4, {.norm = of_tokens}),
                             of(VKROPE_F16, 64, 4, biased), of(VKROPE_Q8_0, 64, 4, {})},
                  .angles = VKROPE_ANGLES_FACTORED_TEXTURE}),
        scene_of({.pairing = VKROPE_HALF_SPLIT,
                  .rotary_dim = 16,
                  .tensor = {of(VKROPE_F16, 16, 8, {.norm = of_tokens}),
                             of(VKROPE_F16, 16, 8, biased), of(VKROPE_F16, 8, 8, {})},
                  .angles = VKROPE_ANGLES_FACTORED_TEXTURE}),
        scene_of({.pairing = VKROPE_HALF_SPLIT,
                  .rotary_dim = 16,
                  .tensor = {of(VKROPE_INT8, 32, 4, made), of(VKROPE_INT8, 16, 4, made),
                             of(VKROPE_INT8, 8, 4, made)},
                  .angles = VKROPE_ANGLES_FACTORED_TEXTURE})};
    for (const Scene& scene : scenes) {
        const Results wide = carry_out(scene, {});
        for (const Way way :
             {Way{.mapping = VKROPE_MAPPING_GPU}, Way{.mapping = VKROPE_MAPPING_GPU, .lead = 1},
              Way{.mapping = VKROPE_MAPPING_CPU, .lead = 1}}) {
            const Results other = carry_out(scene, way);
            CHECK(other.q == wide.q);
            CHECK(other.k == wide.k);
            CHECK(other.v == wide.v);
        }
    }
}

}  // namespace vkrope::test
