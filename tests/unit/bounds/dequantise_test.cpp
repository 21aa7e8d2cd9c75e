// SPDX-License-Identifier: MIT
// Checks the numbers that quantised types are read as, for every code: the shader's own source
// against the definitions of the types.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "flush.hpp"
#include "verify/shader_source/shader.hpp"

using namespace vkrope::bounds;
using namespace vkrope::shader;

namespace {

// Returns the number of an 8-bit float, which has `bits` bits of mantissa.
float float8(uint code, uint bits, int bias, bool has_infinity) {
    const int mantissa = int(code & ((1u << bits) - 1)),
              exponent = int(code >> bits & 0x7fu >> bits);
    const bool top = exponent == int(0x7fu >> bits);
    float number = exponent == 0
                       ? std::ldexp(float(mantissa), 1 - bias - int(bits))
                       : std::ldexp(float(mantissa + (1 << bits)), exponent - bias - int(bits));
    if (has_infinity && top && mantissa == 0) number = std::numeric_limits<float>::infinity();
    if (has_infinity ? top && mantissa != 0 : (code & 0x7fu) == 0x7fu)
        number = std::numeric_limits<float>::quiet_NaN();
    return code >= 0x80 ? -number : number;
}

struct Type {
    uint type, codes;
    std::function<float(uint code)> number;
};

const Type types[] = {
    {element_e4m3fn, 256, [](uint code) { return float8(code, 3, 7, false); }},
    {element_e5m2, 256, [](uint code) { return float8(code, 2, 15, true); }},
    {element_int8, 256, [](uint code) { return float(int(code) - (code < 128 ? 0 : 256)); }},
    {element_q8_0, 256, [](uint code) { return float(int(code) - (code < 128 ? 0 : 256)); }},
    {element_int4, 16, [](uint code) { return float(int(code) - (code < 8 ? 0 : 16)); }},
    {element_q4_0, 16, [](uint code) { return float(code) - 8; }},
    {element_q5_0, 32, [](uint code) { return float(code) - 16; }},
    {element_q4_1, 16, [](uint code) { return float(code); }},
    {element_q5_1, 32, [](uint code) { return float(code); }},
    {element_iq4_nl, 16, [](uint code) {
         constexpr int values[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};
         return float(values[code]);
     }}};

[[gnu::noinline]] vec4 numbers_of(uint type, uint word) {
    return vkrope_numbers(type, word);
}

}  // namespace

TEST_CASE("dequantise: every code is read as its number, in each byte of a word") {
    for (const Type& of : types) {
        CAPTURE(of.type);
        for (const bool flushes : {false, true}) {
            for (uint code = 0; code < of.codes; ++code) {
                CAPTURE(code);
                const uint other = of.codes - 1 - code;
                vec4 got;
                {
                    const Flushing flushing(flushes);
                    got = numbers_of(of.type, code | other << 8 | code << 16 | other << 24);
                }
                const float right[] = {of.number(code), of.number(other)};
                const float read[] = {got.x, got.y, got.z, got.w};
                for (uint byte = 0; byte < 4; ++byte) {
                    const float number = right[byte % 2];
                    CHECK((std::isnan(number) ? std::isnan(read[byte])
                                              : read[byte] == number && std::signbit(read[byte]) ==
                                                                            std::signbit(number)));
                }
            }
        }
    }
}

TEST_CASE("dequantise: codes of 4 bits and fifth bits are spread to the bytes of a word") {
    for (uint codes = 0; codes < 0x10000; ++codes) {
        const uint spread = vkrope_spread_nibbles(codes | 0x5aa50000u);
        uint right = 0;
        for (uint i = 0; i < 4; ++i) right |= (codes >> (4 * i) & 0xfu) << (8 * i);
        REQUIRE(spread == right);
    }
    for (uint bits = 0; bits < 0x100; ++bits) {
        uint right = 0;
        for (uint i = 0; i < 4; ++i) right |= (bits >> i & 1u) << (8 * i + 4);
        CHECK(vkrope_spread_fifth_bits(bits) == right);
    }
}
