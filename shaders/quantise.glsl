// SPDX-License-Identifier: MIT
// Computes the codes of quantised stores: 8-bit floats, int8 and int4, and what they share
// with ggml's blocks of 32 channels (blocks.glsl). Needs interface.h and element.glsl. Declares no
// binding, push constant or workgroup size. `type` is element_e4m3fn, ...; `n` is the number of
// elements in a unit.
//
// Every device computes the same bytes. Divisions are integer divisions of mantissas, by constants,
// or are corrected by an exact remainder. Integers and exact factors avoid f32 subnormals where
// flushing would change a result.
//
// A block, or a row whose scale is computed, takes three steps:
//
//   1. vkrope_extremes of each unit, joined in the order of channels by vkrope_join_extremes.
//   2. vkrope_block, or vkrope_made_scale.
//   3. vkrope_block_codes of every 4 channels, or vkrope_codes of vkrope_quotient;
//      vkrope_codes_by_product usually avoids the quotient. A scale from the parameters needs
//      only this step, with vkrope_times.
//
// vkrope_pack_codes packs 4 codes into a word. Codes of 8-bit types are stored unchanged.
#ifndef VKROPE_QUANTISE_GLSL
#define VKROPE_QUANTISE_GLSL

#ifndef VKROPE_ELEMENT_GLSL
#error "quantise.glsl: include interface.h and element.glsl first"
#endif

// Returns true for types whose code 0 stands for the smallest channel.
bool vkrope_has_minimum(const uint type) {
    return type == element_q4_1 || type == element_q5_1;
}
// Returns true for types whose code 0 stands for the channel of largest magnitude.
bool vkrope_is_signed_block(const uint type) {
    return type == element_q4_0 || type == element_q5_0 || type == element_iq4_nl;
}
bool vkrope_is_integer(const uint type) {
    return type == element_int8 || type == element_int4;
}

// ---- Floats as integers ----

// Splits finite magnitudes other than 0 into mantissa * 2^(exponent - 150), with 24 bits of
// mantissa. A subnormal is normalised by the conversion from an integer, which is exact.
uvec4 vkrope_mantissa(const uvec4 magnitude, out ivec4 exponent) {
    const bvec4 subnormal = lessThan(magnitude, uvec4(0x800000u));
    const uvec4 bits = mix(magnitude, floatBitsToUint(vec4(magnitude)), subnormal);
    exponent = ivec4(bits >> 23) - mix(ivec4(0), ivec4(149), subnormal);
    return (bits & 0x7fffffu) | 0x800000u;
}

// Assembles a float from 24 bits of mantissa (or 2^24), an exponent as above, and a sign. Exponents
// far from any code are clamped: numbers below 2^-40 become 0, numbers above 2^41 stay above it.
uvec4 vkrope_assemble(const uvec4 mantissa, const ivec4 exponent, const uvec4 sign) {
    const ivec4 most = ivec4(168);
    const ivec4 limited = mix(exponent, most, greaterThan(exponent, most));
    const uvec4 bits = mantissa + (uvec4(limited - 1) << 23);
    return mix(bits, uvec4(0), lessThan(exponent, ivec4(87))) | sign;
}

// ---- Divisions ----

