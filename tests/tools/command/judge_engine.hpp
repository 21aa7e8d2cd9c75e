// SPDX-License-Identifier: MIT
// The engine whose output the tests of `vkrope check` pass to it: the oracle, with changes that a
// test makes to the operation.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "check/compare.hpp"
#include "check/judge.hpp"
#include "verify/oracle/rows.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::tools {

inline constexpr std::uint64_t batch = 2, tokens = 9, heads = 3, head_dim = 24, rotary_dim = 8,
                               pairs = rotary_dim / 2;
inline constexpr std::uint64_t q_offset = 4, k_offset = 10;
inline constexpr std::size_t count = batch * tokens * heads * head_dim;

using Frequencies = std::vector<double>;
inline const Frequencies usual_frequencies = {0.9, 0.25, 0.03, 0.0007};
inline constexpr double usual_factor = 1.25;

inline std::size_t place(std::uint64_t b, std::uint64_t t, std::uint64_t h, std::uint64_t channel) {
    return ((b * tokens + t) * heads + h) * head_dim + channel;
}

// Returns the position of a token on an axis.
using At = std::function<std::int64_t(std::int64_t b, std::int64_t t, std::uint32_t axis)>;
inline At from(std::int64_t first) {
    return [first](auto b, auto t, auto) { return first + 7 * b + t; };
}

// Changes the definition to the operation that an engine computes.
using Change = std::function<void(Hypothesis&)>;
// Changes the definition and the facts about the model.
using Setup = std::function<void(Observation&)>;

inline Change frequencies(const Frequencies& inv_freq) {
    return [inv_freq](Hypothesis& e) { e.operation.inv_freq = inv_freq; };
}
inline Change factor(double factor) {
    return [factor](Hypothesis& e) { e.operation.attention_factor = factor; };
}
inline Change offset(std::uint64_t channel) {
    return [channel](Hypothesis& e) { e.operation.rotary_offset = channel; };
}
inline Change positions(const At& at) {
    return [at](Hypothesis& e) {
        std::uint32_t axis = 0;
        each_axis(
            e,
            [&](Positions& all) {
                all.clear();
                for (std::uint64_t row = 0; row < batch * tokens; ++row)
                    all.push_back(at(std::int64_t(row / tokens), std::int64_t(row % tokens), axis));
                ++axis;
            });
    };
}
inline Change moved(std::int64_t distance) {
    return [distance](Hypothesis& e) {
        each_axis(
            e,
            [&](Positions& all) {
                for (std::int64_t& position : all) position += distance;
            });
    };
}
// Makes a change that computes cos and sin of angle(position, inv_freq).
inline Change angles(const std::function<double(double position, double inv_freq)>& angle) {
    return [angle](Hypothesis& e) {
        e.operation.cos_sin = [angle, inv_freq = e.operation.inv_freq](std::int64_t position,
                                                                       std::size_t pair) {
            const long double turned = angle(double(position), inv_freq[pair]);
            return oracle::CosSin{std::cos(turned), std::sin(turned)};
        };
    };
}
inline double float32_product(double position, double inv_freq) {
    return float(position) * float(inv_freq);
}
inline void swap_pairing(Hypothesis& e) {
    e.operation.interleaved = !e.operation.interleaved;
}
inline void turn_back(Hypothesis& e) {
    e.operation.inverse = !e.operation.inverse;
}
inline void no_rotation(Hypothesis& e) {
    e.operation.inv_freq.clear();
}

inline Setup right(const Change& change) {
    return [change](Observation& seen) { change(seen.right); };
}

inline double rounded(oracle::Type type, double value) {
    return oracle::widen(type, oracle::narrow(type, value));
}

inline std::vector<float> some_numbers() {
    std::vector<float> numbers;
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < count; ++i) {
        state = state * 1664525 + 1013904223;
        numbers.push_back(float(std::int32_t(state)) * 0x1p-30f);  // magnitude below 2
    }
    return numbers;
}

inline std::vector<std::byte> stored(const std::vector<float>& numbers, oracle::Type type) {
    const std::size_t size = oracle::bytes_of(type);
    std::vector<std::byte> bytes(numbers.size() * size);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::uint32_t bits = oracle::narrow(type, numbers[i]);
        std::memcpy(bytes.data() + i * size, &bits, size);
    }
    return bytes;
}

// A definition, and an engine that computes the definition with changes.
struct Case {
    std::vector<float> in = some_numbers(), out;
    Observation seen;
    Limits limits;

    explicit Case(const std::vector<Change>& changes = {}, const std::vector<Setup>& setups = {}) {
        Hypothesis& right = seen.right;
        right.in = {.type = oracle::Type::f32,
                    .batch = batch,
                    .tokens = tokens,
                    .heads = heads,
                    .head_dim = head_dim,
                    .batch_stride = tokens * heads * head_dim,
                    .token_stride = heads * head_dim,
                    .head_stride = head_dim};
        right.out = right.in;
        right.operation.inv_freq = usual_frequencies;
        right.operation.attention_factor = usual_factor;
        right.operation.rotary_offset = q_offset;
        positions(from(5))(right);
        seen.base = 500;
        seen.softmax_scale = 1.7;
        seen.other_offset = k_offset;
        for (const Setup& setup : setups) setup(seen);
        for (float& x : in) x = float(rounded(right.in.type, x));
        out = run(changes);
    }

