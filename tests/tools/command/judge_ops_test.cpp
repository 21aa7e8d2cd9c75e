// SPDX-License-Identifier: MIT
// Tests that `vkrope check` names the mistakes of engines in the ops around the rotation. Every
// mistake is the oracle with one field changed.
#include <cmath>
#include <string>

#include "judge_engine.hpp"

using namespace vkrope::tools;
namespace oracle = vkrope::oracle;
using oracle::Norm, oracle::Ops, oracle::Type;
using Kind = oracle::NormKind;

namespace {

using OpsChange = std::function<void(Ops&)>;

constexpr double eps = 0.03;

// Returns odd multiples of 1/256 between -1 and 1, which bf16 represents exactly.
std::vector<double> numbers(std::size_t size, std::uint32_t state) {
    std::vector<double> numbers(size);
    for (double& x : numbers) {
        state = state * 1664525 + 1013904223;
        x = (2 * (double(state >> 24) - 128) + 1) / 256;
    }
    return numbers;
}

const std::vector<double> bias = numbers(heads * head_dim, 2), weight = numbers(head_dim, 3),
                          norm_bias = numbers(head_dim, 4),
                          token_scales = numbers(tokens * batch, 5);

Change of(const OpsChange& change) {
    return [change](Hypothesis& e) { change(e.ops); };
}

// Sets up a model with these ops, without frequencies and factors that a mistake could use.
std::vector<Setup> with_ops(const Ops& ops, Type type = Type::f32) {
    return {[=](Observation& seen) {
        seen.with_ops = true;
        seen.right.ops = ops;
        seen.right.in.type = seen.right.out.type = type;
        seen.right.operation.attention_factor = 1;
        seen.base = 0;
        seen.softmax_scale = 1;
        seen.other_offset = 0;
    }};
}

// Sets up V, which is not rotated.
std::vector<Setup> of_v(const Ops& ops) {
    std::vector<Setup> setups = with_ops(ops);
    setups.push_back([](Observation& seen) {
        seen.rotated = seen.right;
        no_rotation(seen.right);
    });
    return setups;
}

// Checks that a right output passes and that each mistake is named.
void check_each(const std::vector<Setup>& setups,
                const std::vector<std::pair<const char*, std::vector<Change>>>& mistakes) {
    const Judgement passes = Case({}, setups).judged();
    CHECK(passes.outcome == Outcome::pass);
    CHECK(passes.right.share_within == 1);
    for (const auto& [name, changes] : mistakes) check_named(name, Case(changes, setups));
}

Norm rms_norm() {
    return {.kind = Kind::rms, .eps = eps, .weight = weight};
}
Norm layer_norm() {
    return {.kind = Kind::layer, .eps = eps, .weight = weight, .bias = norm_bias};
}

void remove_norm(Ops& ops) {
    ops.norm = {};
}
void remove_weight(Ops& ops) {
    ops.norm.weight.clear();
    ops.norm.weight_offset = 0;
}
// Makes a norm divide by root(square, n).
Change root(const std::function<long double(long double square, std::uint64_t n)>& root) {
    return of([root](Ops& ops) {
        ops.norm.reciprocal_root = [root](long double square, std::uint64_t n) {
            return 1 / root(square, n);
        };
    });
}
const Change eps_outside = root([](auto square, auto) { return std::sqrt(square) + eps; }),
             sum_for_mean = root([](auto square, auto n) {
                 return std::sqrt(square * static_cast<long double>(n) + eps);
             });

}  // namespace