// Returns magnitude * 2^-lift over the divisor of a type (127, 448, 57344, 7; 8, 16, 15, 31), as
// f32 bits, rounded to nearest even. The result may be subnormal. Infinity and 0 are unchanged.
uint vkrope_divided(const uint type, const uint magnitude, const int lift) {
    ivec4 exponents;
    const uint n = vkrope_mantissa(uvec4(magnitude), exponents).x << 8;
    // The divisor is an odd number, or 2, times a power of two. The highest bit of the quotient is
    // bit `top`, or the bit above it.
    uint divisor = 127, quotient = n / 127u, top = 24;
    int power = 0;
    if (type == element_q4_0 || type == element_q5_0) {
        divisor = 2;
        quotient = n >> 1;
        top = 30;
        power = type == element_q4_0 ? 2 : 3;
    } else if (type == element_q4_1) {
        divisor = 15;
        quotient = n / 15u;
        top = 27;
    } else if (type == element_q5_1) {
        divisor = 31;
        quotient = n / 31u;
        top = 26;
    } else if (type == element_e4m3fn || type == element_e5m2 || type == element_int4) {
        divisor = 7;
        quotient = n / 7u;
        top = 28;
        power = type == element_e4m3fn ? 6 : type == element_e5m2 ? 13 : 0;
    }
    top += quotient >> (top + 1u);
    const int exponent = exponents.x + int(top) - 31 - power - lift;
    uint dropped = top - 23u + (exponent < 1 ? uint(1 - exponent) : 0u);
    if (dropped > 31u) {  // far below the smallest number
        dropped = 31;
        quotient = 0;
    }
    const uint kept = quotient >> dropped;
    const uint rest = quotient & ((1u << dropped) - 1u);
    const uint tie = 1u << (dropped - 1u);
    const bool odd = (kept & 1u) != 0 || quotient * divisor != n;
    uint bits = kept + (rest > tie || (rest == tie && odd) ? 1u : 0u);
    if (exponent > 1) bits += uint(exponent - 1) << 23;
    return magnitude == 0 || magnitude >= 0x7f800000u ? magnitude : bits;
}

// Returns 2^47 / mantissa, rounded to nearest. Three Newton steps come within 1.5 of the result,
// and the low word of the remainder decides the correction.
uint vkrope_reciprocal(const uint mantissa) {
    const float m = uintBitsToFloat(mantissa + 0x3f000000u);  // in [1, 2)
    precise float y = uintBitsToFloat(0x7ef311c7u - floatBitsToUint(m));
    y = y * (2.0f - m * y);
    y = y * (2.0f - m * y);
    y = y + y * (1.0f - m * y);
    precise float scaled = y * 16777216.0f;  // 2^24
    uint quotient = uint(scaled);
    const int rest = int(0u - quotient * mantissa) * 2;
    if (rest > int(mantissa)) ++quotient;
    if (rest < -int(mantissa)) --quotient;
    return quotient;
}

// ---- Extremes ----

// The numbers from which a scale is computed, as f32 bits. NaNs do not count.
//
//   q4_1, q5_1         most, least: the largest and the smallest number; of equal zeros the first
//   q4_0, q5_0, iq4_nl   most: the first number of largest magnitude; +0 if all are zeros
//   all others         most: the largest magnitude
struct VkropeExtremes {
    uint most, least;
};

// Bits that rank above every number; with the sign bit, below every number.
const uint vkrope_nothing = 0x7fffffffu;

// Returns the extremes of an empty set of channels.
VkropeExtremes vkrope_no_extremes(const uint type) {
    VkropeExtremes extremes;
    extremes.most = vkrope_has_minimum(type) ? vkrope_nothing | 0x80000000u : 0u;
    extremes.least = vkrope_nothing;
    return extremes;
}

// Returns a rank that ascends with the number; both zeros have the same rank.
uint vkrope_rank(const uint bits) {
    return (bits & 0x80000000u) == 0 ? bits : 0u - (bits & 0x7fffffffu);
}

// Joins the extremes of two groups of channels; `first` precedes `second`.
VkropeExtremes vkrope_join_extremes(const uint type, const VkropeExtremes first,
                                    const VkropeExtremes second) {
    VkropeExtremes both = first;
    if (vkrope_has_minimum(type)) {
        if (int(vkrope_rank(second.most)) > int(vkrope_rank(first.most))) both.most = second.most;
        if (int(vkrope_rank(second.least)) < int(vkrope_rank(first.least)))
            both.least = second.least;
    } else if ((second.most & 0x7fffffffu) > (first.most & 0x7fffffffu)) {
        both.most = second.most;
    }
    return both;
}

