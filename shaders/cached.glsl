// SPDX-License-Identifier: MIT
// Reads rows of a tensor that come from a cache: by slot, quantised, with scales. ops.glsl includes
// this file for each tensor. It needs the macros of tensor.glsl and these:
//
//   VKROPE_TENSOR_SCALES_IN_WORD(index)  scales of rows that are read
//   VKROPE_TENSOR_SCALES_IN_AT           their first word in the binding

#if VKROPE_TENSOR_OF_CACHE

// Returns the start of the rows of a token: in elements, or in bytes of a quantised type.
uint T(source)(const uint index, const uint z) {
    uint start = T(from)(index, z);
    if (gather != 0 || T(element_read) != 0) {
        const RowLayout rows = VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(in);
        start = z * rows.z + index * rows.token;
        if (gather != 0) start = vkrope_source_page * rows.z + vkrope_source_line * rows.token;
        if (T(element_read) != 0) start *= vkrope_block_bytes(T(element_read));
        start += VKROPE_OFFSET(VKROPE_TENSOR_AT(in));
    }
    return start;
}

// Returns the distance of heads, in the unit of T(source).
uint T(source_head)() {
    uint step = VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(in).head;
    if (T(element_read) != 0) step *= vkrope_block_bytes(T(element_read));
    return step;
}

// Returns true if neither the rotation nor an op changes the rows of a token.
bool T(kept)(const Token token) {
    bool kept = T(keeps) != 0;
#if VKROPE_TENSOR_ROTATES
    if (rotary_dim != 0) kept = kept && vkrope_still;
#endif
    return kept;
}

// ---- Scales ----

// The token of a lane, counted over all sequences, and the scales of its row.
uint T(source_token), T(source_scales);

// Aims at the scales of the row of head `head`.
void T(aim_source)(const uint head) {
    T(source_scales) = T(scales_of_row)(gather != 0, T(source_token), vkrope_source_page,
                                        vkrope_source_line, head);
}

// Returns the f32 bits of scale `group` of the row, of which UE8M0 has bits 23 to 30.
uint T(source_scale_bits)(const uint group) {
    const uint at = T(source_scales) + group;
    uint bits;
    if (T(scale_bytes) == 0) {
        bits = VKROPE_TENSOR_SCALES_IN_WORD(VKROPE_TENSOR_SCALES_IN_AT + at);
    } else {
        // Other rows may be merging their scales into the word.
        const uint word = atomicLoad(
            VKROPE_TENSOR_SCALES_IN_WORD(VKROPE_TENSOR_SCALES_IN_AT + at / 4), gl_ScopeDevice,
            gl_StorageSemanticsNone, gl_SemanticsRelaxed);
        bits = ((word >> (8 * (at & 3u))) & 0xffu) << 23;
    }
    return bits;
}
float T(source_scale)(const uint group) {
    uint bits = T(source_scale_bits)(group);
    if (T(scale_bytes) != 0) {
        if (bits == 0x7f800000u) bits = 0x7fc00000u;
        if (bits == 0) bits = 0x400000u;
    }
    return uintBitsToFloat(bits);
}

// ---- Bytes ----

// Returns a word of a row that starts at byte `row`. Another invocation may be merging bytes of
// other rows into its first and last word.
uint T(source_word)(const uint row, const uint index) {
    uint word;
    if (((row | vkrope_row_bytes(T(element_read), T(head_dim))) & 3u) == 0)
        word = T(in_word)[index];
    else
        word = T(load_shared)(index);
    return word;
}

// Returns `count` bytes, 1 to 4, of a row that starts at byte `row`, from byte `at` of the binding
// on. The other bytes of the result are arbitrary.
uint T(source_bytes)(const uint row, const uint at, const uint count) {
    const uint shift = 8 * (at & 3u);
    uint word = T(source_word)(row, at / 4) >> shift;
    if ((at & 3u) + count > 4) word |= T(source_word)(row, at / 4 + 1) << (32 - shift);
    return word;
}

// Returns the codes of `count` adjacent channels, 1, 2 or 4, in the bytes of a word. The channels
// begin at a multiple of `count`. `block` is the first byte of their block.
uint T(source_codes)(const uint row, const uint block, const uint channel, const uint count) {
    const uint type = T(element_read);
    uint codes;
    if (type == element_int4) {
        codes = T(source_bytes)(row, row + channel / 2, (count + 1) / 2);
        codes = vkrope_spread_nibbles(codes >> (4 * (channel & 1u)));
    } else if (!VKROPE_HAS_BLOCKS(type)) {
        codes = T(source_bytes)(row, row + channel, count);
    } else {
        const uint at = block + 2 * vkrope_header_halves(type), j = channel % 32;
        if (type == element_q8_0) {
            codes = T(source_bytes)(row, at + j, count);
        } else {
            codes = T(source_bytes)(row, at + j % 16, count);
            codes = (j < 16 ? codes : codes >> 4) & 0x0f0f0f0fu;
            if (vkrope_has_fifth_bit(type)) {
                const uint bits = T(source_bytes)(row, at - 4, 4) >> j;
                codes |= vkrope_spread_fifth_bits(bits);
            }
        }
    }
    return codes;
}

// Returns the numbers of `count` adjacent channels.
vec4 T(source_numbers)(const uint row, const uint channel, const uint count) {
    const uint type = T(element_read);
    const uint block = row + channel / 32 * vkrope_block_bytes(type);
    vec4 numbers = vkrope_numbers(type, T(source_codes)(row, block, channel, count));
    if (VKROPE_HAS_BLOCKS(type)) {
        const uint scales = T(source_bytes)(row, block, vkrope_has_minimum(type) ? 4 : 2);
        const vec4 d = vkrope_widen_f16(uvec4(scales & 0xffffu, scales >> 16, 0, 0));
        precise vec4 scaled = numbers * d.x;
        if (vkrope_has_minimum(type)) {
            precise vec4 shifted = scaled + d.y;
            scaled = shifted;
        }
        numbers = scaled;
    }
    if (T(scales_read) != 0) {
        precise vec4 scaled = numbers * T(source_scale)(channel / T(group_channels));
        numbers = scaled;
    }
    return numbers;
}
#else
uint T(source)(const uint index, const uint z) {
    return T(from)(index, z);
}
uint T(source_head)() {
    return VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(in).head;
}
#endif

// Elements of a unit that are read at once.
const uint T(read_elements) = unit_elements == 8 ? 4 : unit_elements;

// Reads the unit that starts at `channel` of a row: f32 if the type is quantised.
Words T(read)(const uint row, const uint channel) {
    Words words;
#if VKROPE_TENSOR_OF_CACHE
    if (T(element_read) != 0) {
        words.a = floatBitsToUint(T(source_numbers)(row, channel, T(read_elements)));
        words.b = uvec4(0);
        if (unit_elements == 8) words.b = floatBitsToUint(T(source_numbers)(row, channel + 4, 4));
    } else
#endif
        words = T(load)(row + channel);
    return words;
}
