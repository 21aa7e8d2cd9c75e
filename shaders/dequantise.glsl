// SPDX-License-Identifier: MIT
// Reads quantised types: numbers of codes, and the codes of adjacent channels in a block. Needs
// interface.h, element.glsl, quantise.glsl and blocks.glsl. Declares no binding, push constant or
// workgroup size. `type` is element_e4m3fn, ...
#ifndef VKROPE_DEQUANTISE_GLSL
#define VKROPE_DEQUANTISE_GLSL

#ifndef VKROPE_BLOCKS_GLSL
#error "dequantise.glsl: include interface.h, element.glsl, quantise.glsl and blocks.glsl first"
#endif

vec4 vkrope_widen_float8(const uint type, const uvec4 codes) {
    vec4 numbers = vkrope_widen_f16(codes << 8);  // e5m2 is the upper byte of an f16
    if (type == element_e4m3fn) {
        const uvec4 magnitude = codes & 0x7fu;
        precise vec4 subnormal = vec4(magnitude) * 0.001953125;  // 2^-9
        uvec4 bits = mix((magnitude << 20) + (120u << 23), floatBitsToUint(subnormal),
                         lessThan(magnitude, uvec4(8)));
        bits = mix(bits, uvec4(0x7fc00000u), equal(magnitude, uvec4(0x7f)));
        numbers = uintBitsToFloat(bits | ((codes & 0x80u) << 24));
    }
    return numbers;
}

// Returns the numbers of four codes, one in each byte of a word: integers for ggml's blocks.
vec4 vkrope_numbers(const uint type, const uint word) {
    const uvec4 codes = (uvec4(word) >> uvec4(0, 8, 16, 24)) & 0xffu;
    vec4 numbers;
    if (type == element_e4m3fn || type == element_e5m2)
        numbers = vkrope_widen_float8(type, codes);
    else if (type == element_int8 || type == element_q8_0)
        numbers = vec4(ivec4(codes << 24) >> 24);
    else if (type == element_int4)
        numbers = vec4(ivec4(codes << 28) >> 28);
    else if (type == element_iq4_nl)
        numbers = vec4(vkrope_iq4_nl_number(codes.x), vkrope_iq4_nl_number(codes.y),
                       vkrope_iq4_nl_number(codes.z), vkrope_iq4_nl_number(codes.w));
    else if (vkrope_is_signed_block(type))
        numbers = vec4(ivec4(codes) - (type == element_q4_0 ? 8 : 16));
    else
        numbers = vec4(codes);
    return numbers;
}

// Spreads four codes of 4 bits, from bit 0 on, to the bytes of a word.
uint vkrope_spread_nibbles(const uint codes) {
    return (codes & 0xfu) | ((codes & 0xf0u) << 4) | ((codes & 0xf00u) << 8) |
           ((codes & 0xf000u) << 12);
}

// Spreads four bits, from bit 0 on, to the fifth bits of the bytes of a word.
uint vkrope_spread_fifth_bits(const uint bits) {
    return (((bits & 0xfu) * 0x00204081u) & 0x01010101u) << 4;
}

#endif
