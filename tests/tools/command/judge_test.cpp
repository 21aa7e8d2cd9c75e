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

using namespace vkrope;
using namespace vkrope::tools;

namespace {

constexpr std::uint64_t batch = 2, tokens = 9, heads = 3, head_dim = 24, rotary_dim = 8,
                        pairs = rotary_dim / 2;
constexpr std::uint64_t q_offset = 4, k_offset = 10;
constexpr std::size_t count = batch * tokens * heads * head_dim;

std::size_t place(std::uint64_t b, std::uint64_t t, std::uint64_t h, std::uint64_t channel) {
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

std::vector<float> some_numbers() {
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
    Evidence evidence;
    Limits limits;

    explicit Case(const Engine& engine) : out(engine.run(in)) {
        evidence.in = {.type = reference::Type::f32,
                       .batch = batch,
                       .tokens = tokens,
                       .heads = heads,
                       .head_dim = head_dim,
                       .batch_stride = tokens * heads * head_dim,
                       .token_stride = heads * head_dim,
                       .head_stride = head_dim};
        evidence.out = evidence.in;
        const Engine right;
        evidence.operation.inv_freq = right.inv_freq;
        evidence.operation.attention_factor = right.factor;
        evidence.operation.rotary_offset = q_offset;
        for (std::uint64_t row = 0; row < batch * tokens; ++row) {
            evidence.operation.positions.push_back(
                std::int64_t(right.position(row / tokens, row % tokens, 0)));
        }
        evidence.base = 500;
        evidence.softmax_scale = 1.7;
        evidence.other_offset = k_offset;
    }

    Judgement judged() {
        evidence.input = in.data();
        evidence.output = out.data();
        return judge(evidence, limits);
    }
};

std::vector<double> powers(double base, double exponent_step, std::size_t number = pairs) {
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

double to_bf16(double value) {
    return reference::widen(reference::Type::bf16, reference::narrow(reference::Type::bf16, value));
}

const Match* find(const Judgement& judgement, const char* name) {
    for (const Match& match : judgement.matches) {
        if (match.mistake == name) {
            return &match;
        }
    }
    return nullptr;
}

void check_named(const char* name, Case made) {
    CAPTURE(name);
    const Judgement judgement = made.judged();
    CHECK(judgement.outcome == Outcome::mistake);
    REQUIRE(!judgement.matches.empty());
    CHECK(judgement.matches.front().mistake == name);
    CHECK(judgement.matches.front().explains);
    CHECK(judgement.matches.front().share_within == 1);
    CHECK(judgement.max_error_u > made.limits.bound_u);
    CHECK(judgement.share_within < 1);
    CHECK(judgement.breach != "");
    // No other mistake explains the data as well.
    CHECK((judgement.matches.size() > 1 && !judgement.matches[1].explains));
}

}  // namespace

TEST_CASE("a right output passes, and no mistake explains it") {
    const Judgement judgement = Case(Engine()).judged();
    CHECK(judgement.outcome == Outcome::pass);
    CHECK(judgement.max_error_u <= 1.0);  // rounded once
    CHECK(judgement.share_within == 1);
    CHECK(judgement.elements == count);
    CHECK(judgement.sampled == count);
    CHECK(judgement.breach == "");
    for (const Match& match : judgement.matches) {
        CAPTURE(match.mistake);
        CHECK(match.explains == (match.mistake == "subnormals_flushed"));
    }
}

TEST_CASE("the bound is that of the widest source of angles, and no wider") {
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
        CHECK(judgement.max_error_u == doctest::Approx(stored).epsilon(1e-6));
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
    made.evidence.operation.attention_factor = 1;
    for (std::size_t j = 0; j < pairs; ++j) {
        made.evidence.operation.inv_freq[j] = powers(500, 0.25)[j] / 4;
    }
    check_named("scaling_twice", made);
}

namespace {

double one_later(std::uint64_t b, std::uint64_t t, std::uint64_t) {
    return 6.0 + 7 * double(b) + double(t);
}

void swap_pairing(Engine& e) {
    e.interleaved = e.interleaved_out = true;
}

}  // namespace

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
    CHECK(judgement.matches.front().meaning.find("half_split instead of") != std::string::npos);
    CHECK(judgement.matches.front().meaning.find("wrong way") != std::string::npos);
    CHECK(!find(judgement, "swapped_pairing")->explains);
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
        CHECK(first.max_error_u <= 1.0);  // only in that part
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

TEST_CASE("an attention factor that was to be left out") {
    Case made{Engine()};
    made.evidence.operation.gain = reference::Gain::omit;
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

namespace {

/// Frame, height and width of a token; all axes and sequences differ.
double of_image(std::uint64_t b, std::uint64_t t, std::uint32_t axis) {
    return axis == 0   ? 5.0 + 7 * double(b) + double(t / 3)
           : axis == 1 ? 11.0 + 2 * double(b) + double(t % 3)
                       : 3.0 + 5 * double(t % 4);
}

/// A model with positions on several axes.
struct AxesCase {
    Sections sections;
    std::vector<std::uint32_t> axes;  // axis of each pair

    Case made(const std::function<void(Engine&)>& change) const {
        Engine engine;
        engine.axes = axes;
        engine.on_axis = of_image;
        change(engine);
        Case made(engine);
        made.evidence.further.sections = sections;
        for (std::uint32_t axis = 0; axis < sections.axes; ++axis) {
            std::vector<std::int64_t> positions;
            for (std::uint64_t row = 0; row < batch * tokens; ++row) {
                positions.push_back(std::int64_t(of_image(row / tokens, row % tokens, axis)));
            }
            if (axis == 0) {
                made.evidence.operation.positions = positions;
            } else {
                made.evidence.further.positions.push_back(positions);
            }
        }
        return made;
    }
};

const AxesCase in_sections = {
    .sections = {.order = SectionOrder::sequential, .axes = 3, .pairs = {1, 2, 1}},
    .axes = {0, 1, 1, 2}};
const AxesCase interleaved_sections = {
    .sections = {.order = SectionOrder::interleaved, .axes = 3, .pairs = {1, 2, 1}},
    .axes = {0, 1, 2, 0}};
const AxesCase height_and_width = {
    .sections = {.order = SectionOrder::sequential, .axes = 2, .pairs = {2, 2}},
    .axes = {0, 0, 1, 1}};

std::function<void(Engine&)> on_axes(
    const std::function<double(std::uint64_t, std::uint64_t, std::uint32_t)>& positions) {
    return [positions](Engine& e) { e.on_axis = positions; };
}

}  // namespace

TEST_CASE("positions on several axes: right, and each mistake is named") {
    for (const AxesCase& model : {in_sections, interleaved_sections, height_and_width}) {
        CAPTURE(model.sections.axes);
        const Judgement judgement = model.made([](Engine&) {}).judged();
        CHECK(judgement.outcome == Outcome::pass);
        CHECK(judgement.max_error_u <= 1.0);
        for (const Match& match : judgement.matches) {
            CAPTURE(match.mistake);
            CHECK(match.explains == (match.mistake == "subnormals_flushed"));
        }
        check_named("sections_ignored",
                    model.made(on_axes([](auto b, auto t, auto) { return of_image(b, t, 0); })));
        check_named("position_plus_one", model.made(on_axes([](auto b, auto t, auto axis) {
            return of_image(b, t, axis) + 1;
        })));
        check_named("positions_from_zero",
                    model.made(on_axes([](auto, auto t, auto) { return double(t); })));
        check_named(
            "positions_of_first_sequence",
            model.made(on_axes([](auto, auto t, auto axis) { return of_image(0, t, axis); })));
        check_named("inverse_direction", model.made([](Engine& e) { e.direction = -1; }));
        check_named("rotated_twice", model.made([](Engine& e) {
            e.angle = [](double position, double inv_freq) { return 2 * position * inv_freq; };
            e.factor *= e.factor;
        }));
    }
    check_named("sections_in_the_other_order",
                in_sections.made([](Engine& e) { e.axes = interleaved_sections.axes; }));
    check_named("sections_in_the_other_order",
                interleaved_sections.made([](Engine& e) { e.axes = in_sections.axes; }));
    const auto exchanged = [](std::uint32_t a, std::uint32_t b) {
        return on_axes([a, b](auto sequence, auto t, auto axis) {
            return of_image(sequence, t, axis == a ? b : axis == b ? a : axis);
        });
    };
    check_named("height_and_width_exchanged", in_sections.made(exchanged(1, 2)));
    check_named("height_and_width_exchanged", interleaved_sections.made(exchanged(1, 2)));
    check_named("height_and_width_exchanged", height_and_width.made(exchanged(0, 1)));
}

TEST_CASE("positions on several axes are tried on a sample too") {
    Case made = in_sections.made(on_axes([](auto b, auto t, auto) { return of_image(b, t, 0); }));
    made.limits.sampled_elements = 8 * head_dim;
    const Judgement judgement = made.judged();
    CHECK(judgement.sampled < count);
    CHECK(judgement.matches.front().mistake == "sections_ignored");
    CHECK(judgement.matches.front().explains);
    Case right = in_sections.made([](Engine&) {});
    right.limits.sampled_elements = 8 * head_dim;
    // The right operation uses the same sample as the mistakes, and no mistake explains it.
    for (const Match& match : right.judged().matches) {
        CHECK(match.explains == (match.mistake == "subnormals_flushed"));
    }
}

TEST_CASE("equal positions on all axes cannot show a mistake in the sections") {
    Case made = in_sections.made(on_axes([](auto b, auto t, auto) { return of_image(b, t, 0); }));
    for (std::vector<std::int64_t>& positions : made.evidence.further.positions) {
        positions = made.evidence.operation.positions;
    }
    const Judgement judgement = made.judged();
    CHECK(judgement.outcome == Outcome::pass);
    int blind = 0;
    for (const Match& match : judgement.matches) {
        blind += match.explains && match.mistake != "subnormals_flushed";
    }
    CHECK(blind == 3);
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

TEST_CASE("an engine whose float32 exponents are no exact fractions") {
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
    wrong.evidence.softmax_scale = 1.001;
    wrong.limits.accepts_close = true;
    CHECK(wrong.judged().outcome == Outcome::mistake);
}

TEST_CASE("other RoPEs of the model") {
    Case made(changed([](Engine& e) {
        e.inv_freq = {0.8, 0.2, 0.02, 0.001};
        e.factor = 1.5;
    }));
    Rotation other;
    other.inv_freq = {0.8, 0.2, 0.02, 0.001};
    other.attention_factor = 1.5;
    made.evidence.others = {{"other_layer_type", "those of the sliding layers", other}};
    check_named("other_layer_type", made);
    // If another mistake gives the same output, they are one mistake with two meanings.
    Case unscaled(changed([](Engine& e) { e.inv_freq = powers(500, 0.25), e.factor = 1; }));
    other.inv_freq = powers(500, 0.25);
    other.attention_factor = 1;
    unscaled.evidence.others = {{"short_sequence", "the RoPE of a short sequence", other}};
    check_named("scaling_ignored", unscaled);
    const Judgement judgement = unscaled.judged();
    CHECK(judgement.matches.front().meaning ==
          "unscaled frequencies, no attention factor; the RoPE of a short sequence");
    CHECK(!find(judgement, "short_sequence"));
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
    CHECK(judgement.max_error_u * 0x1p-24 > 1e-3);
    CHECK(judgement.max_error_u * 0x1p-24 < 1e-2);
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
    CHECK(outside.judged().breach.find("outside the rotated window") != std::string::npos);
    CHECK(std::isinf(not_a_number.judged().max_error_u));
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
    made.evidence.operation.positions.assign(batch * tokens, 0);
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
    made.evidence.in.tokens = made.evidence.out.tokens = 0;
    made.evidence.operation.positions.clear();
    const Judgement judgement = made.judged();
    CHECK(judgement.outcome == Outcome::pass);
    CHECK(judgement.elements == 0);
    CHECK(judgement.matches.empty());
}
