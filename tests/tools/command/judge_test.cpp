// SPDX-License-Identifier: MIT
// `vkrope check` must distinguish right from wrong outputs, and name the mistake that an engine
// made. The engine of these tests is an independent loop in double; it makes each mistake in turn.
#include "check/judge.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "judge_engine.hpp"

using namespace vkrope::tools;
using namespace vkrope;

TEST_CASE("a right output passes, and no mistake explains it") {
    const Judgement judgement = Case(Engine()).judged();
    CHECK(judgement.outcome == Outcome::pass);
    CHECK(judgement.right.error_u() <= 1.0);  // rounded once
    CHECK(judgement.right.share_within == 1);
    CHECK(judgement.elements == count);
    CHECK(judgement.sampled == count);
    CHECK(judgement.breach == "");
    for (const Match& match : judgement.matches) {
        CAPTURE(match.mistake);
        CHECK(match.explains == (match.mistake == "subnormals_flushed"));
    }
}

TEST_CASE("the bound belongs to the widest source of angles, and is no wider") {
    // The largest error of an element is u times |x0| + |x1| times the factor: 5.9 of these pass,
    // 6.2 do not.
    for (const double error : {5.9, 6.2}) {
        Case made{Engine()};
        const std::size_t at = place(1, 4, 2, q_offset + 1),
                          other = place(1, 4, 2, q_offset + 1 + pairs);
        made.in[at] = 1.0f;
        made.in[other] = 3.0f;
        made.out = Engine().run(made.in);
        const double exact = 1.25 * (std::cos(16 * 0.25) - 3 * std::sin(16 * 0.25));
        made.out[at] = float(exact + error * 0x1p-24 * 1.25 * 4);
        const double stored = std::fabs(double(made.out[at]) - exact) / (0x1p-24 * 1.25 * 4);
        const Judgement judgement = made.judged();
        CHECK(judgement.right.error_u() == doctest::Approx(stored).epsilon(1e-6));
        CHECK((judgement.outcome == Outcome::pass) == (stored <= 6));
        CHECK(judgement.outcome == (error < 6 ? Outcome::pass : Outcome::close));
    }
}

