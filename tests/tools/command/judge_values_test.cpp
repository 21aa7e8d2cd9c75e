// SPDX-License-Identifier: MIT
// Mistakes of more than one form or value: scalings, windows of another width, offsets and factors
// of any size, layers without RoPE, and errors that sit in a few pairs.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "check/judge.hpp"
#include "judge_engine.hpp"

using namespace vkrope::tools;
using namespace vkrope;

namespace {

using Frequencies = std::vector<double>;

/// An output of the engine, where an engine with these frequencies and this factor is right.
Case judged_as(const Frequencies& right, double factor, const Engine& engine) {
    Case made(engine);
    made.seen.right.operation.inv_freq = right;
    made.seen.right.operation.rotary_offset = 0;
    made.seen.right.operation.attention_factor = factor;
    made.seen.other_offset = 0;
    made.seen.softmax_scale = 1;
    return made;
}

Engine turning_by(const Frequencies& inv_freq, double factor = 1) {
    return changed([&](Engine& e) {
        e.offset = 0;
        e.inv_freq = inv_freq;
        e.factor = factor;
    });
}

/// base^(-2j / width) for the first `number` pairs.
Frequencies of_width(double base, double width, std::size_t number) {
    return powers(base, 2 / width, number);
}

Frequencies with_zeros(Frequencies inv_freq, std::size_t number) {
    inv_freq.resize(number);
    return inv_freq;
}

Frequencies times(Frequencies inv_freq, double number) {
    for (double& frequency : inv_freq) {
        frequency *= number;
    }
    return inv_freq;
}

/// YaRN's parameters, and its shares of the slow frequency in each pair (arXiv:2309.00071).
struct Yarn {
    double base, factor, length;
    bool rounded;

    static constexpr std::size_t pairs = 10;
    Frequencies unscaled() const { return of_width(base, 2 * pairs, pairs); }

    double share(std::size_t j) const {
        const auto pair_of = [&](double turns) {
            return 2 * pairs * std::log(length / (turns * 2 * std::acos(-1.0))) /
                   (2 * std::log(base));
        };
        const double low = rounded ? std::floor(pair_of(32)) : pair_of(32),
                     high = rounded ? std::ceil(pair_of(1)) : pair_of(1);
        return std::min(1.0, std::max(0.0, (double(j) - low) / (high - low)));
    }

    Frequencies inv_freq() const {
        Frequencies frequencies = unscaled();
        for (std::size_t j = 0; j < pairs; ++j) {
            frequencies[j] = frequencies[j] / factor * share(j) + frequencies[j] * (1 - share(j));
        }
        return frequencies;
    }

    Case made(const Engine& engine, double attention_factor = 1) const {
        Case judged = judged_as(inv_freq(), attention_factor, engine);
        judged.seen.base = base;
        judged.seen.yarn = {{.factor = 3, .original_max_position_embeddings = length},
                            {.factor = factor, .original_max_position_embeddings = 2 * length},
                            {.factor = factor, .original_max_position_embeddings = length}};
        return judged;
    }
};

const Yarn yarns[] = {{500, 16, 4096, true},
                      {500, 16, 4096, false},
                      {10000, 40, 4096, true},
                      {10000, 40, 4096, false},
                      {150000, 32, 8192, false}};

RopeParams rotation_with(const Frequencies& inv_freq, double factor) {
    RopeParams rotation;
    rotation.inv_freq = inv_freq;
    rotation.rotary_dim = std::uint32_t(2 * inv_freq.size());
    rotation.attention_factor = factor;
    return rotation;
}

}  // namespace

TEST_CASE("YaRN: the range of pairs, and the factor in the power") {
    for (const Yarn& yarn : yarns) {
        CAPTURE(yarn.base);
        CAPTURE(yarn.rounded);
        Yarn otherwise = yarn;
        otherwise.rounded = !yarn.rounded;
        check_named(yarn.rounded ? "yarn_range_unrounded" : "yarn_range_rounded",
                    yarn.made(turning_by(otherwise.inv_freq())));
        Frequencies in_power = yarn.unscaled();
        const Frequencies slow = of_width(yarn.factor * yarn.base, 2 * Yarn::pairs, Yarn::pairs);
        for (std::size_t j = 0; j < Yarn::pairs; ++j) {
            in_power[j] = slow[j] * yarn.share(j) + in_power[j] * (1 - yarn.share(j));
        }
        check_named("factor_in_power", yarn.made(turning_by(in_power)));
        CHECK(yarn.made(turning_by(yarn.inv_freq())).judged().outcome == Outcome::pass);
    }
    // Without scaling of the fast pairs, as linear scaling has it.
    Case linear = judged_as(times(of_width(500, 8, 4), 0.25), 1, turning_by(of_width(2000, 8, 4)));
    check_named("factor_in_power", linear);
}

