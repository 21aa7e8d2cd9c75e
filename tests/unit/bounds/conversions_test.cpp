// SPDX-License-Identifier: MIT
// Checks the conversions to f16 and bf16, of the shader and of the oracle, against the definition:
// the nearest value, and the even one of two equally near values.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <vector>

#include "search.hpp"
#include "verify/oracle/oracle.hpp"

using namespace vkrope::bounds;
using namespace vkrope::shader;
using vkrope::oracle::Type;

namespace {

struct Format {
    Type type;
    uint element;
    int fraction_bits, exponent_bits;

    uint infinity() const { return ((1u << exponent_bits) - 1) << fraction_bits; }
    // Returns the value of a magnitude up to infinity. Infinity stands for the value that would
    // follow the largest number.
    double value(uint bits) const {
        const uint exponent = bits >> fraction_bits, fraction = bits & ((1u << fraction_bits) - 1);
        const int bias = (1 << (exponent_bits - 1)) - 1;
        return exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                             : std::ldexp(fraction + (1u << fraction_bits),
                                          int(exponent) - bias - fraction_bits);
    }
};

constexpr std::array formats = {Format{Type::f16, element_f16, 10, 5},
                                Format{Type::bf16, element_bf16, 7, 8}};

float as_float(uint bits) {
    return std::bit_cast<float>(bits);
}

bool is_nan(const Format& format, uint bits) {
    return bits <= 0xffff && (bits & 0x7fffu) > format.infinity();
}

// Finds the nearest magnitudes to ascending floats by stepping through the format's values.
class Nearest {
   public:
    explicit Nearest(const Format& format) : format_(format) { step(0); }

    uint of(float magnitude) {
        while (magnitude > middle_ || (magnitude == middle_ && nearest_ % 2 == 1))
            step(nearest_ + 1);
        return nearest_;
    }

   private:
    void step(uint to) {
        nearest_ = to;
        middle_ = to == format_.infinity() ? HUGE_VAL
                                           : (format_.value(to) + format_.value(to + 1)) / 2;
    }

    const Format& format_;
    uint nearest_ = 0;
    double middle_ = 0;
};

// Narrows four elements as the shader does, with and without branches; returns whether both agree.
bool narrowed(uint element, uvec4 bits, uvec4& h) {
    const vec4 f = uintBitsToFloat(bits);
    uvec4 w[2];
    for (const bool branches : {false, true}) {
        vkrope::shader::rare_branches = branches;
        w[branches] = vkrope_narrow_words(element, Unit(f, f));
    }
    h = uvec4(w[0].x & 0xffffu, w[0].x >> 16, w[0].y & 0xffffu, w[0].y >> 16);
    return w[0].x == w[1].x && w[0].y == w[1].y && w[0].z == w[1].x && w[1].z == w[0].x &&
           w[0].w == w[0].y && w[1].w == w[0].y;
}

// Compares both signs of two magnitudes, narrowed by the shader and by the oracle. A NaN must stay
// a NaN.
bool narrows(const Format& format, std::array<uint, 2> floats, std::array<uint, 2> expected) {
    const uint sign = 0x80000000u;
    const uvec4 bits(floats[0], floats[0] | sign, floats[1], floats[1] | sign);
    uvec4 h;
    if (!narrowed(format.element, bits, h)) return false;
    const auto agrees = [&](uint given, uint got, uint right) {
        const uint oracle = vkrope::oracle::narrow(format.type, as_float(given));
        if ((given & ~sign) > 0x7f800000u) return is_nan(format, got) && is_nan(format, oracle);
        return got == right && oracle == right;
    };
    return agrees(bits.x, h.x, expected[0]) && agrees(bits.y, h.y, expected[0] | 0x8000u) &&
           agrees(bits.z, h.z, expected[1]) && agrees(bits.w, h.w, expected[1] | 0x8000u);
}

// Returns all values of the format and all midpoints between them, with two floats on both sides
// of each, and random floats, in ascending order.
std::vector<uint> stratified(const Format& format) {
    std::vector<uint> floats;
    const auto around = [&](double value) {
        const uint at = std::bit_cast<uint>(float(value));
        for (uint i = at < 2 ? 0 : at - 2; i <= std::min(at + 2, 0x7f800000u); ++i)
            floats.push_back(i);
    };
    for (uint bits = 0; bits < format.infinity(); ++bits) {
        around(format.value(bits));
        around((format.value(bits) + format.value(bits + 1)) / 2);
    }
    around(HUGE_VAL);
    Random random(14);
    for (int i = 0; i < 1000000; ++i) floats.push_back(uint(random() % 0x7f800001u));
    std::sort(floats.begin(), floats.end());
    if (floats.size() % 2 == 1) floats.push_back(floats.back());
    return floats;
}

}  // namespace

TEST_CASE("f16 and bf16 widen to their value") {
    for (const Format& format : formats) {
        for (uint bits = 0; bits < 0x8000u; ++bits) {
            // Four different elements, so that each component is tested.
            const vec4 wide = vkrope_widen(format.element,
                                           uvec4(bits, bits | 0x8000u, bits ^ 1u, bits ^ 0x8001u));
            const std::array<uint, 4> given = {bits, bits | 0x8000u, bits ^ 1u, bits ^ 0x8001u};
            const std::array<float, 4> got = {wide.x, wide.y, wide.z, wide.w};
            for (std::size_t i = 0; i < 4; ++i) {
                const uint magnitude = given[i] & 0x7fffu;
                const float oracle = vkrope::oracle::widen(format.type, given[i]);
                if (is_nan(format, given[i])) {
                    REQUIRE(std::isnan(got[i]));
                    REQUIRE(std::isnan(oracle));
                    continue;
                }
                const float value = magnitude == format.infinity() ? HUGE_VALF
                                                                   : float(format.value(magnitude));
                const uint right = std::bit_cast<uint>(value) | (given[i] & 0x8000u) << 16;
                REQUIRE(std::bit_cast<uint>(got[i]) == right);
                REQUIRE(std::bit_cast<uint>(oracle) == right);
            }
        }
    }
}

TEST_CASE("floats narrow to the nearest f16 and bf16") {
    for (const Format& format : formats) {
        const std::vector<uint> floats = all ? std::vector<uint>{} : stratified(format);
        const std::size_t count = all ? 0x7f800002u : floats.size();  // --all: up to a NaN
        Nearest nearest(format);
        std::size_t wrong = 0;
        uint first_wrong = 0;
        for (std::size_t i = 0; i < count; i += 2) {
            const std::array<uint, 2> given = all ? std::array<uint, 2>{uint(i), uint(i) + 1}
                                                  : std::array<uint, 2>{floats[i], floats[i + 1]};
            const uint first = nearest.of(as_float(given[0])),
                       second = nearest.of(as_float(given[1]));
            if (!narrows(format, given, {first, second}) && wrong++ == 0) first_wrong = given[0];
        }
        CAPTURE(format.element);
        CAPTURE(first_wrong);
        CHECK(wrong == 0);
        std::printf("conversions: %zu magnitudes to %s\n", count,
                    format.element == element_f16 ? "f16" : "bf16");
    }
}

TEST_CASE("a NaN narrows to a NaN") {
    const uint step = all ? 2 : 4094;
    for (const Format& format : formats) {
        std::size_t wrong = 0;
        for (std::uint64_t bits = 0x7f800001u; bits <= 0x7fffffffu; bits += step) {
            wrong += narrows(format, {uint(bits), std::min(uint(bits) + 1, 0x7fffffffu)}, {}) ? 0
                                                                                              : 1;
        }
        CHECK(wrong == 0);
    }
}
