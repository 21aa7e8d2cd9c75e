// SPDX-License-Identifier: MIT
// `vkrope check` names the mistakes of engines in the steps around the rotation. The engine here is
// a loop of its own in double, and every mistake of the steps is one change to it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>

#include "check/judge.hpp"
#include "verify/oracle/element.hpp"

using namespace vkrope;
using namespace vkrope::tools;
using oracle::Type;
using Kind = oracle::NormKind;

namespace {

constexpr std::size_t tokens = 7, heads = 3, head_dim = 16, pairs = 4, offset = 2,
                      row_count = tokens * heads, count = row_count * head_dim;
constexpr double eps = 0.03, clip = 0.9, scale = 0.125;

using Numbers = std::vector<double>;

/// Odd multiples of 1/256 between -1 and 1, which bf16 has, too.
Numbers numbers_of(std::size_t size, std::uint32_t state) {
    Numbers numbers(size);
    for (double& x : numbers) {
        state = state * 1664525 + 1013904223;
        x = (2 * (double(state >> 24) - 128) + 1) / 256;
    }
    return numbers;
}

const Numbers input = numbers_of(count, 1), bias = numbers_of(heads * head_dim, 2),
              weight = numbers_of(head_dim, 3), norm_bias = numbers_of(head_dim, 4),
              second_weight = numbers_of(head_dim, 6), factors = numbers_of(tokens, 5),
              inv_freq = {0.9, 0.25, 0.03, 0.0007};

/// What an engine does with every row. A norm over a token spans `heads` rows.
struct Engine {
    Type type = Type::f32;
    bool adds_bias = false;
    Kind norm = Kind::none;
    bool after = false, over_token = false;
    std::function<double(double square, double n)> root = [](double square, double) {
        return 1 / std::sqrt(square + eps);
    };
    bool weighs = false;
    double weight_offset = 0;
    std::size_t first_set_tokens = tokens;
    bool exchanges_sets = false;
    bool rounds_before_weight = false;
    bool adds_norm_bias = false;
    bool clips = false, rotates = true, scales = false;
    double turn_factor = 1;
    std::function<double(double)> table = [](double x) { return x; };  // of cos and sin
    bool stays = false;  // at the position of the first token
    double first_position = 5, last_frequency = inv_freq[pairs - 1];

    double rounded(double x) const {
        return oracle::widen(type, oracle::narrow(type, static_cast<long double>(x)));
    }

    void normalise(Numbers& x, std::size_t first, std::size_t n) const {
        double mean = 0, square = 0;
        for (std::size_t i = first; norm == Kind::layer && i < first + n; ++i) {
            mean += x[i] / double(n);
        }
        for (std::size_t i = first; i < first + n; ++i) {
            square += (x[i] - mean) * (x[i] - mean) / double(n);
        }
        for (std::size_t i = first; i < first + n; ++i) {
            x[i] = (x[i] - mean) * root(square, double(n));
            x[i] = rounds_before_weight ? rounded(x[i]) : x[i];
            const bool second = (i / (heads * head_dim) >= first_set_tokens) != exchanges_sets;
            const Numbers& weights = second ? second_weight : weight;
            x[i] *= weighs ? weights[i % head_dim] + weight_offset : 1;
            x[i] = rounds_before_weight ? rounded(x[i]) : x[i];
            x[i] += adds_norm_bias ? norm_bias[i % head_dim] : 0;
        }
    }

    void normalise_all(Numbers& x) const {
        const std::size_t n = over_token ? heads * head_dim : head_dim;
        for (std::size_t first = 0; norm != Kind::none && first < count; first += n) {
            normalise(x, first, n);
        }
    }

    Numbers run() const {
        Numbers x = input;
        for (std::size_t i = 0; adds_bias && i < count; ++i) {
            x[i] += bias[i % (heads * head_dim)];
        }
        if (!after) {
            normalise_all(x);
        }
        for (double& channel : x) {
            channel = clips ? std::clamp(channel, -clip, clip) : channel;
        }
        for (std::size_t row = 0; rotates && row < row_count; ++row) {
            for (std::size_t j = 0; j < pairs; ++j) {
                double &x0 = x[row * head_dim + offset + j], &x1 = (&x0)[pairs];
                const double angle = ((stays ? 0 : double(row / heads)) + first_position) *
                                     (j + 1 < pairs ? inv_freq[j] : last_frequency);
                const double cos = table(std::cos(angle)), sin = table(std::sin(angle)),
                             y0 = x0 * cos - x1 * sin;
                x1 = x0 * sin + x1 * cos;
                x0 = turn_factor * y0;
                x1 *= turn_factor;
            }
        }
        if (after) {
            normalise_all(x);
        }
        for (std::size_t i = 0; scales && i < count; ++i) {
            x[i] *= scale * factors[i / (heads * head_dim)];
        }
        return x;
    }
};

std::vector<std::byte> stored(const Numbers& numbers, Type type) {
    const std::size_t size = type == Type::f32 ? 4 : 2;
    std::vector<std::byte> bytes(numbers.size() * size);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::uint32_t bits = oracle::narrow(type, static_cast<long double>(numbers[i]));
        std::memcpy(bytes.data() + i * size, &bits, size);
    }
    return bytes;
}

