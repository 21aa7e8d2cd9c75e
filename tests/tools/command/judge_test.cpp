// SPDX-License-Identifier: MIT
// Tests that `vkrope check` names an engine's mistake: tables of mistakes in the rotation, in
// positions on several axes, in scalings and in the arithmetic. The engine is the oracle with one
// field changed.
#include <cmath>
#include <string>

#include "judge_engine.hpp"
#include "support/names.hpp"

using namespace vkrope::tools;
namespace oracle = vkrope::oracle;
namespace test = vkrope::test;
using oracle::Gain, oracle::Tensor, oracle::Type;
using vkrope::RopeParams, vkrope::Sections, vkrope::YarnScaling;

namespace {

// A mistake: its changes of the definition, and the definition unless it is the default one.
struct Made {
    std::string name;
    std::vector<Change> changes;
    std::vector<Setup> setups = {};
};

void check_each(const std::vector<Made>& all) {
    for (const Made& each : all) check_named(each.name, Case(each.changes, each.setups));
}

void write_other_order(Hypothesis& e) {
    e.operation.interleaved_out = !e.operation.interleaved;
}

void take_heads_for_tokens(Hypothesis& e) {
    for (Tensor* tensor : {&e.in, &e.out}) {
        std::swap(tensor->tokens, tensor->heads);
        std::swap(tensor->token_stride, tensor->head_stride);
    }
    e.operation.positions = {5, 6, 7, 12, 13, 14};
}

void take_sequences_for_tokens(Hypothesis& e) {
    for (Tensor* tensor : {&e.in, &e.out}) {
        std::swap(tensor->tokens, tensor->batch);
        std::swap(tensor->token_stride, tensor->batch_stride);
    }
    e.operation.positions.clear();
    for (std::uint64_t token = 0; token < tokens; ++token)
        e.operation.positions.insert(e.operation.positions.end(), {5, 6});
}

void rotate_twice(Hypothesis& e) {
    e.operation.attention_factor *= e.operation.attention_factor;
    each_axis(e, [](Positions& all) {
        for (std::int64_t& position : all) position *= 2;
    });
}

void exchange_cos_and_sin(Hypothesis& e) {
    e.operation.cos_sin = [](std::int64_t position, std::size_t pair) {
        const oracle::CosSin turn = oracle::exact_cos_sin(position, usual_frequencies[pair]);
        return oracle::CosSin{turn.sin, turn.cos};
    };
}

// Makes another hypothesis compute the second channel of each pair.
void with_second_channels(Hypothesis& e, const Hypothesis& other) {
    e.other_channels.resize(head_dim);
    for (const oracle::Pair& pair : oracle::pairs_of(e.operation))
        e.other_channels[pair.out[1]] = true;
    e.of_other_channels = std::make_shared<const Hypothesis>(other);
}

const At later = from(6), along_tokens = [](auto, auto t, auto) { return t; };
const Frequencies unscaled = powers_of(500, rotary_dim);

Frequencies scaled_twice() {
    Frequencies inv_freq = usual_frequencies;
    for (std::size_t j = 0; j < pairs; ++j) inv_freq[j] *= inv_freq[j] / unscaled[j];
    return inv_freq;
}

RopeParams rotation_with(const Frequencies& inv_freq, double attention_factor) {
    RopeParams rotation;
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.inv_freq = inv_freq;
    rotation.rotary_dim = std::uint32_t(2 * inv_freq.size());
    rotation.attention_factor = attention_factor;
    return rotation;
}

}  // namespace

