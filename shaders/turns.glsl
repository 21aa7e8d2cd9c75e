// SPDX-License-Identifier: MIT
// Computes cos and sin of a fixed-point fraction of a turn, or of a sum of two angles, with
// additions, subtractions and multiplications only. Declares only functions and a struct, and needs
// no other file.
#ifndef VKROPE_TURNS_GLSL
#define VKROPE_TURNS_GLSL

// The attention factor a, and constants multiplied by it.
struct VkropeTurnFactor {
    float high, low;                  // a
    float radians_high, radians_low;  // a times 4096 units of 2^-32 turn, in radians; radians_high
                                      // has 7 significant bits
    float radians;                    // a times one unit
};

// Computes a * cos and a * sin of an angle in units of 2^-32 turn, for four pairs.
//
// The nearest quarter turn is subtracted in integers. The remaining 30 bits become floats as 18 and
// 12 bits, both exactly, so that no rounding mode of a conversion matters. x is the angle, within
// an eighth of a turn, and ax = a * x; each is rounded once, since the first product is exact. sin
// = x + x^3 P(x^2) and cos = 1 - x^2/2 + x^4 Q(x^2) are minimax polynomials of degree 7 and 8; the
// rounding error of 1 - x^2/2 is added back. Multiplying by a inside, instead of multiplying the
// result, saves one rounding.
void vkrope_cos_sin(const uvec4 turns, const VkropeTurnFactor a, out vec4 c, out vec4 s) {
    const uvec4 quadrant = (turns + 0x20000000u) >> 30;
    const ivec4 rest = ivec4(turns - (quadrant << 30));
    const vec4 rest_high = vec4(rest >> 12), rest_low = vec4(rest & 4095);
    precise vec4 x = rest_high * 5.9604644775390625e-6 +
                     (rest_high * 3.164797490740057e-8 + rest_low * 1.462918119976564e-9);
    precise vec4 ax = rest_high * a.radians_high +
                      (rest_high * a.radians_low + rest_low * a.radians);
    precise vec4 z = x * x;
    precise vec4 az = ax * x;
    precise vec4 sine = ax + (ax * z) * (-0.16666655242443085 +
                                         z * (0.008332177996635437 + z * -0.0001951729936990887));
    precise vec4 half_az = az * 0.5;
    precise vec4 rough = a.high - half_az;
    precise vec4 lost = ((a.high - rough) - half_az) + a.low;
    precise vec4 cosine = rough +
                          ((az * z) * (0.041666656732559204 +
                                       z * (-0.0013887732056900859 + z * 2.4477192710037343e-5)) +
                           lost);
    const bvec4 swap = equal(quadrant & 1u, uvec4(1));
    const uvec4 cosine_bits = floatBitsToUint(cosine), sine_bits = floatBitsToUint(sine);
    c = uintBitsToFloat(mix(cosine_bits, sine_bits, swap) ^ (((quadrant + 1u) & 2u) << 30));
    s = uintBitsToFloat(mix(sine_bits, cosine_bits, swap) ^ ((quadrant & 2u) << 30));
}

// Computes a * cos and a * sin of magnitude * fraction. `fraction` is in units of 2^-64 turn, as
// low and high words. The product wraps at a whole turn; only its high word matters in f32.
void vkrope_turn(const uvec4 low, const uvec4 high, const uvec4 magnitude, const VkropeTurnFactor a,
                 out vec4 c, out vec4 s) {
    uvec4 carry, lowest;
    umulExtended(low, magnitude, carry, lowest);
    vkrope_cos_sin(high * magnitude + carry, a, c, s);
}

// Adds position * fraction to a 64-bit angle, modulo a turn; `position` is an int32.
void vkrope_add_turns(const uvec4 low, const uvec4 high, const uint position, inout uvec4 angle_low,
                      inout uvec4 angle_high) {
    uvec4 product_low, product_high, carry;
    umulExtended(low, uvec4(position), product_high, product_low);
    angle_low = uaddCarry(angle_low, product_low, carry);
    // As an unsigned number, a position below 0 is 2^32 too large.
    angle_high += high * position + product_high + carry - low * (position >> 31);
}

// Computes cos and sin of the sum of two angles.
void vkrope_add_angles(const vec4 c0, const vec4 s0, const vec4 c1, const vec4 s1, out vec4 c,
                       out vec4 s) {
    precise vec4 cosine = c0 * c1 - s0 * s1;
    precise vec4 sine = s0 * c1 + c0 * s1;
    c = cosine;
    s = sine;
}

#endif