VkropeExtremes vkrope_extremes_of(const uint type, const float x) {
    const uint bits = floatBitsToUint(x);
    const uint magnitude = bits & 0x7fffffffu;
    VkropeExtremes extremes = vkrope_no_extremes(type);
    if (magnitude <= 0x7f800000u) {
        extremes.least = bits;
        extremes.most = bits;
        if (!vkrope_has_minimum(type) && (!vkrope_is_signed_block(type) || magnitude == 0))
            extremes.most = magnitude;
    }
    return extremes;
}

VkropeExtremes vkrope_extremes_of_four(const uint type, const vec4 x) {
    return vkrope_join_extremes(
        type,
        vkrope_join_extremes(type, vkrope_extremes_of(type, x.x), vkrope_extremes_of(type, x.y)),
        vkrope_join_extremes(type, vkrope_extremes_of(type, x.z), vkrope_extremes_of(type, x.w)));
}

// Returns the extremes of the n elements of a unit.
VkropeExtremes vkrope_extremes(const uint type, const uint n, const Unit u) {
    VkropeExtremes extremes = vkrope_extremes_of(type, u.a.x);
    if (n == 2)
        extremes = vkrope_join_extremes(type, extremes, vkrope_extremes_of(type, u.a.y));
    else if (n == 4)
        extremes = vkrope_extremes_of_four(type, u.a);
    else if (n == 8)
        extremes = vkrope_join_extremes(type, vkrope_extremes_of_four(type, u.a),
                                        vkrope_extremes_of_four(type, u.b));
    return extremes;
}

// ---- Types without blocks ----

// Returns the f32 bits of the largest integer of a type: 127 or 7.
uint vkrope_largest_integer(const uint type) {
    return type == element_int4 ? 0x40e00000u : 0x42fe0000u;
}

// Returns the nearest integers as bytes: ties away from zero, up to the largest magnitude of the
// type; a NaN gives 0.
uvec4 vkrope_round_integer(const uint type, const vec4 f) {
    const uvec4 bits = floatBitsToUint(f);
    const uvec4 magnitude = bits & 0x7fffffffu;
    const vec4 size = uintBitsToFloat(min(magnitude, uvec4(vkrope_largest_integer(type))));
    uvec4 code = uvec4(size);
    precise vec4 rest = size - vec4(code);
    code += mix(uvec4(0), uvec4(1), greaterThanEqual(rest, vec4(0.5)));
    code = mix(code, uvec4(0), greaterThan(magnitude, uvec4(0x7f800000u)));
    return mix(code, 0u - code, notEqual(bits >> 31, uvec4(0))) & 0xffu;
}

// Returns the nearest 8-bit floats: ties to even, at most the largest finite one; 0x7f for a NaN.
// From 2^14 or 2^7 on, f32 has the spacing of subnormal results, so adding that number rounds.
uvec4 vkrope_round_float8(const uint type, const vec4 f) {
    const uvec4 bits = floatBitsToUint(f);
    const uvec4 magnitude = bits & 0x7fffffffu;
    uvec4 code;
    if (type == element_e4m3fn) {
        const uvec4 limited = min(magnitude, uvec4(0x43e00000u));  // 448
        precise vec4 shifted = uintBitsToFloat(limited) + 16384.0;
        code = mix((limited + 0x7ffffu + ((limited >> 20) & 1u) - (120u << 23)) >> 20,
                   floatBitsToUint(shifted) - 0x46800000u, lessThan(limited, uvec4(0x3c800000u)));
    } else {
        const uvec4 limited = min(magnitude, uvec4(0x47600000u));  // 57344
        precise vec4 shifted = uintBitsToFloat(limited) + 128.0;
        code = mix((limited + 0xfffffu + ((limited >> 21) & 1u) - (112u << 23)) >> 21,
                   floatBitsToUint(shifted) - 0x43000000u, lessThan(limited, uvec4(0x38800000u)));
    }
    code |= (bits >> 24) & 0x80u;
    return mix(code, uvec4(0x7f), greaterThan(magnitude, uvec4(0x7f800000u)));
}

