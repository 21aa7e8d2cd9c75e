// SPDX-License-Identifier: MIT
// Stages rows that several lanes store together: Hadamard transform, extremes, codes and bytes.
// This file is longer than others, because all functions use the layout of a staged row. Needs
// interface.h, element.glsl, norm.glsl, hadamard.glsl, quantise.glsl and blocks.glsl. Declares no
// binding, push constant or workgroup size. Define these macros first:
//
//   VKROPE_STAGED(index)  words that the lanes of a workgroup share, uint
//   VKROPE_STAGED_GAPS    a constant: 1 if the rows have gaps (VKROPE_ROW_WORDS), else 0
//
// At first a staged row has the words of its f32 channels. A word of 4 codes then replaces the
// first of the 4 channels. The words of a block replace its channels, from the first channel on.
#ifndef VKROPE_STAGING_GLSL
#define VKROPE_STAGING_GLSL

#ifndef VKROPE_STAGED
#error "staging.glsl: define VKROPE_STAGED(index)"
#endif
#ifndef VKROPE_STAGED_GAPS
#error "staging.glsl: define VKROPE_STAGED_GAPS"
#endif
#if !defined(VKROPE_HADAMARD_GLSL) || !defined(VKROPE_BLOCKS_GLSL)
#error "staging.glsl: include norm.glsl, hadamard.glsl, quantise.glsl and blocks.glsl first"
#endif

// A row, and the lane that processes a share of it: lane `lane` of `lanes`.
struct VkropeRow {
    uint at, channels, lane, lanes;
};

// Returns the words from the start of a row to a channel. The result for a + b is the sum of the
// results for a and b if a and b have no bit in common.
uint vkrope_place(const uint channel) {
    return channel + VKROPE_STAGED_GAPS * (channel / 32 * 4);
}

// Returns the n channels from word `at` on, `stride` channels apart, as a unit. `stride` is a power
// of two, and `at` has none of the bits of (n - 1) * stride.
Unit vkrope_staged_unit(const uint n, const uint at, const uint stride) {
    uvec4 a = uvec4(VKROPE_STAGED(at), 0, 0, 0), b = uvec4(0);
    if (n >= 2) a.y = VKROPE_STAGED(at + vkrope_place(stride));
    if (n >= 4) {
        a.z = VKROPE_STAGED(at + vkrope_place(2 * stride));
        a.w = VKROPE_STAGED(at + vkrope_place(3 * stride));
    }
    if (n == 8)
        b = uvec4(VKROPE_STAGED(at + vkrope_place(4 * stride)),
                  VKROPE_STAGED(at + vkrope_place(5 * stride)),
                  VKROPE_STAGED(at + vkrope_place(6 * stride)),
                  VKROPE_STAGED(at + vkrope_place(7 * stride)));
    return Unit(uintBitsToFloat(a), uintBitsToFloat(b));
}

void vkrope_stage_unit(const uint n, const uint at, const uint stride, const Unit u) {
    VKROPE_STAGED(at) = floatBitsToUint(u.a.x);
    if (n >= 2) VKROPE_STAGED(at + vkrope_place(stride)) = floatBitsToUint(u.a.y);
    if (n >= 4) {
        VKROPE_STAGED(at + vkrope_place(2 * stride)) = floatBitsToUint(u.a.z);
        VKROPE_STAGED(at + vkrope_place(3 * stride)) = floatBitsToUint(u.a.w);
    }
    if (n == 8) {
        VKROPE_STAGED(at + vkrope_place(4 * stride)) = floatBitsToUint(u.b.x);
        VKROPE_STAGED(at + vkrope_place(5 * stride)) = floatBitsToUint(u.b.y);
        VKROPE_STAGED(at + vkrope_place(6 * stride)) = floatBitsToUint(u.b.z);
        VKROPE_STAGED(at + vkrope_place(7 * stride)) = floatBitsToUint(u.b.w);
    }
}