TEST_CASE("mistakes in the rotation") {
    check_right(Case());
    check_each({
        {"swapped_pairing", {swap_pairing}},
        {"reordered_pairs", {write_other_order}},
        {"attention_factor_missing", {factor(1)}},
        {"attention_factor_twice", {factor(usual_factor * usual_factor)}},
        {"attention_factor_divided", {factor(1 / usual_factor)}},
        {"attention_factor_applied",
         {[](Hypothesis& e) { e.operation.gain = Gain::apply; }},
         {right([](Hypothesis& e) { e.operation.gain = Gain::omit; })}},
        {"softmax_scale_applied", {factor(usual_factor * 1.7)}},
        {"scaling_ignored", {frequencies(unscaled), factor(1)}},
        {"frequencies_unscaled", {frequencies(unscaled)}},
        {"scaling_twice", {frequencies(scaled_twice())}},
        {"scaling_twice",
         {frequencies(times(unscaled, 1.0 / 16))},
         {right(frequencies(times(unscaled, 1.0 / 4))), right(factor(1))}},
        {"position_plus_one", {positions(later)}},
        {"position_minus_one", {positions(from(4))}},
        {"inverse_direction", {turn_back}},
        {"not_rotated", {no_rotation}},
        {"positions_zero", {positions([](auto, auto, auto) { return 0; })}},
        {"positions_from_zero", {positions(along_tokens)}},
        {"positions_of_first_sequence", {positions([](auto, auto t, auto) { return 5 + t; })}},
        {"positions_of_first_token",
         {positions([](auto b, auto, auto) { return 300 + 7 * b; })},
         {right(positions(from(300)))}},
        {"rotated_twice", {rotate_twice}},
        {"cos_and_sin_exchanged", {exchange_cos_and_sin}},
        {"window_of_the_other_tensor", {offset(k_offset)}},
        {"window_at_start", {offset(0)}},
        {"window_at_end", {offset(head_dim - rotary_dim)}},
        {"windows_joined",
         {[](Hypothesis& e) { e.operation.windows.clear(); }},
         {right([](Hypothesis& e) {
             e.operation.windows = {{0, 2}, {4, 2}};
         })}},
        {"whole_head", {offset(0), frequencies(powers_of(500, head_dim, head_dim / 2))}},
        {"exponent_of_head_dim", {frequencies(powers_of(500, head_dim))}},
        {"base_10000", {frequencies(powers_of(10000, rotary_dim)), factor(1)}},
        {"base_10000_with_factor", {frequencies(powers_of(10000, rotary_dim))}},
        {"inclusive_spacing", {frequencies(powers_of(500, 6))}},
        {"positions_along_heads", {take_heads_for_tokens}},
        {"positions_along_batch", {take_sequences_for_tokens}},
        {"tokens_and_heads_exchanged", {[](Hypothesis& e) {
             e.out.token_stride = head_dim;
             e.out.head_stride = tokens * head_dim;
         }}},
        {"tokens_and_sequences_exchanged", {[](Hypothesis& e) {
             e.out.batch_stride = heads * head_dim;
             e.out.token_stride = batch * heads * head_dim;
         }}},
    });
    test::check_names(check_named("swapped_pairing", Case({swap_pairing})).meaning,
                      "interleaved half_split");
    test::check_names(
        check_named("swapped_pairing", Case({swap_pairing}, {right(swap_pairing)})).meaning,
        "half_split interleaved");
}

TEST_CASE("other bases, factors and positions are read from the output") {
    const Setup ten = right(frequencies(ten_frequencies));
    const auto squares = [](auto b, auto t, auto) { return 3 + 40 * b + t * t; };
    const auto packed = [](auto b, auto t, auto) { return t < 4 ? t + 2 : t - 4 + b; };
    const auto some_zero = [](auto b, auto t, auto) { return t < 5 ? 0 : 60 + 9 * b + t; };
    Frequencies inverted = unscaled;
    for (std::size_t j = 0; j < pairs; ++j) inverted[j] *= unscaled[j] / usual_frequencies[j];
    check_each({
        {"another_base", {frequencies(powers_of(7000, rotary_dim))}},
        {"another_scaling", {frequencies(times(unscaled, 1.0 / 3))}},
        {"scaling_inverted", {frequencies(inverted)}},
        {"positions_consecutive",
         {positions([](auto b, auto t, auto) { return 3 + 40 * b + t; })},
         {right(positions(squares))}},
        {"positions_not_restarted", {positions(along_tokens)}, {right(positions(packed))}},
        {"zero_ids_replaced",
         {positions([=](auto b, auto t, auto axis) {
             return t < 5 ? std::int64_t(t) : some_zero(b, t, axis);
         })},
         {right(positions(some_zero))}},
        {"positions_clamped",
         {positions(
             [](auto b, auto t, auto) { return std::min<std::int64_t>(15, 5 + 7 * b + t); })},
         {ten}},
        {"positions_in_another_order",
         {positions([](auto b, auto t, auto) { return 5 + 7 * b + 2 * t % 9; })},
         {ten}},
        {"other_positions",
         {positions([](auto b, auto t, auto) { return 100 + 31 * t * t + 5 * b * (t + 1); })},
         {ten}},
    });
    const Match some = check_named("position_offset", Case({positions([](auto b, auto t, auto) {
                                                               return 5 + 7 * b + t +
                                                                      (b == 1 && t > 4 ? 64 : 0);
                                                           })},
                                                           {ten}));
    CHECK(some.meaning.find("sequence 1 tokens 5-8 64 too large") != std::string::npos);
}