TEST_CASE("an attention factor that the model does not have, or another one") {
    for (const Yarn& yarn : yarns) {
        const double magnitude = 0.1 * std::log(yarn.factor) + 1;
        check_named("yarn_magnitude_applied", yarn.made(turning_by(yarn.inv_freq(), magnitude)));
        check_named("attention_factor_missing", yarn.made(turning_by(yarn.inv_freq()), magnitude));
        for (const double factor : {0.088388347648, 0.93, 1.07, 1.5}) {
            Case made = yarn.made(turning_by(yarn.inv_freq(), factor), 1.25);
            check_named("another_factor", made);
            CHECK(made.judged().matches[0].meaning.find("not 1.25") != std::string::npos);
        }
    }
    Case made = judged_as(of_width(500, 8, 4), 1, turning_by(of_width(500, 8, 4), std::sqrt(1.7)));
    made.seen.softmax_scale = 1.7;
    check_named("softmax_root_applied", made);
}

TEST_CASE("proportional scaling and ordinary partial rotation, each for the other") {
    for (const double base : {500.0, 1000000.0}) {
        CAPTURE(base);
        const auto judged = [base](const Frequencies& right, const Frequencies& made) {
            Case wide = judged_as(right, 1, turning_by(made));
            wide.seen.base = base;
            return wide;
        };
        const Frequencies partial = of_width(base, rotary_dim, pairs),
                          of_head = of_width(base, head_dim, pairs);
        constexpr std::size_t all = head_dim / 2;
        check_named("proportional_instead_of_partial", judged(partial, with_zeros(of_head, all)));
        check_named("proportional_instead_of_partial",
                    judged(times(partial, 0.25), with_zeros(times(of_head, 0.25), all)));
        check_named("pair_distance_of_head_dim", judged(partial, with_zeros(partial, all)));
        check_named("exponent_of_head_dim", judged(partial, of_head));
        for (const double factor : {1.0, 8.0}) {
            const Frequencies proportional = with_zeros(times(of_head, 1 / factor), all);
            check_named("partial_instead_of_proportional",
                        judged(proportional, times(partial, 1 / factor)));
            check_named("pair_distance_of_partial",
                        judged(proportional, times(of_head, 1 / factor)));
            check_named("exponent_of_partial",
                        judged(proportional, with_zeros(times(partial, 1 / factor), all)));
        }
    }
}

TEST_CASE("half of the window") {
    const Frequencies right = {0.9, 0.25, 0.03, 0.0007};
    check_named("half_of_window", judged_as(right, 1, turning_by({0.9, 0.03})));
    check_named("half_of_window_and_frequencies", judged_as(right, 1, turning_by({0.9, 0.25})));
    Engine second = turning_by({0.9, 0.03});
    second.offset = 4;
    check_named("second_half_of_window", judged_as(right, 1, second));
    check_named("second_half_of_pairs", judged_as(right, 1, turning_by({0, 0, 0.03, 0.0007})));
    check_named("half_of_pairs", judged_as(right, 1, turning_by({0.9, 0.25, 0, 0})));
    Case interleaved = judged_as(right, 1, changed([](Engine& e) {
                                     swap_pairing(e);
                                     e.offset = 0;
                                     e.inv_freq = {0.9, 0.25};
                                     e.factor = 1;
                                 }));
    interleaved.seen.right.operation.interleaved = true;
    check_named("half_of_window_and_frequencies", interleaved);
}

