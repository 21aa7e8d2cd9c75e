// SPDX-License-Identifier: MIT
// Two mistakes at once, and mistakes in a part of the tensor.
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

TEST_CASE("two mistakes at once are named both") {
    check_named("swapped_pairing + attention_factor_missing",
                Case(changed([](Engine& e) { swap_pairing(e), e.factor = 1; })));
    check_named("swapped_pairing + inverse_direction",
                Case(changed([](Engine& e) { swap_pairing(e), e.direction = -1; })));
    check_named("attention_factor_missing + position_plus_one",
                Case(changed([](Engine& e) { e.factor = 1, e.position = one_later; })));
    check_named("position_plus_one + inverse_direction",
                Case(changed([](Engine& e) { e.direction = -1, e.position = one_later; })));
    check_named("scaling_ignored + window_at_start", Case(changed([](Engine& e) {
                    e.inv_freq = powers(500, 0.25), e.factor = 1, e.offset = 0;
                })));
    check_named("reordered_pairs + positions_along_heads", Case(changed([](Engine& e) {
                    e.interleaved_out = true;
                    e.position = [](auto b, auto, auto h) {
                        return 5.0 + 7 * double(b) + double(h);
                    };
                })));
    check_named("inverse_direction + cos_and_sin_exchanged",
                Case(changed([](Engine& e) { std::swap(e.cos, e.sin), e.direction = -1; })));
    // Both meanings are reported, and neither mistake alone is a match.
    const Judgement judgement =
        Case(changed([](Engine& e) { swap_pairing(e), e.direction = -1; })).judged();
    test::check_names(judgement.matches.front().meaning, "half_split direction");
    CHECK(!find(judgement, "swapped_pairing")->explains);
}

TEST_CASE("two mistakes of an engine that computes in 16 bits throughout") {
    const Judgement judgement = Case(changed([](Engine& e) {
                                    e.rounded = to_bf16;
                                    e.direction = -1;
                                    swap_pairing(e);
                                })).judged();
    CHECK(judgement.outcome == Outcome::mistake);
    CHECK(judgement.matches.front().mistake == "swapped_pairing + inverse_direction");
    CHECK(!judgement.matches.front().explains);
}

TEST_CASE("what is wrong in a part of the rows is explained there") {
    struct Planted {
        const char* name;
        const char* where;
        Engine engine;
        std::function<bool(std::uint64_t b, std::uint64_t t, std::uint64_t h)> there;
    };
    const Engine swapped = changed(swap_pairing),
                 later = changed([](Engine&e) { e.position = one_later; });
    const Planted all[] = {
        {"swapped_pairing", "head 1", swapped, [](auto, auto, auto h) { return h == 1; }},
        {"swapped_pairing", "heads 0, 2", swapped, [](auto, auto, auto h) { return h != 1; }},
        {"position_plus_one", "token 3", later, [](auto, auto t, auto) { return t == 3; }},
        {"position_plus_one", "sequence 1", later, [](auto b, auto, auto) { return b == 1; }},
        {"swapped_pairing", "sequence 0, tokens 2-4, 7, heads 0-1", swapped,
         [](auto b, auto t, auto h) { return b == 0 && h < 2 && ((t >= 2 && t < 5) || t == 7); }},
        {"swapped_pairing", "27 of 54 rows", swapped,
         [](auto b, auto t, auto h) { return (b * tokens * heads + t * heads + h) % 2 == 0; }},
    };
    for (const Planted& planted : all) {
        CAPTURE(planted.where);
        Case made{Engine()};
        const std::vector<float> wrong = planted.engine.run(made.in);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t row = i / head_dim;
            made.out[i] = planted.there(row / heads / tokens, row / heads % tokens, row % heads)
                              ? wrong[i]
                              : made.out[i];
        }
        const Judgement judgement = made.judged();
        CHECK(judgement.outcome == Outcome::mistake);
        const Match& first = judgement.matches.front();
        CHECK(first.mistake == planted.name);
        CHECK(first.where == planted.where);
        CHECK(first.explains);
        CHECK(first.error_u() <= 1.0);  // only in that part
        CHECK(!judgement.matches[1].explains);
        CHECK(judgement.wrong_rows < judgement.rows);
        // Adds a value in that part that the mistake does not explain.
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t row = i / head_dim;
            if (i % head_dim == q_offset &&
                planted.there(row / heads / tokens, row / heads % tokens, row % heads)) {
                made.out[i] += 1;
                break;
            }
        }
        const Judgement spoilt = made.judged();
        CHECK(spoilt.outcome == Outcome::unexplained);
        for (const Match& match : spoilt.matches) {
            CHECK(match.where == "");
        }
    }
}

