// SPDX-License-Identifier: MIT
// Checks divisions and roundings of quantised stores: the shader's own source against f32 division
// and against the oracle's codes.
#include "verify/oracle/quantise.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <vector>

#include "base/meaning.hpp"
#include "flush.hpp"
#include "search.hpp"

using namespace vkrope::bounds;
using namespace vkrope::shader;
using vkrope::oracle::code_of;
using vkrope::oracle::Store;

namespace {

struct Element {
    Store store;
    uint type;
    float largest;
};
constexpr std::array elements = {Element{Store::e4m3fn, element_e4m3fn, 448},
                                 Element{Store::e5m2, element_e5m2, 57344},
                                 Element{Store::int8, element_int8, 127}};

float as_float(uint bits) {
    return std::bit_cast<float>(bits);
}
uint bits_of(float x) {
    return std::bit_cast<uint>(x);
}

// Returns for each code the last float of this sign that the oracle maps to it.
std::vector<uint> ends_of(const Element& element, uint sign) {
    std::vector<uint> ends;
    const uint most = element.type == element_e4m3fn ? 0x7e
                      : element.type == element_e5m2 ? 0x7b
                                                     : 127;
    for (uint code = 0; code <= most; ++code) {
        const auto right = [&](uint magnitude) {
            const uint got = code_of(element.store, as_float(magnitude | sign));
            const uint size = element.type == element_int8 && sign != 0 ? (0u - got) & 0xffu
                                                                        : got & 0x7fu;
            return size <= code;
        };
        uint low = 0, high = 0x7f800001u;  // low is right, high is wrong; a NaN ends the last run
        if (code == most) low = high - 1;
        while (high - low > 1) {
            const uint middle = low + (high - low) / 2;
            (right(middle) ? low : high) = middle;
        }
        ends.push_back(low);
    }
    return ends;
}

uint signed_code(const Element& element, uint size, uint sign) {
    if (element.type == element_int8) return sign == 0 ? size : (0u - size) & 0xffu;
    return size | sign >> 24;
}

[[gnu::noinline]] uvec4 codes_of(uint type, uvec4 bits) {
    return vkrope_codes(type, uintBitsToFloat(bits));
}
[[gnu::noinline]] uvec4 times_codes(uint type, uvec4 bits, uint given) {
    return vkrope_codes(type, vkrope_times(uintBitsToFloat(bits), as_float(given)));
}
[[gnu::noinline]] uvec4 quotient_codes(uint type, uvec4 bits, const VkropeMadeScale& scale) {
    return vkrope_codes(type, vkrope_quotient(uintBitsToFloat(bits), scale));
}
// Computes codes by a product, if the scale has a reciprocal; returns whether they are certain.
[[gnu::noinline]] bool product_codes(uint type, uvec4 bits, const VkropeMadeScale& scale,
                                     uvec4& codes) {
    bool certain = false;
    if (vkrope_has_reciprocal(scale))
        codes = vkrope_codes_by_product(type, uintBitsToFloat(bits), vkrope_reciprocal_of(scale),
                                        certain);
    return certain;
}
[[gnu::noinline]] VkropeMadeScale made_scale(uint type, uint most, uint least) {
    VkropeExtremes extremes = vkrope_no_extremes(type);
    extremes.most = most;
    return vkrope_made_scale(type, extremes, as_float(least));
}

// Returns the scale `bits`, which no magnitude makes larger.
VkropeMadeScale scale_of(uint bits) {
    return made_scale(element_int8, 0, bits);
}

std::array<uint, 4> listed(uvec4 v) {
    return {v.x, v.y, v.z, v.w};
}

float divisor_of(uint type) {
    switch (type) {
        case element_q4_0: return 8;
        case element_q5_0: return 16;
        case element_q4_1: return 15;
        case element_q5_1: return 31;
        case element_e4m3fn: return 448;
        case element_e5m2: return 57344;
        default: return 127;
    }
}

}  // namespace

TEST_CASE("quantise: the processor flushes subnormals if asked to") {
#if defined(__x86_64__) || defined(__aarch64__)
    volatile float tiny = as_float(0x400000u), one = 1;
    volatile float product = 0;
    {
        const Flushing flushing(true);
        product = tiny * one;
    }
    CHECK(product == 0);
    product = tiny * one;
    CHECK(product == tiny);
#endif
}

TEST_CASE("quantise: reciprocals of all mantissas are the nearest") {
    std::size_t wrong = 0;
    for (uint mantissa = 0x800000u; mantissa < 0x1000000u; ++mantissa) {
        const std::uint64_t product = std::uint64_t{vkrope_reciprocal(mantissa)} * mantissa;
        const auto rest = std::int64_t((std::uint64_t{1} << 47) - product);
        wrong += std::abs(rest) * 2 < std::int64_t{mantissa} ? 0 : 1;
    }
    CHECK(wrong == 0);
}

