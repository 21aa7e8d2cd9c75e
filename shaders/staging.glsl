// SPDX-License-Identifier: MIT
// Rows that several lanes store together: Hadamard transform, extremes, codes and bytes. Needs
// interface.h, element.glsl, norm.glsl, hadamard.glsl, quantise.glsl and blocks.glsl. Declares no
// binding, push constant or workgroup size. Define this macro first:
//
//   VKROPE_STAGED(index)  words that the lanes of a workgroup share, uint
//
// A row is the words of its f32 channels, one after the other. Codes replace them: a word of 4
// codes is in the place of their first channel, and the scales of a block in that of its second.
#ifndef VKROPE_STAGING_GLSL
#define VKROPE_STAGING_GLSL

#ifndef VKROPE_STAGED
#error "staging.glsl: define VKROPE_STAGED(index)"
#endif
#if !defined(VKROPE_HADAMARD_GLSL) || !defined(VKROPE_BLOCKS_GLSL)
#error "staging.glsl: include norm.glsl, hadamard.glsl, quantise.glsl and blocks.glsl first"
#endif

// A row, and the share of a lane in it: `lane` of `lanes`.
struct VkropeRow {
    uint at, channels, lane, lanes;
};

// The n values from `at` on, `stride` apart, as a unit.
Unit vkrope_staged_unit(const uint n, const uint at, const uint stride) {
    uvec4 a = uvec4(VKROPE_STAGED(at), 0, 0, 0), b = uvec4(0);
    if (n >= 2) a.y = VKROPE_STAGED(at + stride);
    if (n >= 4) a.zw = uvec2(VKROPE_STAGED(at + 2 * stride), VKROPE_STAGED(at + 3 * stride));
    if (n == 8)
        b = uvec4(VKROPE_STAGED(at + 4 * stride), VKROPE_STAGED(at + 5 * stride),
                  VKROPE_STAGED(at + 6 * stride), VKROPE_STAGED(at + 7 * stride));
    return Unit(uintBitsToFloat(a), uintBitsToFloat(b));
}

void vkrope_stage_unit(const uint n, const uint at, const uint stride, const Unit u) {
    VKROPE_STAGED(at) = floatBitsToUint(u.a.x);
    if (n >= 2) VKROPE_STAGED(at + stride) = floatBitsToUint(u.a.y);
    if (n >= 4) {
        VKROPE_STAGED(at + 2 * stride) = floatBitsToUint(u.a.z);
        VKROPE_STAGED(at + 3 * stride) = floatBitsToUint(u.a.w);
    }
    if (n == 8) {
        VKROPE_STAGED(at + 4 * stride) = floatBitsToUint(u.b.x);
        VKROPE_STAGED(at + 5 * stride) = floatBitsToUint(u.b.y);
        VKROPE_STAGED(at + 6 * stride) = floatBitsToUint(u.b.z);
        VKROPE_STAGED(at + 7 * stride) = floatBitsToUint(u.b.w);
    }
}

// Four channels from channel 4 * quad on; 0 for those beyond the row.
vec4 vkrope_staged_quad(const VkropeRow row, const uint quad) {
    const uint last = row.at + row.channels - 1;
    const uvec4 at = row.at + 4 * quad + uvec4(0, 1, 2, 3);
    uvec4 bits = uvec4(VKROPE_STAGED(at.x), 0, 0, 0);
    if (row.channels % 4 == 0) {
        bits.yzw = uvec3(VKROPE_STAGED(at.y), VKROPE_STAGED(at.z), VKROPE_STAGED(at.w));
    } else {
        if (at.y <= last) bits.y = VKROPE_STAGED(at.y);
        if (at.z <= last) bits.z = VKROPE_STAGED(at.z);
        if (at.w <= last) bits.w = VKROPE_STAGED(at.w);
    }
    return uintBitsToFloat(bits);
}
uint vkrope_quads(const VkropeRow row) {
    return (row.channels + 3) / 4;
}

// ---- Hadamard ----

// The levels from `level` on, one to three of the `all` levels of a block. A barrier must follow.
void vkrope_hadamard_stage(const uint all, const uint level, const VkropeRow row) {
    const uint levels = min(all - level, 3u), n = 1u << levels, stride = 1u << level;
    for (uint i = row.lane; i < row.channels / n; i += row.lanes) {
        const uint at = row.at + ((i & (stride - 1u)) | ((i >> level) << (level + levels)));
        Unit u = vkrope_butterflies(n, levels, vkrope_staged_unit(n, at, stride));
        if (level + levels == all) u = vkrope_scale(u, vkrope_hadamard_factor(all));
        vkrope_stage_unit(n, at, stride, u);
    }
}

// ---- Elements that stand alone ----

// The largest magnitude of the lane's channels, as f32 bits.
uint vkrope_staged_most(const uint type, const VkropeRow row) {
    VkropeExtremes extremes = vkrope_no_extremes(type);
    for (uint quad = row.lane; quad < vkrope_quads(row); quad += row.lanes)
        extremes = vkrope_join_extremes(
            type, extremes, vkrope_extremes_of_four(type, vkrope_staged_quad(row, quad)));
    return extremes.most;
}

