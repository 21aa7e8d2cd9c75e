// SPDX-License-Identifier: MIT
// Tests the verdict of `vkrope check`: the bound, samples, tolerances, parts of a tensor, and
// errors that no mistake explains.
#include "judge_engine.hpp"

using namespace vkrope::tools;
namespace oracle = vkrope::oracle;
using oracle::Type;

namespace {

using There = std::function<bool(std::uint64_t b, std::uint64_t t, std::uint64_t h)>;

// Calls visit(element, channel) for each element of these rows.
template <class Visit>
void each_element(const There& there, const Visit& visit) {
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t row = i / head_dim;
        if (there(row / heads / tokens, row / heads % tokens, row % heads)) visit(i, i % head_dim);
    }
}

Case spoilt(
    const There& there,
    const std::function<bool(std::uint64_t channel)>& wrong = [](auto) { return true; }) {
    Case made;
    each_element(there, [&](std::size_t i, std::size_t channel) {
        const bool turns = channel >= q_offset && channel < q_offset + rotary_dim;
        made.out[i] += turns && wrong(channel) ? 1.0f : 0.0f;
    });
    return made;
}

bool is_first(std::uint64_t channel) {
    return channel == q_offset;
}

Frequencies with_wrong(Frequencies inv_freq, const std::vector<std::size_t>& wrong, double share) {
    for (const std::size_t pair : wrong) inv_freq[pair] *= 1 + share;
    return inv_freq;
}

}  // namespace

TEST_CASE("the bound is exactly that of the widest source of angles") {
    // The largest error of an element is u times |x0| + |x1| times the factor. An error of 5.9 of
    // these units passes, one of 6.2 does not.
    for (const double error : {5.9, 6.2}) {
        Case made;
        const std::size_t at = place(1, 4, 2, q_offset + 1),
                          other = place(1, 4, 2, q_offset + 1 + pairs);
        made.in[at] = 1.0f;
        made.in[other] = 3.0f;
        made.out = made.run();
        const double exact = 1.25 * (std::cos(16 * 0.25) - 3 * std::sin(16 * 0.25));
        made.out[at] = float(exact + error * 0x1p-24 * 1.25 * 4);
        const double off = std::fabs(double(made.out[at]) - exact) / (0x1p-24 * 1.25 * 4);
        const Judgement judgement = made.judged();
        CHECK(judgement.right.error_u() == doctest::Approx(off).epsilon(1e-6));
        CHECK((judgement.outcome == Outcome::pass) == (off <= 6));
        CHECK(judgement.outcome == (error < 6 ? Outcome::pass : Outcome::close));
    }
}

TEST_CASE("mistakes are tried on a sample, and named after comparing all elements") {
    const auto sampled = [](const std::vector<Change>& changes) {
        Case made(changes);
        made.limits.sampled_elements = 8 * head_dim;

        return made;
    };
    Case made = sampled({turn_back});
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
    CHECK(judgement.matches.empty());
    // An error that is only outside the sample is also detected.
    Case right = sampled({});
    check_right(right);
    right.out[unseen] += 1;
    CHECK(right.judged().outcome == Outcome::unexplained);
    // Two mistakes are also detected; the check looks for them only if one mistake is not enough.
    Case both = sampled({swap_pairing, turn_back});
    CHECK(both.judged().matches.front().mistake == "swapped_pairing + inverse_direction");
    both.out[unseen] += 1;
    CHECK(both.judged().outcome == Outcome::unexplained);
    CHECK(!find(both.judged(), "swapped_pairing + inverse_direction"));
    for (const Match& match : Case({swap_pairing}).judged().matches)
        CHECK(match.mistake.find(" + ") == std::string::npos);
}

TEST_CASE("positions on several axes are also tried on a sample") {
    const Setup axes = right([](Hypothesis& h) {
        set_sections(h, {.order = VKROPE_SECTIONS_SEQUENTIAL, .axes = 3, .pairs = {1, 2, 1}});
        h.operation.further.positions.resize(2);
        positions([](auto b, auto t, auto axis) { return 5 + 7 * b + t / (1 + axis); })(h);
    });
    Case made({[](Hypothesis&e) { e.operation.further = {}; }}, {axes}), usual({}, {axes});
    made.limits.sampled_elements = usual.limits.sampled_elements = 8 * head_dim;
    CHECK(made.judged().sampled < count);
    check_named("sections_ignored", made);
    check_right(usual);
}

