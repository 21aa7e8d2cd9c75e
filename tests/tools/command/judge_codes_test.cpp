// SPDX-License-Identifier: MIT
// Tests that `vkrope check` names the mistakes of engines that store codes. The engine is a loop
// over a V without other ops, whose rows are exact.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "check/judge.hpp"
#include "support/names.hpp"
#include "verify/oracle/element.hpp"

using namespace vkrope::tools;
namespace oracle = vkrope::oracle;
namespace test = vkrope::test;
using oracle::Store;

namespace {

constexpr std::size_t tokens = 32, heads = 32, head_dim = 32, count = tokens * heads * head_dim;

using Row = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;
using Nearest = double (*)(double);

double half_away(double x) {
    return std::round(x);
}
double half_up(double x) {
    return std::floor(x + 0.5);
}
double to_even(double x) {
    return std::nearbyint(x);
}
double toward_zero(double x) {
    return std::trunc(x);
}
double down(double x) {
    return std::floor(x);
}

struct Output {
    Bytes codes;
    std::vector<float> scales;
};

/// The store of an engine, for rows of head_dim channels or of another length.
struct Engine {
    Store type = Store::q8_0;
    Nearest nearest = half_away;
    bool divides = false;       // blocks: x / d, not x * (1 / d); computed scales: x / scale
    bool rounds_first = false;  // rounds d to f16 first
    float given = 1, d_of_amax = 127;
    bool made = false, power_of_two = false;
    std::size_t row = head_dim;

    float over(float x, float d) const { return divides ? x / d : x * (1 / d); }

    void append_block(Bytes& bytes, const float* x) const {
        const float* most = std::max_element(
            x, x + 32, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
        const bool nibbles = type == Store::q4_0;
        float d = nibbles && d_of_amax == 127 ? *most / -8 : std::fabs(*most) / d_of_amax;
        const std::uint32_t bits = oracle::narrow(oracle::Type::f16, d);
        bytes.push_back(static_cast<std::uint8_t>(bits));
        bytes.push_back(static_cast<std::uint8_t>(bits >> 8));
        d = rounds_first ? oracle::widen(oracle::Type::f16, bits) : d;
        int codes[32];
        for (int i = 0; i < 32; ++i) {
            codes[i] = static_cast<int>(nearest(over(x[i], d)));
            codes[i] = nibbles ? std::min(codes[i] + 8, 15) : codes[i];
        }
        for (int i = 0; i < (nibbles ? 16 : 32); ++i) {
            bytes.push_back(
                static_cast<std::uint8_t>(nibbles ? codes[i] | codes[i + 16] << 4 : codes[i]));
        }
    }

    void append_row(Output& output, const float* x) const {
        float amax = 0;
        for (std::size_t i = 0; i < row; ++i) {
            amax = std::max(amax, std::fabs(x[i]));
        }
        float scale = amax / oracle::largest(type);
        scale = power_of_two ? std::exp2(std::ceil(std::log2(scale))) : scale;  // like vLLM
        output.scales.insert(output.scales.end(), made ? row / head_dim : 0, scale);
        for (std::size_t i = 0; i < row; ++i) {
            const float number = made ? over(x[i], scale) : x[i] * given;
            output.codes.push_back(type == Store::int8
                                       ? static_cast<std::uint8_t>(static_cast<int>(
                                             std::clamp(nearest(number), -127., 127.)))
                                       : oracle::code_of(type, number));
        }
    }

    Output of(const Row& values) const {
        Output output;
        const bool blocks = type == Store::q8_0 || type == Store::q4_0;
        for (std::size_t i = 0; i < values.size(); i += blocks ? 32 : row) {
            if (blocks) {
                append_block(output.codes, &values[i]);
            } else {
                append_row(output, &values[i]);
            }
        }
        return output;
    }
};

Row random_values() {
    Row values(count);
    std::uint32_t state = 1;
    for (float& x : values) {
        state = state * 1664525 + 1013904223;
        x = float(int(state >> 8) - (1 << 23)) * 0x1p-17f;
    }
    return values;
}

/// Makes blocks of 32 that begin with `first`; all other values are odd numbers times unit / 2.
Row halves(float first, float unit = 1) {
    Row values(count);
    for (std::size_t i = 0; i < count; ++i) {
        const float half = float(int(i * 7 % 13)) - 5.5f;
        values[i] = i % 32 == 0 ? first : half * unit;
    }
    return values;
}

/// Returns [tokens, heads, head_dim] with another axis innermost.
Row transposed(const Row& values, bool tokens_innermost) {
    Row to;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t of_32 = i % 32, rest = i / 32;
        to.push_back(tokens_innermost
                         ? values[of_32 * heads * head_dim + rest]
                         : values[(rest / head_dim * heads + of_32) * head_dim + rest % head_dim]);
    }
    return to;
}

Judgement judged(const Row& values, const Output& output, const oracle::QuantisedStore& store,
                 const oracle::Ops& ops = {}, std::uint64_t batch = 1, const Limits& limits = {}) {
    Observation seen;
    seen.with_ops = true;
    seen.right.ops = ops;
    seen.right.in = {.type = oracle::Type::f32,
                     .batch = batch,
                     .tokens = tokens / batch,
                     .heads = heads,
                     .head_dim = head_dim,
                     .batch_stride = count / batch,
                     .token_stride = heads * head_dim,
                     .head_stride = head_dim};
    seen.right.out = seen.right.in;
    seen.input = values.data();
    seen.right.operation.positions.assign(tokens, 1);
    seen.rotated = seen.right;
    seen.rotated->operation.inv_freq = {1, 0.5};
    seen.codes = output.codes;
    seen.right.store = store;
    seen.right.scales = output.scales;
    return judge(seen, limits);
}

void check_named(const std::string& mistake, const Judgement& judgement) {
    CAPTURE(mistake);
    REQUIRE(!judgement.matches.empty());
    CHECK(judgement.outcome == Outcome::mistake);
    CHECK(judgement.matches.front().mistake == mistake);
    CHECK(judgement.matches.front().explains);
}

void check_passes(const Judgement& judgement) {
    CHECK(judgement.outcome == Outcome::pass);
    CHECK(judgement.right.share_within == 1);
}

}  // namespace