TEST_CASE("mistakes in the norm") {
    Norm token = rms_norm(), after = rms_norm(), gemma = rms_norm();
    token.over_token = after.after = true;
    gemma.weight_offset = 1;
    for (const Norm& norm : {rms_norm(), layer_norm(), token, after}) {
        CAPTURE(int(norm.kind));
        CAPTURE(norm.over_token);
        CAPTURE(norm.after);
        check_each(with_ops({.norm = norm}),
                   {{"norm_missing", {of(remove_norm)}},
                    {"eps_missing", {of([](Ops& ops) { ops.norm.eps = 0; })}},
                    {"eps_outside_root", {eps_outside}},
                    {"sum_instead_of_mean", {sum_for_mean}},
                    {norm.over_token ? "norm_of_each_head" : "norm_of_all_heads",
                     {of([](Ops& ops) { ops.norm.over_token = !ops.norm.over_token; })}},
                    {"weight_missing", {of(remove_weight)}},
                    {norm.after ? "norm_before_rotation" : "norm_after_rotation",
                     {of([](Ops& ops) { ops.norm.after = !ops.norm.after; })}}});
    }
    check_each(with_ops({.norm = rms_norm()}),
               {{"layer_norm_instead_of_rms", {of([](Ops& ops) { ops.norm.kind = Kind::layer; })}},
                {"one_plus_weight", {of([](Ops& ops) { ops.norm.weight_offset = 1; })}}});
    check_each(with_ops({.norm = layer_norm()}),
               {{"rms_instead_of_layer_norm", {of([](Ops& ops) { ops.norm.kind = Kind::rms; })}},
                {"norm_bias_missing", {of([](Ops& ops) { ops.norm.bias.clear(); })}}});
    check_each(with_ops({.norm = gemma}),
               {{"one_plus_weight_forgotten", {of([](Ops& ops) { ops.norm.weight_offset = 0; })}},
                {"weight_missing", {of(remove_weight)}}});
}

TEST_CASE("another eps, and the weight of another head or tensor") {
    Norm of_heads = rms_norm();
    of_heads.weight = numbers(heads * head_dim, 7);
    std::vector<Setup> setups = with_ops({.norm = of_heads, .scale = 0.5});
    setups.push_back([](Observation& seen) { seen.other_weight = numbers(heads * head_dim, 8); });
    check_each(setups, {{"another_eps", {of([](Ops& ops) { ops.norm.eps = 1e-3; })}},
                        {"scale_twice", {of([](Ops& ops) { ops.scale = 0.25; })}},
                        {"weight_of_other_tensor",
                         {of([](Ops& ops) { ops.norm.weight = numbers(heads * head_dim, 8); })}},
                        {"weight_of_first_head", {of([](Ops& ops) {
                             for (std::size_t i = head_dim; i < ops.norm.weight.size(); ++i)
                                 ops.norm.weight[i] = ops.norm.weight[i % head_dim];
                         })}}});
}

TEST_CASE("mistakes in the norm, in 16-bit types") {
    for (const Type type : {Type::f16, Type::bf16}) {
        for (const bool after : {false, true}) {
            CAPTURE(int(type));
            CAPTURE(after);
            Norm norm = rms_norm();
            norm.after = after;
            check_each(with_ops({.norm = norm}, type),
                       {{"rounded_before_weight",
                         {of([type](Ops& ops) { ops.norm.round_between = type; })}},
                        {"eps_outside_root", {eps_outside}},
                        {"sum_instead_of_mean", {sum_for_mean}}});
        }
    }
}

TEST_CASE("bias, clip and scale, with a norm and without") {
    Ops plain = {.bias = bias, .clip = 0.9, .scale = 0.125, .scale_tokens = token_scales};
    Ops normed = plain;
    normed.norm = {.kind = Kind::rms, .eps = eps};
    for (const Ops& right : {plain, normed}) {
        CAPTURE(int(right.norm.kind));
        check_each(with_ops(right), {{"bias_missing", {of([](Ops& ops) { ops.bias.clear(); })}},
                                     {"clip_missing", {of([](Ops& ops) { ops.clip = 0; })}},
                                     {"scale_missing", {of([](Ops& ops) {
                                          ops.scale = 1;
                                          ops.scale_tokens.clear();
                                      })}}});
    }
}

