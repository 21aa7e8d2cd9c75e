// SPDX-License-Identifier: MIT
// Loads and stores f32, f16 and bf16 in 32-bit words, so that no 16-bit storage feature is needed.
//
// A unit is up to 8 adjacent elements. Needs interface.h. Declares no binding, push constant or
// workgroup size. Three macros are optional:
//
//   VKROPE_CONVERSION      conversion_*, for shaders that enable the extension
//                          GL_EXT_shader_explicit_arithmetic_types_float16; if undefined, f16 is
//                          converted with integers
//   VKROPE_RARE_BRANCHES   true: a branch, which nearly every unit skips, handles NaNs that become
//                          bf16; if undefined or false, all elements go through a select
//   VKROPE_UNROLL          precedes the loops that a compiler must unroll, because their counter
//                          indexes an array: [[unroll]], for shaders that enable the extension
//                          GL_EXT_control_flow_attributes; if undefined, nothing
#ifndef VKROPE_ELEMENT_GLSL
#define VKROPE_ELEMENT_GLSL

#ifndef VKROPE_UNROLL
#define VKROPE_UNROLL
#endif

// A unit as stored: the words of 1, 2, 4 or 8 elements, from a.x on. A single 16-bit element is in
// the low half of a.x.
struct Words {
    uvec4 a, b;
};

// A unit as floats: elements 0 to 3 in a, 4 to 7 in b.
struct Unit {
    vec4 a, b;
};

// Returns a if `first` is true, else b, without a branch.
Unit vkrope_either(const bool first, const Unit a, const Unit b) {
    return Unit(mix(b.a, a.a, bvec4(first)), mix(b.b, a.b, bvec4(first)));
}

// Widens binary16 (in the low half of each component) to binary32. A subnormal is an integer times
// 2^-24: conversion and product are exact, and no binary32 subnormal appears that a device could
// flush.
vec4 vkrope_widen_f16(const uvec4 h) {
    const uvec4 sign = (h & 0x8000u) << 16;
    const uvec4 magnitude = h & 0x7fffu;
    const uvec4 normal = (magnitude << 13) + (112u << 23);
    const uvec4 special = normal + (112u << 23);  // infinities and NaNs keep their payload
    precise vec4 subnormal = vec4(magnitude) * 5.9604644775390625e-8;  // 2^-24
    uvec4 bits = mix(normal, floatBitsToUint(subnormal), lessThan(magnitude, uvec4(0x400u)));
    bits = mix(bits, special, greaterThanEqual(magnitude, uvec4(0x7c00u)));
    return uintBitsToFloat(bits | sign);
}

// Rounds binary32 to binary16, ties to even; overflow gives infinity; a NaN stays a NaN. Below
// 2^-14 the spacing of binary16 is 2^-24, which is the spacing of binary32 in [0.5, 1), so adding
// 0.5 rounds.
uvec4 vkrope_narrow_f16(const vec4 f) {
    const uvec4 bits = floatBitsToUint(f);
    const uvec4 magnitude = bits & 0x7fffffffu;
    const uvec4 normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
    precise vec4 shifted = uintBitsToFloat(magnitude) + 0.5;
    uvec4 h = mix(normal, floatBitsToUint(shifted) - 0x3f000000u,
                  lessThan(magnitude, uvec4(0x38800000u)));
    h = mix(h, uvec4(0x7c00u), greaterThanEqual(magnitude, uvec4(0x477ff000u)));  // 65520 and above
    h = mix(h, uvec4(0x7e00u), greaterThan(magnitude, uvec4(0x7f800000u)));
    return h | ((bits >> 16) & 0x8000u);
}

// Rounds binary32 to bfloat16, ties to even, in the upper half of each component; the lower half is
// undefined. NaNs may become infinities.
uvec4 vkrope_round_bf16(const vec4 f) {
    const uvec4 bits = floatBitsToUint(f);
    return bits + 0x7fffu + ((bits >> 16) & 1u);
}

// Does the same as vkrope_round_bf16, but a NaN stays a NaN.
uvec4 vkrope_round_bf16_or_nan(const vec4 f) {
    const uvec4 bits = floatBitsToUint(f);
    return mix(vkrope_round_bf16(f), bits | 0x400000u,
               greaterThan(bits & 0x7fffffffu, uvec4(0x7f800000u)));
}

