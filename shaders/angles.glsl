// SPDX-License-Identifier: MIT
// Computes cos and sin of angles, from a table by position or by its digits, or without a table.
// Needs interface.h, element.glsl and turns.glsl. Declares no binding, push constant or workgroup
// size. Define at least one of VKROPE_ANGLE_TEXTURE, VKROPE_ANGLE_WORD and VKROPE_TURN_WORDS:
//
//   VKROPE_ANGLE_TEXTURE       the name of a texture2D with two (cos, sin) pairs per texel, read by
//                              texelFetch without a sampler
//   VKROPE_ANGLE_WORD(index)   the 32-bit word `index` of a buffer of (cos, sin) pairs
//   VKROPE_SIN_WORD(index)     for separate cos and sin buffers: the word `index` of sin;
//                              VKROPE_ANGLE_WORD then reads cos
//   VKROPE_ANGLE_QUAD(index)   the uvec4 `index` of the buffer of pairs, used if VKROPE_ANGLE_QUADS
//                              is true: rows then start at multiples of 16 bytes
//   VKROPE_TURN_WORDS(index)   the uvec4 `index` of the constants for computed angles
#ifndef VKROPE_ANGLES_GLSL
#define VKROPE_ANGLES_GLSL

#if !defined(VKROPE_ANGLE_TEXTURE) && !defined(VKROPE_ANGLE_WORD) && !defined(VKROPE_TURN_WORDS)
#error "angles.glsl: define VKROPE_ANGLE_TEXTURE, VKROPE_ANGLE_WORD or VKROPE_TURN_WORDS"
#endif

#if !defined(VKROPE_ELEMENT_GLSL) || !defined(VKROPE_TURNS_GLSL)
#error "angles.glsl: include interface.h, element.glsl and turns.glsl first"
#endif

// Returns |position| as uint, because -2^31 has no absolute value as int.
uint vkrope_magnitude(const int position) {
    return position < 0 ? 0u - uint(position) : uint(position);
}

// Flips the sign of every component if `sign` is 0x80000000, and of none if it is 0. Flips bits,
// because a negation could flush subnormals.
Unit vkrope_flip(const Unit u, const uint sign) {
    return Unit(uintBitsToFloat(floatBitsToUint(u.a) ^ sign),
                uintBitsToFloat(floatBitsToUint(u.b) ^ sign));
}