TEST_CASE("the rounding of codes, and their scale") {
    struct Made {
        const char* mistake;  // empty: the right output
        Row values;
        Engine engine;
        oracle::QuantisedStore right;
    };
    const Row values = random_values(), near = halves(100, 100.f / 127);
    const oracle::QuantisedStore int8 = {Store::int8}, q8_0 = {Store::q8_0}, q4_0 = {Store::q4_0},
                                 given = {.type = Store::e4m3fn, .given = {4}},
                                 made = {.type = Store::int8, .made = true};
    oracle::QuantisedStore powers = made;
    powers.power_of_two = true;
    const Engine divided = {.type = Store::int8, .divides = true, .made = true};
    Engine rounded_up = divided, of_token = divided;
    rounded_up.power_of_two = true;
    of_token.row = heads * head_dim;
    for (const Made& each : std::vector<Made>{
             {"", halves(100), {.type = Store::int8}, int8},
             {"ties_to_even", halves(100), {.type = Store::int8, .nearest = to_even}, int8},
             {"truncated", halves(100), {.type = Store::int8, .nearest = toward_zero}, int8},
             {"", halves(127), {.type = Store::q8_0}, q8_0},
             {"ties_to_even", halves(127), {.type = Store::q8_0, .nearest = to_even}, q8_0},
             {"truncated", halves(127), {.type = Store::q8_0, .nearest = toward_zero}, q8_0},
             {"", halves(-8), {.type = Store::q4_0, .nearest = half_up}, q4_0},
             {"ties_to_even", halves(-8), {.type = Store::q4_0, .nearest = to_even}, q4_0},
             {"ties_away", halves(-8), {.type = Store::q4_0, .nearest = half_away}, q4_0},
             // Codes are counted from 0, so truncation is toward code 0, not toward the middle.
             {"truncated", halves(-8), {.type = Store::q4_0, .nearest = down}, q4_0},
             {"", values, {.type = Store::e4m3fn, .given = 4}, given},
             {"scale_inverted", values, {.type = Store::e4m3fn, .given = 0.25}, given},
             {"scale_not_applied", values, {.type = Store::e4m3fn}, given},
             {"", values, divided, made},
             {"scale_power_of_two", values, rounded_up, made},
             {"", values, rounded_up, powers},
             {"scale_not_power_of_two", values, divided, powers},
             {"scale_of_token", values, of_token, made},
             // Division or multiplication.
             {"", near, divided, made},
             {"reciprocal_of_scale", near, {.type = Store::int8, .made = true}, made},
             {"", near, {.type = Store::q8_0}, q8_0},
             {"divided_by_scale", near, {.type = Store::q8_0, .divides = true}, q8_0},
             // Mistakes in blocks.
             {"scale_rounded_first", values, {.type = Store::q8_0, .rounds_first = true}, q8_0},
             {"symmetric_range",
              values,
              {.type = Store::q4_0, .nearest = half_up, .d_of_amax = 7},
              q4_0}}) {
        CAPTURE(each.mistake);
        const Judgement judgement = judged(each.values, each.engine.of(each.values), each.right);
        if (each.mistake[0] == '\0') {
            check_passes(judgement);
        } else {
            check_named(each.mistake, judgement);
        }
    }
    Output inverted = divided.of(values);
    for (float& scale : inverted.scales) {
        scale = 1 / scale;
    }
    // For most scales, but not for all, 1 / (1 / scale) is exactly the scale.
    const Judgement judgement = judged(values, inverted, made);
    CHECK(judgement.outcome == Outcome::mistake);
    CHECK(judgement.matches.front().mistake == "scale_inverted");
    CHECK(judgement.matches.front().nearly);
    Output last = of_token.of(values);
    last.scales.back() *= 2;  // the scale of the last head must also be the token's
    CHECK(judged(values, last, made).outcome == Outcome::unexplained);
}