TEST_CASE("tables in the order of the other pairing, and Q and K crossed") {
    Hypothesis second = Case().seen.right;
    const Frequencies& f = usual_frequencies;
    second.operation.inv_freq = {f[2], f[2], f[3], f[3]};
    check_named("table_order_of_other_pairing",
                Case({frequencies({f[0], f[0], f[1], f[1]}),
                      [&second](Hypothesis& e) { with_second_channels(e, second); }}));
    const std::vector<float> numbers(count, 0.75f);
    const std::vector<std::byte> k = stored(numbers, Type::f32);
    const Setup beside_k = [&k](Observation& seen) {
        seen.other_input = k.data();
        seen.other_in = seen.right.in;
    };
    Hypothesis of_k = second;
    of_k.operation.inv_freq = f;
    of_k.input = k.data();
    check_named("q_and_k_exchanged",
                Case({[&k](Hypothesis& e) { e.input = k.data(); }}, {beside_k}));
    check_named("q_and_k_crossed",
                Case({[&of_k](Hypothesis& e) { with_second_channels(e, of_k); }}, {beside_k}));
}

TEST_CASE("two mistakes in one output are both named") {
    check_each({
        {"swapped_pairing + attention_factor_missing", {swap_pairing, factor(1)}},
        {"swapped_pairing + inverse_direction", {swap_pairing, turn_back}},
        {"attention_factor_missing + position_plus_one", {factor(1), positions(later)}},
        {"position_plus_one + inverse_direction", {turn_back, positions(later)}},
        {"scaling_ignored + window_at_start", {frequencies(unscaled), factor(1), offset(0)}},
        {"reordered_pairs + positions_along_heads", {write_other_order, take_heads_for_tokens}},
        {"inverse_direction + cos_and_sin_exchanged", {exchange_cos_and_sin, turn_back}},
        {"swapped_pairing + positions_of_first_token",
         {swap_pairing, positions([](auto b, auto, auto) { return 300 + 7 * b; })},
         {right(positions(from(300)))}},
    });
    // The report has both meanings, and neither mistake alone is a match.
    const Judgement judgement = Case({swap_pairing, turn_back}).judged();
    test::check_names(judgement.matches.front().meaning, "half_split direction");
    CHECK(!find(judgement, "swapped_pairing"));
}

// The frame, height and width of a token; all axes and sequences differ.
namespace {
std::int64_t of_image(std::int64_t b, std::int64_t t, std::uint32_t axis) {
    return axis == 0 ? 5 + 7 * b + t / 3 : axis == 1 ? 11 + 2 * b + t % 3 : 3 + 5 * (t % 4);
}

// Makes an engine use these axes for the pairs.
Change on_axes(const std::vector<std::uint32_t>& axes) {
    return [axes](Hypothesis& e) { e.operation.further.axes = axes; };
}

Setup with_sections(const Sections& sections) {
    return right([sections](Hypothesis& e) {
        set_sections(e, sections);
        e.operation.further.positions.resize(sections.axes - 1);
        positions(of_image)(e);
    });
}

Change exchanged(std::uint32_t one, std::uint32_t other) {
    return positions([=](auto b, auto t, auto axis) {
        return of_image(b, t, axis == one ? other : axis == other ? one : axis);
    });
}

const Sections in_order = {.order = VKROPE_SECTIONS_SEQUENTIAL, .axes = 3, .pairs = {1, 2, 1}},
               alternating = {.order = VKROPE_SECTIONS_INTERLEAVED, .axes = 3, .pairs = {1, 2, 1}},
               of_two = {.order = VKROPE_SECTIONS_SEQUENTIAL, .axes = 2, .pairs = {2, 2}};
}  // namespace

TEST_CASE("positions on several axes") {
    const std::vector<std::pair<Sections, std::vector<std::uint32_t>>> all = {
        {in_order, {0, 1, 1, 2}}, {alternating, {0, 1, 2, 0}}, {of_two, {0, 0, 1, 1}}};
    for (const auto& each : all) {
        const Sections& sections = each.first;
        const std::vector<std::uint32_t>& axes = each.second;
        CAPTURE(sections.axes);
        const Setup setup = with_sections(sections);
        check_right(Case({on_axes(axes)}, {setup}));
        check_each({
            {"sections_ignored", {on_axes({0, 0, 0, 0})}, {setup}},
            {"position_plus_one", {moved(1)}, {setup}},
            {"positions_from_zero", {positions(along_tokens)}, {setup}},
            {"positions_of_first_sequence",
             {positions([](auto, auto t, auto axis) { return of_image(0, t, axis); })},
             {setup}},
            {"inverse_direction", {turn_back}, {setup}},
            {"rotated_twice", {rotate_twice}, {setup}},
        });
    }
    check_each({
        {"sections_in_the_other_order", {on_axes({0, 1, 2, 0})}, {with_sections(in_order)}},
        {"sections_in_the_other_order", {on_axes({0, 1, 1, 2})}, {with_sections(alternating)}},
        {"height_and_width_exchanged", {exchanged(1, 2)}, {with_sections(in_order)}},
        {"height_and_width_exchanged", {exchanged(1, 2)}, {with_sections(alternating)}},
        {"height_and_width_exchanged", {exchanged(0, 1)}, {with_sections(of_two)}},
    });
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): owned by std::function

