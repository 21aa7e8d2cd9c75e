// SPDX-License-Identifier: MIT
// The oracle of 8-bit floats and integers: codes worked out by hand, ties, ranges, special values,
// and the scales that multiply or divide them.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "quantised_rows.hpp"
#include "verify/oracle/element.hpp"
#include "verify/oracle/quantise.hpp"

using namespace vkrope::oracle;
using namespace vkrope::test;

namespace {

constexpr std::array elements = {Store::e4m3fn, Store::e5m2, Store::int8};

Bytes codes_of(Store store, const Row& numbers) {
    return quantise_given(store, numbers, 1);
}

bool is_nan(Store store, std::uint8_t code) {
    return std::isnan(dequantise(store, Bytes{code})[0]);
}

}  // namespace

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

TEST_CASE("quantise: a made scale follows from the largest magnitude, and is not below the floor") {
    const MadeRow made = quantise_made(Store::int8, Row{254, -127, 3, -1, not_a_number}, 0);
    CHECK(made.scale == 2);
    CHECK(made.codes == Bytes{127, 0xc0, 2, 0xff, 0});
    CHECK(quantise_made(Store::e4m3fn, Row{-896, 2, not_a_number}, 0).codes ==
          Bytes{0xfe, 0x38, 0x7f});
    CHECK(quantise_made(Store::e5m2, Row{57344, 1}, 0).codes == Bytes{0x7b, 0x3c});
    const MadeRow floored = quantise_made(Store::int8, Row{127, 1}, 4);
    CHECK(floored.scale == 4);
    CHECK(floored.codes == Bytes{32, 0});
    // The quotient of 448 and 447 / 448 differs from the product with the rounded reciprocal.
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

TEST_CASE("quantise: a made power of two is the next one from the quotient on") {
    CHECK(power_of_two_from(0) == 0x1p-126f);
    CHECK(power_of_two_from(float_at(-149)) == 0x1p-126f);
    CHECK(power_of_two_from(0x1p-126f) == 0x1p-126f);
    CHECK(power_of_two_from(std::nextafter(0x1p-126f, 1.f)) == 0x1p-125f);
    CHECK(power_of_two_from(0x1p127f) == 0x1p127f);
    CHECK(power_of_two_from(std::nextafter(0x1p127f, infinity)) == infinity);
    CHECK(power_of_two_from(infinity) == infinity);
    for (int k = -125; k < 127; ++k) {
        const float power = std::ldexp(1.f, k);
        CHECK(power_of_two_from(power) == power);
        CHECK(power_of_two_from(std::nextafter(power, 0.f)) == power);
        CHECK(power_of_two_from(std::nextafter(power, infinity)) == 2 * power);
    }
    const MadeRow exact = quantise_made(Store::e4m3fn, Row{-448, 2}, 0, true);
    CHECK(exact.scale == 1);
    CHECK(exact.codes == Bytes{0xfe, 0x40});
    const MadeRow above = quantise_made(Store::e4m3fn, Row{std::nextafter(448.f, 449.f), 2}, 0,
                                        true);
    CHECK(above.scale == 2);
    CHECK(above.codes == Bytes{0x76, 0x38});
    CHECK(quantise_made(Store::int8, Row{3}, 0.3f, true).scale == 0.5f);
    CHECK(quantise_made(Store::e5m2, Row{-0.f, 0}, 0, true).codes == Bytes{0x80, 0});
    CHECK(quantise_made(Store::e5m2, Row{1, -infinity}, 0, true).scale == infinity);
    // vLLM and DeepSeek have a floor under the largest magnitude, 1e-4, not under the scale.
    CHECK(quantise_made(Store::e4m3fn, Row{0}, 1e-4f / 448, true).scale == 0x1p-22f);
}
