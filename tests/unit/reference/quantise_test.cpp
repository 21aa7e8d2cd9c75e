// SPDX-License-Identifier: MIT
// The oracle of quantised stores: bytes worked out by hand, ties, ranges and special values, and
// the Hadamard transform against its definition.
#include "reference/quantise.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "reference/element.hpp"

using namespace vkrope::reference;

namespace {

using Bytes = std::vector<std::uint8_t>;
using Row = std::vector<float>;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr std::array blocks = {Store::q8_0, Store::q4_0, Store::q4_1, Store::q5_0, Store::q5_1};
constexpr std::array elements = {Store::e4m3fn, Store::e5m2, Store::int8};

/// A block that begins with these numbers and goes on with `rest`.
Row block_of(Row first, float rest = 0) {
    first.resize(32, rest);
    return first;
}

/// Fields, then a byte that fills up the block.
Bytes bytes_of(Store store, Bytes first, std::uint8_t rest) {
    first.resize(block_bytes(store), rest);
    return first;
}

Bytes quantised(Store store, const Row& row) {
    return quantise_blocks(store, row);
}

Bytes codes_of(Store store, const Row& numbers) {
    return quantise_given(store, numbers, 1);
}

float float_at(int exponent) {
    return std::ldexp(1.f, exponent);
}

bool is_nan(Store store, std::uint8_t code) {
    return std::isnan(dequantise(store, Bytes{code})[0]);
}

}  // namespace

TEST_CASE("quantise: blocks by hand") {
    // d = 1. The other codes are what is nearest, ties away from zero.
    CHECK(quantised(Store::q8_0, block_of({127, -127, 0.5f, -0.5f, 1.5f, 2.5f, 0.49f, -1.2f})) ==
          bytes_of(Store::q8_0, {0x00, 0x3c, 127, 0x81, 1, 0xff, 2, 3, 0, 0xff}, 0));
    // x + 8.5, truncated: 0.5, 16.5, 9, 8. Channel 16 is in the upper half of byte 0.
    Row row = block_of({-8, 8});
    row[16] = 0.5f;
    row[17] = -0.5f;
    CHECK(quantised(Store::q4_0, row) == bytes_of(Store::q4_0, {0x00, 0x3c, 0x90, 0x8f}, 0x88));
    // x + 16.5: 0.5, 31.5, 17, 16.5, 0.75.
    row = block_of({-16, 15, 0.5f});
    row[31] = -15.75f;
    CHECK(quantised(Store::q5_0, row) ==
          bytes_of(Store::q5_0, {0x00, 0x3c, 0xfe, 0xff, 0xff, 0x7f, 0x00, 0x0f, 0x01}, 0));
    // x + 1 + 0.5: 0.5, 15.5, 2, 1.99.
    row = block_of({-1, 14, 0.5f, 0.49f}, -1);
    row[16] = 6;
    CHECK(quantised(Store::q4_1, row) ==
          bytes_of(Store::q4_1, {0x00, 0x3c, 0x00, 0xbc, 0x70, 0x0f, 0x02, 0x01}, 0));
    row = block_of({-1, 30, 0.5f, 14.5f}, -1);
    row[31] = 15;
    CHECK(quantised(Store::q5_1, row) ==
          bytes_of(Store::q5_1,
                   {0x00, 0x3c, 0x00, 0xbc, 0x0a, 0x00, 0x00, 0x80, 0x00, 0x0f, 0x02, 0x00}, 0));
}

TEST_CASE("quantise: each block of a row is its own") {
    Row row = block_of({127});
    const Row other = block_of({-254, 1});
    row.insert(row.end(), other.begin(), other.end());
    Bytes expected = quantised(Store::q8_0, block_of({127}));
    const Bytes second = bytes_of(Store::q8_0, {0x00, 0x40, 0x81, 1}, 0);
    expected.insert(expected.end(), second.begin(), second.end());
    CHECK(quantised(Store::q8_0, row) == expected);
    CHECK_THROWS(quantised(Store::q8_0, Row(33)));
    CHECK_THROWS(quantised(Store::int8, Row(32)));
}

TEST_CASE("quantise: of equal magnitudes the first channel gives d its sign") {
    for (const Store store : {Store::q4_0, Store::q5_0}) {
        CAPTURE(static_cast<int>(store));
        const float most = store == Store::q4_0 ? 8 : 16;
        for (const std::size_t first : {0u, 5u, 30u}) {
            Row row(32);
            row[first] = most;
            row[31] = -most;
            Bytes bytes = quantised(store, row);
            CHECK(bytes[1] == 0xbc);  // d = most / -most
            row[first] = -most;
            row[31] = most;
            bytes = quantised(store, row);
            CHECK(bytes[1] == 0x3c);
        }
    }
}

