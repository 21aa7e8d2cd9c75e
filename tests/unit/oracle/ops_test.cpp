// SPDX-License-Identifier: MIT
// The oracle of the ops: values worked out by hand, the order of the steps, and an error bound
// that f32 arithmetic keeps and mistakes break.
#include "verify/oracle/ops.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <random>

#include "verify/oracle/element.hpp"

using namespace vkrope::oracle;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// [batch 1, tokens, heads, head_dim], packed.
Tensor packed(std::uint64_t tokens, std::uint64_t heads, std::uint64_t head_dim,
              Type type = Type::f32) {
    return {.type = type,
            .tokens = tokens,
            .heads = heads,
            .head_dim = head_dim,
            .batch_stride = tokens * heads * head_dim,
            .token_stride = heads * head_dim,
            .head_stride = head_dim};
}

/// An operation that turns pair 0 of two channels by a quarter: (x0, x1) becomes (-x1, x0).
Operation quarter_turn(std::uint64_t tokens) {
    Operation operation;
    operation.inv_freq = {1};
    operation.positions.assign(tokens, 1);
    operation.cos_sin = [](std::int64_t, std::size_t) { return CosSin{0, 1}; };
    return operation;
}

Operation no_turn(std::uint64_t tokens) {
    Operation operation;
    operation.positions.assign(tokens, 0);
    return operation;
}

std::vector<double> finished(const Tensor& in, const Operation& operation, const Ops& steps,
                             const std::vector<float>& input) {
    std::vector<double> values;
    apply_ops(in, operation, steps, 3, input.data(),
              [&](std::uint64_t, std::uint64_t, std::span<const Approximate> channels) {
                  for (const Approximate& channel : channels) {
                      values.push_back(double(channel.value));
                  }
              });
    return values;
}

void check_values(const std::vector<double>& got, const std::vector<double>& wanted) {
    REQUIRE(got.size() == wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        if (std::isnan(wanted[i])) {
            CHECK(std::isnan(got[i]));
        } else {
            CHECK(got[i] == doctest::Approx(wanted[i]).epsilon(1e-14));
        }
    }
}

constexpr auto rms = NormKind::rms, layer = NormKind::layer;

}  // namespace

TEST_CASE("ops: rms norm over a head row and over a token") {
    const Tensor tensor = packed(1, 2, 2);
    const std::vector<float> input = {3, 4, 0, 10};  // mean squares 12.5, 50; over both 31.25
    const double a = std::sqrt(12.5), b = std::sqrt(50.0), both = std::sqrt(31.25);
    check_values(finished(tensor, no_turn(1), {.norm = {.kind = rms}}, input),
                 {3 / a, 4 / a, 0, 10 / b});
    check_values(finished(tensor, no_turn(1), {.norm = {.kind = rms, .over_token = true}}, input),
                 {3 / both, 4 / both, 0, 10 / both});
    // eps stands inside the root: 12.5 + 3.5 = 16, 50 + 3.5.
    check_values(finished(tensor, no_turn(1), {.norm = {.kind = rms, .eps = 3.5}}, input),
                 {0.75, 1, 0, 10 / std::sqrt(53.5)});
}

TEST_CASE("ops: weights are shared or one for each head, plus their offset") {
    const Tensor tensor = packed(1, 2, 2);
    const std::vector<float> input = {1, 1, 2, 2};
    check_values(finished(tensor, no_turn(1), {.norm = {.kind = rms, .weight = {5, 7}}}, input),
                 {5, 7, 5, 7});
    check_values(
        finished(tensor, no_turn(1), {.norm = {.kind = rms, .weight = {5, 7, -1, 2}}}, input),
        {5, 7, -1, 2});
    check_values(
        finished(tensor, no_turn(1),
                 {.norm = {.kind = rms, .weight = {0.5, 0.25}, .weight_offset = 1}}, input),
        {1.5, 1.25, 1.5, 1.25});
}

TEST_CASE("ops: layer norm takes the population variance and has a bias") {
    const Tensor tensor = packed(1, 1, 4);
    const std::vector<float> input = {1, 2, 3, 6};  // mean 3, squares of deviations 4 1 0 9
    const double root = std::sqrt(3.5);
    check_values(finished(tensor, no_turn(1), {.norm = {.kind = layer}}, input),
                 {-2 / root, -1 / root, 0, 3 / root});
    check_values(
        finished(
            tensor, no_turn(1),
            {.norm = {.kind = layer, .eps = 0.5, .weight = {1, 2, 3, 4}, .bias = {10, 20, 30, 40}}},
            input),
        {-1 + 10, -1 + 20, 30, 6 + 40});
}