TEST_CASE("quantise: scales of all mantissas, and subnormal scales, are the f32 quotient") {
    std::size_t wrong = 0, checked = 0;
    for (uint type = element_e4m3fn; type <= element_q5_1; ++type) {
        const float divisor = divisor_of(type);
        const auto check = [&](uint magnitude) {
            ++checked;
            const float x = as_float(magnitude);
            wrong += vkrope_divided(type, magnitude, 0) == bits_of(x / divisor) ? 0 : 1;
            // Divides a lifted channel, which is 2^64 times as large.
            if (magnitude >= 0x800000u && magnitude < 0x40000000u) {
                const uint lifted = magnitude + (64u << 23);
                wrong += vkrope_divided(type, lifted, 64) == bits_of(x / divisor) ? 0 : 1;
            }
        };
        for (uint mantissa = 0; mantissa < 0x800000u; ++mantissa) check(0x3f800000u + mantissa);
        const uint step = all ? 1 : 97;
        for (uint magnitude = 0; magnitude < 0x0a000000u; magnitude += step) check(magnitude);
        for (const uint magnitude : {0x7f7fffffu, 0x7f000000u, 0x7f800000u}) check(magnitude);
        for (uint magnitude = 0; magnitude < 70000; ++magnitude) check(magnitude);
    }
    CHECK(wrong == 0);
    std::printf("quantise: %zu scales\n", checked);
}

TEST_CASE("quantise: floats have the oracle's codes") {
    for (const Element& element : elements) {
        for (const uint sign : {0u, 0x80000000u}) {
            const std::vector<uint> ends = ends_of(element, sign);
            CHECK(std::is_sorted(ends.begin(), ends.end()));
            std::vector<uint> floats;
            if (!all) {
                for (const uint end : ends)
                    for (uint i = end < 3 ? 0 : end - 3; i < end + 4; ++i) floats.push_back(i);
                for (uint i = 0; i <= 0x7f800000u; i += 1021) floats.push_back(i);
                for (uint i = 0; i < 70000; ++i) floats.push_back(i);
                floats.erase(std::remove_if(floats.begin(), floats.end(),
                                            [](uint i) { return i > 0x7f800000u; }),
                             floats.end());
                std::sort(floats.begin(), floats.end());
                floats.resize(floats.size() / 4 * 4);
                floats.insert(floats.end(), 4, 0x7f800000u);
            }
            const std::size_t count = all ? 0x7f800000u : floats.size();
            std::size_t wrong = 0, run = 0;
            for (std::size_t i = 0; i < count; i += 4) {
                uvec4 given(uint(i), uint(i + 1), uint(i + 2), uint(i + 3));
                if (!all) given = uvec4(floats[i], floats[i + 1], floats[i + 2], floats[i + 3]);
                const auto magnitudes = listed(given);
                const auto got = listed(codes_of(element.type, given | sign));
                for (std::size_t c = 0; c < 4; ++c) {
                    while (magnitudes[c] > ends[run]) ++run;
                    wrong += got[c] == signed_code(element, uint(run), sign) ? 0 : 1;
                }
            }
            CAPTURE(element.type);
            CHECK(wrong == 0);
            std::printf("quantise: %zu floats to codes\n", count);
            for (const uint nan : {0x7f800001u, 0x7fc00000u, 0x7fffffffu}) {
                const uint code = element.type == element_int8 ? 0 : 0x7f;
                CHECK(codes_of(element.type, uvec4(nan | sign)).z == code);
            }
        }
    }
}

TEST_CASE("quantise: quotients are f32 quotients, also next to where they would round otherwise") {
    Random random(31);
    std::size_t wrong = 0;
    const std::size_t count = all ? 1000000000 : 4000000;
    for (std::size_t i = 0; i < count / 4; ++i) {
        const uint divisor = 0x800000u + uint(random() % 0x800000u);
        const VkropeMadeScale scale = scale_of(divisor + 0x3f000000u);
        uint given[4];
        for (uint& bits : given) {
            uint mantissa = uint(random() % 0x800000u) + 0x800000u;
            if (random() % 4 != 0) {
                // This is the mantissa whose quotient is next to the middle of two floats.
                const std::uint64_t middle = 2 * std::uint64_t{mantissa} + 1;
                const int shift = random() % 2 == 0 ? 24 : 25;
                const std::uint64_t near = (middle * divisor >> shift) + random() % 2;
                mantissa = uint(std::clamp<std::uint64_t>(near, 0x800000u, 0xffffffu));
            }
            bits = mantissa + 0x3f000000u + (uint(random() % 5) << 23) - (uint(random() % 5) << 23);
        }
        const vec4 got = vkrope_quotient(
            uintBitsToFloat(uvec4(given[0], given[1], given[2], given[3])), scale);
        const float by = as_float(scale.bits);
        wrong += got.x == as_float(given[0]) / by && got.y == as_float(given[1]) / by &&
                         got.z == as_float(given[2]) / by && got.w == as_float(given[3]) / by
                     ? 0
                     : 1;
    }
    CHECK(wrong == 0);
    std::printf("quantise: %zu quotients\n", count);
}