TEST_CASE("without an explanation, the report says what was measured and names nothing") {
    // Head 1 is swapped and shifted by a channel.
    Case made;
    const std::vector<float> wrong = made.run({swap_pairing});
    each_element([](auto, auto, auto h) { return h == 1; },
                 [&](std::size_t i, std::size_t channel) {
                     made.out[i] = channel == q_offset ? 7 : wrong[i];
                 });
    const Judgement judgement = made.judged();
    CHECK(judgement.outcome == Outcome::unexplained);
    CHECK(judgement.wrong_in == "head 1");
    CHECK(judgement.wrong_rows == batch * tokens);
    CHECK(judgement.rows == batch * tokens * heads);
    CHECK(judgement.matches.empty());
    CHECK(!judgement.findings.empty());
}

TEST_CASE("a tolerance accepts other arithmetic within it, and no other operation") {
    Case rough({angles(float32_product)});
    // At such small positions the product is wrong by only a few u, so this bound is narrower.
    rough.seen.right.bound_u = 1.5;
    CHECK(rough.judged().outcome == Outcome::mistake);
    CHECK(rough.judged().matches.front().mistake == "float32_angles");
    rough.limits.accepts_close = true;
    CHECK(rough.judged().outcome == Outcome::close);
    rough.limits.tolerance = 1e-8;
    CHECK(rough.judged().outcome == Outcome::mistake);
    Case wrong({factor(usual_factor * 1.001)},
               {[](Observation& seen) { seen.softmax_scale = 1.001; }});
    wrong.limits.accepts_close = true;
    CHECK(wrong.judged().outcome == Outcome::mistake);
}

TEST_CASE("an engine that computes in 16 bits throughout is close, not right") {
    Case made = rounded_case(Type::bf16);
    const Judgement judgement = made.judged();
    CHECK(judgement.outcome == Outcome::close);
    CHECK(judgement.right.error_u() * 0x1p-24 > 1e-3);
    CHECK(judgement.right.error_u() * 0x1p-24 < 1e-2);
    made.limits.tolerance = 1e-3;
    CHECK(made.judged().outcome == Outcome::unexplained);
    // The same engine with one or two mistakes is not close, and the mistakes are found despite the
    // noise.
    const Judgement one = rounded_case(Type::bf16, {swap_pairing}).judged(),
                    two = rounded_case(Type::bf16, {swap_pairing, turn_back}).judged();
    CHECK(one.outcome == Outcome::mistake);
    CHECK(one.matches.front().mistake == "swapped_pairing");
    CHECK(!one.matches.front().explains);
    CHECK(one.matches.front().nearly);
    CHECK(two.outcome == Outcome::mistake);
    CHECK(two.matches.front().mistake == "swapped_pairing + inverse_direction");
    CHECK(!two.matches.front().explains);
}

TEST_CASE("errors in only a few pairs are not rounding, however small") {
    struct Odd {
        Frequencies right;
        std::vector<std::size_t> odd;
        double share;  // relative error of their frequencies
        At at;
        bool float32 = false;
    };
    const Frequencies ten = powers_of(5e5, 20, 10);
    const auto eight_from = [](std::int64_t first) {
        return [first](auto b, auto t, auto) { return first + (t + b) % 8; };
    };
    for (const Odd& each :
         {Odd{usual_frequencies, {3}, 0.02, from(5)}, Odd{usual_frequencies, {3}, 0.3, from(5)},
          Odd{usual_frequencies, {2}, 2e-3, from(5)}, Odd{usual_frequencies, {0}, 2e-5, from(5)},
          Odd{ten, {0}, 1e-6, eight_from(4096)}, Odd{ten, {0, 1}, 1e-6, eight_from(4096)},
          Odd{ten, {1}, 1e-7, eight_from(20000)}, Odd{ten, {4}, 1e-4, eight_from(4096), true},
          Odd{ten, {9}, 0.3, eight_from(4096), true}, Odd{ten, {9}, -0.3, eight_from(0)}}) {
        CAPTURE(each.odd.back());
        CAPTURE(each.share);
        std::vector<Change> changes = {frequencies(with_wrong(each.right, each.odd, each.share))};
        if (each.float32) changes.push_back(angles(float32_product));
        Case made(changes, {right(frequencies(each.right)), right(positions(each.at))});
        const Judgement judgement = made.judged();
        CHECK(judgement.right.error_u() * 0x1p-24 < made.limits.tolerance);
        CHECK(judgement.outcome == Outcome::unexplained);
        CHECK(judgement.odd_pairs == each.odd);
        CHECK(judgement.pairs == each.right.size());
        CHECK(judgement.matches.empty());
        made.limits.accepts_close = true;
        CHECK(made.judged().outcome == Outcome::unexplained);
    }
    // The right operation in other arithmetic has errors in all pairs with large angles.
    Case coarse;
    coarse.out = coarse.run_rounded([](double x) { return std::round(x * 0x1p14) / 0x1p14; });
    for (Case made : {rounded_case(Type::bf16), coarse,
                      Case({angles([](double p, double f) { return p * f * (1 + 0x1p-18); })})}) {
        CHECK(made.judged().odd_pairs.empty());
        CHECK(made.judged().outcome == Outcome::close);
    }
    for (const std::int64_t first : {20, 100, 1000, 4096, 20000}) {
        CAPTURE(first);
        Case made({angles(float32_product)},
                  {right(frequencies(ten)), right(positions(eight_from(first)))});
        made.limits.accepts_close = true;
        CHECK(made.judged().odd_pairs.empty());
        CHECK(made.judged().outcome <= Outcome::close);
    }
}