TEST_CASE("quantise: zeros and constant blocks") {
    for (const float zero : {0.f, -0.f}) {
        const Row zeros(32, zero);
        CHECK(quantised(Store::q8_0, zeros) == bytes_of(Store::q8_0, {}, 0));
        CHECK(quantised(Store::q4_0, zeros) == bytes_of(Store::q4_0, {0x00, 0x80}, 0x88));
        CHECK(quantised(Store::q5_0, zeros) ==
              bytes_of(Store::q5_0, {0x00, 0x80, 0xff, 0xff, 0xff, 0xff}, 0));
    }
    // The minimum keeps the sign of the first zero, and d is +0.
    for (const Store store : {Store::q4_1, Store::q5_1}) {
        CHECK(quantised(store, block_of({0.f}, -0.f)) == bytes_of(store, {}, 0));
        CHECK(quantised(store, block_of({-0.f}, 0.f)) == bytes_of(store, {0, 0, 0x00, 0x80}, 0));
        CHECK(quantised(store, Row(32, -2)) == bytes_of(store, {0, 0, 0x00, 0xc0}, 0));
        CHECK(quantised(store, Row(32, 2)) == bytes_of(store, {0, 0, 0x00, 0x40}, 0));
    }
    CHECK(quantised(Store::q8_0, Row(32, -254)) == bytes_of(Store::q8_0, {0x00, 0x40}, 0x81));
    CHECK(quantised(Store::q4_0, Row(32, 16)) == bytes_of(Store::q4_0, {0x00, 0xc0}, 0));
    CHECK(quantised(Store::q5_0, Row(32, -32)) == bytes_of(Store::q5_0, {0x00, 0x40}, 0));
}

TEST_CASE("quantise: codes use the d that is not rounded to f16") {
    // 1.0007 rounds to the f16 1.0009765625; with that, 0.5003 of it is code 0, else 1.
    const float d = 1.0007f;
    const Bytes bytes = quantised(Store::q8_0, block_of({127 * d, 0.50036f}));
    CHECK(bytes[0] == 0x01);
    CHECK(bytes[1] == 0x3c);
    CHECK(bytes[3] == 1);
    CHECK(std::round(double{0.50036f / widen(Type::f16, 0x3c01)}) == 0);
}

TEST_CASE("quantise: the product and the sum of a code are rounded apart") {
    // Of x (1/d) + 8.5 the product rounds up to 0.5 and the sum to 9; rounded once, it were below.
    const float most = -7.7f, inverse = 1 / (most / -8);
    float x = 0.48f;
    while (x * inverse < 0.5f) x = std::nextafter(x, 1.f);
    REQUIRE(double{x} * double{inverse} + 8.5 < 9);
    REQUIRE(quantised(Store::q4_0, block_of({most, x}))[3] % 16 == 9);
}