TEST_CASE("each mistake is named") {
    const std::vector<double> scaled = Engine().inv_freq;
    check_named("swapped_pairing",
                Case(changed([](Engine& e) { e.interleaved = e.interleaved_out = true; })));
    check_named("reordered_pairs", Case(changed([](Engine& e) { e.interleaved_out = true; })));
    check_named("attention_factor_missing", Case(changed([](Engine& e) { e.factor = 1; })));
    check_named("attention_factor_twice", Case(changed([](Engine& e) { e.factor *= e.factor; })));
    check_named("attention_factor_divided",
                Case(changed([](Engine& e) { e.factor = 1 / e.factor; })));
    check_named("softmax_scale_applied", Case(changed([](Engine& e) { e.factor *= 1.7; })));
    check_named("scaling_ignored",
                Case(changed([](Engine& e) { e.inv_freq = powers(500, 0.25), e.factor = 1; })));
    check_named("frequencies_unscaled",
                Case(changed([](Engine& e) { e.inv_freq = powers(500, 0.25); })));
    check_named("scaling_twice", Case(changed([&scaled](Engine& e) {
                    for (std::size_t j = 0; j < pairs; ++j) {
                        e.inv_freq[j] = scaled[j] * scaled[j] / powers(500, 0.25)[j];
                    }
                })));
    check_named("position_plus_one", Case(changed([](Engine& e) {
                    e.position = [](auto b, auto t, auto) {
                        return 6.0 + 7 * double(b) + double(t);
                    };
                })));
    check_named("position_minus_one", Case(changed([](Engine& e) {
                    e.position = [](auto b, auto t, auto) {
                        return 4.0 + 7 * double(b) + double(t);
                    };
                })));
    check_named("inverse_direction", Case(changed([](Engine& e) { e.direction = -1; })));
    check_named("not_rotated", Case(changed([](Engine& e) { e.rotates = false; })));
    check_named(
        "positions_zero",
        Case(changed([](Engine& e) { e.position = [](auto, auto, auto) { return 0.0; }; })));
    check_named("positions_from_zero", Case(changed([](Engine& e) {
                    e.position = [](auto, auto t, auto) { return double(t); };
                })));
    check_named("positions_of_first_sequence", Case(changed([](Engine& e) {
                    e.position = [](auto, auto t, auto) { return 5.0 + double(t); };
                })));
    check_named("rotated_twice", Case(changed([](Engine& e) {
                    e.angle = [](double position, double inv_freq) {
                        return 2 * position * inv_freq;
                    };
                    e.factor *= e.factor;
                })));
    check_named("cos_and_sin_exchanged", Case(changed([](Engine& e) { std::swap(e.cos, e.sin); })));
    check_named("window_of_the_other_tensor",
                Case(changed([](Engine& e) { e.offset = k_offset; })));
    check_named("window_at_start", Case(changed([](Engine& e) { e.offset = 0; })));
    check_named("window_at_end",
                Case(changed([](Engine& e) { e.offset = head_dim - rotary_dim; })));
    check_named("whole_head", Case(changed([](Engine& e) {
                    e.offset = 0;
                    e.inv_freq = powers(500, 2.0 / head_dim, head_dim / 2);
                })));
    check_named("exponent_of_head_dim",
                Case(changed([](Engine& e) { e.inv_freq = powers(500, 2.0 / head_dim); })));
    check_named("base_10000",
                Case(changed([](Engine& e) { e.inv_freq = powers(10000, 0.25), e.factor = 1; })));
    check_named("base_10000_with_factor",
                Case(changed([](Engine& e) { e.inv_freq = powers(10000, 0.25); })));
    check_named("inclusive_spacing",
                Case(changed([](Engine& e) { e.inv_freq = powers(500, 1.0 / 3); })));
    check_named("positions_along_heads", Case(changed([](Engine& e) {
                    e.position = [](auto b, auto, auto h) {
                        return 5.0 + 7 * double(b) + double(h);
                    };
                })));
    check_named("positions_along_batch", Case(changed([](Engine& e) {
                    e.position = [](auto b, auto, auto) { return 5.0 + double(b); };
                })));
}

TEST_CASE("positions that were scaled, and frequencies too") {
    Case made(changed([](Engine& e) { e.inv_freq = powers(500, 0.25), e.factor = 1; }));
    made.out = changed([](Engine& e) {
                   e.inv_freq = powers(500, 0.25);
                   e.factor = 1;
                   e.angle = [](double position, double inv_freq) {
                       return position / 16 * inv_freq;
                   };
               }).run(made.in);
    made.seen.right.operation.attention_factor = 1;
    for (std::size_t j = 0; j < pairs; ++j) {
        made.seen.right.operation.inv_freq[j] = powers(500, 0.25)[j] / 4;
    }
    check_named("scaling_twice", made);
}

TEST_CASE(
    "two mistakes are looked for only where one does not explain, and accused after all has been "
    "compared") {
    for (const Match& match : Case(changed(swap_pairing)).judged().matches) {
        CHECK(match.mistake.find(" + ") == std::string::npos);
    }
    Case made(changed([](Engine& e) { swap_pairing(e), e.direction = -1; }));
    made.limits.glimpsed_elements = 4 * head_dim;
    made.limits.sampled_elements = 8 * head_dim;
    CHECK(made.judged().matches.front().mistake == "swapped_pairing + inverse_direction");
    made.out[place(0, 0, 1, q_offset)] += 1;  // not in any sample
    CHECK(made.judged().outcome == Outcome::unexplained);
    CHECK(!find(made.judged(), "swapped_pairing + inverse_direction"));
}