TEST_CASE("one offset of all axes") {
    const Setup ten = right(frequencies(ten_frequencies));
    check_each({
        {"position_offset", {moved(300)}, {with_sections(in_order), ten}},
        {"position_offset", {moved(300)}, {with_sections(alternating), ten}},
        {"position_offset", {moved(300)}, {with_sections(of_two), ten}},
    });
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): owned by std::function

TEST_CASE("axes that alternate beyond the end of their sections") {
    // Eight pairs: all of them turn with time, except for three of height and width.
    const Setup setup = with_sections(
        {.order = VKROPE_SECTIONS_INTERLEAVED, .axes = 3, .pairs = {6, 1, 1}});
    const Setup eight = right(frequencies({0.9, 0.4, 0.1, 0.06, 0.01, 1e-3, 4e-5, 2e-6}));
    check_each({
        {"sections_without_end", {on_axes({0, 1, 2, 0, 1, 2, 0, 1})}, {eight, setup}},
        // Any other choice is read from the output. The slowest pairs differ by less than the
        // tolerance.
        {"pairs_on_other_axes", {on_axes({0, 1, 2, 0, 0, 0, 2, 1})}, {eight, setup}},
        {"pairs_on_other_axes", {on_axes({0, 1, 2, 0, 0, 0, 2, 0})}, {eight, setup}},
        {"pairs_on_other_axes", {on_axes({2, 1, 0, 0, 0, 0, 0, 0})}, {eight, setup}},
    });
    const Judgement judgement = Case({on_axes({0, 1, 2, 0, 0, 0, 2, 1})}, {eight, setup}).judged();
    CHECK(judgement.odd_pairs == std::vector<std::size_t>{6, 7});
    CHECK(judgement.matches.front().meaning.find("pair 7 on axis 1") != std::string::npos);
}

TEST_CASE("equal positions on all axes cannot show a mistake in the sections") {
    const Setup equal = right(positions([](auto b, auto t, auto) { return of_image(b, t, 0); }));
    const Judgement judgement = Case({}, {with_sections(in_order), equal}).judged();
    CHECK(judgement.outcome == Outcome::pass);
    int blind = 0;
    for (const Match& match : judgement.matches)
        blind += match.explains && match.mistake != "subnormals_flushed";
    CHECK(blind == 3);
}

namespace {

// Sets up a model whose window begins at channel 0, like that of the other tensor.
Setup model(const Frequencies& inv_freq, double attention_factor = 1, double base = 500) {
    return [=](Observation& seen) {
        seen.right.operation.inv_freq = inv_freq;
        seen.right.operation.rotary_offset = 0;
        seen.right.operation.attention_factor = attention_factor;
        seen.base = base;
        seen.other_offset = 0;
        seen.softmax_scale = 1;
    };
}

Frequencies with_zeros(Frequencies inv_freq, std::size_t number) {
    inv_freq.resize(number);
    return inv_freq;
}

// YaRN's parameters, and the share of the slow frequency in each pair (arXiv:2309.00071).
struct Yarn {
    double base, scale, length;
    bool is_rounded;

    static constexpr std::size_t pairs = 10;

    double share(std::size_t j) const {
        const auto pair_of = [&](double turns) {
            return 2 * pairs * std::log(length / (turns * 2 * std::acos(-1.0))) /
                   (2 * std::log(base));
        };
        const double low = is_rounded ? std::floor(pair_of(32)) : pair_of(32),
                     high = is_rounded ? std::ceil(pair_of(1)) : pair_of(1);
        return std::min(1.0, std::max(0.0, (double(j) - low) / (high - low)));
    }

    // Blends the frequencies with slow frequencies by these shares.
    Frequencies blended(const Frequencies& slow) const {
        Frequencies inv_freq = powers_of(base, 2 * pairs, pairs);
        for (std::size_t j = 0; j < pairs; ++j)
            inv_freq[j] = slow[j] * share(j) + inv_freq[j] * (1 - share(j));
        return inv_freq;
    }

    Frequencies inv_freq() const {
        return blended(times(powers_of(base, 2 * pairs, pairs), 1 / scale));
    }