TEST_CASE("what is wrong in one place alone is named with its index") {
    const std::size_t at = place(1, 4, 2, q_offset + 1);
    const auto spoilt = [](const std::function<bool(std::uint64_t b, std::uint64_t t,
                                                    std::uint64_t h, std::uint64_t c)>& where) {
        Case made{Engine()};
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t row = i / head_dim, c = i % head_dim;
            if (c >= q_offset && c < q_offset + rotary_dim &&
                where(row / heads / tokens, row / heads % tokens, row % heads, c)) {
                made.out[i] += 1;
            }
        }
        return made;
    };
    Case one = spoilt([](auto b, auto t, auto h, auto c) {
        return b == 1 && t == 4 && h == 2 && c == q_offset + 1;
    });
    const Judgement judgement = one.judged();
    REQUIRE(judgement.lone);
    CHECK(judgement.lone->region == Region::element);
    CHECK(judgement.lone->worst.batch == 1);
    CHECK(judgement.lone->worst.token == 4);
    CHECK(judgement.lone->worst.head == 2);
    CHECK(judgement.lone->worst.channel == q_offset + 1);
    CHECK(judgement.lone->wrong == 1);
    const double exact = 1.25 * (one.in[at] * std::cos(16 * 0.25) -
                                 one.in[at + pairs] * std::sin(16 * 0.25));
    CHECK(judgement.lone->expected == doctest::Approx(exact).epsilon(1e-14));
    CHECK(judgement.lone->actual == double(one.out[at]));
    const double unit = 0x1p-24 * 1.25 *
                        (std::fabs(double(one.in[at])) + std::fabs(double(one.in[at + pairs])));
    CHECK(*judgement.lone->error_u ==
          doctest::Approx(std::fabs(double(one.out[at]) - exact) / unit).epsilon(1e-9));

    struct Spoilt {
        Region region;
        std::uint64_t wrong;
        Case made;
    };
    Spoilt all[] = {
        {Region::row, rotary_dim,
         spoilt([](auto b, auto t, auto h, auto) { return b == 1 && t == 4 && h == 2; })},
        {Region::token, heads * rotary_dim,
         spoilt([](auto b, auto t, auto, auto) { return b == 1 && t == 4; })},
        {Region::head, batch * tokens * rotary_dim,
         spoilt([](auto, auto, auto h, auto) { return h == 2; })},
        {Region::sequence, 2 * heads * rotary_dim,
         spoilt([](auto b, auto t, auto, auto) { return b == 1 && (t == 4 || t == 5); })}};
    // Wrong values in heads 0, 1 and 0 of one sequence.
    const auto zigzag = [](auto b, auto t, auto h, auto c) {
        return b == 1 && t > 3 && t < 7 && h == t % 2 && c == q_offset;
    };
    CHECK(spoilt(zigzag).judged().lone->region == Region::sequence);
    for (Spoilt& each : all) {
        CAPTURE(int(each.region));
        const Judgement judged = each.made.judged();
        CHECK(judged.outcome == Outcome::unexplained);
        REQUIRE(judged.lone);
        CHECK(judged.lone->region == each.region);
        CHECK(judged.lone->wrong == each.wrong);
    }
    // Two values in two rows are not in one region; a mistake that explains everything, or a pass,
    // reports no region.
    CHECK(!spoilt(
               [](auto b, auto t, auto h, auto c) { return t == 4 + b && h == b && c == q_offset; })
               .judged()
               .lone);
    CHECK(!Case(changed([](Engine& e) { e.direction = -1; })).judged().lone);
    CHECK(!Case(Engine()).judged().lone);
    // A channel that should pass through has no error in u, and neither has a NaN.
    Case outside{Engine()}, not_a_number{Engine()};
    outside.out[place(0, 3, 1, 0)] += 1;
    not_a_number.out[place(0, 3, 1, q_offset)] = std::numeric_limits<float>::quiet_NaN();
    for (Case* made : {&outside, &not_a_number}) {
        const Judgement judged = made->judged();
        REQUIRE(judged.lone);
        CHECK(judged.lone->region == Region::element);
        CHECK(judged.lone->worst.token == 3);
        CHECK(!judged.lone->error_u);
    }
}