TEST_CASE("the rounding of fp8") {
    Row values(count);
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = float(int(i % 61) - 30);  // from 16 on, codes are 2 apart
    }
    Output output = Engine{.type = Store::e4m3fn}.of(values);
    check_passes(judged(values, output, {Store::e4m3fn}));
    for (const bool away : {true, false}) {
        for (std::size_t i = 0; i < count; ++i) {
            const float size = std::fabs(values[i]), off = away ? 0.5f : -0.5f;
            output.codes[i] = oracle::code_of(
                Store::e4m3fn, std::copysign(size + (size >= 16 ? off : 0), values[i]));
        }
        check_named(away ? "ties_away" : "truncated", judged(values, output, {Store::e4m3fn}));
    }
}

TEST_CASE("other arithmetic") {
    const Row values = random_values();
    // The values have relative errors of up to 2^-13.
    Row noisy = values;
    std::uint32_t state = 3;
    for (float& x : noisy) {
        state = state * 1664525 + 1013904223;
        x *= 1 + float(int(state >> 8) - (1 << 23)) * 0x1p-36f;
    }
    const auto engine = [&](Nearest nearest, const Limits& limits = {}) {
        return judged(values, Engine{.type = Store::q8_0, .nearest = nearest}.of(noisy),
                      {Store::q8_0}, {}, 1, limits);
    };
    const Judgement close = engine(half_away);
    CHECK(close.outcome == Outcome::close);
    CHECK(close.right.share_within > 0.99);
    CHECK(close.right.share_within < 1);
    // Half of the codes are one off, which other arithmetic does not explain.
    const Judgement truncated = engine(toward_zero);
    CHECK(truncated.outcome == Outcome::mistake);
    CHECK(truncated.matches.front().mistake == "truncated");
    CHECK(!truncated.matches.front().explains);
    CHECK(!truncated.right.nearly);
    // The tolerance limits the share of codes that are one off.
    Limits narrow;
    narrow.tolerance = 1e-6;
    CHECK(engine(half_away, narrow).outcome == Outcome::unexplained);
}

TEST_CASE("a d of zero with the other sign is close") {
    Row values = random_values();
    std::fill_n(values.begin(), 32, 0.f);
    Output output = Engine{.type = Store::q8_0}.of(values);
    output.codes[1] = 0x80;
    std::fill_n(output.codes.begin() + 2, 32, std::uint8_t{0});
    const Judgement judgement = judged(values, output, {Store::q8_0});
    CHECK(judgement.outcome == Outcome::close);
    CHECK(judgement.right.largest_error == 0);
}

