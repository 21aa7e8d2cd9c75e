// SPDX-License-Identifier: MIT
// Checks the oracle's conversions of long double; bounds/conversions_test.cpp checks those of f32.
#include "verify/oracle/element.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

using namespace vkrope::oracle;

namespace {

constexpr long double infinity = std::numeric_limits<long double>::infinity();
constexpr long double not_a_number = std::numeric_limits<long double>::quiet_NaN();

long double next(long double value, long double towards) {
    return std::nextafter(value, towards);
}

// Checks all values of a 16-bit type, and the reals around the ends of their rounding cells.
void check_16_bits(Type type, std::uint32_t infinity_bits) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const float value = widen(type, bits);
        const std::uint32_t magnitude = bits & 0x7fff;
        if (magnitude > infinity_bits) {
            CHECK(std::isnan(value));
            CHECK((narrow(type, value) & 0x7fff) > infinity_bits);
            continue;
        }
        REQUIRE(narrow(type, value) == bits);
        REQUIRE(std::signbit(value) == (bits >= 0x8000));
        if (magnitude >= infinity_bits - 1) continue;
        const long double above = widen(type, bits + 1);
        const long double tie = (static_cast<long double>(value) + above) / 2;
        REQUIRE(narrow(type, tie) == bits + bits % 2);
        REQUIRE(narrow(type, next(tie, value)) == bits);
        REQUIRE(narrow(type, next(tie, above)) == bits + 1);
    }
}

}  // namespace

TEST_CASE("16-bit types round to nearest even, everywhere") {
    check_16_bits(Type::f16, 0x7c00);
    check_16_bits(Type::bf16, 0x7f80);
}

TEST_CASE("overflow starts half an ulp above the largest value") {
    CHECK(narrow(Type::f16, next(65520.0L, 0)) == 0x7bff);
    CHECK(narrow(Type::f16, 65520.0L) == 0x7c00);
    CHECK(narrow(Type::f16, -65520.0L) == 0xfc00);
    CHECK(narrow(Type::f16, 1e4000L) == 0x7c00);
    CHECK(narrow(Type::bf16, next(0x1.ffp127L, 0)) == 0x7f7f);
    CHECK(narrow(Type::bf16, 0x1.ffp127L) == 0x7f80);
    CHECK(narrow(Type::f32, next(0x1.ffffffp127L, 0)) == 0x7f7fffff);
    CHECK(narrow(Type::f32, 0x1.ffffffp127L) == 0x7f800000);
    for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
        CHECK(widen(type, narrow(type, infinity)) == std::numeric_limits<float>::infinity());
        CHECK(widen(type, narrow(type, -infinity)) == -std::numeric_limits<float>::infinity());
        CHECK(std::isnan(widen(type, narrow(type, not_a_number))));
    }
}

TEST_CASE("underflow ends in a zero of the same sign") {
    CHECK(narrow(Type::f16, 0x1p-25L) == 0x0000);
    CHECK(narrow(Type::f16, next(0x1p-25L, 1)) == 0x0001);
    CHECK(narrow(Type::f16, -0x1p-26L) == 0x8000);
    CHECK(narrow(Type::f16, -0.0L) == 0x8000);
    CHECK(narrow(Type::f32, 0x1p-150L) == 0);
    CHECK(narrow(Type::f32, next(0x1p-150L, 1)) == 1);
    CHECK(narrow(Type::f32, -1e-4940L) == 0x80000000);
}

TEST_CASE("f32 rounds as the hardware does") {
    std::mt19937_64 random(1);
    for (int i = 0; i < 200000; ++i) {
        const auto fraction = static_cast<long double>(random()) * 0x1p-64L;
        const long double value = std::ldexp(fraction, int(random() % 300) - 160) *
                                  (random() % 2 == 0 ? 1 : -1);
        REQUIRE(narrow(Type::f32, value) == std::bit_cast<std::uint32_t>(float(value)));
    }
}

TEST_CASE("distance from what an element may stand for") {
    const ElementTable f16(Type::f16);
    const std::uint32_t one = 0x3c00;
    CHECK(f16.distance(one, 1 + 0x1p-11L) == 0);  // the ends of the cell belong to it
    CHECK(f16.distance(one, 1 - 0x1p-12L) == 0);
    CHECK(f16.distance(one, 1 + 0x3p-12L) == 0x1p-12L);
    CHECK(f16.distance(one, 1 - 0x1p-11L) == 0x1p-12L);
    CHECK(f16.distance(0xbc00, -1 - 0x3p-12L) == 0x1p-12L);
    CHECK(f16.distance(0x0000, -0x1p-25L) == 0);
    CHECK(f16.distance(0x8000, 0x1p-24L) == 0x1p-25L);
    CHECK(f16.distance(0x7bff, 65520) == 0);
    CHECK(f16.distance(0x7c00, 65520) == 0);
    CHECK(f16.distance(0x7c00, 65519) == 1);
    CHECK(f16.distance(0x7c00, infinity) == 0);
    CHECK(f16.distance(0xfc00, infinity) == infinity);
    CHECK(f16.distance(0x7bff, infinity) == infinity);

    const ElementTable bf16(Type::bf16);
    CHECK(bf16.distance(0x3f80, 1 + 0x1p-8L) == 0);
    CHECK(bf16.distance(0x3f80, 1 + 0x3p-9L) == 0x1p-9L);
    CHECK(bf16.distance(0x7f80, 0x1.ffp127L) == 0);

    const ElementTable f32(Type::f32);
    CHECK(f32.distance(0x3f800000, 1 + 0x1p-30L) == 0x1p-30L);
    CHECK(f32.distance(0x3f800000, 1) == 0);
    CHECK(f32.distance(0x7f800000, 0x1.ffffffp127L) == 0);
    CHECK(f32.distance(0x7f800000, 0x1.fffffep127L) == 0x1p103L);
    CHECK(f32.distance(0xff800000, -infinity) == 0);
    CHECK(f32.distance(0x7f7fffff, infinity) == infinity);
}