TEST_CASE("quantise: 1/d that overflows, and infinities, leave only the middle code") {
    // 2^-128: the quotient by it overflows; by the next number it does not.
    const float end = float_at(-128), next = std::nextafter(end, 1.f);
    CHECK(quantised(Store::q8_0, block_of({127 * end, -127 * end})) ==
          bytes_of(Store::q8_0, {}, 0));
    CHECK(quantised(Store::q8_0, block_of({127 * next, -64 * next, next / 2})) ==
          bytes_of(Store::q8_0, {0, 0, 127, 0xc0}, 0));
    CHECK(quantised(Store::q8_0, block_of({127 * 2 * end, end, -2 * end})) ==
          bytes_of(Store::q8_0, {0, 0, 127, 1, 0xff}, 0));
    CHECK(quantised(Store::q4_0, block_of({-8 * end, 8 * end})) ==
          bytes_of(Store::q4_0, {0, 0}, 0x88));
    CHECK(quantised(Store::q4_0, block_of({8 * end})) == bytes_of(Store::q4_0, {0, 0x80}, 0x88));
    CHECK(quantised(Store::q4_0, block_of({-16 * end, 14 * end})) ==
          bytes_of(Store::q4_0, {0, 0, 0x80, 0x8f}, 0x88));
    CHECK(quantised(Store::q5_0, block_of({-16 * end, 16 * end})) ==
          bytes_of(Store::q5_0, {0, 0, 0xff, 0xff, 0xff, 0xff}, 0));
    CHECK(quantised(Store::q4_1, block_of({15 * end, 7 * end})) == bytes_of(Store::q4_1, {}, 0));
    CHECK(quantised(Store::q4_1, block_of({30 * end, 14 * end})) ==
          bytes_of(Store::q4_1, {0, 0, 0, 0, 0x0f, 0x07}, 0));
    CHECK(quantised(Store::q5_1, block_of({62 * end, 32 * end})) ==
          bytes_of(Store::q5_1, {0, 0, 0, 0, 3, 0, 0, 0, 0x0f}, 0));

    const Bytes plus = {0x00, 0x7c}, minus = {0x00, 0xfc};
    CHECK(quantised(Store::q8_0, block_of({1, -infinity, 2})) == bytes_of(Store::q8_0, plus, 0));
    CHECK(quantised(Store::q4_0, block_of({1, infinity})) == bytes_of(Store::q4_0, minus, 0x88));
    CHECK(quantised(Store::q4_0, block_of({1, -infinity})) == bytes_of(Store::q4_0, plus, 0x88));
    CHECK(quantised(Store::q5_0, block_of({infinity, -infinity})) ==
          bytes_of(Store::q5_0, {0x00, 0xfc, 0xff, 0xff, 0xff, 0xff}, 0));
    for (const Store store : {Store::q4_1, Store::q5_1}) {
        CHECK(quantised(store, block_of({infinity}, -1)) ==
              bytes_of(store, {0x00, 0x7c, 0x00, 0xbc}, 0));
        CHECK(quantised(store, block_of({-infinity})) ==
              bytes_of(store, {0x00, 0x7c, 0x00, 0xfc}, 0));
        CHECK(quantised(store, Row(32, infinity)) == bytes_of(store, {0x00, 0x7c, 0x00, 0x7c}, 0));
        // The range of finite numbers overflows, too.
        CHECK(quantised(store, block_of({-3e38f, 3e38f})) ==
              bytes_of(store, {0x00, 0x7c, 0x00, 0xfc}, 0));
    }
}

TEST_CASE("quantise: a NaN has the middle code, and no part in the scale") {
    for (const Store store : blocks) {
        CAPTURE(static_cast<int>(store));
        Row row = block_of({1, -2, 3, 4, -5, 6});
        const bool lowest = store == Store::q4_1 || store == Store::q5_1;
        row[7] = row[20] = lowest ? -5.f : 0.f;
        const Bytes expected = quantised(store, row);
        row[7] = not_a_number;
        row[20] = -not_a_number;
        CHECK(quantised(store, row) == expected);
        CHECK(quantised(store, Row(32, not_a_number)) == quantised(store, Row(32, 0.f)));
    }
}

TEST_CASE("quantise: scales beyond f16 are stored as infinities, and codes are right") {
    CHECK(quantised(Store::q8_0, block_of({127e5f, -1e5f})) ==
          bytes_of(Store::q8_0, {0x00, 0x7c, 127, 0xff}, 0));
    CHECK(quantised(Store::q8_0, block_of({127 * float_at(-24), 64 * float_at(-24)})) ==
          bytes_of(Store::q8_0, {0x01, 0x00, 127, 64}, 0));
    CHECK(quantised(Store::q8_0, block_of({127 * float_at(-25)})) ==
          bytes_of(Store::q8_0, {0x00, 0x00, 127}, 0));
}

