// SPDX-License-Identifier: MIT
// `vkrope check` names the mistakes of engines that store codes.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "codes_engine.hpp"
#include "support/names.hpp"

using namespace vkrope;
using namespace vkrope::tools;
using namespace vkrope::tools::codes;

namespace {

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

double half_away(double x) {
    return std::round(x);
}
double to_even(double x) {
    return std::nearbyint(x);
}
double toward_zero(double x) {
    return std::trunc(x);
}

}  // namespace

TEST_CASE("the rounding of codes") {
    SUBCASE("int8") {
        const Row values = halves(100, 1);
        check_passes(judged(values, output_of({.type = Store::int8}, values), {Store::int8}));
        check_named("ties_to_even",
                    judged(values, output_of({.type = Store::int8, .nearest = to_even}, values),
                           {Store::int8}));
        check_named("truncated",
                    judged(values, output_of({.type = Store::int8, .nearest = toward_zero}, values),
                           {Store::int8}));
    }
    SUBCASE("q8_0") {
        const Row values = halves(127, 1);
        check_passes(judged(values, output_of({.type = Store::q8_0}, values), {Store::q8_0}));
        check_named("ties_to_even",
                    judged(values, output_of({.type = Store::q8_0, .nearest = to_even}, values),
                           {Store::q8_0}));
        check_named("truncated",
                    judged(values, output_of({.type = Store::q8_0, .nearest = toward_zero}, values),
                           {Store::q8_0}));
    }
    SUBCASE("q4_0") {
        const Row values = halves(-8, 1);
        const auto engine = [&](double (*nearest)(double)) {
            return judged(values, output_of({.type = Store::q4_0, .nearest = nearest}, values),
                          {Store::q4_0});
        };
        check_passes(engine(round_half_up));
        check_named("ties_to_even", engine(to_even));
        check_named("ties_away", engine([](double x) { return std::round(x); }));
        // Codes are counted from 0: truncated there, not at the middle.
        check_named("truncated", engine([](double x) { return std::floor(x); }));
    }
    SUBCASE("e4m3fn") {
        Row values = halves(1, 1);
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = float(int(i % 61) - 30);  // steps are 2 from 16 on
        }
        Output output = output_of({.type = Store::e4m3fn}, values);
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
}

TEST_CASE("other arithmetic") {
    const Row values = random_values();
    // Values that are off by up to 2^-13 of themselves.
    Row noisy = values;
    std::uint32_t state = 3;
    for (float& x : noisy) {
        state = state * 1664525 + 1013904223;
        x *= 1 + float(int(state >> 8) - (1 << 23)) * 0x1p-36f;
    }
    const auto engine = [&](double (*nearest)(double), const Limits& limits = {}) {
        return judged(values, output_of({.type = Store::q8_0, .nearest = nearest}, noisy),
                      {Store::q8_0}, {}, 1, limits);
    };
    const Judgement close = engine(half_away);
    CHECK(close.outcome == Outcome::close);
    CHECK(close.right.share_within > 0.99);
    CHECK(close.right.share_within < 1);
    // Half of the codes are one off, which is not arithmetic.
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
    Output output = output_of({.type = Store::q8_0}, values);
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
        Output output = output_of({.type = type}, values);
        check_passes(judged(values, output, {type}));
        const bool e4m3fn = type == Store::e4m3fn;
        output.codes[5] = e4m3fn ? 0x7f : output.codes[5];
        for (const std::uint8_t nan : Bytes{0xff, 0x7f}) {  // of any sign
            output.codes[6] = e4m3fn ? nan : 0xfc;
            output.codes[7] = e4m3fn ? nan : 0x7c;
            check_named("not_saturated", judged(values, output, {type}));
        }
        test::check_names(judged(values, output, {type}).breach,
                          e4m3fn ? "channel 5 0x7f 0x7e 0x7e" : "channel 6 0xfc 0xfb 0xfb");
    }
}