#ifdef VKROPE_ANGLE_TEXTURE
// Reads cos and sin of the n pairs from `pair` on, in table row `row`. Rows are folded: a column of
// the texture, texels_per_row wide, contains 2^fold_log2 rows.
void vkrope_texture_angles(const uint row, const uint pair, const uint n, const uint fold_log2,
                           const uint texels_per_row, out Unit c, out Unit s) {
    const ivec2 at = ivec2(texels_per_row * (row >> fold_log2) + pair / 2,
                           row & ((1u << fold_log2) - 1u));
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

// Computes cos and sin from two rows of a factored table. The angle is the sum of the angle of row
// `coarse`, negated if coarse_sign is 0x80000000, and the angle of row `fine`.
void vkrope_summed_angles(const uint coarse, const uint coarse_sign, const uint fine,
                          const uint pair, const uint n, const uint fold_log2,
                          const uint texels_per_row, out Unit c, out Unit s) {
    Unit c0, s0, c1, s1;
    vkrope_texture_angles(coarse, pair, n, fold_log2, texels_per_row, c0, s0);
    vkrope_texture_angles(fine, pair, n, fold_log2, texels_per_row, c1, s1);
    s0 = vkrope_flip(s0, coarse_sign);
    c.b = s.b = vec4(0);
    vkrope_add_angles(c0.a, s0.a, c1.a, s1.a, c.a, s.a);
    if (n == 8) vkrope_add_angles(c0.b, s0.b, c1.b, s1.b, c.b, s.b);
}

// Computes cos and sin from a factored table without phases for `table_rows` positions.
void vkrope_factored_angles(const uint magnitude, const uint table_rows, const uint pair,
                            const uint n, const uint fold_log2, const uint texels_per_row,
                            out Unit c, out Unit s) {
    const uint fine_rows = 1u << fine_digit_bits;
    const uint fine = ((table_rows + fine_rows - 1) >> fine_digit_bits) +
                      (magnitude & (fine_rows - 1));
    vkrope_summed_angles(magnitude >> fine_digit_bits, 0, fine, pair, n, fold_log2, texels_per_row,
                         c, s);
}

// Computes cos and sin with phases, for any int32 position. Position -1 has the fine digit 2047 and
// the coarse digit -1.
void vkrope_phased_angles(const uint position, const uint table_rows, const uint pair, const uint n,
                          const uint fold_log2, const uint texels_per_row, out Unit c, out Unit s) {
    const uint fine_rows = 1u << fine_digit_bits;
    const uint coarse = vkrope_magnitude(int(position) >> fine_digit_bits);
    const uint fine = ((table_rows + fine_rows - 2) >> fine_digit_bits) + 1 +
                      (position & (fine_rows - 1));
    vkrope_summed_angles(coarse, position & 0x80000000u, fine, pair, n, fold_log2, texels_per_row,
                         c, s);
}
#endif

#ifdef VKROPE_TURN_WORDS
VkropeTurnFactor vkrope_turn_factor() {
    const vec4 radians = uintBitsToFloat(VKROPE_TURN_WORDS(0)),
               factor = uintBitsToFloat(VKROPE_TURN_WORDS(1));
    return VkropeTurnFactor(factor.x, factor.y, radians.x, radians.y, radians.z);
}

// Reads the fractions of the first four of the n pairs from `pair` on, as low and high words.
// Fractions start at vec4 `start`; those of the last four of eight pairs are two vec4s further on.
void vkrope_fractions(const uint start, const uint pair, const uint n, out uvec4 low,
                      out uvec4 high) {
    const uint at = start + pair / 2;
    uvec4 f0 = VKROPE_TURN_WORDS(at), f1 = uvec4(0);
    if (n == 1 && (pair & 1u) == 1u) f0 = f0.zwxy;
    if (n >= 4) f1 = VKROPE_TURN_WORDS(at + 1);
    low = uvec4(f0.xz, f1.xz);
    high = uvec4(f0.yw, f1.yw);
}

// Computes cos and sin of the n pairs from `pair` on, at |position| `magnitude`.
void vkrope_computed_angles(const uint magnitude, const uint pair, const uint n, out Unit c,
                            out Unit s) {
    const VkropeTurnFactor a = vkrope_turn_factor();
    uvec4 low, high;
    vkrope_fractions(turn_header_vec4s, pair, n, low, high);
    c.b = s.b = vec4(0);
    vkrope_turn(low, high, uvec4(magnitude), a, c.a, s.a);
    if (n == 8) {
        vkrope_fractions(turn_header_vec4s + 2, pair, n, low, high);
        vkrope_turn(low, high, uvec4(magnitude), a, c.b, s.b);
    }
}

// The angles of the n pairs from `pair` on, in units of 2^-64 turn.
struct VkropeTurns {
    uvec4 low_a, high_a, low_b, high_b;
};

// Adds position * fraction to the turns. Fractions start at vec4 `start`.
void vkrope_add_axis(const uint start, const uint position, const uint pair, const uint n,
                     inout VkropeTurns turns) {
    uvec4 low, high;
    vkrope_fractions(start, pair, n, low, high);
    vkrope_add_turns(low, high, position, turns.low_a, turns.high_a);
    if (n == 8) {
        vkrope_fractions(start + 2, pair, n, low, high);
        vkrope_add_turns(low, high, position, turns.low_b, turns.high_b);
    }
}

void vkrope_turned_angles(const VkropeTurns turns, const uint n, out Unit c, out Unit s) {
    const VkropeTurnFactor a = vkrope_turn_factor();
    c.b = s.b = vec4(0);
    vkrope_cos_sin(turns.high_a, a, c.a, s.a);
    if (n == 8) vkrope_cos_sin(turns.high_b, a, c.b, s.b);
}
#endif

#ifdef VKROPE_ANGLE_WORD
// Returns (cos, sin) at word `index`.
vec2 vkrope_angle(const uint index) {
    return uintBitsToFloat(uvec2(VKROPE_ANGLE_WORD(index), VKROPE_ANGLE_WORD(index + 1)));
}

// Reads cos and sin of the n pairs from `pair` on, in the table row that starts at word `row_word`.
void vkrope_buffer_angles(const uint row_word, const uint pair, const uint n, out Unit c,
                          out Unit s) {
    const uint at = row_word + 2 * pair;
    vec4 p01 = vec4(0), p23 = vec4(0), p45 = vec4(0), p67 = vec4(0);
#ifdef VKROPE_ANGLE_QUAD
    if (VKROPE_ANGLE_QUADS && n != 1) {
        p01 = uintBitsToFloat(VKROPE_ANGLE_QUAD(at / 4));
        if (n >= 4) p23 = uintBitsToFloat(VKROPE_ANGLE_QUAD(at / 4 + 1));
        if (n == 8) {
            p45 = uintBitsToFloat(VKROPE_ANGLE_QUAD(at / 4 + 2));
            p67 = uintBitsToFloat(VKROPE_ANGLE_QUAD(at / 4 + 3));
        }
    } else
#endif
    {
        p01.xy = vkrope_angle(at);
        if (n >= 2) p01.zw = vkrope_angle(at + 2);
        if (n >= 4) p23 = vec4(vkrope_angle(at + 4), vkrope_angle(at + 6));
        if (n == 8) {
            p45 = vec4(vkrope_angle(at + 8), vkrope_angle(at + 10));
            p67 = vec4(vkrope_angle(at + 12), vkrope_angle(at + 14));
        }
    }
    c = Unit(vec4(p01.xz, p23.xz), vec4(p45.xz, p67.xz));
    s = Unit(vec4(p01.yw, p23.yw), vec4(p45.yw, p67.yw));
}

#ifdef VKROPE_SIN_WORD
// Reads cos and sin of one pair from separate buffers of `element`: element `at` after word
// cos_word or sin_word.
void vkrope_angle_apart(const uint element, const uint cos_word, const uint sin_word, const uint at,
                        out Unit c, out Unit s) {
    const uint word = element == element_f32 ? at : at / 2;
    uvec4 bits = uvec4(VKROPE_ANGLE_WORD(cos_word + word), VKROPE_SIN_WORD(sin_word + word), 0, 0);
    vec4 value = uintBitsToFloat(bits);
    if (element != element_f32) value = vkrope_widen(element, (bits >> (16 * (at & 1u))) & 0xffffu);
    c = Unit(value, vec4(0));
    s = Unit(value.yxzw, vec4(0));
}
#endif
#endif

#endif