oracle::Ops definition_of(const Engine& right) {
    oracle::Ops steps;
    steps.bias = right.adds_bias ? bias : Numbers{};
    steps.norm.kind = right.norm;
    steps.norm.over_token = right.over_token;
    steps.norm.after = right.after;
    steps.norm.eps = eps;
    steps.norm.weight = right.weighs ? weight : Numbers{};
    steps.norm.weight_offset = right.weight_offset;
    steps.norm.bias = right.adds_norm_bias ? norm_bias : Numbers{};
    if (right.first_set_tokens < tokens) {
        steps.second = {.from_token = right.first_set_tokens,
                        .bias = steps.bias,
                        .weight = second_weight,
                        .norm_bias = steps.norm.bias};
    }
    steps.clip = right.clips ? clip : 0;
    steps.scale = right.scales ? scale : 1;
    steps.scale_tokens = right.scales ? factors : Numbers{};
    return steps;
}

/// What is said of an engine, where another one is right.
Judgement judged(const Engine& right, const Engine& engine) {
    const std::vector<std::byte> in = stored(input, right.type),
                                 out = stored(engine.run(), right.type);
    Observation seen;
    seen.with_steps = true;
    seen.right.steps = definition_of(right);
    seen.right.in = {.type = right.type,
                     .batch = 1,
                     .tokens = tokens,
                     .heads = heads,
                     .head_dim = head_dim,
                     .batch_stride = count,
                     .token_stride = heads * head_dim,
                     .head_stride = head_dim};
    seen.right.out = seen.right.in;
    seen.input = in.data();
    seen.output = out.data();
    seen.right.operation.inv_freq = inv_freq;
    seen.right.operation.rotary_offset = offset;
    for (std::size_t t = 0; t < tokens; ++t) {
        seen.right.operation.positions.push_back(std::int64_t(t + 5));
    }
    if (!right.rotates) {
        seen.rotated = seen.right;
        seen.right.operation.inv_freq.clear();
    }
    return judge(seen, {});
}

using Change = std::function<void(Engine&)>;

/// The right engine passes, one with the change is named, and nothing else explains it.
void check_named(const std::string& mistake, const Engine& right, const Change& change) {
    CAPTURE(mistake);
    const Judgement passes = judged(right, right);
    CHECK(passes.outcome == Outcome::pass);
    CHECK(passes.right.share_within == 1);
    Engine engine = right;
    change(engine);
    const Judgement judgement = judged(right, engine);
    REQUIRE(judgement.matches.size() > 1);
    CHECK(judgement.outcome == Outcome::mistake);
    CHECK(judgement.matches[0].mistake == mistake);
    CHECK(judgement.matches[0].explains);
    CHECK(!judgement.matches[1].explains);
    CHECK(judgement.right.share_within < 1);
}

const Change turn_around = [](Engine& e) { e.after = !e.after; };
const Change span_otherwise = [](Engine& e) { e.over_token = !e.over_token; };
const Change no_norm = [](Engine& e) { e.norm = Kind::none; };
const Change no_weight = [](Engine& e) {
    e.weighs = false;
    e.weight_offset = 0;
};
const Change eps_outside = [](Engine& e) {
    e.root = [](double square, double) { return 1 / (std::sqrt(square) + eps); };
};
const Change sum_for_mean = [](Engine& e) {
    e.root = [](double square, double n) { return 1 / std::sqrt(square * n + eps); };
};
const Change no_eps = [](Engine& e) {
    e.root = [](double square, double) { return 1 / std::sqrt(square); };
};

}  // namespace

TEST_CASE("the norm") {
    const Engine rms = {.norm = Kind::rms, .weighs = true};
    Engine layer = rms, token = rms, after = rms;
    layer.norm = Kind::layer;
    layer.adds_norm_bias = true;
    token.over_token = true;
    after.after = true;
    for (const Engine& right : {rms, layer, token, after}) {
        CAPTURE(int(right.norm));
        CAPTURE(right.over_token);
        CAPTURE(right.after);
        check_named("norm_missing", right, [](Engine& e) {
            no_norm(e);
            e.after = false;
        });
        check_named("eps_missing", right, no_eps);
        check_named("eps_outside_root", right, eps_outside);
        check_named("sum_instead_of_mean", right, sum_for_mean);
        check_named(right.over_token ? "norm_of_each_head" : "norm_of_all_heads", right,
                    span_otherwise);
        check_named("weight_missing", right, no_weight);
        check_named(right.after ? "norm_before_rotation" : "norm_after_rotation", right,
                    turn_around);
    }
    check_named("layer_norm_instead_of_rms", rms, [](Engine& e) { e.norm = Kind::layer; });
    check_named("rms_instead_of_layer_norm", layer, [](Engine& e) { e.norm = Kind::rms; });
    check_named("norm_bias_missing", layer, [](Engine& e) { e.adds_norm_bias = false; });
    check_named("one_plus_weight", rms, [](Engine& e) { e.weight_offset = 1; });
    Engine gemma = rms;
    gemma.weight_offset = 1;
    check_named("one_plus_weight_forgotten", gemma, [](Engine& e) { e.weight_offset = 0; });
    check_named("weight_missing", gemma, no_weight);
}