// Returns four channels from channel 4 * quad on, with 0 for channels beyond the row.
vec4 vkrope_staged_quad(const VkropeRow row, const uint quad) {
    const uint at = row.at + vkrope_place(4 * quad);
    const uint count = row.channels % 4 == 0 ? 4u : row.channels - 4 * quad;
    uvec4 bits = uvec4(VKROPE_STAGED(at), 0, 0, 0);
    if (count > 1) bits.y = VKROPE_STAGED(at + 1);
    if (count > 2) bits.z = VKROPE_STAGED(at + 2);
    if (count > 3) bits.w = VKROPE_STAGED(at + 3);
    return uintBitsToFloat(bits);
}
uint vkrope_quads(const VkropeRow row) {
    return (row.channels + 3) / 4;
}

// Lanes divide `count` items of a row in rounds. A lane has item row.lane + round * row.lanes, if
// it exists. With constant arguments compilers unroll the rounds, and only the last needs a branch.
uint vkrope_rounds(const uint count, const VkropeRow row) {
    return (count + row.lanes - 1) / row.lanes;
}
bool vkrope_has_item(const uint count, const VkropeRow row, const uint round) {
    const bool all_have = count % row.lanes == 0 || (round + 1) * row.lanes <= count;
    return all_have || row.lane + round * row.lanes < count;
}

// ---- Hadamard ----

// Applies those of the `all` levels that stay inside a unit of n elements, and the final factor if
// there are no other levels.
Unit vkrope_hadamard_inside(const uint n, const uint all, const Unit u) {
    Unit after = vkrope_butterflies(n, all, u);
    if (all != 0 && all <= VKROPE_UNIT_LEVELS(n))
        after = vkrope_scale(after, vkrope_hadamard_factor(all));
    return after;
}

// Maximum levels of a pass: 4 if a lane has at least 16 channels of the row to combine, else 3.
#define VKROPE_PASS_LEVELS(channels, lanes) ((channels) >= 16 * (lanes) ? 4u : 3u)

// Applies one to four levels, from `level` on, of the `all` levels of a block. A barrier must
// follow.
void vkrope_hadamard_pass(const uint all, const uint level, const uint levels,
                          const VkropeRow row) {
    const uint count = row.channels >> levels, stride = 1u << level;
    const uint inside = min(levels, 3u), n = 1u << inside;
    for (uint round = 0; round < vkrope_rounds(count, row); ++round) {
        const uint i = row.lane + round * row.lanes;
        if (vkrope_has_item(count, row, round)) {
            const uint at = row.at + vkrope_place((i >> level) << (level + levels)) +
                            vkrope_place(i & (stride - 1u));
            const uint upper_at = at + vkrope_place(8 * stride);
            Unit lower = vkrope_butterflies(n, inside, vkrope_staged_unit(n, at, stride)), upper;
            if (levels == 4) {
                const Unit u = lower, v = vkrope_butterflies(
                                          n, inside, vkrope_staged_unit(n, upper_at, stride));
                lower = vkrope_butterfly(false, u, v);
                upper = vkrope_butterfly(true, v, u);
            }
            if (level + levels == all) {
                lower = vkrope_scale(lower, vkrope_hadamard_factor(all));
                if (levels == 4) upper = vkrope_scale(upper, vkrope_hadamard_factor(all));
            }
            vkrope_stage_unit(n, at, stride, lower);
            if (levels == 4) vkrope_stage_unit(n, upper_at, stride, upper);
        }
    }
}

// ---- Types without blocks ----

// Returns the largest magnitude of the lane's channels, as f32 bits. The bits of a NaN are above
// those of all numbers. If there is a NaN, a second round leaves NaNs out. That round is a loop,
// because software devices run both sides of a branch.
uint vkrope_staged_most(const uint type, const VkropeRow row) {
    const uint count = vkrope_quads(row);
    uint most = 0;
    for (uint round = 0; round < vkrope_rounds(count, row); ++round) {
        const uint quad = row.lane + round * row.lanes;
        if (vkrope_has_item(count, row, round)) {
            const uvec4 size = floatBitsToUint(vkrope_staged_quad(row, quad)) & 0x7fffffffu;
            most = max(most, max(max(size.x, size.y), max(size.z, size.w)));
        }
    }
    for (bool has_nan = most > 0x7f800000u; has_nan; has_nan = false) {
        VkropeExtremes extremes = vkrope_no_extremes(type);
        for (uint quad = row.lane; quad < count; quad += row.lanes)
            extremes = vkrope_join_extremes(
                type, extremes, vkrope_extremes_of_four(type, vkrope_staged_quad(row, quad)));
        most = extremes.most;
    }
    return most;
}

