// SPDX-License-Identifier: MIT
// What cos and sin are: rows of a table, by position. Needs interface.h and element.glsl. Declares no binding, push constant or
// workgroup size; it asks for at least one of two macros, and takes a third:
//
//   VKROPE_ANGLE_TEXTURE       the name of a texture2D with two (cos, sin) pairs a texel, read by texelFetch without a sampler
//   VKROPE_ANGLE_WORD(index)   the 32-bit word `index` of a buffer of (cos, sin) pairs
//   VKROPE_SIN_WORD(index)     where cos and sin may stand apart: the word `index` of sin; VKROPE_ANGLE_WORD is then that of cos
#ifndef VKROPE_ANGLES_GLSL
#define VKROPE_ANGLES_GLSL

#if !defined(VKROPE_ANGLE_TEXTURE) && !defined(VKROPE_ANGLE_WORD)
#error "angles.glsl: define VKROPE_ANGLE_TEXTURE or VKROPE_ANGLE_WORD(index)"
#endif

// |position|; -2^31 has no absolute value as int, but has one as uint.
uint vkrope_magnitude(int position) {
    return position < 0 ? 0u - uint(position) : uint(position);
}

// Flips the sign of every component as bits: a negation could flush subnormals.
Unit vkrope_flip(Unit u, bool flip) {
    const uint sign = flip ? 0x80000000u : 0u;
    return Unit(uintBitsToFloat(floatBitsToUint(u.a) ^ sign), uintBitsToFloat(floatBitsToUint(u.b) ^ sign));
}

#ifdef VKROPE_ANGLE_TEXTURE
// cos and sin of one pair, in table row `row`: see vkrope_texture_angles.
vec2 vkrope_texture_angle(uint row, uint pair, uint fold_log2, uint texels_per_row) {
    const ivec2 at = ivec2(texels_per_row * (row >> fold_log2) + pair / 2, row & ((1u << fold_log2) - 1u));
    const vec4 texel = texelFetch(VKROPE_ANGLE_TEXTURE, at, 0);
    return (pair & 1u) == 1u ? texel.zw : texel.xy;
}

// cos and sin of the n pairs from `pair` on, in table row `row`. Rows fold: 2^fold_log2 of them stand in a column, texels_per_row
// wide.
void vkrope_texture_angles(uint row, uint pair, uint n, uint fold_log2, uint texels_per_row, out Unit c, out Unit s) {
    const ivec2 at = ivec2(texels_per_row * (row >> fold_log2) + pair / 2, row & ((1u << fold_log2) - 1u));
    vec4 t0 = texelFetch(VKROPE_ANGLE_TEXTURE, at, 0);
    if (n == 1 && (pair & 1u) == 1u) t0 = t0.zwxy;
    vec4 t1 = vec4(0), t2 = vec4(0), t3 = vec4(0);
    if (n >= 4) t1 = texelFetch(VKROPE_ANGLE_TEXTURE, at + ivec2(1, 0), 0);
    if (n == 8) {
        t2 = texelFetch(VKROPE_ANGLE_TEXTURE, at + ivec2(2, 0), 0);
        t3 = texelFetch(VKROPE_ANGLE_TEXTURE, at + ivec2(3, 0), 0);
    }
    c = Unit(vec4(t0.xz, t1.xz), vec4(t2.xz, t3.xz));
    s = Unit(vec4(t0.yw, t1.yw), vec4(t2.yw, t3.yw));
}
#endif

#ifdef VKROPE_ANGLE_WORD
// (cos, sin) at word `index`.
vec2 vkrope_angle(uint index) {
    return uintBitsToFloat(uvec2(VKROPE_ANGLE_WORD(index), VKROPE_ANGLE_WORD(index + 1)));
}

// cos and sin of the n pairs from `pair` on, in the table row that starts at word `row_word`.
void vkrope_buffer_angles(uint row_word, uint pair, uint n, out Unit c, out Unit s) {
    const uint at = row_word + 2 * pair;
    const vec2 zero = vec2(0);
    const vec2 p0 = vkrope_angle(at);
    const vec2 p1 = n >= 2 ? vkrope_angle(at + 2) : zero;
    vec2 p2 = zero, p3 = zero, p4 = zero, p5 = zero, p6 = zero, p7 = zero;
    if (n >= 4) {
        p2 = vkrope_angle(at + 4);
        p3 = vkrope_angle(at + 6);
    }
    if (n == 8) {
        p4 = vkrope_angle(at + 8);
        p5 = vkrope_angle(at + 10);
        p6 = vkrope_angle(at + 12);
        p7 = vkrope_angle(at + 14);
    }
    c = Unit(vec4(p0.x, p1.x, p2.x, p3.x), vec4(p4.x, p5.x, p6.x, p7.x));
    s = Unit(vec4(p0.y, p1.y, p2.y, p3.y), vec4(p4.y, p5.y, p6.y, p7.y));
}

#ifdef VKROPE_SIN_WORD
// cos and sin of one pair that stand apart as `element`: number `at` of both, behind so many words.
vec2 vkrope_angle_apart(uint element, uint cos_word, uint sin_word, uint at) {
    const uint word = element == element_f32 ? at : at / 2;
    uvec2 bits = uvec2(VKROPE_ANGLE_WORD(cos_word + word), VKROPE_SIN_WORD(sin_word + word));
    vec2 value = uintBitsToFloat(bits);
    if (element != element_f32) value = vkrope_widen(element, uvec4((bits >> (16 * (at & 1u))) & 0xffffu, 0, 0)).xy;
    return value;
}
#endif
#endif

#endif