TEST_CASE("two sets of weights") {
    Engine right = {.norm = Kind::rms, .weighs = true};
    right.first_set_tokens = 3;
    check_named("second_set_missing", right, [](Engine& e) { e.first_set_tokens = tokens; });
    check_named("sets_exchanged", right, [](Engine& e) { e.exchanges_sets = true; });
    check_named("weight_missing", right, no_weight);
}

TEST_CASE("the norm, in types of 16 bits") {
    for (const Type type : {Type::f16, Type::bf16}) {
        for (const bool after : {false, true}) {
            CAPTURE(int(type));
            CAPTURE(after);
            const Engine right = {.type = type, .norm = Kind::rms, .after = after, .weighs = true};
            check_named("rounded_before_weight", right,
                        [](Engine& e) { e.rounds_before_weight = true; });
            check_named("eps_outside_root", right, eps_outside);
            check_named("sum_instead_of_mean", right, sum_for_mean);
        }
    }
}

TEST_CASE("bias, clip and scale, with a norm and without") {
    const Engine plain = {.adds_bias = true, .clips = true, .scales = true};
    Engine normed = plain;
    normed.norm = Kind::rms;
    for (const Engine& right : {plain, normed}) {
        CAPTURE(int(right.norm));
        check_named("bias_missing", right, [](Engine& e) { e.adds_bias = false; });
        check_named("clip_missing", right, [](Engine& e) { e.clips = false; });
        check_named("scale_missing", right, [](Engine& e) { e.scales = false; });
    }
}

TEST_CASE("a value that is read from the output, around norm and scale") {
    for (const Kind norm : {Kind::none, Kind::rms, Kind::layer}) {
        const Engine right = {.norm = norm, .scales = true};
        for (const double first : {105.0, 2005.0}) {
            check_named("position_offset", right, [first](Engine& e) { e.first_position = first; });
        }
        check_named("another_factor", right, [](Engine& e) { e.turn_factor = 1.375; });
    }
}

TEST_CASE("rounded tables, and one position for all tokens, around a norm") {
    const Engine right = {.norm = Kind::rms, .scales = true};
    for (const Type type : {Type::bf16, Type::f16}) {
        check_named("tables_in_16_bits", right, [type](Engine& e) {
            e.table = [type](double x) {
                return oracle::widen(type, oracle::narrow(type, static_cast<long double>(x)));
            };
        });
    }
    check_named("positions_of_first_token", right, [](Engine& e) { e.stays = true; });
    check_named("one_position", right, [](Engine& e) {
        e.stays = true;
        e.first_position = 105;
    });
}

TEST_CASE("errors that sit in a few pairs are no rounding") {
    const Engine right = {.norm = Kind::rms, .weighs = true};
    Engine slower = right;
    slower.last_frequency *= 1.5;
    const Judgement judgement = judged(right, slower);
    CHECK(judgement.right.largest_error < 0.01);
    CHECK(judgement.outcome == Outcome::unexplained);
    CHECK(judgement.odd_pairs == std::vector<std::size_t>{pairs - 1});
}

TEST_CASE("V") {
    const Engine right = {.norm = Kind::rms, .rotates = false};
    check_named("v_rotated", right, [](Engine& e) { e.rotates = true; });
    check_named("norm_missing", right, no_norm);
}

TEST_CASE("what is tried of the steps is what the tests above make") {
    const auto tried = [](const Engine& right) {
        std::set<std::string> names;
        for (const Match& match : judged(right, right).matches) {
            names.insert(match.mistake);
        }
        return names;
    };
    const Engine plain = {.type = Type::f16};
    Engine layer = plain, rms = plain, v = plain;
    layer.norm = Kind::layer;
    layer.adds_bias = layer.weighs = layer.adds_norm_bias = layer.clips = layer.scales = true;
    rms.norm = Kind::rms;
    rms.after = rms.over_token = rms.weighs = true;
    rms.weight_offset = 1;
    v.rotates = false;
    std::set<std::string> names = tried(layer);
    names.merge(tried(rms));
    names.merge(tried(v));
    std::string of_steps;
    for (const std::string& name : names) {
        of_steps += tried(plain).count(name) == 0 ? name + " " : "";
    }
    CHECK(of_steps ==
          "bias_missing clip_missing eps_missing eps_outside_root layer_norm_instead_of_rms "
          "norm_after_rotation norm_before_rotation norm_bias_missing norm_missing "
          "norm_of_all_heads norm_of_each_head one_plus_weight one_plus_weight_forgotten "
          "rms_instead_of_layer_norm rounded_before_weight scale_missing sum_instead_of_mean "
          "v_rotated weight_missing ");
}