TEST_CASE("ops: the order is bias, norm, clip, rotation, norm after, scale") {
    const Tensor tensor = packed(2, 1, 2);
    const std::vector<float> input = {2, 3, 2, 3};
    const Ops before = {.bias = {1, 1},                                       // 3, 4
                        .norm = {.kind = rms, .eps = 3.5, .weight = {4, 1}},  // 3, 1
                        .clip = 2,                                            // 2, 1; turned -1, 2
                        .scale = 10,
                        .scale_tokens = {1, 3}};
    check_values(finished(tensor, quarter_turn(2), before, input), {-10, 20, -30, 60});
    Ops after = before;  // 3, 4; clipped 2, 2; turned -2, 2; over sqrt(4 + 3.5)
    after.norm.after = true;
    const double root = std::sqrt(7.5);
    check_values(finished(tensor, quarter_turn(2), after, input),
                 {-80 / root, 20 / root, -240 / root, 60 / root});
}

TEST_CASE("ops: channels outside the window take every step but the rotation") {
    const Tensor tensor = packed(1, 1, 4);
    Operation operation = quarter_turn(1);
    operation.rotary_offset = 2;
    check_values(
        finished(tensor, operation, {.bias = {1, 2, 3, 4}, .clip = 6, .scale = 2}, {4, 5, 1, 1}),
        {10, 12, -10, 8});
}

TEST_CASE("ops: rows with an infinity or a NaN") {
    const Tensor tensor = packed(1, 3, 2);
    const float inf = float(infinity), nan = float(not_a_number);
    check_values(
        finished(tensor, no_turn(1), {.norm = {.kind = rms, .eps = 1e-6}}, {inf, 1, nan, 1, 0, 0}),
        {not_a_number, 0, not_a_number, not_a_number, 0, 0});
    check_values(finished(tensor, no_turn(1), {.norm = {.kind = layer, .eps = 1e-6}},
                          {inf, 1, nan, 1, 5, 5}),
                 {not_a_number, not_a_number, not_a_number, not_a_number, 0, 0});
    check_values(finished(tensor, no_turn(1), {.clip = 2}, {inf, -inf, nan, 1, -7, 7}),
                 {2, -2, not_a_number, 1, -2, 2});
}

TEST_CASE("ops: rounding between the steps") {
    // 1 / sqrt(mean(1, 2^2)) = 0.6325; to bf16 0.6328125, 1.265625; the products with 1.0078125
    // are 0.63775..., 1.27551...
    const Tensor tensor = packed(1, 1, 2, Type::bf16);
    const std::uint16_t input[] = {0x3f80, 0x4000};
    const Ops steps = {
        .norm = {.kind = rms, .weight = {1.0078125, 1.0078125}, .round_between = Type::bf16}};
    std::vector<double> values;
    apply_ops(tensor, no_turn(1), steps, 3, static_cast<const void*>(input),
              [&](std::uint64_t, std::uint64_t, std::span<const Approximate> channels) {
                  for (const Approximate& channel : channels) {
                      values.push_back(double(channel.value));
                      CHECK(channel.error == 0);  // no tie is near
                  }
              });
    check_values(values, {0.63671875, 1.2734375});
}

TEST_CASE("ops: a tensor without steps is stored bit for bit") {
    const Tensor tensor = packed(1, 1, 2);
    const std::vector<float> input = {-0.0f, 3};
    OpsVerdict verdict = compare(tensor, tensor, no_turn(1), {}, 3, input.data(), input.data());
    CHECK(verdict.right());
    CHECK(verdict.elements == 2);
    const std::vector<float> changed = {0.0f, 3};
    verdict = compare(tensor, tensor, no_turn(1), {}, 3, input.data(), changed.data());
    CHECK(verdict.bits_changed);
    CHECK_FALSE(verdict.right());
    CHECK(verdict.worst_place.channel == 0);
}

TEST_CASE("ops: the wrong size of a parameter is an error") {
    const Tensor tensor = packed(1, 2, 4);
    const std::vector<float> input(8);
    CHECK_THROWS_AS(finished(tensor, no_turn(1), {.bias = {1, 2}}, input), std::invalid_argument);
    CHECK_THROWS_AS(finished(tensor, no_turn(1), {.scale_tokens = {1, 2}}, input),
                    std::invalid_argument);
    CHECK_THROWS_AS(finished(tensor, no_turn(1), {.norm = {.kind = rms, .weight = {1}}}, input),
                    std::invalid_argument);
}

