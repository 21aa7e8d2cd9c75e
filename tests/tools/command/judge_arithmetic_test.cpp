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
#include "support/names.hpp"

using namespace vkrope::tools;
using namespace vkrope;

TEST_CASE("angles in float32") {
    const auto far = [](Engine& e) {
        e.position = [](auto b, auto t, auto) { return 100000.0 + 31 * double(b) + double(t); };
    };
    const auto place_far = [&](Case& made) {
        for (std::uint64_t row = 0; row < batch * tokens; ++row) {
            made.seen.right.operation.positions[row] = std::int64_t(100000 + 31 * (row / tokens) +
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
        made.seen.right.operation.inv_freq = powers(500, 0.25);
        for (std::uint64_t row = 0; row < batch * tokens; ++row) {
            made.seen.right.operation.positions[row] = std::int64_t(
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
    made.seen.base = 1e9;
    made.seen.right.operation.inv_freq = powers(1e9, 1.0 / 3, 3);
    for (std::uint64_t row = 0; row < batch * tokens; ++row) {
        made.seen.right.operation.positions[row] = std::int64_t(far(row / tokens, row % tokens, 0));
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
        stored.push_back(std::uint16_t(oracle::narrow(oracle::Type::bf16, value)));
    }
    made.seen.right.out.type = oracle::Type::bf16;
    made.seen.input = made.in.data();
    made.seen.output = stored.data();
    const Judgement judgement = judge(made.seen, made.limits);
    CHECK(judgement.outcome == Outcome::mistake);
    CHECK(judgement.matches.front().mistake == "tables_in_16_bits");
    CHECK(judgement.matches.front().precision);
}

namespace {

/// The two types of 16 bits, as an engine rounds to them and as the report names them.
struct Rough {
    oracle::Type type;
    const char* name;

    double operator()(double value) const {
        return oracle::widen(type, oracle::narrow(type, value));
    }
};
constexpr Rough rough_types[] = {{oracle::Type::bf16, "bf16"}, {oracle::Type::f16, "f16"}};

/// The output of an engine whose first token has this position.
Case made_at(
    double first, const std::function<void(Engine&)>& change = [](Engine&) {}) {
    Engine engine;
    engine.position = [first](auto b, auto t, auto) { return first + 7 * double(b) + double(t); };
    change(engine);
    Case made(engine);
    for (std::uint64_t row = 0; row < batch * tokens; ++row) {
        made.seen.right.operation.positions[row] = std::int64_t(first) +
                                                   std::int64_t(7 * (row / tokens) + row % tokens);
    }
    return made;
}

void round_frequencies(Engine& e, const Rough& rough) {
    std::transform(e.inv_freq.begin(), e.inv_freq.end(), e.inv_freq.begin(), rough);
}

/// The first match has this name, and its meaning has the type.
void check_named_type(const std::string& name, const Rough& rough, Case made) {
    CAPTURE(rough.name);
    check_named(name.c_str(), made);
    test::check_names(made.judged().matches.front().meaning, std::string("to ") + rough.name);
}

void round_tables(Engine& e, const Rough& rough) {
    e.cos = [rough, factor = e.factor](double angle) {
        return rough(factor * std::cos(angle)) / factor;
    };
    e.sin = [rough, factor = e.factor](double angle) {
        return rough(factor * std::sin(angle)) / factor;
    };
}

}  // namespace

TEST_CASE("frequencies that were rounded to 16 bits, as a cast of the model rounds them") {
    for (const Rough& rough : rough_types) {
        for (const double first : {5.0, 300.0, 100000.0}) {
            check_named_type("frequencies_in_16_bits", rough,
                             made_at(first, [&](Engine& e) { round_frequencies(e, rough); }));
        }
        check_named_type("swapped_pairing + frequencies_in_16_bits", rough,
                         made_at(300, [&](Engine& e) {
                             swap_pairing(e);
                             round_frequencies(e, rough);
                         }));
        check_named_type("scaling_ignored + frequencies_in_16_bits", rough,
                         made_at(300, [&](Engine& e) {
                             e.inv_freq = powers(500, 0.25);
                             e.factor = 1;
                             round_frequencies(e, rough);
                         }));
        check_named_type("frequencies_in_16_bits + tables_in_16_bits", rough,
                         made_at(300, [&](Engine& e) {
                             round_frequencies(e, rough);
                             round_tables(e, rough);
                         }));
        // The same engine, which rounds each operation, too.
        const Judgement judgement = made_at(3000, [&](Engine& e) {
                                        round_frequencies(e, rough);
                                        e.rounded = rough;
                                    }).judged();
        CHECK(judgement.outcome == Outcome::mistake);
        CHECK(judgement.matches.front().mistake == "frequencies_in_16_bits");
        test::check_names(judgement.matches.front().meaning, rough.name);
    }
    // Frequencies that bf16 has show nothing, and nothing is said of them.
    Case exact = made_at(300, [](Engine& e) { e.inv_freq = {1, 0.25, 0.03125, 0.0009765625}; });
    exact.seen.right.operation.inv_freq = {1, 0.25, 0.03125, 0.0009765625};
    CHECK(exact.judged().outcome == Outcome::pass);
    CHECK(!find(exact.judged(), "frequencies_in_16_bits"));
}

TEST_CASE("positions that were rounded to 16 bits") {
    for (const Rough& rough : rough_types) {
        const double lacks = rough.type == oracle::Type::bf16 ? 256 : 2048;
        const auto round_positions = [&rough, &lacks](Engine& e) {
            e.position = [rough, first = lacks + 41](auto b, auto t, auto) {
                return rough(first + 7 * double(b) + double(t));
            };
        };
        check_named_type("positions_in_16_bits", rough, made_at(lacks + 41, round_positions));
        check_named_type("swapped_pairing + positions_in_16_bits", rough,
                         made_at(lacks + 41, [&](Engine& e) {
                             swap_pairing(e);
                             round_positions(e);
                         }));
        check_named_type("positions_in_16_bits + frequencies_in_16_bits", rough,
                         made_at(lacks + 41, [&](Engine& e) {
                             round_positions(e);
                             round_frequencies(e, rough);
                         }));
        const auto round_angles = [&](Engine& e) {
            round_positions(e);
            round_frequencies(e, rough);
            e.angle = [rough](double place, double frequency) { return rough(place * frequency); };
        };
        check_named_type("angles_in_16_bits", rough, made_at(lacks + 41, round_angles));
        check_named_type("angles_in_16_bits + tables_in_16_bits", rough,
                         made_at(lacks + 41, [&](Engine& e) {
                             round_angles(e);
                             round_tables(e, rough);
                         }));
    }
    // Up to 256, bf16 has every position, and beyond 65504 f16 has none.
    CHECK(!find(made_at(200).judged(), "positions_in_16_bits"));
    const Judgement far = made_at(100000).judged();
    CHECK(far.outcome == Outcome::pass);
    REQUIRE(find(far, "positions_in_16_bits"));
    test::check_names(find(far, "positions_in_16_bits")->meaning, "bf16");
}

TEST_CASE("cos and sin of 16 bits, in an output of f32") {
    for (const Rough& rough : rough_types) {
        Case made = made_at(300, [&](Engine& e) { round_tables(e, rough); });
        check_named_type("tables_in_16_bits", rough, made);
        CHECK(made.judged().right.nearly);
        made.limits.accepts_close = true;
        CHECK(made.judged().outcome == Outcome::close);
        made.limits.tolerance = 1e-6;
        CHECK(made.judged().outcome == Outcome::mistake);
        // The tables of an engine have float32 angles.
        const auto round_both = [&rough](Engine& e) {
            round_tables(e, rough);
            e.angle = [](double place, double frequency) -> double {
                return float(place) * float(frequency);
            };
        };
        check_named_type("tables_in_16_bits", rough, made_at(100000, round_both));
        check_named_type("attention_factor_twice + tables_in_16_bits", rough,
                         made_at(300, [&](Engine& e) {
                             e.factor *= e.factor;
                             round_tables(e, rough);
                         }));
    }
}

TEST_CASE("one position for several tokens") {
    check_named("positions_of_first_token", made_at(300, [](Engine& e) {
                    e.position = [](auto b, auto, auto) { return 300 + 7 * double(b); };
                }));
    check_named("swapped_pairing + positions_of_first_token", made_at(300, [](Engine& e) {
                    swap_pairing(e);
                    e.position = [](auto b, auto, auto) { return 300 + 7 * double(b); };
                }));
    for (const double position : {1.0, 308.0, 3000.0}) {
        const auto stop = [position](Engine& e) {
            e.position = [position](auto, auto, auto) { return position; };
        };
        Case made = made_at(300, stop);
        check_named("one_position", made);
        test::check_names(made.judged().matches.front().meaning,
                          std::to_string(std::int64_t(position)));
        check_named("swapped_pairing + one_position", made_at(300, [&](Engine& e) {
                        swap_pairing(e);
                        stop(e);
                    }));
        // The other direction cannot be told from a position with the other sign.
        const Judgement turned_back = made_at(300, [&](Engine& e) {
                                          stop(e);
                                          e.direction = -1;
                                      }).judged();
        CHECK(turned_back.matches.front().mistake == "one_position");
        test::check_names(turned_back.matches.front().meaning,
                          std::to_string(-std::int64_t(position)) + " " +
                              std::to_string(std::int64_t(position)) + " direction");
    }
    // At position 0, nothing turns: that has its own name.
    check_named("positions_zero",
                made_at(300, [](Engine& e) { e.position = [](auto, auto, auto) { return 0.0; }; }));
}

TEST_CASE("an engine that computes in 16 bits throughout is close, and no more than that") {
    Case made(changed([](Engine& e) { e.rounded = to_bf16; }));
    const Judgement judgement = made.judged();
    CHECK(judgement.outcome == Outcome::close);
    CHECK(judgement.right.error_u() * 0x1p-24 > 1e-3);
    CHECK(judgement.right.error_u() * 0x1p-24 < 1e-2);
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