TEST_CASE("an output that no mistake explains is reported as unexplained") {
    const std::size_t inside = place(0, 3, 1, q_offset);
    Case one_value, noise, not_a_number, infinite, outside;
    one_value.out[inside] += 1;
    for (float& value : noise.out) value = 0.3f - value;
    not_a_number.out[inside] = std::numeric_limits<float>::quiet_NaN();
    infinite.out[inside] = std::numeric_limits<float>::infinity();
    outside.out[place(0, 3, 1, 0)] += 1;
    for (Case* made : {&one_value, &noise, &not_a_number, &infinite, &outside}) {
        const Judgement judgement = made->judged();
        CHECK(judgement.outcome == Outcome::unexplained);
        CHECK(judgement.breach != "");
        CHECK(judgement.matches.empty());
    }
    CHECK(std::isinf(not_a_number.judged().right.error_u()));
    // A channel that should pass through has no error in u, nor has a NaN.
    for (Case* made : {&outside, &not_a_number}) {
        const Judgement judged = made->judged();
        REQUIRE(judged.lone);
        CHECK(judged.lone->region == Region::element);
        CHECK(judged.lone->worst.token == 3);
        CHECK(!judged.lone->error_u);
    }
}

TEST_CASE("a report says which mistakes the data cannot show") {
    // At position 0 both pairings leave everything unchanged.
    const Judgement judgement =
        Case({}, {right(positions([](auto, auto, auto) { return 0; }))}).judged();
    CHECK(judgement.outcome == Outcome::pass);
    CHECK(judgement.matches.front().explains);
    for (const char* name : {"swapped_pairing", "inverse_direction"}) CHECK(find(judgement, name));
    CHECK(!find(judgement, "positions_zero"));  // its output would be right here
}

TEST_CASE("a tensor that threads share is counted as one") {
    // All tokens of a sequence are one row of memory, so each has the wrong channel.
    constexpr std::uint64_t many = 2000;  // enough for two threads
    Case made({}, {[](Observation& seen) { positions([](auto...) { return 5; })(seen.right); }});
    Hypothesis& right = made.seen.right;
    right.in.tokens = right.out.tokens = many;
    right.in.token_stride = right.out.token_stride = 0;
    right.operation.positions.assign(batch * many, 5);
    made.out[place(1, 0, 2, q_offset + 1)] += 1;
    made.seen.input = made.in.data();
    made.seen.output = made.out.data();
    const auto compared = [&](Until until) {
        return compare(made.seen, right, made.limits, all_tokens(right), {}, until);
    };
    const Comparison all = compared(Until::end);
    CHECK(all.verdict.elements == batch * many * heads * head_dim);
    CHECK(all.verdict.within == all.verdict.elements - many);
    CHECK(all.beyond() == many);
    CHECK(all.beyond_in[q_offset + 1] == many);
    CHECK(std::count(all.rows_beyond.begin(), all.rows_beyond.end(), true) == many);
    CHECK(std::count(all.rows_far.begin(), all.rows_far.end(), true) == many);
    CHECK(all.verdict.worst.place.batch == 1);
    CHECK(all.verdict.worst.place.token == 0);
    CHECK(all.first_beyond.token == 0);
    CHECK(all.last_beyond.token == many - 1);
    // The tokens up to the first wrong ones are compared, whichever thread is faster.
    for (const Until until : {Until::wrong, Until::beyond}) {
        CHECK(compared(until).beyond() == 16);
        CHECK(compared(until).verdict.elements == (many + 16) * heads * head_dim);
    }
}

TEST_CASE("an empty tensor is right") {
    Case made;
    made.seen.right.in.tokens = made.seen.right.out.tokens = 0;
    made.seen.right.operation.positions.clear();
    const Judgement judgement = made.judged();
    CHECK(judgement.outcome == Outcome::pass);
    CHECK(judgement.elements == 0);
    CHECK(judgement.matches.empty());
}