// Returns the codes of scaled numbers, one in each component.
uvec4 vkrope_codes(const uint type, const vec4 scaled) {
    uvec4 codes;
    if (vkrope_is_integer(type))
        codes = vkrope_round_integer(type, scaled);
    else
        codes = vkrope_round_float8(type, scaled);
    return codes;
}

// Returns a number with the same code as the f32 product x * given; `given` is finite and not 0.
vec4 vkrope_times(const vec4 x, const float given) {
    const uvec4 bits = floatBitsToUint(x);
    const uvec4 magnitude = bits & 0x7fffffffu;
    const uint factor = floatBitsToUint(given);
    const uvec4 sign = (bits ^ factor) & 0x80000000u;
    ivec4 exponent, given_exponent;
    const uvec4 a = vkrope_mantissa(magnitude, exponent),
                b = vkrope_mantissa(uvec4(factor & 0x7fffffffu), given_exponent);
    precise vec4 product = uintBitsToFloat(a + 0x3f000000u) * uintBitsToFloat(b + 0x3f000000u);
    const uvec4 product_bits = floatBitsToUint(product);  // from 1 to 4
    const uvec4 result = vkrope_assemble(
        (product_bits & 0x7fffffu) | 0x800000u,
        exponent + given_exponent - 254 + ivec4(product_bits >> 23), sign);
    const uvec4 kept = mix(result, magnitude | sign, equal(magnitude, uvec4(0)));
    return uintBitsToFloat(
        mix(kept, magnitude | sign, greaterThanEqual(magnitude, uvec4(0x7f800000u))));
}

// The computed scale of a row: its f32 bits, which are stored, and numbers for the division.
struct VkropeMadeScale {
    uint bits, mantissa;
    int exponent;
    float inverse;  // 2^24 / mantissa, rounded
};

VkropeMadeScale vkrope_scale_of_bits(const uint bits) {
    VkropeMadeScale scale;
    scale.bits = bits;
    ivec4 exponent;
    scale.mantissa = vkrope_mantissa(uvec4(bits), exponent).x;
    scale.exponent = exponent.x;
    precise float inverse = float(vkrope_reciprocal(scale.mantissa)) * 1.1920928955078125e-7f;
    scale.inverse = inverse;  // times 2^-23, which is exact
    return scale;
}

// Returns the larger of `least` and the f32 quotient of the row's and the type's largest magnitude.
VkropeMadeScale vkrope_made_scale(const uint type, const VkropeExtremes extremes,
                                  const float least) {
    return vkrope_scale_of_bits(
        max(vkrope_divided(type, extremes.most, 0), floatBitsToUint(least)));
}

// Returns the `least` that rounds the scale up to a power of two, at least 2^-126.
float vkrope_power_of_two_from(const uint type, const VkropeExtremes extremes, const float least) {
    const uint bits = max(vkrope_divided(type, extremes.most, 0), floatBitsToUint(least));
    return uintBitsToFloat((max(bits, 1u) + 0x7fffffu) & 0x7f800000u);
}

// Returns a number with the same code as the f32 quotient x / scale; 0 / 0 is +0 here. The product
// with the inverse is within 1.5 of the quotient of the mantissas, and the remainder gives the
// correction. A tie is impossible, because 2 q + 1, with q a quotient of 24 bits, would have to
// divide the mantissa of x times a power of two.
vec4 vkrope_quotient(const vec4 x, const VkropeMadeScale scale) {
    const uvec4 bits = floatBitsToUint(x);
    const uvec4 magnitude = bits & 0x7fffffffu;
    const uvec4 sign = bits & 0x80000000u;
    ivec4 exponent;
    const uvec4 mantissa = vkrope_mantissa(magnitude, exponent);
    const bvec4 less = lessThan(mantissa, uvec4(scale.mantissa));
    precise vec4 product = (vec4(mantissa) * scale.inverse) * mix(vec4(0.5), vec4(1.0), less);
    uvec4 quotient = uvec4(product);
    const uvec4 dividend = mantissa << mix(uvec4(23), uvec4(24), less);
    const ivec4 rest = ivec4(dividend - quotient * scale.mantissa) * 2;
    quotient += mix(uvec4(0), uvec4(1), greaterThan(rest, ivec4(scale.mantissa)));
    quotient -= mix(uvec4(0), uvec4(1), lessThan(rest, ivec4(-int(scale.mantissa))));
    uvec4 result = vkrope_assemble(
        quotient, exponent - scale.exponent + mix(ivec4(127), ivec4(126), less), sign);
    const bool infinite = scale.bits == 0x7f800000u;
    if (infinite) result = sign;
    if (scale.bits == 0) result = uvec4(0);
    const uvec4 special = infinite ? uvec4(0x7fffffffu) : magnitude | sign;
    result = mix(result, special, greaterThanEqual(magnitude, uvec4(0x7f800000u)));
    return uintBitsToFloat(mix(result, result & sign, equal(magnitude, uvec4(0))));
}