    Hypothesis engine(const std::vector<Change>& changes) const {
        Hypothesis engine = seen.right;
        for (const Change& change : changes) change(engine);
        return engine;
    }

    // Returns the output of the definition with these changes.
    std::vector<float> run(const std::vector<Change>& changes = {}) const {
        const Hypothesis made = engine(changes);
        const std::vector<std::byte> input = stored(in, made.in.type);
        Observation given = seen;
        given.input = input.data();
        std::vector<float> made_out(count);
        each_token(given, made, all_tokens(made),
                   [&](std::uint64_t b, std::uint64_t t, const auto& channels) {
                       for (std::uint64_t i = 0; i < channels.size(); ++i) {
                           const std::uint64_t h = i / head_dim;
                           made_out[oracle::row_of(made.out, {b, t, h, 0}) + i % head_dim] = float(
                               channels[i].value);
                       }
                   });
        return made_out;
    }

    // Returns the same output with each operation rounded by `round`.
    std::vector<float> run_rounded(const std::function<double(double)>& round,
                                   const std::vector<Change>& changes = {}) const {
        const oracle::Operation operation = engine(changes).operation;
        const std::vector<oracle::Pair> all = oracle::pairs_of(operation);
        std::vector<float> made_out = in;
        std::vector<oracle::CosSin> turns;
        for (std::uint64_t row = 0; row < batch * tokens * heads; ++row) {
            oracle::turn_to(operation, row / heads, turns);
            for (std::size_t j = 0; j < all.size(); ++j) {
                const double c = round(double(turns[j].cos)), s = round(double(turns[j].sin)),
                             x0 = in[row * head_dim + all[j].in[0]],
                             x1 = in[row * head_dim + all[j].in[1]];
                made_out[row * head_dim + all[j].out[0]] = float(
                    round(round(x0 * c) - round(x1 * s)));
                made_out[row * head_dim + all[j].out[1]] = float(
                    round(round(x0 * s) + round(x1 * c)));
            }
        }
        return made_out;
    }

    Judgement judged() {
        const std::vector<std::byte> input = stored(in, seen.right.in.type),
                                     output = stored(out, seen.right.out.type);
        seen.input = input.data();
        seen.output = output.data();
        return judge(seen, limits);
    }
};

inline Case rounded_case(oracle::Type type, const std::vector<Change>& changes = {},
                         const std::vector<Setup>& setups = {}) {
    Case made({}, setups);
    made.out = made.run_rounded([type](double x) { return rounded(type, x); }, changes);
    return made;
}

// Ten pairs: fewer than six do not show a position.
inline const Frequencies ten_frequencies = {1, 0.4, 0.15, 0.06, 0.02, 9e-3, 3e-3, 1e-3, 4e-4, 2e-4};

// Returns base^(-2j / width) for the first `number` pairs.
inline Frequencies powers_of(double base, double width, std::size_t number = pairs) {
    Frequencies inv_freq;
    for (std::size_t j = 0; j < number; ++j)
        inv_freq.push_back(std::pow(base, -2 / width * double(j)));
    return inv_freq;
}

inline Frequencies times(Frequencies inv_freq, double number) {
    for (double& frequency : inv_freq) frequency *= number;
    return inv_freq;
}

inline const Match* find(const Judgement& judgement, const char* name) {
    for (const Match& match : judgement.matches)
        if (match.mistake == name) return &match;
    return nullptr;
}

// Checks that the first match has this name and explains everything, and that no other match does.
inline Match check_named(const std::string& name, Case made) {
    CAPTURE(name);
    const Judgement judgement = made.judged();
    CHECK(judgement.outcome == Outcome::mistake);
    std::string all;
    for (const Match& match : judgement.matches) all += match.mistake + ": " + match.meaning + "\n";
    for (const std::string& finding : judgement.findings) all += "finding: " + finding + "\n";
    CAPTURE(all);
    REQUIRE(!judgement.matches.empty());
    Match first = judgement.matches.front();
    CHECK(first.mistake == name);
    CHECK(first.explains);
    CHECK(first.share_within == 1);
    CHECK(judgement.matches.size() == 1);
    CHECK(judgement.right.share_within < 1);
    CHECK(judgement.breach != "");
    if (!made.seen.with_ops && !made.seen.right.operation.inv_freq.empty())
        CHECK(judgement.right.error_u() > made.seen.right.bound_u);
    return first;
}

// Checks that a right output passes, explained only by mistakes that these numbers cannot show.
inline void check_right(Case made) {
    const Judgement judgement = made.judged();
    CHECK(judgement.outcome == Outcome::pass);
    CHECK(judgement.right.share_within == 1);
    CHECK(judgement.right.error_u() <= 1.0);  // rounded once
    CHECK(judgement.breach == "");
    for (const Match& match : judgement.matches) CHECK(match.mistake == "subnormals_flushed");
}

}  // namespace vkrope::tools