TEST_CASE("quantise: 8-bit floats and integers by hand") {
    CHECK(
        codes_of(Store::e4m3fn, {1, -1, 0, -0.f, 448, 449, 464, 480, 1e30f, infinity, -infinity}) ==
        Bytes{0x38, 0xb8, 0x00, 0x80, 0x7e, 0x7e, 0x7e, 0x7e, 0x7e, 0x7e, 0xfe});
    CHECK(codes_of(Store::e4m3fn, {not_a_number, -not_a_number}) == Bytes{0x7f, 0x7f});
    // Ties go to the even code: halves of the smallest number, and of steps of a normal one.
    const float tiny = float_at(-9);
    CHECK(codes_of(Store::e4m3fn, {tiny, tiny / 2, -tiny / 2, 1.5f * tiny, 2.5f * tiny,
                                   std::nextafter(tiny / 2, 1.f), 7.5f * tiny, 1.0625f, 1.1875f,
                                   1.9375f, 432, std::nextafter(432.f, 0.f)}) ==
          Bytes{0x01, 0x00, 0x80, 0x02, 0x02, 0x01, 0x08, 0x38, 0x3a, 0x40, 0x7e, 0x7d});
    CHECK(codes_of(Store::e5m2, {1, -1, 0, -0.f, 57344, 61440, 65536, infinity, -infinity}) ==
          Bytes{0x3c, 0xbc, 0x00, 0x80, 0x7b, 0x7b, 0x7b, 0x7b, 0xfb});
    CHECK(codes_of(Store::e5m2, {not_a_number, -not_a_number}) == Bytes{0x7f, 0x7f});
    CHECK(codes_of(Store::e5m2, {float_at(-16), float_at(-17), 1.5f * float_at(-16), 1.125f, 1.375f,
                                 std::nextafter(1.125f, 2.f)}) ==
          Bytes{0x01, 0x00, 0x02, 0x3c, 0x3e, 0x3d});
    CHECK(
        codes_of(Store::int8, {0, -0.f, 0.5f, -0.5f, 0.49999997f, 1.5f, 2.5f, -2.5f, 126.5f, 127,
                               127.5f, -127.4f, -128, 1e30f, infinity, -infinity, not_a_number}) ==
        Bytes{0, 0, 1, 0xff, 0, 2, 3, 0xfd, 127, 127, 127, 0x81, 0x81, 127, 127, 0x81, 0});
    CHECK(largest(Store::e4m3fn) == 448);
    CHECK(largest(Store::e5m2) == 57344);
    CHECK(largest(Store::int8) == 127);
    CHECK_THROWS(largest(Store::q8_0));
}

TEST_CASE("quantise: every code is the code of its value") {
    for (const Store store : elements) {
        for (unsigned code = 0; code < 256; ++code) {
            CAPTURE(code);
            const auto byte = static_cast<std::uint8_t>(code);
            const float value = dequantise(store, Bytes{byte})[0];
            const std::uint8_t again = code_of(store, value);
            if (std::isnan(value)) {
                CHECK(again == 0x7f);
            } else if (std::isinf(value)) {
                CHECK(again == byte - 1);
            } else if (store == Store::int8 && code == 0x80) {
                CHECK(again == 0x81);
            } else {
                CHECK(again == byte);
            }
        }
    }
    std::size_t nans = 0;
    for (unsigned code = 0; code < 256; ++code) {
        nans += is_nan(Store::e4m3fn, static_cast<std::uint8_t>(code)) ? 1 : 0;
        nans += is_nan(Store::e5m2, static_cast<std::uint8_t>(code)) ? 1 : 0;
    }
    CHECK(nans == 2 + 6);
}

TEST_CASE("quantise: every f16 number has the nearest 8-bit float, and of two the even one") {
    std::size_t wrong = 0;
    for (std::uint32_t half = 0; half < 0x10000u; ++half) {
        const float x = widen(Type::f16, half);
        if (std::isnan(x)) {
            continue;
        }
        // The upper byte of an f16 is an e5m2.
        const unsigned magnitude = half & 0x7fffu;
        const unsigned rounded = (magnitude + 0x7fu + (magnitude >> 8 & 1u)) >> 8;
        const unsigned e5m2 = std::min(rounded, 0x7bu) | (half >> 8 & 0x80u);
        wrong += code_of(Store::e5m2, x) == e5m2 ? 0 : 1;
        const std::uint8_t e4m3 = code_of(Store::e4m3fn, x);
        const double limited = std::clamp(double{x}, -448.0, 448.0);
        const auto distance = [limited](unsigned code) {
            return std::fabs(dequantise(Store::e4m3fn, Bytes{static_cast<std::uint8_t>(code)})[0] -
                             limited);
        };
        const double got = distance(e4m3);
        const unsigned size = e4m3 & 0x7fu;
        const bool nearest = (size == 0 || got < distance(e4m3 - 1u) ||
                              (got == distance(e4m3 - 1u) && size % 2 == 0)) &&
                             (size == 0x7e || got < distance(e4m3 + 1u) ||
                              (got == distance(e4m3 + 1u) && size % 2 == 0));
        wrong += nearest && (e4m3 >= 0x80) == std::signbit(x) ? 0 : 1;
    }
    CHECK(wrong == 0);
}