// The reciprocal of a scale, for scales from 2^-60 to 2^60. Its relative error is at most 2^-24.
bool vkrope_has_reciprocal(const VkropeMadeScale scale) {
    return scale.bits - (67u << 23) < (120u << 23);
}
float vkrope_reciprocal_of(const VkropeMadeScale scale) {
    return uintBitsToFloat(floatBitsToUint(scale.inverse) + (uint(126 - scale.exponent) << 23));
}

// Returns the codes of x / scale, from the product of x and that reciprocal, which is within 3
// units in the last place of the f32 quotient. `certain` is true if no code changes within 16 units
// of a product; infinities, NaNs, zeros and subnormal 8-bit floats are not certain.
uvec4 vkrope_codes_by_product(const uint type, const vec4 x, const float reciprocal,
                              out bool certain) {
    precise vec4 product = x * reciprocal;
    const uvec4 bits = floatBitsToUint(product);
    const uvec4 magnitude = bits & 0x7fffffffu;
    uvec4 codes;
    if (vkrope_is_integer(type)) {
        // Rounds like vkrope_finite_block_codes. 2^-14 is at least 8 units of numbers up to 128.
        const uint most = vkrope_largest_integer(type);
        precise vec4 shifted = uintBitsToFloat(min(magnitude, uvec4(most))) + 0.49999997;
        precise vec4 lower = shifted - 0.00006103515625;
        precise vec4 upper = shifted + 0.00006103515625;
        codes = uvec4(upper);
        const uvec4 off = codes - uvec4(lower);
        const uint largest = max(max(magnitude.x, magnitude.y), max(magnitude.z, magnitude.w));
        certain = (off.x | off.y | off.z | off.w) == 0 && largest < 0x43000000u;
        codes = mix(codes, 0u - codes, notEqual(bits >> 31, uvec4(0))) & 0xffu;
    } else {
        const bool e4 = type == element_e4m3fn;
        const uint dropped = e4 ? 20u : 21u, tie = 1u << (dropped - 1u), bias = e4 ? 120u : 112u;
        const uint normal = e4 ? 0x3c800000u : 0x38800000u, last = e4 ? 0x43e00000u : 0x47600000u;
        // Distance from 16 units below a tie, and from the smallest normal number.
        const uvec4 from_tie = (magnitude - (tie - 16u)) & ((1u << dropped) - 1u);
        const uvec4 above = magnitude - normal;
        const uint nearest = min(min(from_tie.x, from_tie.y), min(from_tie.z, from_tie.w));
        const uint farthest = max(max(above.x, above.y), max(above.z, above.w));
        certain = nearest > 32u && farthest <= last + 16u - normal;
        const uvec4 limited = min(magnitude, uvec4(last));
        codes = (limited + ((limited >> dropped) & 1u) + (tie - 1u - (bias << 23))) >> dropped;
        codes |= (bits >> 24) & 0x80u;
    }
    return codes;
}

// Packs four codes into a word.
uint vkrope_pack_codes(const uvec4 codes) {
    return codes.x | (codes.y << 8) | (codes.z << 16) | (codes.w << 24);
}

#endif