// Returns a word with the codes of four channels times `given`.
uint vkrope_given_codes(const uint type, const VkropeRow row, const uint quad, const float given) {
    const vec4 x = vkrope_times(vkrope_staged_quad(row, quad), given);
    return vkrope_pack_codes(vkrope_codes(type, x));
}

// Returns a word with the codes of four channels divided by `scale`. A lane that owns its row does
// without the branch, because it runs on a software device, which would execute both sides.
uint vkrope_made_codes(const uint type, const VkropeRow row, const uint quad,
                       const VkropeMadeScale scale) {
    const vec4 x = vkrope_staged_quad(row, quad);
    uvec4 codes = uvec4(0);
    bool certain = false;
    if (row.lanes != 1) {
        if (vkrope_has_reciprocal(scale))
            codes = vkrope_codes_by_product(type, x, vkrope_reciprocal_of(scale), certain);
    }
    if (!certain) codes = vkrope_codes(type, vkrope_quotient(x, scale));
    return vkrope_pack_codes(codes);
}

// Returns 4 bytes of two codes each, from byte `from` on, which is at least -3.
uint vkrope_staged_nibbles(const VkropeRow row, const int from) {
    uint word = 0;
    VKROPE_UNROLL for (int i = 0; i < 4; ++i) {
        const uint channel = min(2 * uint(max(from + i, 0)), row.channels - 2);
        const uint codes = VKROPE_STAGED(row.at + vkrope_place(channel / 4 * 4)) >>
                           (8 * (channel & 2u));
        word |= ((codes & 0xfu) | ((codes >> 4) & 0xf0u)) << (8 * i);
    }
    return word;
}

// Returns 4 codes from channel `from` on, which is at least -3.
uint vkrope_staged_codes(const VkropeRow row, const int from) {
    const uint behind = uint(from + 4) / 4, shift = 8u * (uint(from + 4) % 4);
    const uint last = vkrope_quads(row) - 1;
    uint word = VKROPE_STAGED(row.at + vkrope_place(4 * (max(behind, 1u) - 1u)));
    if (shift != 0)
        word = (word >> shift) |
               (VKROPE_STAGED(row.at + vkrope_place(4 * min(behind, last))) << (32 - shift));
    return word;
}

// ---- Blocks ----
//
// The words of a block replace its channels. They are d in both halves of a word, or d and m, then
// the fifth bits, and then the codes. A block with an odd number of halves begins with a half that
// is not stored, so that its codes are whole words.

uint vkrope_header_words(const uint type) {
    return vkrope_has_fifth_bit(type) ? 2u : 1u;
}
uint vkrope_block_words(const uint type) {
    return vkrope_header_words(type) + (type == element_q8_0 ? 8u : 4u);
}

// Returns the number of lanes that quantise a block together, a power of two; 1: a lane quantises
// whole blocks.
uint vkrope_block_lanes(const uint type, const VkropeRow row) {
    return VKROPE_BLOCK_LANES(type, row.channels, row.lanes);
}

// Returns the words from a block to the next block. Blocks follow each other without a gap, unless
// a lane may still read the channels there.
uint vkrope_block_pitch(const uint type, const VkropeRow row) {
    const bool apart = row.lanes != 1 && vkrope_block_lanes(type, row) == 1;
    return apart ? vkrope_place(32) : vkrope_block_words(type);
}

// Returns the index of the words after the blocks of the row in which the lanes of a block write
// their parts of the block's fifth bits, one word per lane.
uint vkrope_fifth_bits_at(const uint type, const VkropeRow row, const uint block) {
    return row.at + vkrope_block_words(type) * (row.channels / 32) +
           vkrope_block_lanes(type, row) * block;
}

// A lane's share of a block: groups of four channels. For types with two codes in a byte, half of
// the groups are lower channels, and the other groups are 16 channels further on.
struct VkropeShare {
    uint block, part;  // `part` counts lanes of the block
    vec4 quads[4];
    bool finite;  // all channels are known to be finite
};