TEST_CASE("quantise: a given scale multiplies, in f32") {
    CHECK(quantise_given(Store::int8, Row{1, -3, 100}, 0.5f) == Bytes{1, 0xfe, 50});
    CHECK(quantise_given(Store::int8, Row{1, -1, 0}, infinity) == Bytes{127, 0x81, 0});
    CHECK(quantise_given(Store::e4m3fn, Row{1, 0}, infinity) == Bytes{0x7e, 0x7f});
    CHECK(quantise_given(Store::int8, Row{float_at(-149)}, float_at(127)) == Bytes{0});
    CHECK(quantise_given(Store::int8, Row{float_at(-127)}, float_at(126)) == Bytes{1});
    // The product rounds up to 2.5, and the code to 3.
    const float x = 3, given = 5.f / 6;
    REQUIRE(double{x} * double{given} < 2.5);
    REQUIRE(quantise_given(Store::int8, Row{x}, given) == Bytes{3});
}

TEST_CASE("quantise: a made scale is that of the largest magnitude, and not below the floor") {
    const MadeRow made = quantise_made(Store::int8, Row{254, -127, 3, -1, not_a_number}, 0);
    CHECK(made.scale == 2);
    CHECK(made.codes == Bytes{127, 0xc0, 2, 0xff, 0});
    CHECK(quantise_made(Store::e4m3fn, Row{-896, 2, not_a_number}, 0).codes ==
          Bytes{0xfe, 0x38, 0x7f});
    CHECK(quantise_made(Store::e5m2, Row{57344, 1}, 0).codes == Bytes{0x7b, 0x3c});
    const MadeRow floored = quantise_made(Store::int8, Row{127, 1}, 4);
    CHECK(floored.scale == 4);
    CHECK(floored.codes == Bytes{32, 0});
    // The quotient of 448 and 447 / 448 is not that of the rounded reciprocal.
    CHECK(quantise_made(Store::int8, Row{1}, 0).scale == 1 / 127.f);
    CHECK(quantise_made(Store::e4m3fn, Row{1}, 0).scale == 1 / 448.f);
    for (const Store store : elements) {
        const std::uint8_t nan = store == Store::int8 ? 0 : 0x7f;
        // float_at(-149) / 127 rounds to 0.
        const MadeRow zero = quantise_made(store, Row{-0.f, float_at(-149), not_a_number}, 0);
        CHECK(zero.scale == 0);
        CHECK(zero.codes == Bytes{0, 0, nan});
        const MadeRow infinite = quantise_made(store, Row{1, -1, -infinity}, 0);
        CHECK(infinite.scale == infinity);
        CHECK(infinite.codes[0] == 0);
        CHECK(infinite.codes[1] == (store == Store::int8 ? 0 : 0x80));
        CHECK(infinite.codes[2] == nan);
    }
}

TEST_CASE("quantise: bytes stand for numbers") {
    CHECK(dequantise(Store::int8, Bytes{0x81, 2, 0x80}, 0.5f) == Row{-63.5f, 1, -64});
    CHECK(dequantise(Store::e4m3fn, Bytes{0x38, 0xfe, 0x01}, 2) == Row{2, -896, float_at(-8)});
    CHECK(dequantise(Store::e5m2, Bytes{0x3c, 0x7c, 0x01}) == Row{1, infinity, float_at(-16)});
    CHECK(dequantise(Store::q8_0, bytes_of(Store::q8_0, {0x00, 0x40, 127, 0x81}, 0)) ==
          block_of({254, -254}));
    Row row = block_of({-16, 14}, -16);
    row[17] = 0;
    CHECK(dequantise(Store::q4_0, bytes_of(Store::q4_0, {0x00, 0x40, 0x00, 0x8f}, 0x00)) == row);
    row = block_of({-1, 14}, -1);
    row[17] = 7;
    CHECK(dequantise(Store::q4_1,
                     bytes_of(Store::q4_1, {0x00, 0x3c, 0x00, 0xbc, 0x00, 0x8f}, 0x00)) == row);
    row = block_of({0, 15}, -16);
    row[31] = -1;
    row[30] = 5;
    Bytes bytes = bytes_of(Store::q5_0, {0x00, 0x3c, 0x03, 0x00, 0x00, 0x40, 0x00, 0x0f}, 0x00);
    bytes[21] = 0xf0;
    bytes[20] = 0x50;
    CHECK(dequantise(Store::q5_0, bytes) == row);
    row = block_of({17, 32}, 1);
    row[31] = 16;
    bytes = bytes_of(Store::q5_1, {0x00, 0x3c, 0x00, 0x3c, 0x03, 0x00, 0x00, 0x00, 0x00, 0x0f},
                     0x00);
    bytes[23] = 0xf0;
    CHECK(dequantise(Store::q5_1, bytes) == row);
    CHECK_THROWS(dequantise(Store::q5_1, Bytes(25)));
}