TEST_CASE("a constant offset of all positions, of any value") {
    for (const double offset : {2.0, -3.0, 17.0, 5588.0, -100000.0, 1000000.0}) {
        CAPTURE(offset);
        const auto moved = [offset](Engine& e) {
            e.position = [offset](auto b, auto t, auto) {
                return 5 + 7 * double(b) + double(t) + offset;
            };
        };
        const std::string number = std::to_string(std::int64_t(std::fabs(offset)));
        const auto has_number = [&](const Case& made) {
            const Match match = Case(made).judged().matches.front();
            CAPTURE(match.meaning);
            CHECK(match.meaning.find(number + (offset > 0 ? " too large" : " too small")) !=
                  std::string::npos);
        };
        const Case made(changed(moved));
        check_named("position_offset", made);
        has_number(made);
        Case back(changed([&](Engine& e) { moved(e), e.direction = -1; }));
        back.seen.right.operation.inverse = true;
        check_named("position_offset", back);
        has_number(back);
        Case swapped(changed([&](Engine& e) { moved(e), swap_pairing(e); }));
        const Match two = swapped.judged().matches.front();
        CHECK(two.mistake == "swapped_pairing + position_offset");
        CHECK(two.explains);
        // In 16 bits the engine is near, and its offset is as clear.
        Case rough(changed([&](Engine& e) { moved(e), e.rounded = to_bf16; }));
        CHECK(rough.judged().outcome == Outcome::mistake);
        CHECK(rough.judged().matches.front().mistake == "position_offset");
        has_number(rough);
    }
}

TEST_CASE("no offset and no factor is read from an output that has neither") {
    for (const auto& change :
         {+[](Engine& e) { e.rounded = to_bf16; }, +[](Engine& e) { e.direction = -1; },
          +[](Engine& e) {
              e.inv_freq = {0.8, 0.3, 0.02, 0.003};
          },
          +[](Engine& e) {
              e.position = [](auto, auto t, auto h) { return double(t * t + 3 * h); };
          }}) {
        const Judgement judgement = Case(changed(change)).judged();
        CHECK(!find(judgement, "position_offset"));
        CHECK(!find(judgement, "another_factor"));
    }
}

TEST_CASE("a layer without RoPE is right as it is, and one that was rotated is named") {
    const Frequencies inv_freq = {0.9, 0.25, 0.03, 0.0007};
    const auto made = [&](const Engine& engine) {
        Case layer(engine);
        layer.seen.right.operation.inv_freq.clear();
        layer.seen.right.operation.attention_factor = 1;
        layer.seen.others = {
            {"other_layer_type", "of the sliding layers", rotation_with({0.5, 0.1}, 1)},
            {"other_layer_type", "of the full layers", rotation_with(inv_freq, 1.25)}};
        return layer;
    };
    const Judgement still = made(changed([](Engine& e) { e.rotates = false; })).judged();
    CHECK(still.outcome == Outcome::pass);
    for (const Match& match : still.matches) {
        CHECK(!match.explains);
    }
    const Judgement rotated = made(Engine()).judged();
    CHECK(rotated.outcome == Outcome::mistake);
    CHECK(rotated.matches.front().mistake == "rotated_without_rope");
    CHECK(rotated.matches.front().meaning.find("of the full layers") != std::string::npos);
    CHECK(rotated.matches.front().explains);
    CHECK(!rotated.matches[1].explains);
    Case swapped = made(changed(swap_pairing));
    CHECK(swapped.judged().matches.front().mistake == "rotated_without_rope + swapped_pairing");
    Case offset = made(changed([](Engine& e) {
        e.position = [](auto b, auto t, auto) { return 105 + 7 * double(b) + double(t); };
    }));
    CHECK(offset.judged().matches.front().mistake == "rotated_without_rope + position_offset");
    Case spoilt = made(changed([](Engine& e) { e.rotates = false; }));
    spoilt.out[place(1, 2, 0, 3)] += 1;
    CHECK(spoilt.judged().outcome == Outcome::unexplained);
}

TEST_CASE("another layer type with another width, factor or window") {
    for (const RopeParams& other :
         {rotation_with({0.9, 0.1}, 1), rotation_with({0.7, 0.2, 0.1, 0.05, 0.01}, 1.5)}) {
        Case made(changed([&](Engine& e) {
            e.inv_freq = other.inv_freq;
            e.factor = other.attention_factor;
        }));
        made.seen.others = {{"other_layer_type", "those of other layers", other}};
        check_named("other_layer_type", made);
    }
    // One that is too wide for the row is left out.
    Case made{Engine()};
    made.seen.others = {{"other_layer_type", "wide", rotation_with(Frequencies(head_dim, 0.1), 1)}};
    CHECK(made.judged().outcome == Outcome::pass);
    CHECK(!find(made.judged(), "other_layer_type"));
}