// Returns the index in its block of group `i` of a lane.
uint vkrope_quad_of_share(const uint type, const uint lanes, const uint part, const uint i) {
    const uint quads = 8 / lanes, near = type == element_q8_0 ? quads : quads / 2;
    return part * near + i + (i < near ? 0u : 4u - near);
}

// Returns the extremes of groups [first, end) for types without a minimum, if there is no NaN.
uint vkrope_most_of_quads(const uint type, const VkropeShare share, const uint first,
                          const uint end) {
    uint most = 0;
    VKROPE_UNROLL for (uint i = first; i < end; ++i) {
        const uvec4 bits = floatBitsToUint(share.quads[i]);
        if (vkrope_is_signed_block(type)) {
            uint low = (bits.y << 1) > (bits.x << 1) ? bits.y : bits.x;
            const uint high = (bits.w << 1) > (bits.z << 1) ? bits.w : bits.z;
            low = (high << 1) > (low << 1) ? high : low;
            most = (low << 1) > (most << 1) ? low : most;
        } else {
            const uvec4 size = bits & 0x7fffffffu;
            most = max(most, max(max(size.x, size.y), max(size.z, size.w)));
        }
    }
    return most;
}

VkropeExtremes vkrope_extremes_of_quads(const uint type, const VkropeShare share, const uint first,
                                        const uint end) {
    VkropeExtremes extremes = vkrope_no_extremes(type);
    VKROPE_UNROLL for (uint i = first; i < end; ++i) {
        extremes = vkrope_join_extremes(type, extremes,
                                        vkrope_extremes_of_four(type, share.quads[i]));
    }
    return extremes;
}

bool vkrope_has_share(const uint type, const VkropeRow row) {
    return vkrope_has_item(vkrope_block_lanes(type, row) * (row.channels / 32), row, 0);
}

// Performs the first half of quantising a block with several lanes: loads a share, and writes the
// extremes of its lower and of its upper channels to shared memory. The largest numbers of lower
// channels are at `shown`, one word for each lane of the row; those of upper channels are `apart`
// words further on, and are followed by the smallest numbers. A barrier must follow.
VkropeShare vkrope_begin_blocks(const uint type, const VkropeRow row, const uint shown,
                                const uint apart) {
    const uint lanes = vkrope_block_lanes(type, row), quads = 8 / lanes;
    const uint near = type == element_q8_0 ? quads : quads / 2;
    VkropeShare share;
    share.block = row.lane / lanes;
    share.part = row.lane % lanes;
    share.finite = false;
    if (vkrope_has_share(type, row)) {
        VKROPE_UNROLL for (uint i = 0; i < quads; ++i) {
            share.quads[i] = vkrope_staged_quad(
                row, 8 * share.block + vkrope_quad_of_share(type, lanes, share.part, i));
        }
        VkropeExtremes lower = vkrope_no_extremes(type), upper = vkrope_no_extremes(type);
        bool has_nan = true;
        if (!vkrope_has_minimum(type)) {
            lower.most = vkrope_most_of_quads(type, share, 0, near);
            upper.most = vkrope_most_of_quads(type, share, near, quads);
            const uint most = max(lower.most << 1, upper.most << 1);
            share.finite = most < 0xff000000u;
            has_nan = most > 0xff000000u;
        }
        if (has_nan) {
            lower = vkrope_extremes_of_quads(type, share, 0, near);
            upper = vkrope_extremes_of_quads(type, share, near, quads);
        }
        VKROPE_STAGED(shown + row.lane) = lower.most;
        if (type != element_q8_0) VKROPE_STAGED(shown + row.lane + apart) = upper.most;
        if (vkrope_has_minimum(type)) {
            VKROPE_STAGED(shown + row.lane + 2 * apart) = lower.least;
            VKROPE_STAGED(shown + row.lane + 3 * apart) = upper.least;
        }
    }
    return share;
}