    std::vector<Setup> setups(double attention_factor = 1) const {
        const std::vector<YarnScaling> in_file = {
            {.factor = 3, .original_max_position_embeddings = length},
            {.factor = scale, .original_max_position_embeddings = 2 * length},
            {.factor = scale, .original_max_position_embeddings = length}};
        return {model(inv_freq(), attention_factor, base),
                [in_file](Observation& seen) { seen.yarn = in_file; }};
    }
};

const Yarn yarns[] = {{500, 16, 4096, true},
                      {500, 16, 4096, false},
                      {10000, 40, 4096, true},
                      {10000, 40, 4096, false},
                      {150000, 32, 8192, false}};

}  // namespace

TEST_CASE("YaRN: the range of pairs, the factor in the power, and the magnitude") {
    for (const Yarn& yarn : yarns) {
        CAPTURE(yarn.base);
        CAPTURE(yarn.is_rounded);
        Yarn otherwise = yarn;
        otherwise.is_rounded = !yarn.is_rounded;
        const double magnitude = 0.1 * std::log(yarn.scale) + 1;
        const Frequencies slow = powers_of(yarn.scale * yarn.base, 2 * Yarn::pairs, Yarn::pairs);
        check_each({
            {yarn.is_rounded ? "yarn_range_unrounded" : "yarn_range_rounded",
             {frequencies(otherwise.inv_freq())},
             yarn.setups()},
            {"factor_in_power", {frequencies(yarn.blended(slow))}, yarn.setups()},
            {"yarn_magnitude_applied", {factor(magnitude)}, yarn.setups()},
            {"attention_factor_missing", {factor(1)}, yarn.setups(magnitude)},
        });
        CHECK(Case({}, yarn.setups()).judged().outcome == Outcome::pass);
        for (const double another : {0.088388347648, 0.93, 1.07, 1.5}) {
            const Match match = check_named("another_factor",
                                            Case({factor(another)}, yarn.setups(1.25)));
            CHECK(match.meaning.find("not 1.25") != std::string::npos);
        }
    }
    check_each({
        // The fast pairs are not scaled, although linear scaling scales all pairs.
        {"factor_in_power", {frequencies(powers_of(2000, 8))}, {model(times(unscaled, 0.25))}},
        {"softmax_root_applied",
         {factor(std::sqrt(1.7))},
         {model(unscaled), [](Observation& seen) { seen.softmax_scale = 1.7; }}},
    });
}

TEST_CASE("proportional scaling and partial rotation, confused with each other") {
    for (const double base : {500.0, 1000000.0}) {
        CAPTURE(base);
        const Frequencies partial = powers_of(base, rotary_dim),
                          of_head = powers_of(base, head_dim);
        constexpr std::size_t all = head_dim / 2;
        const Frequencies wide = with_zeros(of_head, all);
        check_each({
            {"proportional_instead_of_partial", {frequencies(wide)}, {model(partial, 1, base)}},
            {"proportional_instead_of_partial",
             {frequencies(times(wide, 0.25))},
             {model(times(partial, 0.25), 1, base)}},
            {"pair_distance_of_head_dim",
             {frequencies(with_zeros(partial, all))},
             {model(partial, 1, base)}},
            {"exponent_of_head_dim", {frequencies(of_head)}, {model(partial, 1, base)}},
        });
        for (const double share : {1.0, 1.0 / 8}) {
            const Setup proportional = model(times(wide, share), 1, base);
            check_each({
                {"partial_instead_of_proportional",
                 {frequencies(times(partial, share))},
                 {proportional}},
                {"pair_distance_of_partial", {frequencies(times(of_head, share))}, {proportional}},
                {"exponent_of_partial",
                 {frequencies(with_zeros(times(partial, share), all))},
                 {proportional}},
            });
        }
    }
}

TEST_CASE("mistakes that rotate half of the window") {
    const Setup usual = model(usual_frequencies);
    check_each({
        {"half_of_window", {frequencies({0.9, 0.03})}, {usual}},
        {"half_of_window_and_frequencies", {frequencies({0.9, 0.25})}, {usual}},
        {"half_of_window_and_frequencies",
         {frequencies({0.9, 0.25})},
         {usual, right(swap_pairing)}},
        {"second_half_of_window", {frequencies({0.9, 0.03}), offset(4)}, {usual}},
        {"second_half_of_pairs", {frequencies({0, 0, 0.03, 0.0007})}, {usual}},
        {"half_of_pairs", {frequencies({0.9, 0.25, 0, 0})}, {usual}},
    });
}