TEST_CASE("quantise: what comes back is within one step of a code") {
    std::mt19937 random(5);
    for (const Store store : blocks) {
        CAPTURE(static_cast<int>(store));
        for (int trial = 0; trial < 200; ++trial) {
            Row row(32);
            for (float& x : row) {
                x = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-29f;
            }
            const auto [low, high] = std::minmax_element(row.begin(), row.end());
            const float most = std::max(-*low, *high);
            const float step = store == Store::q8_0   ? most / 127 * 0.5f
                               : store == Store::q4_0 ? most / 8
                               : store == Store::q5_0 ? most / 16
                               : store == Store::q4_1 ? (*high - *low) / 15 * 0.5f
                                                      : (*high - *low) / 31 * 0.5f;
            const Row back = dequantise(store, quantised(store, row));
            for (std::size_t j = 0; j < 32; ++j) {
                // f16 of d and m: 2^-11 relative.
                CHECK(std::fabs(back[j] - row[j]) <= step + most * 0x1p-10f);
            }
        }
    }
}

TEST_CASE("hadamard: by hand, and twice is nothing") {
    const auto transformed = [](Row row, std::uint64_t n) {
        std::vector<Approximate> channels;
        for (const float x : row) {
            channels.push_back({x, 0});
        }
        hadamard(channels, n, 0);
        std::vector<double> values;
        for (const Approximate& channel : channels) {
            values.push_back(static_cast<double>(channel.value));
        }
        return values;
    };
    const double root = std::sqrt(2.0);
    CHECK(transformed({1, 2, 5, 3}, 2)[0] == doctest::Approx(3 / root));
    CHECK(transformed({1, 2, 5, 3}, 2)[1] == doctest::Approx(-1 / root));
    CHECK(transformed({1, 2, 5, 3}, 2)[3] == doctest::Approx(2 / root));
    CHECK(transformed({1, 2, 5, 3}, 4) == std::vector<double>{5.5, 0.5, -2.5, -1.5});
    // Channel 5 of 8 has the signs of bits 0 and 2.
    const std::vector<double> signs = transformed({0, 0, 0, 0, 0, 1, 0, 0}, 8);
    for (unsigned i = 0; i < 8; ++i) {
        const double sign = std::popcount(i & 5u) == 1 ? -1 : 1;
        CHECK(signs[i] == doctest::Approx(sign / std::sqrt(8.0)));
    }
    std::vector<Approximate> row;
    for (int i = 0; i < 512; ++i) {
        row.push_back({static_cast<long double>(i * i % 97), 0});
    }
    hadamard(row, 512, 0);
    hadamard(row, 512, 0);
    for (int i = 0; i < 512; ++i) {
        CHECK(std::fabs(row[static_cast<std::size_t>(i)].value - i * i % 97) < 1e-12L);
    }
    CHECK_THROWS(transformed(Row(6), 3));
    CHECK_THROWS(transformed(Row(6), 4));
}

TEST_CASE("hadamard: the error grows with the levels, and covers what the input may be off") {
    std::vector<Approximate> row(4, {1, 0});
    hadamard(row, 4, 0);
    CHECK(row[1].value == 0);
    CHECK(row[1].error == doctest::Approx(1.001 * 3 * 0x1p-24 * 2));
    row.assign(2, {1, 0});
    hadamard(row, 2, 0);
    CHECK(row[0].error == doctest::Approx(1.001 * 3 * 0x1p-24 * std::sqrt(2.0)));
    row.assign(4, {0, 0.25L});
    hadamard(row, 4, 0);
    CHECK(row[0].error == doctest::Approx(0.5));
    row.assign(4, {0, 0});
    hadamard(row, 4, 1);
    CHECK(row[0].error == doctest::Approx(1.5 + 1));
    row.assign(4, {std::numeric_limits<long double>::infinity(), 0.5L});
    hadamard(row, 4, 1);
    CHECK(std::isnan(row[1].value));
    CHECK(row[1].error == 0);
}
