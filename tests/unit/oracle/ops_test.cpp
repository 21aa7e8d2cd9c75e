// SPDX-License-Identifier: MIT
// The oracle of the ops: an error bound that f32 arithmetic keeps and mistakes break. Its values
// are those of PyTorch in tests/data/cases/finish_*.
#include "verify/oracle/ops.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <random>

using namespace vkrope::oracle;

namespace {

/// [batch 1, tokens, heads, head_dim], packed.
Tensor packed(std::uint64_t tokens, std::uint64_t heads, std::uint64_t head_dim) {
    return {.type = Type::f32,
            .tokens = tokens,
            .heads = heads,
            .head_dim = head_dim,
            .batch_stride = tokens * heads * head_dim,
            .token_stride = heads * head_dim,
            .head_stride = head_dim};
}

Operation no_turn(std::uint64_t tokens) {
    Operation operation;
    operation.positions.assign(tokens, 0);
    return operation;
}

constexpr auto rms = NormKind::rms, layer = NormKind::layer;

}  // namespace

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

TEST_CASE("ops: a NaN stays one through a clip") {
    const Tensor tensor = packed(1, 1, 2);
    const std::vector<float> input = {NAN, 7}, right = {NAN, 2}, wrong = {2, 2};
    const auto verdict = [&](const std::vector<float>& output) {
        return compare(tensor, tensor, no_turn(1), {.clip = 2}, 3, input.data(), output.data());
    };
    CHECK(verdict(right).right());
    CHECK_FALSE(verdict(wrong).right());
}

TEST_CASE("ops: the wrong size of a parameter is an error") {
    const Tensor tensor = packed(1, 2, 4);
    const std::vector<float> input(8);
    for (const Ops& steps : {Ops{.bias = {1, 2}}, Ops{.scale_tokens = {1, 2}},
                             Ops{.norm = {.kind = rms, .weight = {1}}}}) {
        CHECK_THROWS_AS(compare(tensor, tensor, no_turn(1), steps, 3, input.data(), input.data()),
                        std::invalid_argument);
    }
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