TEST_CASE("quantise: products have the codes of quotients where they are certain, as most are") {
    const std::size_t count = all ? 100000000 : 1000000;
    Random random(33);
    for (const Element& element : elements) {
        std::size_t wrong = 0, certain = 0;
        for (std::size_t i = 0; i < count / 4; ++i) {
            const VkropeMadeScale scale = scale_of(0x3f000000u - (uint(random() % 40) << 23) +
                                                   uint(random() % 0x1000000u));
            uint given[4];
            for (uint& bits : given) {
                const double share = uniform(random) * 2 - 1;
                double scaled = share * double(element.largest);
                if (i % 2 == 0) scaled = double(float(std::lround(scaled * 2)) / 2);  // ties
                bits = bits_of(float(scaled * double(as_float(scale.bits)))) + uint(random() % 33) -
                       16;
            }
            const uvec4 x(given[0], given[1], given[2], given[3]);
            uvec4 product;
            if (!product_codes(element.type, x, scale, product)) continue;
            certain += 1;
            const auto right = listed(quotient_codes(element.type, x, scale));
            wrong += listed(product) == right ? 0 : 1;
        }
        CAPTURE(element.type);
        CHECK(wrong == 0);
        CHECK(certain > count / 4 * 2 / 5);  // nearly all except deliberate ties
    }
}

TEST_CASE("quantise: any float with any scale, given or computed, has the oracle's code") {
    const uint specials[] = {0, 1, 0x7fffffu, 0x800000u, 0x7f7fffffu, 0x7f800000u, 0x7fc00000u};
    const std::size_t count = all ? 20000000 : 200000;
    for (const bool flushes : {false, true}) {
        Random random(32);
        std::size_t wrong_given = 0, wrong_made = 0, wrong_products = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const Element& element = elements[i % elements.size()];
            uint scale = 1 + uint(random() % 0x7f7fffffu);  // finite, not 0
            uint given[4];
            for (uint& bits : given) {
                // Half of the results are in the range of codes.
                const float near = float(std::ldexp(1 + uniform(random), int(random() % 24) - 14));
                const double target = random() % 2 == 0 ? near : double(random() % 256) / 2;
                const double x = i / 3 % 2 == 0 ? target / double(as_float(scale))
                                                : target * double(as_float(scale));
                bits = random() % 4 == 0 ? uint(random()) : bits_of(float(x)) + uint(random() % 3);
                if (random() % 16 == 0) bits = specials[random() % std::size(specials)];
                if (random() % 2 == 0) bits ^= 0x80000000u;
            }
            if (i / 3 % 2 == 1 && random() % 16 == 0) scale = random() % 2 == 0 ? 0 : 0x7f800000u;
            const uint negative = random() % 8 == 0 ? 0x80000000u : 0u;
            const uvec4 x(given[0], given[1], given[2], given[3]);
            uvec4 got, product;
            bool certain = false;
            {
                const Flushing flushing(flushes);
                certain = i / 3 % 2 == 1 &&
                          product_codes(element.type, x, scale_of(scale), product);
                got = i / 3 % 2 == 0 ? times_codes(element.type, x, scale | negative)
                                     : quotient_codes(element.type, x, scale_of(scale));
            }
            for (std::size_t c = 0; c < 4; ++c) {
                const float number = as_float(given[c]), factor = as_float(scale);
                if (i / 3 % 2 == 0) {
                    const float scaled = number * as_float(scale | negative);
                    wrong_given += listed(got)[c] == code_of(element.store, scaled) ? 0 : 1;
                } else if (scale != 0 || !std::isinf(number)) {  // no such row has this scale
                    const bool zero = scale == 0 && !std::isnan(number);
                    const float scaled = zero ? 0.f : number / factor;
                    wrong_made += listed(got)[c] == code_of(element.store, scaled) ? 0 : 1;
                    wrong_products += certain && listed(product)[c] != listed(got)[c] ? 1 : 0;
                }
            }
        }
        CAPTURE(flushes);
        CHECK(wrong_given == 0);
        CHECK(wrong_made == 0);
        CHECK(wrong_products == 0);
        std::printf("quantise: %zu scaled floats%s\n", 4 * count,
                    flushes ? ", subnormals flushed" : "");
    }
}
