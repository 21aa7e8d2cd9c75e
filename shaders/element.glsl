// SPDX-License-Identifier: MIT
// How an element is stored: f32, f16 and bf16 as 32-bit words, so that no 16-bit storage feature is needed.
//
// A unit is up to 8 elements that lie side by side. Needs interface.h. Declares no binding, push constant or workgroup size; it takes a
// macro:
//
//   VKROPE_CONVERSION   conversion_*, for shaders that have GL_EXT_shader_explicit_arithmetic_types_float16; without it f16 is
//                       converted by integers
#ifndef VKROPE_ELEMENT_GLSL
#define VKROPE_ELEMENT_GLSL

// A unit as stored: the words of 1, 2, 4 or 8 elements, from a.x on. A single half word stands in the low half of a.x.
struct Words {
    uvec4 a, b;
};

// A unit as numbers: elements 0 to 3 in a, 4 to 7 in b.
struct Unit {
    vec4 a, b;
};

// binary16 bits (in the low half of each component) to the same value in binary32.
// A subnormal is an integer times 2^-24: both are exact, and no binary32 subnormal appears that a device could flush.
vec4 vkrope_widen_f16(uvec4 h) {
    const uvec4 sign = (h & 0x8000u) << 16;
    const uvec4 magnitude = h & 0x7fffu;
    const uvec4 normal = (magnitude << 13) + (112u << 23);
    const uvec4 special = normal + (112u << 23);  // infinities and NaNs keep their payload
    precise vec4 subnormal = vec4(magnitude) * 5.9604644775390625e-8;  // 2^-24
    uvec4 bits = mix(normal, floatBitsToUint(subnormal), lessThan(magnitude, uvec4(0x400u)));
    bits = mix(bits, special, greaterThanEqual(magnitude, uvec4(0x7c00u)));
    return uintBitsToFloat(bits | sign);
}

// binary32 to the nearest binary16, ties to even; overflow to infinity; a NaN stays a NaN.
// Below 2^-14 the spacing of binary16 is 2^-24, which is the spacing of binary32 in [0.5, 1): adding 0.5 rounds there.
uvec4 vkrope_narrow_f16(vec4 f) {
    const uvec4 bits = floatBitsToUint(f);
    const uvec4 magnitude = bits & 0x7fffffffu;
    const uvec4 normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
    precise vec4 shifted = uintBitsToFloat(magnitude) + 0.5;
    uvec4 h = mix(normal, floatBitsToUint(shifted) - 0x3f000000u, lessThan(magnitude, uvec4(0x38800000u)));
    h = mix(h, uvec4(0x7c00u), greaterThanEqual(magnitude, uvec4(0x477ff000u)));  // 65520 and above
    h = mix(h, uvec4(0x7e00u), greaterThan(magnitude, uvec4(0x7f800000u)));
    return h | ((bits >> 16) & 0x8000u);
}

// binary32 to the nearest bfloat16, ties to even; a NaN stays a NaN.
uvec4 vkrope_narrow_bf16(vec4 f) {
    const uvec4 bits = floatBitsToUint(f);
    const uvec4 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return mix(rounded, (bits >> 16) | 0x40u, greaterThan(bits & 0x7fffffffu, uvec4(0x7f800000u)));
}

vec4 vkrope_widen(uint element, uvec4 h) {
    vec4 f = uintBitsToFloat(h << 16);
    if (element == element_f16) f = vkrope_widen_f16(h);
    return f;
}

uvec4 vkrope_narrow(uint element, vec4 f) {
    uvec4 h;
    if (element == element_f16) h = vkrope_narrow_f16(f);
    else h = vkrope_narrow_bf16(f);
    return h;
}

#ifdef VKROPE_CONVERSION
// Two halves of a word to binary32, and back, by OpFConvert: the caller's module declares the modes that VKROPE_CONVERSION relies on.
vec2 vkrope_widen_halves(uint word) {
    vec2 f = vec2(unpackFloat2x16(word));
    if (VKROPE_CONVERSION == conversion_normals) {
        const uvec2 h = uvec2(word, word >> 16) & 0xffffu, magnitude = h & 0x7fffu;
        precise vec2 subnormal = vec2(magnitude) * 5.9604644775390625e-8;
        const uvec2 bits = floatBitsToUint(subnormal) | ((h & 0x8000u) << 16);
        f = uintBitsToFloat(mix(floatBitsToUint(f), bits, lessThan(magnitude, uvec2(0x400u))));
    }
    return f;
}

uint vkrope_narrow_halves(vec2 f) {
    uint word = packFloat2x16(f16vec2(f));
    if (VKROPE_CONVERSION == conversion_normals) {
        const uvec2 bits = floatBitsToUint(f), magnitude = bits & 0x7fffffffu;
        precise vec2 shifted = uintBitsToFloat(magnitude) + 0.5;
        const uvec2 h = (floatBitsToUint(shifted) - 0x3f000000u) | ((bits >> 16) & 0x8000u);
        const uvec2 small = mix(uvec2(0), uvec2(0xffffu, 0xffff0000u), lessThan(magnitude, uvec2(0x38800000u)));
        word = (word & ~(small.x | small.y)) | (h.x & small.x) | ((h.y << 16) & small.y);
    }
    return word;
}
#endif

// The numbers of a stored unit. Words that the unit does not have decode to something that nobody reads.
Unit vkrope_decode(uint element, Words w) {
    Unit u = Unit(uintBitsToFloat(w.a), uintBitsToFloat(w.b));
#ifdef VKROPE_CONVERSION
    if (element == element_f16 && VKROPE_CONVERSION != conversion_integer) {
        u.a = vec4(vkrope_widen_halves(w.a.x), vkrope_widen_halves(w.a.y));
        u.b = vec4(vkrope_widen_halves(w.a.z), vkrope_widen_halves(w.a.w));
    } else
#endif
    if (element != element_f32) {
        const vec4 low = vkrope_widen(element, w.a & 0xffffu);
        const vec4 high = vkrope_widen(element, w.a >> 16);
        u = Unit(vec4(low.x, high.x, low.y, high.y), vec4(low.z, high.z, low.w, high.w));
    }
    return u;
}

Words vkrope_encode(uint element, Unit u) {
    Words w = Words(floatBitsToUint(u.a), floatBitsToUint(u.b));
#ifdef VKROPE_CONVERSION
    if (element == element_f16 && VKROPE_CONVERSION != conversion_integer) {
        w = Words(uvec4(vkrope_narrow_halves(u.a.xy), vkrope_narrow_halves(u.a.zw), vkrope_narrow_halves(u.b.xy),
                        vkrope_narrow_halves(u.b.zw)),
                  uvec4(0));
    } else
#endif
    if (element != element_f32) {
        const uvec4 low = vkrope_narrow(element, vec4(u.a.xz, u.b.xz));
        const uvec4 high = vkrope_narrow(element, vec4(u.a.yw, u.b.yw));
        w = Words(low | (high << 16), uvec4(0));
    }
    return w;
}

#endif
