// SPDX-License-Identifier: MIT
// Quantises ggml's blocks of 32 channels: scales, codes and bytes, in the steps of quantise.glsl.
// Needs interface.h, element.glsl and quantise.glsl. Declares no binding, push constant or
// workgroup size. `type` is element_q8_0, ...
//
// A block is a sequence of 16-bit halves, because its size is not a multiple of a word. The header
// comes first (d; m; the fifth bits of the codes, 32 bits, channel j at bit j), and then the codes
// (q8_0: of two channels; other types: of channels j, j + 1 in the lower and j + 16, j + 17 in the
// upper halves of bytes).
//
//          halves  of the header  d   m   fifth bits
//   q8_0       17              1  0
//   q4_0        9              1  0
//   iq4_nl      9              1  0
//   q4_1       10              2  0   1
//   q5_0       11              3  0       1, 2
//   q5_1       12              4  0   1   2, 3
#ifndef VKROPE_BLOCKS_GLSL
#define VKROPE_BLOCKS_GLSL

#ifndef VKROPE_QUANTISE_GLSL
#error "blocks.glsl: include interface.h, element.glsl and quantise.glsl first"
#endif

// Returns x * 2^64 for |x| < 2^-40, so that no subnormal takes part in arithmetic.
vec4 vkrope_lift(const vec4 x) {
    const uvec4 bits = floatBitsToUint(x);
    const uvec4 magnitude = bits & 0x7fffffffu;
    precise vec4 subnormal = vec4(magnitude) * 2.5849394142282115e-26;  // 2^-85
    const uvec4 lifted = mix(magnitude + (64u << 23), floatBitsToUint(subnormal),
                             lessThan(magnitude, uvec4(0x800000u)));
    return uintBitsToFloat(lifted | (bits & 0x80000000u));
}

// ---- iq4_nl ----

// Returns the number that a code stands for, 0 to 15.
float vkrope_iq4_nl_number(const uint code) {
    const uint four = code < 4    ? 0xbfad9881u
                      : code < 8  ? 0xf6eaddcfu
                      : code < 12 ? 0x26190d01u
                                  : 0x71594535u;
    return float(int(four << (24u - 8u * (code & 3u))) >> 24);
}

// Returns the codes of the nearest numbers; of two that are equally near, the larger.
uvec4 vkrope_iq4_nl_codes(const vec4 x) {
    uvec4 codes = uvec4(0);
    VKROPE_UNROLL for (uint i = 0; i < 15; ++i) {
        precise vec4 above = x - vkrope_iq4_nl_number(i);
        precise vec4 below = vkrope_iq4_nl_number(i + 1) - x;
        codes += mix(uvec4(0), uvec4(1), greaterThanEqual(above, below));
    }
    return codes;
}

// Sums over the channels of a block, in their order: with q the numbers of the codes, and x^2 as
// weights, x q over q q is the best d.
struct VkropeFit {
    float xq, qq;
};
VkropeFit vkrope_fit(const VkropeFit fit, const float x, const uint code) {
    const float q = vkrope_iq4_nl_number(code);
    precise float weight = x * x;
    precise float weighed = weight * q;
    precise float xq = fit.xq + weighed * x;
    precise float qq = fit.qq + weighed * q;
    return VkropeFit(xq, qq);
}

// ---- Scales and codes ----

struct VkropeBlock {
    uint scales;    // stored scales: d as f16, and m in the upper half
    bool lifted;    // vkrope_lift is applied first
    float inverse;  // 1/d for channels after vkrope_lift, if lifted; 0 if all have the same code
    float least;    // minimum, subtracted from these channels; iq4_nl: added to their quotients
};

VkropeBlock vkrope_block(const uint type, const VkropeExtremes extremes) {
    uint d, m = 0;
    VkropeBlock block;
    block.least = 0.0;
    if (vkrope_has_minimum(type)) {
        const bool empty = extremes.least == vkrope_nothing;
        m = empty ? 0u : extremes.least;
        const uint top = empty ? 0u : extremes.most;
        const uint size = max(m & 0x7fffffffu, top & 0x7fffffffu);
        block.lifted = size < 0x2b800000u;  // 2^-40
        vec4 ends = uintBitsToFloat(uvec4(m, top, 0, 0));
        if (block.lifted) ends = vkrope_lift(ends);
        precise float range = ends.y - ends.x;
        const uint width = size == 0x7f800000u ? size : floatBitsToUint(range) & 0x7fffffffu;
        d = vkrope_divided(type, width, block.lifted ? 64 : 0);
        block.least = ends.x;
    } else {
        const uint size = extremes.most & 0x7fffffffu;
        block.lifted = size < 0x2b800000u;
        d = vkrope_divided(type, size, 0);
        if (vkrope_is_signed_block(type)) d |= ~extremes.most & 0x80000000u;
        if (type == element_iq4_nl && size < 0x26901d7du) {  // 1e-15
            d = 0;
            block.least = -127.0;
        }
    }
    const uvec4 halves = vkrope_narrow_f16(uintBitsToFloat(uvec4(d, m, 0, 0)));
    block.scales = halves.x | (halves.y << 16);
    // 1/d overflows for d up to 2^-128.
    const uint size_of_d = d & 0x7fffffffu;
    if (size_of_d <= 0x200000u || size_of_d == 0x7f800000u) {
        block.inverse = 0.0;
        if (type != element_iq4_nl) block.least = 0.0;
    } else {
        ivec4 exponent;
        const uint mantissa = vkrope_mantissa(uvec4(size_of_d), exponent).x;
        const int field = (block.lifted ? 252 - 64 : 252) - exponent.x;
        block.inverse = uintBitsToFloat((vkrope_reciprocal(mantissa) + (uint(field) << 23)) |
                                        (d & 0x80000000u));
    }
    return block;
}