TEST_CASE("values read from the output, and rounded tables, with norm and scale") {
    for (const Kind kind : {Kind::none, Kind::rms, Kind::layer}) {
        CAPTURE(int(kind));
        std::vector<Setup> setups = with_ops(
            {.norm = {.kind = kind, .eps = eps}, .scale = 0.125, .scale_tokens = token_scales});
        setups.push_back([](Observation& seen) {
            seen.right.operation.inv_freq = ten_frequencies;
            seen.max_position = 3000;
        });
        check_each(setups, {{"position_offset", {moved(100)}},
                            {"position_offset", {moved(2000)}},
                            {"one_position", {positions([](auto, auto, auto) { return 105; })}},
                            {"another_factor", {factor(1.375)}}});
    }
    const std::vector<Setup> setups = with_ops(
        {.norm = {.kind = Kind::rms, .eps = eps}, .scale = 0.125, .scale_tokens = token_scales});
    check_each(setups, {{"positions_of_first_token",
                         {positions([](auto b, auto, auto) { return 5 + 7 * b; })}}});
    for (const Type type : {Type::bf16, Type::f16}) {
        check_each(setups, {{"tables_in_16_bits", {[type](Hypothesis& e) {
                                 e.operation.cos_sin = [type](std::int64_t position,
                                                              std::size_t pair) {
                                     const oracle::CosSin exact = oracle::exact_cos_sin(
                                         position, usual_frequencies[pair]);
                                     return oracle::CosSin{rounded(type, double(exact.cos)),
                                                           rounded(type, double(exact.sin))};
                                 };
                             }}}});
    }
}

TEST_CASE("errors in only a few pairs are not rounding") {
    const Judgement judgement = Case({[](Hypothesis& e) { e.operation.inv_freq.back() *= 1.5; }},
                                     with_ops({.norm = rms_norm()}))
                                    .judged();
    CHECK(judgement.right.largest_error < 0.01);
    CHECK(judgement.outcome == Outcome::unexplained);
    CHECK(judgement.odd_pairs == std::vector<std::size_t>{pairs - 1});
}

TEST_CASE("mistakes in V") {
    check_each(of_v({.norm = rms_norm()}), {{"v_rotated", {frequencies(usual_frequencies)}},
                                            {"norm_missing", {of(remove_norm)}}});
}

TEST_CASE("a V that was scaled was not rotated, and rows of zeros were not written") {
    Case scaled({}, of_v({.scale = 1}));
    Case zeros;
    for (float& value : scaled.out) value *= 2;
    std::fill_n(zeros.out.begin() + std::ptrdiff_t(place(1, 3, 0, 0)), 2 * heads * head_dim, 0.0f);
    for (Case* wrong : {&scaled, &zeros}) {
        const Judgement judgement = wrong->judged();
        CHECK(judgement.outcome == Outcome::unexplained);
        CHECK((judgement.matches.empty() ? "" : judgement.matches[0].meaning) == "");
    }
    const std::vector<std::string> findings = zeros.judged().findings;
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].find(" is 0") != std::string::npos);
}

TEST_CASE("rows in the slots of other tokens and heads are listed") {
    for (const bool is_v : {true, false}) {
        Case made({}, is_v ? of_v({.scale = 1}) : std::vector<Setup>());
        const std::vector<float> right = made.out;
        const auto move = [&](std::uint64_t from, std::uint64_t to, std::uint64_t h) {
            std::copy_n(right.begin() + std::ptrdiff_t(place(1, from, h, 0)), head_dim,
                        made.out.begin() + std::ptrdiff_t(place(1, to, h, 0)));
        };
        for (std::uint64_t h = 0; h < heads; ++h) {
            move(2, 5, h);
            move(5, 2, h);
        }
        Judgement judgement = made.judged();
        REQUIRE(!judgement.matches.empty());
        CHECK(judgement.matches.front().mistake == "rows_of_other_tokens");
        CHECK(judgement.matches.front().meaning.find(
                  "sequence 1 token 2 that of sequence 1 token 5") != std::string::npos);
        CHECK(judgement.matches.front().meaning.find(
                  "sequence 1 token 5 that of sequence 1 token 2") != std::string::npos);
        // One head of a token holds another head's row.
        made.out = right;
        std::copy_n(right.begin() + std::ptrdiff_t(place(1, 2, 0, 0)), head_dim,
                    made.out.begin() + std::ptrdiff_t(place(1, 2, 1, 0)));
        judgement = made.judged();
        REQUIRE(!judgement.matches.empty());
        CHECK(judgement.matches.front().mistake == "rows_of_other_heads");
        // A row without the values of another row.
        made.out[place(1, 2, 1, q_offset)] += 1;
        judgement = made.judged();
        CHECK(judgement.outcome == Outcome::unexplained);
    }
}