TEST_CASE("a constant offset of all positions, of any value") {
    const auto check_offset = [](const Match& match, std::int64_t distance) {
        CAPTURE(match.meaning);
        CHECK(match.meaning.find(std::to_string(std::abs(distance)) +
                                 (distance > 0 ? " too large" : " too small")) !=
              std::string::npos);
    };
    const Setup ten = [](Observation& seen) {
        seen.right.operation.inv_freq = ten_frequencies;
        seen.max_position = 2000000;
    };
    for (const std::int64_t distance : {2, -3, 17, 5588, -100000, 1000000}) {
        CAPTURE(distance);
        check_offset(check_named("position_offset", Case({moved(distance)}, {ten})), distance);
        check_offset(
            check_named("position_offset", Case({moved(distance)}, {ten, right(turn_back)})),
            distance);
        const Match two = Case({moved(distance), swap_pairing}, {ten}).judged().matches.front();
        CHECK(two.mistake == "swapped_pairing + position_offset");
        CHECK(two.explains);
        // An engine that computes in 16 bits matches nearly, and the check finds its offset, too.
        const Judgement rough = rounded_case(Type::bf16, {moved(distance)}, {ten}).judged();
        CHECK(rough.outcome == Outcome::mistake);
        CHECK(rough.matches.front().mistake == "position_offset");
        check_offset(rough.matches.front(), distance);
    }
    // Too few pairs show a position, and no position is above the model's length.
    Frequencies few = ten_frequencies;
    std::fill(few.begin() + 5, few.end(), 0.0);
    const Setup short_model = [](Observation& seen) { seen.max_position = 5000; };
    CHECK(Case({moved(5588)}, {right(frequencies(few))}).judged().outcome == Outcome::unexplained);
    CHECK(Case({moved(5588)}, {ten, short_model}).judged().outcome == Outcome::unexplained);
    check_named("position_offset", Case({moved(4588)}, {ten, short_model}));
    // An output without offset and factor shows no offset and no factor.
    for (const Case& made :
         {rounded_case(Type::bf16), Case({turn_back}), Case({frequencies({0.8, 0.3, 0.02, 0.003})}),
          Case({positions([](auto b, auto t, auto) { return t * t + 3 * b; })})}) {
        const Judgement judgement = Case(made).judged();
        CHECK(!find(judgement, "position_offset"));
        CHECK(!find(judgement, "another_factor"));
    }
}

TEST_CASE("one position for all tokens") {
    for (const std::int64_t position : {1, 308, 3000}) {
        const Change stop = positions([position](auto, auto, auto) { return position; });
        const Setup far = [](Observation& seen) {
            seen.right.operation.inv_freq = ten_frequencies;
            positions(from(300))(seen.right);
            seen.max_position = 4000;
        };
        test::check_names(check_named("one_position", Case({stop}, {far})).meaning,
                          std::to_string(position));
        check_named("swapped_pairing + one_position", Case({swap_pairing, stop}, {far}));
        // The other direction looks like a position with the other sign.
        const Judgement turned_back = Case({stop, turn_back}, {far}).judged();
        CHECK(turned_back.matches.front().mistake == "one_position");
        test::check_names(
            turned_back.matches.front().meaning,
            std::to_string(-position) + " " + std::to_string(position) + " direction");
    }
}

TEST_CASE("a layer without RoPE is right unrotated, and a rotated one is named") {
    const Setup without = [](Observation& seen) {
        no_rotation(seen.right);
        seen.right.operation.further.axes.clear();
        seen.right.operation.attention_factor = 1;
        seen.others = {{"other_layer_type", "of the sliding layers", rotation_with({0.5, 0.1}, 1)},
                       {"other_layer_type", "of the full layers",
                        rotation_with(ten_frequencies, usual_factor)}};
    };
    const Change rotate = [](Hypothesis& e) {
        frequencies(ten_frequencies)(e);
        factor(usual_factor)(e);
    };
    const Judgement still = Case({}, {without}).judged();
    CHECK(still.outcome == Outcome::pass);
    for (const Match& match : still.matches) CHECK(!match.explains);
    const Match match = check_named("rotated_without_rope", Case({rotate}, {without}));
    CHECK(match.meaning.find("of the full layers") != std::string::npos);
    const Change by_axes = [&](Hypothesis& e) {
        rotate(e);
        set_sections(e, e.sections);
    };
    check_named("rotated_without_rope", Case({by_axes}, {with_sections(in_order), without}));
    const auto first = [&](const Change& change) {
        return Case({rotate, change}, {without}).judged().matches.front().mistake;
    };
    CHECK(first(swap_pairing) == "rotated_without_rope + swapped_pairing");
    CHECK(first(moved(100)) == "rotated_without_rope + position_offset");
    Case spoilt({}, {without});
    spoilt.out[place(1, 2, 0, 3)] += 1;
    CHECK(spoilt.judged().outcome == Outcome::unexplained);
}