// Performs the second half: writes the words of the block over the row. A barrier must follow.
void vkrope_end_blocks(const uint type, const VkropeRow row, const uint shown, const uint apart,
                       const VkropeShare share) {
    const uint lanes = vkrope_block_lanes(type, row), quads = 8 / lanes;
    const uint near = type == element_q8_0 ? quads : quads / 2;
    if (vkrope_has_share(type, row)) {
        VkropeExtremes extremes = vkrope_no_extremes(type), other = extremes;
        for (uint i = 0; i < (type == element_q8_0 ? lanes : 2 * lanes); ++i) {
            const uint from = shown + share.block * lanes + (i % lanes) + i / lanes * apart;
            other.most = VKROPE_STAGED(from);
            if (vkrope_has_minimum(type)) other.least = VKROPE_STAGED(from + 2 * apart);
            extremes = vkrope_join_extremes(type, extremes, other);
        }
        const VkropeBlock block = vkrope_block(type, extremes);
        uint packed[4];
        if (share.finite && !block.lifted) {
            VKROPE_UNROLL for (uint i = 0; i < quads; ++i) {
                packed[i] = vkrope_pack_codes(
                    vkrope_finite_block_codes(type, share.quads[i], block));
            }
        } else {
            VKROPE_UNROLL for (uint i = 0; i < quads; ++i) {
                packed[i] = vkrope_pack_codes(vkrope_block_codes(type, share.quads[i], block));
            }
        }
        const uint at = row.at + vkrope_block_pitch(type, row) * share.block;
        uint fifth_bits = 0;
        VKROPE_UNROLL for (uint i = 0; i < near; ++i) {
            const uint quad = vkrope_quad_of_share(type, lanes, share.part, i);
            uint word = packed[i];
            if (type != element_q8_0) {
                const uint high = packed[i + near];
                fifth_bits |= vkrope_join_fifth_bits(word, high) << (4 * quad);
                word = vkrope_join_nibbles(word, high);
            }
            VKROPE_STAGED(at + vkrope_header_words(type) + quad) = word;
        }
        if (share.part == 0) VKROPE_STAGED(at) = vkrope_scales_word(type, block);
        if (vkrope_has_fifth_bit(type))
            VKROPE_STAGED(vkrope_fifth_bits_at(type, row, share.block) + share.part) = fifth_bits;
    }
}

// Sets the scale of block `i` of iq4_nl to the one that fits its codes best.
void vkrope_fit_block(const VkropeRow row, const uint i, inout VkropeBlock block) {
    const uint type = element_iq4_nl;
    VkropeFit fit = VkropeFit(0.0, 0.0);
    for (uint quad = 8 * i; quad < 8 * i + 8; ++quad) {
        const vec4 x = vkrope_staged_quad(row, quad);
        const uvec4 codes = vkrope_block_codes(type, x, block);
        const vec4 finite = mix(
            x, vec4(0), greaterThanEqual(floatBitsToUint(x) & 0x7fffffffu, uvec4(0x7f800000u)));
        fit = vkrope_fit(fit, finite.x, codes.x);
        fit = vkrope_fit(fit, finite.y, codes.y);
        fit = vkrope_fit(fit, finite.z, codes.z);
        fit = vkrope_fit(fit, finite.w, codes.w);
    }
    // The sums of a block with d = 0 or infinity mean nothing. Below 2^-40, where a device may
    // flush products, d becomes a zero of the sign that it has already.
    if (block.inverse != 0.0 && !block.lifted) {
        const VkropeMadeScale sum = vkrope_scale_of_bits(floatBitsToUint(fit.qq));
        const uint d = floatBitsToUint(vkrope_quotient(vec4(fit.xq), sum).x);
        const bool is_nan = (d & 0x7fffffffu) > 0x7f800000u;
        block.scales = is_nan ? 0x7e00u : vkrope_narrow_f16(vec4(uintBitsToFloat(d))).x;
    }
}