// Packs the elements with even and with odd indices into words.
uvec4 vkrope_pack_bf16(const vec4 even, const vec4 odd) {
    uvec4 low, high;
#ifdef VKROPE_RARE_BRANCHES
    if (VKROPE_RARE_BRANCHES) {
        // The sum is a NaN if an element is. Opposite infinities only take the slower branch.
        precise vec4 sums = even + odd;
        precise float sum = (sums.x + sums.y) + (sums.z + sums.w);
        low = vkrope_round_bf16(even);
        high = vkrope_round_bf16(odd);
        if ((floatBitsToUint(sum) & 0x7fffffffu) > 0x7f800000u) {
            low = vkrope_round_bf16_or_nan(even);
            high = vkrope_round_bf16_or_nan(odd);
        }
    } else
#endif
    {
        low = vkrope_round_bf16_or_nan(even);
        high = vkrope_round_bf16_or_nan(odd);
    }
    return (low >> 16) | (high & 0xffff0000u);
}

vec4 vkrope_widen(const uint element, const uvec4 h) {
    vec4 f = uintBitsToFloat(h << 16);
    if (element == element_f16) f = vkrope_widen_f16(h);
    return f;
}

#ifdef VKROPE_CONVERSION
// These functions convert eight halves to binary32, and back, with OpFConvert. The caller's module
// declares the float modes that VKROPE_CONVERSION needs.
Unit vkrope_convert_halves(const uvec4 w) {
    return Unit(vec4(unpackFloat2x16(w.x), unpackFloat2x16(w.y)),
                vec4(unpackFloat2x16(w.z), unpackFloat2x16(w.w)));
}

uvec4 vkrope_convert_unit(const Unit u) {
    return uvec4(packFloat2x16(f16vec2(u.a.xy)), packFloat2x16(f16vec2(u.a.zw)),
                 packFloat2x16(f16vec2(u.b.xy)), packFloat2x16(f16vec2(u.b.zw)));
}

// Returns true if a component is strictly between 0 and `end`.
bool vkrope_any_between(const uvec4 a, const uvec4 b, const uint end) {
    const uvec4 below = min(a - 1u, b - 1u);
    return min(min(below.x, below.y), min(below.z, below.w)) < end - 1u;
}
#endif

Unit vkrope_widen_words(const uint element, const uvec4 w) {
    const vec4 low = vkrope_widen(element, w & 0xffffu);
    const vec4 high = vkrope_widen(element, w >> 16);
    return Unit(vec4(low.x, high.x, low.y, high.y), vec4(low.z, high.z, low.w, high.w));
}

uvec4 vkrope_narrow_words(const uint element, const Unit u) {
    const vec4 even = vec4(u.a.xz, u.b.xz), odd = vec4(u.a.yw, u.b.yw);
    uvec4 w;
    if (element == element_f16)
        w = vkrope_narrow_f16(even) | (vkrope_narrow_f16(odd) << 16);
    else
        w = vkrope_pack_bf16(even, odd);
    return w;
}

// The upper halves of eight floats, in words.
uvec4 vkrope_upper_halves(const Unit u) {
    return (floatBitsToUint(vec4(u.a.xz, u.b.xz)) >> 16) |
           (floatBitsToUint(vec4(u.a.yw, u.b.yw)) & 0xffff0000u);
}

// Decodes a stored unit. Words beyond the unit produce values that are not used.
Unit vkrope_decode(const uint element, const Words w) {
    Unit u = Unit(uintBitsToFloat(w.a), uintBitsToFloat(w.b));
#ifdef VKROPE_CONVERSION
    if (element == element_f16 && VKROPE_CONVERSION != conversion_integer) {
        u = vkrope_convert_halves(w.a);
        if (VKROPE_CONVERSION == conversion_normals) {
            if (vkrope_any_between(w.a & 0x7fffu, (w.a >> 16) & 0x7fffu, 0x400u))
                u = vkrope_widen_words(element, w.a);
        }
    } else
#endif
        if (element != element_f32)
        u = vkrope_widen_words(element, w.a);
    return u;
}

Words vkrope_encode(const uint element, const Unit u) {
    Words w = Words(floatBitsToUint(u.a), floatBitsToUint(u.b));
#ifdef VKROPE_CONVERSION
    if (element == element_f16 && VKROPE_CONVERSION != conversion_integer) {
        const uvec4 a = w.a & 0x7fffffffu,
                    b = w.b & 0x7fffffffu;  // values below 2^-14 become subnormal
        w = Words(vkrope_convert_unit(u), uvec4(0));
        if (VKROPE_CONVERSION == conversion_normals) {
            if (vkrope_any_between(a, b, 0x38800000u)) w.a = vkrope_narrow_words(element, u);
        }
    } else
#endif
        if (element != element_f32)
        w = Words(vkrope_narrow_words(element, u), uvec4(0));
    return w;
}

#endif