TEST_CASE(
    "where nothing explains, the list begins with what explains most, and being nearly right is no "
    "merit") {
    // Head 1 is swapped and shifted by a channel; for the other heads, 0 and 2, every mistake in
    // the arithmetic explains everything.
    Case made{Engine()};
    const std::vector<float> wrong = changed(swap_pairing).run(made.in);
    for (std::uint64_t row = 1; row < batch * tokens * heads; row += heads) {
        for (std::size_t c = 0; c < rotary_dim; ++c) {
            made.out[row * head_dim + q_offset + c] = c == 0 ? 7
                                                             : wrong[row * head_dim + q_offset + c];
        }
    }
    const Judgement judgement = made.judged();
    CHECK(judgement.outcome == Outcome::unexplained);
    CHECK(judgement.wrong_in == "head 1");
    CHECK(judgement.wrong_rows == batch * tokens);
    CHECK(judgement.rows == batch * tokens * heads);
    CHECK(!find(judgement, "subnormals_flushed"));
    CHECK(find(judgement, "float32_angles")->share_within > 0.66);  // rows that are right anyway
    bool in_other_arithmetic = false;
    double share = 1;
    for (const Match& match : judgement.matches) {
        CHECK((match.precision || !in_other_arithmetic));
        CHECK((match.precision || match.share_within <= share));
        in_other_arithmetic = match.precision;
        share = match.share_within;
    }
}

TEST_CASE("an attention factor that was applied, but should be omitted") {
    Case made{Engine()};
    made.seen.right.operation.gain = oracle::Gain::omit;
    check_named("attention_factor_applied", made);
}

TEST_CASE("an output that was reshaped and not transposed") {
    Case heads_first{Engine()}, tokens_first{Engine()};
    const std::vector<float> right = heads_first.out;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t channel = i % head_dim, row = i / head_dim;
        const std::size_t h = row % heads, t = row / heads % tokens, b = row / heads / tokens;
        heads_first.out[((b * heads + h) * tokens + t) * head_dim + channel] = right[i];
        tokens_first.out[((t * batch + b) * heads + h) * head_dim + channel] = right[i];
    }
    check_named("tokens_and_heads_exchanged", heads_first);
    check_named("tokens_and_sequences_exchanged", tokens_first);
}

TEST_CASE(
    "whoever asks for a tolerance gets other arithmetic accepted within it, and no other "
    "operation") {
    Case rough(changed([](Engine& e) {
        e.angle = [](double place, double frequency) -> double {
            return float(place) * float(frequency);
        };
    }));
    // At such small positions the product is wrong by only a few u, so this bound is narrower.
    rough.limits.bound_u = 1.5;
    CHECK(rough.judged().outcome == Outcome::mistake);
    CHECK(rough.judged().matches.front().mistake == "float32_angles");
    rough.limits.accepts_close = true;
    CHECK(rough.judged().outcome == Outcome::close);
    rough.limits.tolerance = 1e-8;
    CHECK(rough.judged().outcome == Outcome::mistake);
    Case wrong(changed([](Engine& e) { e.factor *= 1.001; }));
    wrong.seen.softmax_scale = 1.001;
    wrong.limits.accepts_close = true;
    CHECK(wrong.judged().outcome == Outcome::mistake);
}

TEST_CASE("other RoPEs of the model") {
    Case made(changed([](Engine& e) {
        e.inv_freq = {0.8, 0.2, 0.02, 0.001};
        e.factor = 1.5;
    }));
    RopeParams other;
    other.rotary_dim = rotary_dim;
    other.inv_freq = {0.8, 0.2, 0.02, 0.001};
    other.attention_factor = 1.5;
    made.seen.others = {{"other_layer_type", "those of the sliding layers", other}};
    check_named("other_layer_type", made);
    // If another mistake gives the same output, they are one mistake with two meanings.
    Case unscaled(changed([](Engine& e) { e.inv_freq = powers(500, 0.25), e.factor = 1; }));
    other.inv_freq = powers(500, 0.25);
    other.attention_factor = 1;
    unscaled.seen.others = {{"short_sequence", "the RoPE of a short sequence", other}};
    check_named("scaling_ignored", unscaled);
    const Judgement judgement = unscaled.judged();
    CHECK(judgement.matches.front().meaning ==
          "frequencies are unscaled, and the attention factor is missing; the RoPE of a short "
          "sequence");
    CHECK(!find(judgement, "short_sequence"));
}