// Returns the codes of four finite channels, one in each component. The channels must be lifted if
// the block is.
uvec4 vkrope_finite_block_codes(const uint type, const vec4 x, const VkropeBlock block) {
    uvec4 codes;
    if (vkrope_has_minimum(type)) {
        precise vec4 shifted = (x - block.least) * block.inverse + 0.5;
        codes = uvec4(shifted);  // at most 15 or 31: roundings add far less than 1/2
    } else if (type == element_iq4_nl) {
        precise vec4 scaled = x * block.inverse;
        precise vec4 shifted = scaled + block.least;
        codes = vkrope_iq4_nl_codes(shifted);
    } else if (vkrope_is_signed_block(type)) {
        const float middle = type == element_q4_0 ? 8.5 : 16.5;
        precise vec4 shifted = x * block.inverse + middle;
        codes = min(uvec4(shifted), uvec4(type == element_q4_0 ? 15 : 31));
    } else {
        // At most 127 in magnitude. Ties go away from zero: the number below 1/2 is added with the
        // sign, and the sum is truncated. (1/2 itself would round the number below it to 1.)
        precise vec4 scaled = x * block.inverse;
        const uvec4 below_half = (floatBitsToUint(scaled) & 0x80000000u) | 0x3effffffu;
        precise vec4 sum = scaled + uintBitsToFloat(below_half);
        codes = uvec4(ivec4(sum)) & 0xffu;
    }
    return codes;
}

// Returns the codes of any four channels. A NaN gets the code of 0, or of the smallest channel.
uvec4 vkrope_block_codes(const uint type, const vec4 x, const VkropeBlock block) {
    const uvec4 magnitude = floatBitsToUint(x) & 0x7fffffffu;
    vec4 y = x;
    if (block.lifted) y = vkrope_lift(x);
    y = mix(y, vec4(block.least), greaterThanEqual(magnitude, uvec4(0x7f800000u)));
    return vkrope_finite_block_codes(type, y, block);
}

// ---- Bytes ----

bool vkrope_has_fifth_bit(const uint type) {
    return type == element_q5_0 || type == element_q5_1;
}

// Returns the fifth bits of a word of four codes, from bit 0 on. The products of the single bits do
// not overlap.
uint vkrope_fifth_bits(const uint word) {
    return ((((word >> 4) & 0x01010101u) * 0x01020408u) >> 24) & 15u;
}

// These functions return the number of halves of a block's header, and of a block.
uint vkrope_header_halves(const uint type) {
    return 1u + (vkrope_has_minimum(type) ? 1u : 0u) + (vkrope_has_fifth_bit(type) ? 2u : 0u);
}
uint vkrope_block_halves(const uint type) {
    return vkrope_header_halves(type) + (type == element_q8_0 ? 16u : 8u);
}

// Returns the bytes of a block, or of an element of a type without blocks; of two for int4.
uint vkrope_block_bytes(const uint type) {
    return VKROPE_HAS_BLOCKS(type) ? 2u * vkrope_block_halves(type) : 1u;
}

// Returns the first word of a staged block: d and m, or d twice.
uint vkrope_scales_word(const uint type, const VkropeBlock block) {
    return vkrope_has_minimum(type) ? block.scales : block.scales | (block.scales << 16);
}

// These functions join two packed words, with the codes of channels and of channels 16 further on,
// to bytes of two codes each, and to the fifth bits of the codes, from bit 0 on.
uint vkrope_join_nibbles(const uint word, const uint word_16) {
    return (word & 0x0f0f0f0fu) | ((word_16 & 0x0f0f0f0fu) << 4);
}
uint vkrope_join_fifth_bits(const uint word, const uint word_16) {
    return vkrope_fifth_bits(word) | (vkrope_fifth_bits(word_16) << 16);
}

#endif