TEST_CASE("errors that sit in a few pairs are no rounding, however small") {
    struct Odd {
        std::size_t pair;
        double share;  // by which its frequency is wrong
    };
    for (const Odd& odd : {Odd{3, 0.02}, Odd{3, 0.3}, Odd{2, 2e-3}, Odd{0, 2e-5}}) {
        CAPTURE(odd.pair);
        CAPTURE(odd.share);
        const Engine engine = changed([&](Engine& e) { e.inv_freq[odd.pair] *= 1 + odd.share; });
        Case made(engine);
        const Judgement judgement = made.judged();
        CHECK(judgement.right.error_u() * 0x1p-24 < made.limits.tolerance);
        CHECK(judgement.outcome == Outcome::unexplained);
        CHECK(judgement.odd_pairs == std::vector<std::size_t>{odd.pair});
        CHECK(judgement.pairs == pairs);
        CHECK(!judgement.matches.front().precision);
        made.limits.accepts_close = true;
        CHECK(made.judged().outcome == Outcome::unexplained);
    }
    // The right operation in other arithmetic has errors wherever the angles are large.
    for (const auto& change :
         {+[](Engine& e) { e.rounded = to_bf16; },
          +[](Engine& e) { e.rounded = [](double x) { return std::round(x * 0x1p14) / 0x1p14; }; },
          +[](Engine& e) { e.angle = [](double p, double f) { return p * f * (1 + 0x1p-18); }; }}) {
        const Judgement judgement = Case(changed(change)).judged();
        CHECK(judgement.odd_pairs.empty());
        CHECK(judgement.outcome == Outcome::close);
    }
}

TEST_CASE("a few pairs whose errors the others do not have are no rounding, at any position") {
    const std::vector<double> right = powers(5e5, 0.1, 10);
    const auto made_at = [&](double first, const std::vector<double>& inv_freq, bool float32) {
        const auto at = [first](auto b, auto t, auto) { return first + double((t + b) % 8); };
        Case made(changed([&](Engine& e) {
            e.position = at;
            e.inv_freq = inv_freq;
            if (float32) {
                e.angle = [](double position, double frequency) -> double {
                    return float(position) * float(frequency);
                };
            }
        }));
        made.seen.right.operation.inv_freq = right;
        for (std::uint64_t row = 0; row < batch * tokens; ++row) {
            made.seen.right.operation.positions[row] = std::int64_t(
                at(row / tokens, row % tokens, 0));
        }
        return made;
    };
    struct Odd {
        double first, share;  // by which the frequencies are wrong
        std::vector<std::size_t> odd;
        bool float32 = false;
    };
    for (const Odd& each : std::vector<Odd>{{4096, 1e-6, {0}},
                                            {4096, 1e-6, {0, 1}},
                                            {20000, 1e-7, {1}},
                                            {4096, 1e-4, {4}, true},
                                            {4096, 0.3, {9}, true},
                                            {0, -0.3, {9}}}) {
        CAPTURE(each.first);
        CAPTURE(each.odd.back());
        std::vector<double> inv_freq = right;
        for (const std::size_t pair : each.odd) {
            inv_freq[pair] *= 1 + each.share;
        }
        Case made = made_at(each.first, inv_freq, each.float32);
        made.limits.accepts_close = true;
        const Judgement judgement = made.judged();
        CHECK(judgement.right.error_u() * 0x1p-24 < made.limits.tolerance);
        CHECK(judgement.outcome == Outcome::unexplained);
        CHECK(judgement.odd_pairs == each.odd);
    }
    // All pairs of an engine with float32 angles err, in proportion to their angles.
    for (const double first : {20.0, 100.0, 1000.0, 4096.0, 20000.0}) {
        CAPTURE(first);
        Case made = made_at(first, right, true);
        made.limits.accepts_close = true;
        const Judgement judgement = made.judged();
        CHECK(judgement.odd_pairs.empty());
        CHECK(judgement.outcome <= Outcome::close);
    }
}

TEST_CASE("an offset of positions where most pairs never turn") {
    std::vector<double> inv_freq = powers(1e6, 0.1, 10);
    std::fill(inv_freq.begin() + 3, inv_freq.end(), 0.0);
    for (const double offset : {2.0, 5588.0, -3.0}) {
        Case made(changed([&](Engine& e) {
            e.inv_freq = inv_freq;
            e.position = [offset](auto b, auto t, auto) {
                return 5 + offset + 7 * double(b) + double(t);
            };
        }));
        made.seen.right.operation.inv_freq = inv_freq;
        check_named("position_offset", made);
    }
}