TEST_CASE("what no mistake explains is said to be unexplained") {
    Case one_value{Engine()}, noise{Engine()}, not_a_number{Engine()}, infinite{Engine()},
        outside{Engine()};
    const std::size_t inside = place(0, 3, 1, q_offset);
    one_value.out[inside] += 1;
    for (float& value : noise.out) {
        value = 0.3f - value;
    }
    not_a_number.out[inside] = std::numeric_limits<float>::quiet_NaN();
    infinite.out[inside] = std::numeric_limits<float>::infinity();
    outside.out[place(0, 3, 1, 0)] += 1;
    for (Case* made : {&one_value, &noise, &not_a_number, &infinite, &outside}) {
        const Judgement judgement = made->judged();
        CHECK(judgement.outcome == Outcome::unexplained);
        CHECK(judgement.breach != "");
        CHECK(!judgement.matches.front().explains);
    }
    CHECK(std::isinf(not_a_number.judged().right.error_u()));
}

TEST_CASE("mistakes are tried on a sample, and accused after all has been compared") {
    Case made(changed([](Engine& e) { e.direction = -1; }));
    made.limits.sampled_elements = 8 * head_dim;
    Judgement judgement = made.judged();
    CHECK(judgement.sampled <= 8 * head_dim);
    CHECK(judgement.sampled > 0);
    CHECK(judgement.elements == count);
    CHECK(judgement.outcome == Outcome::mistake);
    CHECK(judgement.matches.front().mistake == "inverse_direction");
    CHECK(judgement.matches.front().share_within == 1);
    // Every sample contains the last token of the last head, but not the first token.
    const std::size_t unseen = place(0, 0, 1, q_offset);
    made.out[unseen] += 1;
    judgement = made.judged();
    CHECK(judgement.outcome == Outcome::unexplained);
    CHECK(judgement.matches.front().mistake == "inverse_direction");
    CHECK(judgement.matches.front().share_within < 1);
    CHECK(judgement.matches.front().share_within > 0.99);
    // An error only outside the sample is detected, too.
    Case right{Engine()};
    right.limits.sampled_elements = 8 * head_dim;
    CHECK(right.judged().outcome == Outcome::pass);
    right.out[unseen] += 1;
    CHECK(right.judged().outcome == Outcome::unexplained);
}

TEST_CASE("data that cannot show a mistake do not hide that") {
    // At position 0 both pairings leave everything unchanged.
    Case made(changed([](Engine& e) { e.position = [](auto, auto, auto) { return 0.0; }; }));
    made.seen.right.operation.positions.assign(batch * tokens, 0);
    const Judgement judgement = made.judged();
    CHECK(judgement.outcome == Outcome::pass);
    CHECK(judgement.matches.front().explains);
    for (const Match& match : judgement.matches) {
        if (match.mistake == "swapped_pairing" || match.mistake == "inverse_direction") {
            CHECK(match.explains);
        }
        CHECK(match.mistake != "positions_zero");  // it would be right here
    }
}

TEST_CASE("an empty tensor is right") {
    Case made{Engine()};
    made.seen.right.in.tokens = made.seen.right.out.tokens = 0;
    made.seen.right.operation.positions.clear();
    const Judgement judgement = made.judged();
    CHECK(judgement.outcome == Outcome::pass);
    CHECK(judgement.elements == 0);
    CHECK(judgement.matches.empty());
}