// Codes of x * given.
void vkrope_stage_codes(const uint type, const VkropeRow row, const float given) {
    for (uint quad = row.lane; quad < vkrope_quads(row); quad += row.lanes) {
        const vec4 x = vkrope_times(vkrope_staged_quad(row, quad), given);
        VKROPE_STAGED(row.at + 4 * quad) = vkrope_pack_codes(vkrope_codes(type, x));
    }
}

// Codes of x / scale.
void vkrope_stage_codes_of_made(const uint type, const VkropeRow row, const VkropeMadeScale scale) {
    for (uint quad = row.lane; quad < vkrope_quads(row); quad += row.lanes) {
        const vec4 x = vkrope_quotient(vkrope_staged_quad(row, quad), scale);
        VKROPE_STAGED(row.at + 4 * quad) = vkrope_pack_codes(vkrope_codes(type, x));
    }
}

// 4 codes from channel `from` on, which is at least -3.
uint vkrope_staged_codes(const VkropeRow row, const int from) {
    const uint behind = uint(from + 4) / 4, shift = 8u * (uint(from + 4) % 4);
    const uint last = vkrope_quads(row) - 1;
    uint word = VKROPE_STAGED(row.at + 4 * (max(behind, 1u) - 1u));
    if (shift != 0)
        word = (word >> shift) | (VKROPE_STAGED(row.at + 4 * min(behind, last)) << (32 - shift));
    return word;
}

// ---- Blocks ----

// Of the `quads` groups of four channels from `first` on.
VkropeExtremes vkrope_extremes_of_quads(const uint type, const VkropeRow row, const uint first,
                                        const uint quads) {
    VkropeExtremes extremes = vkrope_no_extremes(type);
    for (uint quad = first; quad < first + quads; ++quad)
        extremes = vkrope_join_extremes(
            type, extremes, vkrope_extremes_of_four(type, vkrope_staged_quad(row, quad)));
    return extremes;
}

// Stages the codes of these groups of a block, and its scales with those of its first group.
void vkrope_stage_block_codes(const uint type, const VkropeRow row, const uint first,
                              const uint quads, const VkropeBlock block) {
    for (uint quad = first; quad < first + quads; ++quad)
        VKROPE_STAGED(row.at + 4 * quad) = vkrope_pack_codes(
            vkrope_block_codes(type, vkrope_staged_quad(row, quad), block));
    if (first % 8 == 0) VKROPE_STAGED(row.at + 4 * first + 1) = block.scales;
}

// Each lane stages whole blocks.
void vkrope_stage_blocks(const uint type, const VkropeRow row) {
    for (uint i = row.lane; i < row.channels / 32; i += row.lanes)
        vkrope_stage_block_codes(type, row, 8 * i, 8,
                                 vkrope_block(type, vkrope_extremes_of_quads(type, row, 8 * i, 8)));
}

// The fifth bits of a block whose first channel is staged at word `at`.
uint vkrope_staged_fifth_bits(const uint at) {
    uint bits = 0;
    for (uint quad = 0; quad < 8; ++quad)
        bits |= vkrope_fifth_bits(VKROPE_STAGED(at + 4 * quad)) << (4 * quad);
    return bits;
}

// Half `index` of a row; outside of it, its first or last one.
uint vkrope_staged_half(const uint type, const VkropeRow row, const int index) {
    const uint halves = vkrope_block_halves(type);
    const uint inside = min(index < 0 ? 0u : uint(index), row.channels / 32 * halves - 1);
    const uint in_block = inside % halves, block_at = row.at + inside / halves * 32;
    uint half_of_block;
    if (in_block < vkrope_header_halves(type)) {
        const uint fifth_bits = vkrope_has_fifth_bit(type) ? vkrope_staged_fifth_bits(block_at)
                                                           : 0u;
        half_of_block = vkrope_header_half(type, in_block, VKROPE_STAGED(block_at + 1), fifth_bits);
    } else {
        const uint channel = vkrope_channel_of_half(type, in_block);
        const uint at = block_at + (channel & ~3u);
        uint upper = 0;
        if (type != element_q8_0) upper = VKROPE_STAGED(at + 16);
        half_of_block = vkrope_code_half(type, channel, VKROPE_STAGED(at), upper);
    }
    return half_of_block;
}

// ---- Bytes ----

// Bytes of a row.
uint vkrope_row_bytes(const uint type, const uint channels) {
    return type < element_q8_0 ? channels : channels / 32 * vkrope_block_bytes(type);
}

// 4 bytes of a row from byte `from` on, which is at least -3, and even for blocks. Bytes that the
// row does not have are arbitrary.
uint vkrope_staged_bytes(const uint type, const VkropeRow row, const int from) {
    uint word;
    if (type < element_q8_0)
        word = vkrope_staged_codes(row, from);
    else
        word = vkrope_staged_half(type, row, from >> 1) |
               (vkrope_staged_half(type, row, (from >> 1) + 1) << 16);
    return word;
}

#endif