TEST_CASE("a mistake in a part of the rows is found in these rows") {
    struct Planted {
        const char* name;
        const char* where;
        Change change;
        There there;
    };
    const Change later = positions(from(6));
    const Planted all[] = {
        {"swapped_pairing", "head 1", swap_pairing, [](auto, auto, auto h) { return h == 1; }},
        {"swapped_pairing", "heads 0, 2", swap_pairing, [](auto, auto, auto h) { return h != 1; }},
        {"position_plus_one", "token 3", later, [](auto, auto t, auto) { return t == 3; }},
        {"position_plus_one", "sequence 1", later, [](auto b, auto, auto) { return b == 1; }},
        {"swapped_pairing", "sequence 0, tokens 2-4, 7, heads 0-1", swap_pairing,
         [](auto b, auto t, auto h) { return b == 0 && h < 2 && ((t >= 2 && t < 5) || t == 7); }},
        {"swapped_pairing", "27 of 54 rows", swap_pairing,
         [](auto b, auto t, auto h) { return (b * tokens * heads + t * heads + h) % 2 == 0; }},
    };
    for (const Planted& planted : all) {
        CAPTURE(planted.where);
        Case made;
        const std::vector<float> wrong = made.run({planted.change});
        each_element(planted.there, [&](std::size_t i, std::size_t) { made.out[i] = wrong[i]; });
        const Judgement judgement = made.judged();
        CHECK(judgement.outcome == Outcome::mistake);
        const Match& first = judgement.matches.front();
        CHECK(first.mistake == planted.name);
        CHECK(first.where == planted.where);
        CHECK(first.explains);
        CHECK(first.error_u() <= 1.0);  // only in that part
        CHECK(judgement.matches.size() == 1);
        CHECK(judgement.wrong_rows < judgement.rows);
        // One more value in that part is wrong, which the mistake does not explain.
        std::size_t last = 0;
        each_element(planted.there, [&](std::size_t i, std::size_t channel) {
            last = is_first(channel) ? i : last;
        });
        made.out[last] += 1;
        const Judgement with_another = made.judged();
        CHECK(with_another.outcome == Outcome::unexplained);
        CHECK(with_another.matches.empty());
    }
}

TEST_CASE("a single wrong place is reported with its index") {
    const There row = [](auto b, auto t, auto h) { return b == 1 && t == 4 && h == 2; };
    Case one = spoilt(row, [](auto channel) { return channel == q_offset + 1; });
    const Judgement judgement = one.judged();
    REQUIRE(judgement.lone);
    CHECK(judgement.lone->worst.batch == 1);
    CHECK(judgement.lone->worst.token == 4);
    CHECK(judgement.lone->worst.head == 2);
    CHECK(judgement.lone->worst.channel == q_offset + 1);
    const std::size_t at = place(1, 4, 2, q_offset + 1);
    const double x0 = one.in[at], x1 = one.in[at + pairs],
                 exact = 1.25 * (x0 * std::cos(16 * 0.25) - x1 * std::sin(16 * 0.25)),
                 unit = 0x1p-24 * 1.25 * (std::fabs(x0) + std::fabs(x1));
    CHECK(judgement.lone->expected == doctest::Approx(exact).epsilon(1e-14));
    CHECK(judgement.lone->actual == double(one.out[at]));
    CHECK(*judgement.lone->error_u ==
          doctest::Approx(std::fabs(double(one.out[at]) - exact) / unit).epsilon(1e-9));

    struct Spoilt {
        Region region;
        std::uint64_t wrong;
        Case made;
    };
    Spoilt all[] = {
        {Region::element, 1, one},
        {Region::row, rotary_dim, spoilt(row)},
        {Region::token, heads * rotary_dim,
         spoilt([](auto b, auto t, auto) { return b == 1 && t == 4; })},
        {Region::head, batch * tokens * rotary_dim,
         spoilt([](auto, auto, auto h) { return h == 2; })},
        {Region::sequence, 2 * heads * rotary_dim,
         spoilt([](auto b, auto t, auto) { return b == 1 && (t == 4 || t == 5); })},
        // Wrong values are in heads 0, 1 and 0.
        {Region::sequence, 3,
         spoilt([](auto b, auto t, auto h) { return b == 1 && t > 3 && t < 7 && h == t % 2; },
                is_first)}};
    for (Spoilt& each : all) {
        CAPTURE(int(each.region));
        const Judgement judged = each.made.judged();
        CHECK(judged.outcome == Outcome::unexplained);
        REQUIRE(judged.lone);
        CHECK(judged.lone->region == each.region);
        CHECK(judged.lone->wrong == each.wrong);
    }
    // Two values in two rows do not share a region. With a mistake that explains everything, or a
    // pass, the report has no region.
    CHECK(!spoilt([](auto b, auto t, auto h) { return t == 4 + b && h == b; }, is_first)
               .judged()
               .lone);
    CHECK(!Case({turn_back}).judged().lone);
    CHECK(!Case().judged().lone);
}