// Quantises the blocks that belong to one lane.
void vkrope_stage_blocks(const uint type, const VkropeRow row) {
    for (uint i = row.lane; i < row.channels / 32; i += row.lanes) {
        VkropeExtremes extremes = vkrope_no_extremes(type);
        for (uint quad = 8 * i; quad < 8 * i + 8; ++quad)
            extremes = vkrope_join_extremes(
                type, extremes, vkrope_extremes_of_four(type, vkrope_staged_quad(row, quad)));
        VkropeBlock block = vkrope_block(type, extremes);
        if (type == element_iq4_nl) vkrope_fit_block(row, i, block);
        const uint at = row.at + vkrope_block_pitch(type, row) * i;
        uint fifth_bits = 0;
        for (uint quad = 0; quad < (type == element_q8_0 ? 8u : 4u); ++quad) {
            uint word = vkrope_pack_codes(
                vkrope_block_codes(type, vkrope_staged_quad(row, 8 * i + quad), block));
            if (type != element_q8_0) {
                const uint high = vkrope_pack_codes(
                    vkrope_block_codes(type, vkrope_staged_quad(row, 8 * i + quad + 4), block));
                fifth_bits |= vkrope_join_fifth_bits(word, high) << (4 * quad);
                word = vkrope_join_nibbles(word, high);
            }
            VKROPE_STAGED(at + vkrope_header_words(type) + quad) = word;
        }
        VKROPE_STAGED(at) = vkrope_scales_word(type, block);
        if (vkrope_has_fifth_bit(type)) VKROPE_STAGED(at + 1) = fifth_bits;
    }
}

// Returns word `index` of a block.
uint vkrope_block_word(const uint type, const VkropeRow row, const uint block, const uint index) {
    uint word = VKROPE_STAGED(row.at + vkrope_block_pitch(type, row) * block + index);
    const uint lanes = vkrope_block_lanes(type, row);
    if (vkrope_has_fifth_bit(type) && lanes != 1 && index == 1) {
        word = 0;
        for (uint part = 0; part < lanes; ++part)
            word |= VKROPE_STAGED(vkrope_fifth_bits_at(type, row, block) + part);
    }
    return word;
}

// Returns two halves of a row of blocks, from half `index` on, which is at least -1. Halves outside
// the row are arbitrary.
uint vkrope_staged_halves(const uint type, const VkropeRow row, const int index) {
    const uint halves = vkrope_block_halves(type), inside = index < 0 ? 0u : uint(index);
    const uint block = inside / halves, at = inside % halves + halves % 2;
    uint word = vkrope_block_word(type, row, block, at / 2);
    if (at % 2 != 0) {
        const bool ends = at / 2 + 1 == vkrope_block_words(type);
        const uint next = min(ends ? block + 1 : block, row.channels / 32 - 1);
        word = (word >> 16) | (vkrope_block_word(type, row, next, ends ? 0 : at / 2 + 1) << 16);
    }
    return index < 0 ? word << 16 : word;
}

// ---- Bytes ----

// Returns the number of bytes of a row.
uint vkrope_row_bytes(const uint type, const uint channels) {
    return VKROPE_HAS_BLOCKS(type) ? channels / 32 * vkrope_block_bytes(type)
           : type == element_int4  ? channels / 2
                                   : channels;
}

// Returns word `index` of a row of blocks or of int4 whose bytes are whole words.
uint vkrope_staged_word(const uint type, const VkropeRow row, const uint index) {
    const uint halves = vkrope_block_halves(type);
    uint word;
    if (type == element_int4) {
        word = vkrope_staged_nibbles(row, int(4 * index));
    } else if (vkrope_block_pitch(type, row) != vkrope_block_words(type) ||
               (vkrope_has_fifth_bit(type) && vkrope_block_lanes(type, row) != 1)) {
        word = vkrope_staged_halves(type, row, int(2 * index));
    } else if (halves % 2 == 0) {
        word = VKROPE_STAGED(row.at + index);
    } else {
        // Here, unlike in memory, a block begins with d twice, and so has one more half.
        const uint at = 2 * index + 2 * index / halves + 1;
        const uint own = VKROPE_STAGED(row.at + at / 2), next = VKROPE_STAGED(row.at + at / 2 + 1);
        word = mix(own, (own >> 16) | (next << 16), at % 2 != 0);
    }
    return word;
}

// Returns 4 bytes of a row from byte `from` on, which is at least -3, and an even number for
// blocks. Bytes outside the row are arbitrary.
uint vkrope_staged_bytes(const uint type, const VkropeRow row, const int from) {
    uint word;
    if (type == element_int4)
        word = vkrope_staged_nibbles(row, from);
    else if (type < element_q8_0)
        word = vkrope_staged_codes(row, from);
    else
        word = vkrope_staged_halves(type, row, from >> 1);
    return word;
}

#endif
