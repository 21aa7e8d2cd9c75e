// SPDX-License-Identifier: MIT
// An engine for the tests of `vkrope check`: an independent loop in double that makes mistakes.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "check/judge.hpp"

namespace vkrope::tools {

inline constexpr std::uint64_t batch = 2, tokens = 9, heads = 3, head_dim = 24, rotary_dim = 8,
                               pairs = rotary_dim / 2;
inline constexpr std::uint64_t q_offset = 4, k_offset = 10;
inline constexpr std::size_t count = batch * tokens * heads * head_dim;

inline std::size_t place(std::uint64_t b, std::uint64_t t, std::uint64_t h, std::uint64_t channel) {
    return ((b * tokens + t) * heads + h) * head_dim + channel;
}

/// The operation of an engine on every row; correct by default.
struct Engine {
    bool interleaved = false, interleaved_out = false;
    double direction = 1, factor = 1.25;
    std::uint64_t offset = q_offset;
    std::vector<double> inv_freq = {0.9, 0.25, 0.03, 0.0007};
    std::function<double(std::uint64_t b, std::uint64_t t, std::uint64_t h)> position =
        [](auto b, auto t, auto) { return 5.0 + 7 * double(b) + double(t); };
    std::vector<std::uint32_t> axes = {};  // axis of each pair; empty: all pairs use `position`
    std::function<double(std::uint64_t b, std::uint64_t t, std::uint32_t axis)> on_axis;
    std::function<double(double place, double frequency)> angle =
        [](double place, double frequency) { return place * frequency; };
    std::function<double(double)> cos = [](double turned) { return std::cos(turned); };
    std::function<double(double)> sin = [](double turned) { return std::sin(turned); };
    std::function<double(double)> rounded = [](double value) {
        return value;
    };  // rounding after every operation
    bool rotates = true;

    std::vector<float> run(const std::vector<float>& in) const {
        std::vector<float> out = in;
        for (std::uint64_t row = 0; rotates && row < batch * tokens * heads; ++row) {
            const std::uint64_t b = row / heads / tokens, t = row / heads % tokens, h = row % heads;
            for (std::size_t j = 0; j < inv_freq.size(); ++j) {
                const auto at = [&](bool neighbours, std::size_t member) {
                    return place(
                        b, t, h,
                        offset + (neighbours ? 2 * j + member : j + member * inv_freq.size()));
                };
                const double turned = angle(
                    axes.empty() ? position(b, t, h) : on_axis(b, t, axes[j]), inv_freq[j]);
                const double c = rounded(factor * cos(turned)),
                             s = rounded(factor * direction * sin(turned));
                const double x0 = in[at(interleaved, 0)], x1 = in[at(interleaved, 1)];
                out[at(interleaved_out, 0)] = float(rounded(rounded(x0 * c) - rounded(x1 * s)));
                out[at(interleaved_out, 1)] = float(rounded(rounded(x0 * s) + rounded(x1 * c)));
            }
        }
        return out;
    }
};

inline std::vector<float> some_numbers() {
    std::vector<float> numbers;
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < count; ++i) {
        state = state * 1664525 + 1013904223;
        numbers.push_back(float(std::int32_t(state)) * 0x1p-30f);  // magnitude below 2
    }
    return numbers;
}

/// The intended operation on Q, and the model behind it.
struct Case {
    std::vector<float> in = some_numbers(), out;
    Observation seen;
    Limits limits;

    explicit Case(const Engine& engine) : out(engine.run(in)) {
        seen.right.in = {.type = oracle::Type::f32,
                         .batch = batch,
                         .tokens = tokens,
                         .heads = heads,
                         .head_dim = head_dim,
                         .batch_stride = tokens * heads * head_dim,
                         .token_stride = heads * head_dim,
                         .head_stride = head_dim};
        seen.right.out = seen.right.in;
        const Engine right;
        seen.right.operation.inv_freq = right.inv_freq;
        seen.right.operation.attention_factor = right.factor;
        seen.right.operation.rotary_offset = q_offset;
        for (std::uint64_t row = 0; row < batch * tokens; ++row) {
            seen.right.operation.positions.push_back(
                std::int64_t(right.position(row / tokens, row % tokens, 0)));
        }
        seen.base = 500;
        seen.softmax_scale = 1.7;
        seen.other_offset = k_offset;
    }

    Judgement judged() {
        seen.input = in.data();
        seen.output = out.data();
        return judge(seen, limits);
    }
};

inline std::vector<double> powers(double base, double exponent_step, std::size_t number = pairs) {
    std::vector<double> inv_freq;
    for (std::size_t j = 0; j < number; ++j) {
        inv_freq.push_back(std::pow(base, -exponent_step * double(j)));
    }
    return inv_freq;
}

template <class Change>
Engine changed(const Change& change) {
    Engine engine;
    change(engine);
    return engine;
}

inline double to_bf16(double value) {
    return oracle::widen(oracle::Type::bf16, oracle::narrow(oracle::Type::bf16, value));
}

inline const Match* find(const Judgement& judgement, const char* name) {
    for (const Match& match : judgement.matches) {
        if (match.mistake == name) {
            return &match;
        }
    }
    return nullptr;
}

inline void check_named(const char* name, Case made) {
    CAPTURE(name);
    const Judgement judgement = made.judged();
    CHECK(judgement.outcome == Outcome::mistake);
    REQUIRE(!judgement.matches.empty());
    CHECK(judgement.matches.front().mistake == name);
    CHECK(judgement.matches.front().explains);
    CHECK(judgement.matches.front().share_within == 1);
    CHECK(judgement.right.error_u() > made.limits.bound_u);
    CHECK(judgement.right.share_within < 1);
    CHECK(judgement.breach != "");
    // No other mistake explains the data as well.
    CHECK((judgement.matches.size() > 1 && !judgement.matches[1].explains));
}

inline double one_later(std::uint64_t b, std::uint64_t t, std::uint64_t) {
    return 6.0 + 7 * double(b) + double(t);
}

inline void swap_pairing(Engine& e) {
    e.interleaved = e.interleaved_out = true;
}

}  // namespace vkrope::tools