TEST_CASE("other RoPEs of the model") {
    const auto given = [](const char* mistake, const RopeParams& rotation) {
        return [=](Observation& seen) { seen.others = {{mistake, "of other layers", rotation}}; };
    };
    for (const RopeParams& other :
         {rotation_with({0.8, 0.2, 0.02, 0.001}, 1.5), rotation_with({0.9, 0.1}, 1),
          rotation_with({0.7, 0.2, 0.1, 0.05, 0.01}, 1.5)}) {
        check_named("other_layer_type",
                    Case({frequencies(other.inv_freq), factor(other.attention_factor)},
                         {given("other_layer_type", other)}));
    }
    // A RoPE that is too wide for the row is left out.
    const RopeParams wide = rotation_with(Frequencies(head_dim, 0.1), 1);
    Case usual({}, {given("other_layer_type", wide)});
    CHECK(usual.judged().outcome == Outcome::pass);
    CHECK(!find(usual.judged(), "other_layer_type"));
    // If another mistake gives the same output, the report has one mistake with two meanings.
    Case short_sequence({frequencies(unscaled), factor(1)},
                        {given("short_sequence", rotation_with(unscaled, 1))});
    const Match match = check_named("scaling_ignored", short_sequence);
    CHECK(match.meaning.find(": of other layers") != std::string::npos);
    CHECK(!find(short_sequence.judged(), "short_sequence"));
}

TEST_CASE("angles in float32") {
    const Setup far = right(positions([](auto b, auto t, auto) { return 100000 + 31 * b + t; }));
    check_named("float32_angles", Case({angles(float32_product)}, {far}));
    const Change running = [](Hypothesis& e) {
        e.operation.cos_sin = [](std::int64_t position, std::size_t pair) {
            auto angle = float(position);
            for (std::size_t j = 0; j < pair; ++j) angle *= std::pow(500.0f, -2.0f / 8.0f);
            const long double turned = angle * float(usual_frequencies[pair] / unscaled[pair]);
            return oracle::CosSin{std::cos(turned), std::sin(turned)};
        };
    };
    check_named("float32_angles_by_running_product", Case({running}, {far}));
}

TEST_CASE("an engine whose frequencies are float32 too") {
    const std::vector<Setup> farther = {
        right(frequencies(unscaled)),
        right(positions([](auto b, auto t, auto) { return 1000000 + 31 * b + t; }))};
    Frequencies in_float32;
    for (std::size_t j = 0; j < pairs; ++j)
        in_float32.push_back(1.0f / std::pow(500.0f, float(2 * j) / float(rotary_dim)));
    const auto changes = [](const Frequencies& inv_freq) {
        return std::vector<Change>{frequencies(inv_freq), angles(float32_product)};
    };
    check_named("float32_angles", Case(changes(in_float32), farther));
    // With a different pow(), each pair has a different error in the last places.
    const auto after = [](double x, float toward) { return std::nextafter(float(x), toward); };
    Frequencies other = in_float32;
    other[1] = after(after(std::max(float(other[1]), float(unscaled[1])), 1), 1);
    other[2] = after(other[2], 0);
    check_named("float32_angles", Case(changes(other), farther));
    check_named("swapped_pairing + float32_angles",
                Case({swap_pairing, frequencies(other), angles(float32_product)}, farther));
    // A frequency with a larger error counts as a different frequency.
    other[1] *= 1.000002f;
    CHECK(Case(changes(other), farther).judged().matches.empty());
    // 1/3 and 2/3 as float32, times ln(base): the frequencies are off by several units in the last
    // place.
    check_named(
        "float32_angles",
        Case(
            changes({1.0f, 1.0f / std::pow(1e9f, 2.0f / 6.0f), 1.0f / std::pow(1e9f, 4.0f / 6.0f)}),
            {[](Observation& seen) {
                seen.base = 1e9;
                frequencies(powers_of(1e9, 6, 3))(seen.right);
                positions([](auto b, auto t, auto) { return 10000000 + 31 * b + t; })(seen.right);
            }}));
}

namespace {

constexpr std::pair<Type, const char*> types_of_16_bits[] = {{Type::bf16, "bf16"},
                                                             {Type::f16, "f16"}};

Change round_frequencies(Type type) {
    return [type](Hypothesis& e) {
        for (double& frequency : e.operation.inv_freq) frequency = rounded(type, frequency);
    };
}

Change round_positions(Type type) {
    return [type](Hypothesis& e) {
        for (std::int64_t& position : e.operation.positions)
            position = std::int64_t(rounded(type, double(position)));
    };
}

Change round_products(Type type) {
    return angles(
        [type](double position, double inv_freq) { return rounded(type, position * inv_freq); });
}

// Rounds tables of cos and sin whose numbers include the attention factor.
Change round_tables(Type type) {
    return [type](Hypothesis& e) {
        auto turn = e.operation.cos_sin;
        if (!turn)
            turn = [inv_freq = e.operation.inv_freq](std::int64_t position, std::size_t pair) {
                return oracle::exact_cos_sin(position, inv_freq[pair]);
            };
        e.operation.cos_sin = [=, a = e.operation.attention_factor](std::int64_t position,
                                                                    std::size_t pair) {
            const oracle::CosSin exact = turn(position, pair);
            return oracle::CosSin{rounded(type, double(a * exact.cos)) / a,
                                  rounded(type, double(a * exact.sin)) / a};
        };
    };
}

}  // namespace