namespace {

/// The sum of a row as the contract has it: level i adds elements c and c + 2^i.
float tree_sum(std::vector<float> row) {
    row.resize(std::bit_ceil(row.size()));
    for (std::size_t step = 1; step < row.size(); step *= 2) {
        for (std::size_t c = 0; c < row.size(); c += 2 * step) {
            row[c] += row[c + step];
        }
    }
    return row[0];
}

struct Made {
    Tensor tensor;
    Operation operation;
    Ops steps;
    std::vector<float> input, output;
};

/// A rotated and normed tensor in plain f32, with any of the steps.
Made in_floats(std::uint64_t seed, NormKind kind, bool after, std::uint64_t head_dim) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(kind == layer ? 3.0f : 0.0f, 2.0f);
    Made made;
    made.tensor = packed(4, 3, head_dim);
    made.operation.positions = {0, 7, 100, 5000};
    for (std::uint64_t j = 0; j < head_dim / 2; ++j) {
        made.operation.inv_freq.push_back(std::pow(10000.0, -2.0 * double(j) / double(head_dim)));
    }
    Ops& steps = made.steps;
    steps.norm = {.kind = kind, .after = after, .eps = double(1e-6f), .weight_offset = 1};
    steps.scale = double(0.3f);
    for (std::uint64_t c = 0; c < head_dim; ++c) {
        steps.bias.push_back(normal(random));
        steps.norm.weight.push_back(normal(random) / 8);
        if (kind == layer) {
            steps.norm.bias.push_back(normal(random));
        }
    }
    const auto norm = [&](std::vector<float>& row) {
        const float share = 1 / float(head_dim);
        if (kind == layer) {
            const float mean = tree_sum(row) * share;
            for (float& x : row) {
                x -= mean;
            }
        }
        std::vector<float> squares;
        for (const float x : row) {
            squares.push_back(x * x);
        }
        float square = tree_sum(squares) * share;
        if (kind == layer) {
            const float left = tree_sum(row) * share;
            for (float& x : row) {
                x -= left;
            }
            square = std::max(square - left * left, 0.0f);
        }
        const float root = 1 / std::sqrt(square + 1e-6f);
        for (std::uint64_t c = 0; c < head_dim; ++c) {
            row[c] = row[c] * root * (float(steps.norm.weight[c]) + 1);
            row[c] += kind == layer ? float(steps.norm.bias[c]) : 0;
        }
    };
    for (std::size_t row = 0; row < 12; ++row) {
        std::vector<float> x;
        for (std::uint64_t c = 0; c < head_dim; ++c) {
            made.input.push_back(normal(random));
            x.push_back(made.input.back() + float(steps.bias[c]));
        }
        if (!after) {
            norm(x);
        }
        for (std::uint64_t j = 0; j < head_dim / 2; ++j) {
            const CosSin turn = exact_cos_sin(made.operation.positions[row / 3],
                                              made.operation.inv_freq[j]);
            const auto c = float(turn.cos), s = float(turn.sin);
            const float x0 = x[j], x1 = x[j + head_dim / 2];
            x[j] = x0 * c - x1 * s;
            x[j + head_dim / 2] = x0 * s + x1 * c;
        }
        if (after) {
            norm(x);
        }
        for (const float y : x) {
            made.output.push_back(y * float(steps.scale));
        }
    }
    return made;
}

OpsVerdict judged(const Made& made) {
    return compare(made.tensor, made.tensor, made.operation, made.steps, 2.5, made.input.data(),
                   made.output.data());
}

}  // namespace

TEST_CASE("ops: f32 arithmetic keeps the bound, and comes close enough to test it") {
    for (const NormKind kind : {rms, layer}) {
        for (const bool after : {false, true}) {
            double largest = 0;
            for (std::uint64_t seed = 0; seed < 20; ++seed) {
                const OpsVerdict verdict = judged(
                    in_floats(seed, kind, after, seed % 2 == 0 ? 64 : 80));
                CAPTURE(verdict.worst);
                REQUIRE(verdict.right());
                REQUIRE(verdict.elements == verdict.within);
                largest = std::max(largest, verdict.largest_share);
            }
            CHECK(largest > 0.1);
            CHECK(largest <= 1);
        }
    }
}

TEST_CASE("ops: the usual mistakes break the bound") {
    const Made right = in_floats(1, rms, false, 64);
    const auto broken = [&](auto change) {
        Made made = right;
        change(made);
        return !judged(made).right();
    };
    CHECK_FALSE(broken([](Made&) {}));
    CHECK(broken([](Made& made) { made.steps.norm.after = true; }));
    CHECK(broken([](Made& made) { made.steps.norm.weight_offset = 0; }));
    CHECK(broken([](Made& made) { made.steps.norm.over_token = true; }));
    CHECK(broken([](Made& made) { made.steps.norm.eps = 1e-3; }));
    CHECK(broken([](Made& made) { made.steps.bias.clear(); }));
    CHECK(broken([](Made& made) {
        made.steps.norm.reciprocal_root = [](long double square, std::uint64_t n) {
            return 1 / std::sqrt(square * static_cast<long double>(n) + 1e-6L);
        };
    }));
}

TEST_CASE("ops: a cache receives the rows that its slots name") {
    const Tensor in = packed(2, 1, 2);
    Tensor out = in;
    out.cache = Cache{
        .slot_mapping = {1, -1}, .pages = 2, .page_size = 1, .page_stride = 2, .row_stride = 2};
    const std::vector<float> input = {1, 2, 3, 4}, output = {7, 7, 2, 4};
    const OpsVerdict verdict = compare(in, out, no_turn(2), {.scale = 2}, 3, input.data(),
                                       output.data());
    CHECK(verdict.right());
    CHECK(verdict.elements == 2);
}
