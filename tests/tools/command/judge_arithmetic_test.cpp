// SPDX-License-Identifier: MIT
// An engine with the right operation in other arithmetic.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "check/judge.hpp"
#include "judge_engine.hpp"

using namespace vkrope::tools;
using namespace vkrope;

TEST_CASE("angles in float32") {
    const auto far = [](Engine& e) {
        e.position = [](auto b, auto t, auto) { return 100000.0 + 31 * double(b) + double(t); };
    };
    const auto place_far = [&](Case& made) {
        for (std::uint64_t row = 0; row < batch * tokens; ++row) {
            made.evidence.operation.positions[row] = std::int64_t(100000 + 31 * (row / tokens) +
                                                                  row % tokens);
        }
    };
    Case product(changed([&](Engine& e) {
        far(e);
        e.angle = [](double position, double inv_freq) -> double {
            return float(position) * float(inv_freq);
        };
    }));
    place_far(product);
    check_named("float32_angles", product);
    Case running(changed([&](Engine& e) {
        far(e);
        e.inv_freq = {0, 1, 2, 3};  // index of the pair
        e.angle = [](double position, double pair) -> double {
            const float step = std::pow(500.0f, -2.0f / 8.0f);
            auto angle = float(position);
            for (int j = 0; j < int(pair); ++j) {
                angle *= step;
            }
            return angle * float(Engine().inv_freq[std::size_t(pair)] /
                                 powers(500, 0.25)[std::size_t(pair)]);
        };
    }));
    place_far(running);
    check_named("float32_angles_by_running_product", running);
}

TEST_CASE("an engine whose frequencies are float32 too") {
    const auto judged_with = [](const std::vector<float>& frequencies, bool swapped) {
        const auto far = [](std::uint64_t b, std::uint64_t t, std::uint64_t) {
            return 1000000.0 + 31 * double(b) + double(t);
        };
        Case made(changed([&](Engine& e) {
            e.position = far;
            e.interleaved = e.interleaved_out = swapped;
            e.inv_freq = {frequencies.begin(), frequencies.end()};
            e.angle = [](double position, double inv_freq) -> double {
                return float(position) * float(inv_freq);
            };
        }));
        made.evidence.operation.inv_freq = powers(500, 0.25);
        for (std::uint64_t row = 0; row < batch * tokens; ++row) {
            made.evidence.operation.positions[row] = std::int64_t(
                far(row / tokens, row % tokens, 0));
        }
        return made;
    };
    std::vector<float> frequencies;
    for (std::size_t j = 0; j < pairs; ++j) {
        frequencies.push_back(1.0f / std::pow(500.0f, float(2 * j) / float(rotary_dim)));
    }
    check_named("float32_angles", judged_with(frequencies, false));
    // A different pow(): each pair has its own error in the last places.
    std::vector<float> other = frequencies;
    other[1] = std::nextafter(std::nextafter(std::max(other[1], float(powers(500, 0.25)[1])), 1.0f),
                              1.0f);
    other[2] = std::nextafter(other[2], 0.0f);
    check_named("float32_angles", judged_with(other, false));
    check_named("swapped_pairing + float32_angles", judged_with(other, true));
    // But a frequency with a larger error counts as a different one.
    other[1] *= 1.000002f;
    const Judgement judgement = judged_with(other, false).judged();
    CHECK(!judgement.matches.front().explains);
}

TEST_CASE("an engine whose float32 exponents are not exact fractions") {
    // 1/3 and 2/3 as float32, times ln(base): the frequencies are off by several units in the last
    // place.
    const auto far = [](std::uint64_t b, std::uint64_t t, std::uint64_t) {
        return 10000000.0 + 31 * double(b) + double(t);
    };
    Case made(changed([&](Engine& e) {
        e.position = far;
        e.inv_freq = {1.0f, 1.0f / std::pow(1e9f, 2.0f / 6.0f), 1.0f / std::pow(1e9f, 4.0f / 6.0f)};
        e.angle = [](double position, double inv_freq) -> double {
            return float(position) * float(inv_freq);
        };
    }));
    made.evidence.base = 1e9;
    made.evidence.operation.inv_freq = powers(1e9, 1.0 / 3, 3);
    for (std::uint64_t row = 0; row < batch * tokens; ++row) {
        made.evidence.operation.positions[row] = std::int64_t(far(row / tokens, row % tokens, 0));
    }
    check_named("float32_angles", made);
}

TEST_CASE("cos and sin of 16 bits, in an output of 16 bits") {
    // The products are exact; only the table and the result are rounded.
    const Engine right;
    Case made{right};
    std::vector<std::uint16_t> stored;
    Engine rough = right;
    rough.cos = [](double angle) { return to_bf16(1.25 * std::cos(angle)) / 1.25; };
    rough.sin = [](double angle) { return to_bf16(1.25 * std::sin(angle)) / 1.25; };
    for (const float value : rough.run(made.in)) {
        stored.push_back(std::uint16_t(reference::narrow(reference::Type::bf16, value)));
    }
    made.evidence.out.type = reference::Type::bf16;
    made.evidence.input = made.in.data();
    made.evidence.output = stored.data();
    const Judgement judgement = judge(made.evidence, made.limits);
    CHECK(judgement.outcome == Outcome::mistake);
    CHECK(judgement.matches.front().mistake == "tables_in_16_bits");
    CHECK(judgement.matches.front().precision);
}

TEST_CASE("an engine that computes in 16 bits throughout is close, and no more than that") {
    Case made(changed([](Engine& e) { e.rounded = to_bf16; }));
    const Judgement judgement = made.judged();
    CHECK(judgement.outcome == Outcome::close);
    CHECK(judgement.right.max_error_u * 0x1p-24 > 1e-3);
    CHECK(judgement.right.max_error_u * 0x1p-24 < 1e-2);
    made.limits.tolerance = 1e-3;
    CHECK(made.judged().outcome == Outcome::unexplained);
    // The same engine with a mistake is not close, but the mistake is found despite the noise.
    const Judgement mistaken = Case(changed([](Engine& e) {
                                   e.rounded = to_bf16;
                                   e.interleaved = e.interleaved_out = true;
                               })).judged();
    CHECK(mistaken.outcome == Outcome::mistake);
    CHECK(mistaken.matches.front().mistake == "swapped_pairing");
    CHECK(!mistaken.matches.front().explains);
    CHECK(mistaken.matches.front().nearly);
}
