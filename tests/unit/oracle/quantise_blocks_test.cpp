// SPDX-License-Identifier: MIT
// The oracle of ggml's blocks: bytes worked out by hand, ties, ranges and special values; and the
// numbers that bytes of any store stand for.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "quantised_rows.hpp"
#include "verify/oracle/element.hpp"
#include "verify/oracle/quantise.hpp"

using namespace vkrope::oracle;
using namespace vkrope::test;

namespace {

constexpr std::array blocks = {Store::q8_0, Store::q4_0, Store::q4_1, Store::q5_0, Store::q5_1};

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