TEST_CASE("the scale of codes") {
    const Row values = random_values();
    SUBCASE("a given one") {
        const oracle::QuantisedStore right = {.type = Store::e4m3fn, .given = {4}};
        check_passes(judged(values, output_of({.type = Store::e4m3fn, .given = 4}, values), right));
        check_named(
            "scale_inverted",
            judged(values, output_of({.type = Store::e4m3fn, .given = 0.25}, values), right));
        check_named("scale_not_applied",
                    judged(values, output_of({.type = Store::e4m3fn}, values), right));
    }
    SUBCASE("a made one") {
        const oracle::QuantisedStore right = {.type = Store::int8, .made = true};
        Output output = output_of({.type = Store::int8, .divides = true, .made = true}, values);
        check_passes(judged(values, output, right));
        for (float& scale : output.scales) {
            scale = 1 / scale;
        }
        // 1 / (1 / scale) is the scale for most of them only.
        const Judgement inverted = judged(values, output, right);
        CHECK(inverted.outcome == Outcome::mistake);
        CHECK(inverted.matches.front().mistake == "scale_inverted");
        CHECK(inverted.matches.front().nearly);
        const Output rounded_up = output_of(
            {.type = Store::int8, .divides = true, .made = true, .power_of_two = true}, values);
        check_named("scale_power_of_two", judged(values, rounded_up, right));
        oracle::QuantisedStore powers = right;
        powers.power_of_two = true;
        check_passes(judged(values, rounded_up, powers));
        output = output_of({.type = Store::int8, .divides = true, .made = true}, values);
        check_named("scale_not_power_of_two", judged(values, output, powers));
        output = output_of({.type = Store::int8, .divides = true, .made = true}, values,
                           heads * head_dim);
        check_named("scale_of_token", judged(values, output, right));
        output.scales.back() *= 2;  // the scale of the last head must be the token's, too
        CHECK(judged(values, output, right).outcome == Outcome::unexplained);
    }
    SUBCASE("division or product") {
        const Row near = halves(100, 100.f / 127);
        const auto engine = [&](Store type, bool divides) {
            return output_of({.type = type, .divides = divides, .made = type == Store::int8}, near);
        };
        const oracle::QuantisedStore made = {.type = Store::int8, .made = true};
        check_passes(judged(near, engine(Store::int8, true), made));
        check_named("reciprocal_of_scale", judged(near, engine(Store::int8, false), made));
        check_passes(judged(near, engine(Store::q8_0, false), {Store::q8_0}));
        check_named("divided_by_scale", judged(near, engine(Store::q8_0, true), {Store::q8_0}));
    }
    SUBCASE("of blocks") {
        check_named("scale_rounded_first",
                    judged(values, output_of({.type = Store::q8_0, .rounds_first = true}, values),
                           {Store::q8_0}));
        check_named(
            "symmetric_range",
            judged(
                values,
                output_of({.type = Store::q4_0, .nearest = round_half_up, .d_of_amax = 7}, values),
                {Store::q4_0}));
    }
}

TEST_CASE("the order of codes") {
    const Row values = random_values();
    const Engine engine = {.type = Store::q4_0, .nearest = round_half_up};
    Output right = output_of(engine, values);
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
                    judged(values, output_of(engine, transposed(values, true)), {Store::q4_0}));
        Output along_heads = output_of(engine, transposed(values, false));
        check_named("blocks_along_heads", judged(values, along_heads, {Store::q4_0}));
        // Of several short sequences, the last token counts, too.
        const auto of_two = [&] { return judged(values, along_heads, {Store::q4_0}, {}, 2); };
        check_named("blocks_along_heads", of_two());
        along_heads.codes.back() ^= 0x88;
        CHECK(of_two().outcome == Outcome::unexplained);
    }
}

TEST_CASE("the Hadamard transform before the codes") {
    // Sylvester's matrix, in integers: the numbers are exact, and so is the root of 16.
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
        return judged(values, output_of(engine, row), {Store::q8_0}, right);
    };
    check_passes(engine_of(turned));
    check_named("hadamard_missing", engine_of(values));
    check_named("hadamard_unnormalised", engine_of(unnormalised));
    check_named("hadamard_of_16", judged(values, output_of(engine, turned), {Store::q8_0}));
}