TEST_CASE("numbers that were rounded to 16 bits") {
    for (const auto& each_type : types_of_16_bits) {
        const Type type = each_type.first;
        const char* const name = each_type.second;
        const std::int64_t lacks = type == Type::bf16 ? 256 : 2048;  // odd ones from here on
        struct In16 {
            std::string name;
            std::int64_t first;
            std::vector<Change> changes;
        };
        const Change rounded_frequencies = round_frequencies(type),
                     rounded_positions = round_positions(type), tables = round_tables(type),
                     products = round_products(type);
        for (const In16& each : std::vector<In16>{
                 {"frequencies_in_16_bits", 5, {rounded_frequencies}},
                 {"frequencies_in_16_bits", 300, {rounded_frequencies}},
                 {"frequencies_in_16_bits", 100000, {rounded_frequencies}},
                 {"swapped_pairing + frequencies_in_16_bits",
                  300,
                  {swap_pairing, rounded_frequencies}},
                 {"scaling_ignored + frequencies_in_16_bits",
                  300,
                  {frequencies(unscaled), factor(1), rounded_frequencies}},
                 {"frequencies_in_16_bits + tables_in_16_bits", 300, {rounded_frequencies, tables}},
                 {"positions_in_16_bits", lacks + 41, {rounded_positions}},
                 {"swapped_pairing + positions_in_16_bits",
                  lacks + 41,
                  {swap_pairing, rounded_positions}},
                 {"positions_in_16_bits + frequencies_in_16_bits",
                  lacks + 41,
                  {rounded_positions, rounded_frequencies}},
                 {"angles_in_16_bits",
                  lacks + 41,
                  {rounded_positions, rounded_frequencies, products}},
                 {"angles_in_16_bits + tables_in_16_bits",
                  lacks + 41,
                  {rounded_positions, rounded_frequencies, products, tables}},
                 {"tables_in_16_bits", 300, {tables}},
                 {"tables_in_16_bits", 100000, {angles(float32_product), tables}},
                 {"attention_factor_twice + tables_in_16_bits",
                  300,
                  {factor(usual_factor * usual_factor), tables}}}) {
            CAPTURE(name);
            const Match match = check_named(
                each.name, Case(each.changes, {right(positions(from(each.first)))}));
            test::check_names(match.meaning, name);
        }
        // The same engine, which also rounds each operation.
        const Judgement judgement =
            rounded_case(type, {rounded_frequencies}, {right(positions(from(3000)))}).judged();
        CHECK(judgement.outcome == Outcome::mistake);
        CHECK(judgement.matches.front().mistake == "frequencies_in_16_bits");
        test::check_names(judgement.matches.front().meaning, name);
        // A tolerance accepts tables whose errors are within it.
        Case near({tables}, {right(positions(from(300)))});
        CHECK(near.judged().right.nearly);
        near.limits.accepts_close = true;
        CHECK(near.judged().outcome == Outcome::close);
        near.limits.tolerance = 1e-6;
        CHECK(near.judged().outcome == Outcome::mistake);
    }
    // With a 16-bit output, products are exact, and only the table and the result are rounded.
    const Judgement judgement = Case({round_tables(Type::bf16)},
                                     {right([](Hypothesis& e) { e.out.type = Type::bf16; })})
                                    .judged();
    CHECK(judgement.outcome == Outcome::mistake);
    CHECK(judgement.matches.front().mistake == "tables_in_16_bits");
    CHECK(judgement.matches.front().precision);
}

TEST_CASE("numbers that 16-bit types represent exactly show no rounding mistake") {
    const Setup exact = right(frequencies({1, 0.25, 0.03125, 0.0009765625}));
    CHECK(Case({}, {exact}).judged().outcome == Outcome::pass);
    CHECK(!find(Case({}, {exact}).judged(), "frequencies_in_16_bits"));
    // Up to 256 bf16 has every position, and beyond 65504 f16 has none.
    CHECK(!find(Case({}, {right(positions(from(200)))}).judged(), "positions_in_16_bits"));
    const Match far = check_named("positions_in_16_bits", Case({round_positions(Type::bf16)},
                                                               {right(positions(from(100000)))}));
    test::check_names(far.meaning, "bf16");
}
