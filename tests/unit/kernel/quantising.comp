// SPDX-License-Identifier: MIT
// All functions of quantise.glsl, blocks.glsl and hadamard.glsl. The types are known at run time
// only.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
//
#include "element.glsl"
//
#include "hadamard.glsl"
#include "quantise.glsl"
//
#include "blocks.glsl"

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Values {
    uvec4 words[];
};

void main() {
    const uint type = gl_WorkGroupID.y, n = gl_WorkGroupID.z, at = gl_LocalInvocationID.x;
    const Unit in_unit = Unit(uintBitsToFloat(words[2 * at]), uintBitsToFloat(words[2 * at + 1]));
    Unit u = vkrope_butterflies(n, type, in_unit);
    u = vkrope_butterfly((at & n) != 0, u, in_unit);
    precise vec4 x = u.a * vkrope_hadamard_factor(n);
    const VkropeExtremes extremes = vkrope_extremes(type, n, u);
    const VkropeBlock block = vkrope_block(type, extremes);
    const VkropeMadeScale scale = vkrope_made_scale(type, extremes,
                                                    vkrope_power_of_two_from(type, extremes, 1e-8));
    const uvec4 codes = vkrope_block_codes(type, x, block) +
                        vkrope_codes(type, vkrope_quotient(x, scale)) +
                        vkrope_codes(type, vkrope_times(x, x.x));
    const uint word = vkrope_pack_codes(codes);
    words[at] = uvec4(scale.bits, vkrope_block_halves(type) + vkrope_scales_word(type, block),
                      vkrope_join_fifth_bits(word, word), vkrope_join_nibbles(word, word));
}