TEST_CASE("values beyond fp8") {
    Row values = random_values();
    values[5] = 465;
    values[6] = -70000;
    values[7] = 70000;
    for (const Store type : {Store::e4m3fn, Store::e5m2}) {
        Output output = Engine{.type = type}.of(values);
        check_passes(judged(values, output, {type}));
        const bool e4m3fn = type == Store::e4m3fn;
        output.codes[5] = e4m3fn ? 0x7f : output.codes[5];
        for (const std::uint8_t nan : Bytes{0xff, 0x7f}) {  // with either sign
            output.codes[6] = e4m3fn ? nan : 0xfc;
            output.codes[7] = e4m3fn ? nan : 0x7c;
            check_named("not_saturated", judged(values, output, {type}));
        }
        test::check_names(judged(values, output, {type}).breach,
                          e4m3fn ? "channel 5 0x7f 0x7e 0x7e" : "channel 6 0xfc 0xfb 0xfb");
    }
}

TEST_CASE("the order of codes") {
    const Row values = random_values();
    const Engine engine = {.type = Store::q4_0, .nearest = half_up};
    Output right = engine.of(values);
    check_passes(judged(values, right, {Store::q4_0}));
    SUBCASE("halves of a byte exchanged") {
        for (std::size_t i = 0; i < right.codes.size(); ++i) {
            std::uint8_t& byte = right.codes[i];
            byte = i % 18 < 2 ? byte : static_cast<std::uint8_t>(byte << 4 | byte >> 4);
        }
        check_named("nibbles_exchanged", judged(values, right, {Store::q4_0}));
    }
    SUBCASE("neighbours in a byte") {
        for (std::size_t block = 0; block < right.codes.size(); block += 18) {
            Bytes codes(32);
            for (std::size_t i = 0; i < 32; ++i) {
                const std::uint8_t byte = right.codes[block + 2 + i % 16];
                codes[i] = i < 16 ? byte & 15 : byte >> 4;
            }
            for (std::size_t i = 0; i < 16; ++i) {
                right.codes[block + 2 + i] = static_cast<std::uint8_t>(codes[2 * i] |
                                                                       codes[2 * i + 1] << 4);
            }
        }
        check_named("nibbles_of_neighbours", judged(values, right, {Store::q4_0}));
    }
    SUBCASE("blocks along another axis") {
        check_named("blocks_along_tokens",
                    judged(values, engine.of(transposed(values, true)), {Store::q4_0}));
        Output along_heads = engine.of(transposed(values, false));
        check_named("blocks_along_heads", judged(values, along_heads, {Store::q4_0}));
        // With several short sequences, the last token is also compared.
        const auto of_two = [&] { return judged(values, along_heads, {Store::q4_0}, {}, 2); };
        check_named("blocks_along_heads", of_two());
        along_heads.codes.back() ^= 0x88;
        CHECK(of_two().outcome == Outcome::unexplained);
    }
}

TEST_CASE("the Hadamard transform before the codes") {
    // Sylvester's matrix in integers: the numbers are exact, and so is the square root of 16.
    constexpr std::size_t block = 16;
    Row values(count), turned(count), unnormalised(count);
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = float(int(i * i % 201) - 100);
    }
    for (std::size_t i = 0; i < count; ++i) {
        float sum = 0;
        for (std::size_t j = 0; j < block; ++j) {
            const bool odd = __builtin_popcountll(i % block & j) % 2 != 0;
            sum += odd ? -values[i / block * block + j] : values[i / block * block + j];
        }
        unnormalised[i] = sum;
        turned[i] = sum / 4;
    }
    const Engine engine = {.type = Store::q8_0};
    const oracle::Ops right = {.hadamard = block};
    const auto engine_of = [&](const Row& row) {
        return judged(values, engine.of(row), {Store::q8_0}, right);
    };
    check_passes(engine_of(turned));
    check_named("hadamard_missing", engine_of(values));
    check_named("hadamard_unnormalised", engine_of(unnormalised));
    check_named("hadamard_of_16", judged(values, engine.of(turned), {Store::q8_0}));
}
