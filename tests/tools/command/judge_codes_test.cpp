// SPDX-License-Identifier: MIT
// Tests that `vkrope check` counts the codes and scales that no right row gives, says where the
// first is, and names mistakes before the store. The tensor is a V without other ops: its rows are
// exact, so that each code and each scale has one right value.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "check/judge.hpp"
#include "support/names.hpp"

using namespace vkrope::tools;
namespace oracle = vkrope::oracle;
namespace test = vkrope::test;
using oracle::QuantisedStore, oracle::Store;

namespace {

constexpr std::size_t tokens = 32, heads = 32, head_dim = 32, count = tokens * heads * head_dim;

using Row = std::vector<float>;

struct Output {
    std::vector<std::uint8_t> codes;
    std::vector<float> scales;
};

// Returns random numbers below 64. Those with `noise` have relative errors of up to 2^-13.
Row random_values(bool noise = false) {
    Row values(count);
    std::uint32_t state = 1, other = 3;
    for (float& x : values) {
        state = state * 1664525 + 1013904223;
        other = other * 1664525 + 1013904223;
        x = float(int(state >> 8) - (1 << 23)) * 0x1p-17f;
        x *= noise ? 1 + float(int(other >> 8) - (1 << 23)) * 0x1p-36f : 1;
    }
    return values;
}

Output stored(const QuantisedStore& store, const Row& values) {
    Output output;
    for (std::size_t first = 0; first < count; first += head_dim) {
        const std::span row = std::span(values).subspan(first, head_dim);
        oracle::MadeRow made;
        if (store.made) {
            made = oracle::quantise_made(store.type, row, store.floor, store.power_of_two);
            output.scales.push_back(made.scale);
        } else if (!oracle::has_blocks(store.type)) {
            const float given = store.given.empty() ? 1 : store.given.front();
            made.codes = oracle::quantise_given(store.type, row, given);
        } else {
            made.codes = oracle::quantise_blocks(store.type, row);
        }
        output.codes.insert(output.codes.end(), made.codes.begin(), made.codes.end());
    }
    return output;
}

Judgement judged(const Row& values, const Output& output, const QuantisedStore& store,
                 const oracle::Ops& ops = {}, const Limits& limits = {}) {
    Observation seen;
    seen.with_ops = true;
    seen.right.ops = ops;
    seen.right.in = {.type = oracle::Type::f32,
                     .batch = 1,
                     .tokens = tokens,
                     .heads = heads,
                     .head_dim = head_dim,
                     .batch_stride = count,
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

void check_passes(const Judgement& judgement) {
    CHECK(judgement.outcome == Outcome::pass);
    CHECK(judgement.right.share_within == 1);
    CHECK(judgement.breach.empty());
}

// Checks how much is wrong, and what is said of the first wrong code or scale.
void check_wrong(const Judgement& judgement, const std::string& counts, const std::string& words) {
    CHECK(judgement.outcome != Outcome::pass);
    CHECK(judgement.matches.empty());
    CHECK_MESSAGE(judgement.breach.starts_with(counts), judgement.breach);
    test::check_names(judgement.breach, words);
}

void check_named(const std::string& mistake, const Judgement& judgement) {
    CAPTURE(mistake);
    REQUIRE(!judgement.matches.empty());
    CHECK(judgement.outcome == Outcome::mistake);
    CHECK(judgement.matches.front().mistake == mistake);
    CHECK(judgement.matches.front().explains);
}

}  // namespace

TEST_CASE("codes and scales that no right row gives are counted, and the first has its place") {
    const Row values = random_values();
    constexpr std::size_t row = 17 * heads + 3, later = 30 * heads;
    const std::string place = "token 17 head 3 ";
    for (const QuantisedStore& store :
         std::vector<QuantisedStore>{{.type = Store::int8},
                                     {.type = Store::e4m3fn, .given = {4}},
                                     {.type = Store::e5m2, .made = true},
                                     {.type = Store::int8, .made = true, .power_of_two = true},
                                     {.type = Store::q8_0},
                                     {.type = Store::q4_0},
                                     {.type = Store::q5_1},
                                     {.type = Store::iq4_nl},
                                     {.type = Store::int4, .made = true}}) {
        CAPTURE(int(store.type));
        const Output right = stored(store, values);
        check_passes(judged(values, right, store));
        const std::size_t size = right.codes.size() / (tokens * heads);
        const auto changed = [&](std::size_t byte, int bits, bool twice) {
            Output wrong = right;
            wrong.codes[row * size + byte] ^= std::uint8_t(bits);
            wrong.codes[later * size + byte] ^= std::uint8_t(twice ? bits : 0);
            return judged(values, wrong, store);
        };
        const bool in_blocks = oracle::has_blocks(store.type);
        if (in_blocks)  // the byte has an exponent's last bit
            check_wrong(changed(1, 4, false), "0 of 32768 codes and 1 of", place + "d of block 0");
        if (size - (in_blocks ? 2 : 0) < head_dim) {  // two codes share a byte
            // The d of iq4_nl follows from its codes, so a wrong code may make it wrong.
            const bool with_d = store.type == Store::iq4_nl;
            const std::string scales = with_d ? "" : "and 0 of";
            check_wrong(changed(size - 1, 0x10, true), "2 of 32768 codes " + scales,
                        place + (with_d ? "" : "channel 31 code"));
            check_wrong(changed(size - 1, 0x11, true), "4 of 32768 codes " + scales,
                        place + (with_d      ? ""
                                 : in_blocks ? "channel 15 code"
                                             : "channel 30 code"));
        } else {
            check_wrong(changed(size - 1, 1, true), "2 of 32768 codes and 0 of",
                        place + "channel 31 code");
        }
        if (store.made) {
            Output wrong = right;
            wrong.scales[row] = std::nextafter(wrong.scales[row], 0.f);
            check_wrong(judged(values, wrong, store), "", "1 of 1024 scales " + place + "scale");
        }
    }
}

TEST_CASE("other arithmetic") {
    const Row values = random_values();
    const QuantisedStore store = {.type = Store::q8_0};
    const auto engine = [&](std::size_t step, double tolerance) {
        Output output = stored(store, random_values(true));
        for (std::size_t i = 2; i < output.codes.size(); i += step)
            if (i % 34 > 1 && output.codes[i] < 0x7f) ++output.codes[i];
        return judged(values, output, store, {}, {.tolerance = tolerance});
    };
    const Judgement close = engine(count, Limits().tolerance);
    CHECK(close.outcome == Outcome::close);
    CHECK(close.right.share_within > 0.99);
    CHECK(close.right.share_within < 1);
    // Half of the codes are one off, which other arithmetic does not explain.
    const Judgement far = engine(1, Limits().tolerance);
    CHECK(far.outcome == Outcome::unexplained);
    CHECK(!far.right.nearly);
    // The tolerance limits the share of codes that are one off.
    CHECK(engine(count, 1e-6).outcome == Outcome::unexplained);
}

TEST_CASE("a d of zero with the other sign is close") {
    Row values = random_values();
    std::fill_n(values.begin(), 32, 0.f);
    Output output = stored({.type = Store::q8_0}, values);
    output.codes[1] = 0x80;
    const Judgement judgement = judged(values, output, {.type = Store::q8_0});
    CHECK(judgement.outcome == Outcome::close);
    CHECK(judgement.right.largest_error == 0);
}

TEST_CASE("NaN and infinities where values beyond fp8 are the largest") {
    Row values = random_values();
    values[6] = -70000;
    for (const Store type : {Store::e4m3fn, Store::e5m2}) {
        Output output = stored({.type = type}, values);
        check_passes(judged(values, output, {.type = type}));
        const bool e4m3fn = type == Store::e4m3fn;
        output.codes[6] = e4m3fn ? 0xff : 0xfc;
        check_wrong(judged(values, output, {.type = type}), "1 of 32768 codes",
                    e4m3fn ? "channel 6 0xff 0xfe 0xfe" : "channel 6 0xfc 0xfb 0xfb");
    }
}

TEST_CASE("the Hadamard transform before the codes") {
    // Sylvester's matrix in integers: the numbers are exact, and so is the square root of 16.
    constexpr std::size_t block = 16;
    Row values(count), turned(count), unnormalised(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = float(int(i * i % 201) - 100);
    for (std::size_t i = 0; i < count; ++i) {
        float sum = 0;
        for (std::size_t j = 0; j < block; ++j) {
            const bool odd = __builtin_popcountll(i % block & j) % 2 != 0;
            sum += odd ? -values[i / block * block + j] : values[i / block * block + j];
        }
        unnormalised[i] = sum;
        turned[i] = sum / 4;
    }
    const QuantisedStore q8_0 = {.type = Store::q8_0};
    const oracle::Ops right = {.hadamard = block};
    const auto engine_of = [&](const Row& row) {
        return judged(values, stored(q8_0, row), q8_0, right);
    };
    check_passes(engine_of(turned));
    check_named("hadamard_missing", engine_of(values));
    check_named("hadamard_unnormalised", engine_of(unnormalised));
    check_named("hadamard_of_16", judged(values, stored(q8_0, turned), q8_0));
}
