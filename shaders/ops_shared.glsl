// SPDX-License-Identifier: MIT
// Applies the ops in lanes that share a row and exchange the sums of their units through
// VKROPE_EXCHANGED. ops.glsl includes this file. It is longer than other files, because tensor.glsl
// includes all of it for each tensor.

const uint T(lane_heads) = T(whole_token) ? (T(row_heads) + head_lanes - 1) / head_lanes : 1;
// Numbers of heads of a lane, and of rows of a token, whose units are exchanged together.
const uint T(round_heads) = T(lane_heads) < heads_together ? T(lane_heads) : heads_together;
const uint T(round_rows) = T(round_heads) * head_lanes;
const uint T(stages) = VKROPE_STAGES(T(levels));
const uint T(head_stages) = VKROPE_STAGES(T(head_levels));
const uint T(lane_row_chunks) = (T(row_chunks) + chunk_lanes - 1) / chunk_lanes;
// 0 if a lane has one chunk of one head, whose words it keeps in registers. Otherwise it loads the
// words again.
const uint T(many_chunks) = (T(lane_heads) - 1) | (T(lane_row_chunks) - 1);
// Parts of a sum: of values, and of scaled values unless they cannot overflow.
const uint T(parts) = (T(ops) & op_one_sum) != 0 ? 1 : 2;

// Returns true if a row has chunk `index`; constant if all lanes have the same number of chunks.
bool T(in_row)(const uint index) {
    return T(row_chunks) % chunk_lanes == 0 || index < T(row_chunks);
}

// One lane's share of a tensor. Every lane of a workgroup has a share, because all lanes must reach
// the barriers.
struct T(Share) {
    Token token;
    uint index;  // of the token, counted over all sequences
    uint from, to;
    uint chunk_lane, head_lane, token_lane;
    uint first;  // first head of the workgroup in this round
    float token_factor;
    bool stores;           // the lane has a row to store
    bool kept;             // the row keeps its bytes
    Chunk chunk;           // the first chunk of the lane
    Words a, b;            // its words
    T(ChunkParameters) p;  // the lane's parameters that all heads share
};

uint T(shared_head)(T(Share) share, const uint i) {
    return share.first + share.head_lane + i * head_lanes;
}

// 0 if each lane owns its rows. The value is the same for all tensors, because they use shared
// memory in turn.
const uint T(waits) = (chunk_lanes - 1) | ((q_ops | k_ops | v_ops) & op_token);

// Separates writes of a lane from reads of the other lanes of its row, or of its token.
void T(row_barrier)() {
    if (T(waits) != 0) barrier();
}

// Strides from row to row in shared memory, in sums and in words. A lane that owns its rows uses
// the same memory for each tensor, so that it never waits until another lane has read.
const uint T(sums_pitch) = T(waits) == 0 ? exchanged / (head_lanes * group_tokens * T(parts))
                                         : T(norm_units);
const uint T(words_pitch) = T(waits) == 0 ? staged / (head_lanes * group_tokens)
                                          : VKROPE_ROW_WORDS(T(head_dim), staged_gaps);

// Loads the words of chunk `index` in head `head`.
void T(load_shared_chunk)(T(Share) share, const uint index, const uint head, out Words a,
                          out Words b) {
    const uint row = share.from + head * T(source_head)();
    const uvec2 channels = T(row_channels)(index);
#if VKROPE_TENSOR_OF_CACHE
    if (T(scales_read) != 0) T(aim_source)(head);
#endif
    a = T(read)(row, channels.x);
    b = T(read)(row, channels.y);
}

// Returns the row of a lane in shared memory.
VkropeRow T(staged_row)(T(Share) share) {
    return VkropeRow((share.token_lane * head_lanes + share.head_lane) * T(words_pitch),
                     T(head_dim), share.chunk_lane, chunk_lanes);
}

// Returns the words of chunk `index` in head `head` as the ops take them.
void T(take_chunk)(T(Share) share, const uint index, const uint head, out Words a, out Words b) {
    a = share.a;
    b = share.b;
    if (T(hadamard_read) != 0) {
        const uint row = T(staged_row)(share).at;
        const uvec2 channels = T(row_channels)(index);
        const Unit u = vkrope_staged_unit(unit_elements, row + vkrope_place(channels.x), 1),
                   v = vkrope_staged_unit(unit_elements, row + vkrope_place(channels.y), 1);
        a = Words(floatBitsToUint(u.a), floatBitsToUint(u.b));
        b = Words(floatBitsToUint(v.a), floatBitsToUint(v.b));
    } else if (T(many_chunks) != 0)
        T(load_shared_chunk)(share, index, head, a, b);
}

vec2 T(leaves)(uint what, const VkropeNorm norm, const Unit u) {
    vec2 leaves = vec2(T(leaf)(what, norm, u, 1.0));
    if (T(parts) == 2) leaves.y = T(leaf)(what, norm, u, vkrope_small);
    return leaves;
}

// Exchanges the sum of unit `unit` of a row if a norm takes it.
void T(exchange_unit)(uint what, const VkropeNorm norm, const uint row, const uint unit,
                      const Unit u) {
    bool takes = true;
    if (T(norm_in_part) != 0) takes = unit - T(norm_from) < T(norm_units);
    if (takes)
        vkrope_exchange(T(parts), row * T(sums_pitch) + unit - T(norm_from),
                        T(leaves)(what, norm, u));
}

// Exchanges the units of `round_heads` heads of each lane from head `first` on, and adds them
// through the stages of the tree.
void T(exchange_units)(uint what, const T(Share) share, const VkropeNorm norm, const uint first) {
    T(row_barrier)();  // the sums before these have been read
    for (uint i = 0; i < T(round_heads); ++i) {
        const uint head = T(shared_head)(share, first + i);
        const uint row = share.token_lane * T(round_rows) + share.head_lane + i * head_lanes;
        for (uint n = 0; n < T(lane_row_chunks); ++n) {
            const uint index = share.chunk_lane + n * chunk_lanes;
            if (share.stores && T(in_row)(index) && head < VKROPE_TENSOR_HEADS) {
                Words A, B;
                T(take_chunk)(share, index, head, A, B);
                const T(Summed) summed = T(summed_of)(share.token, index, A, B, head);
                T(exchange_unit)(what, norm, row, summed.units.x, summed.a);
                T(exchange_unit)(what, norm, row, summed.units.y, summed.b);
            }
        }
    }
    T(row_barrier)();
    for (uint stage = 0; stage < T(stages); ++stage) {
        for (uint i = 0; i < T(round_heads); ++i) {
            const uint row = share.token_lane * T(round_rows) + share.head_lane + i * head_lanes;
            vkrope_shared_stage(
                vkrope_shared_sums(T(parts), row * T(sums_pitch), T(norm_units), stage),
                share.chunk_lane, chunk_lanes);
        }
        T(row_barrier)();
    }
}

// Returns the sum of a row of exchanged units.
vec2 T(row_sum)(uint row) {
    return vkrope_shared_rest(
        T(levels), vkrope_shared_sums(T(parts), row * T(sums_pitch), T(norm_units), T(stages)));
}

vec2 T(shared_sums)(uint what, const T(Share) share, const VkropeNorm norm) {
    vec2 sums;
    if (T(whole_token)) {
        const uint heads_at = group_tokens * T(round_rows) * T(norm_units) +
                              share.token_lane * T(row_heads);
        for (uint first = 0; first < T(lane_heads); first += T(round_heads)) {
            T(exchange_units)(what, share, norm, first);
            for (uint i = 0; i < T(round_heads); ++i) {
                const uint head = T(shared_head)(share, first + i);
                if (share.chunk_lane == 0 && head < T(row_heads))
                    vkrope_exchange(T(parts), heads_at + head,
                                    T(row_sum)(share.token_lane * T(round_rows) + share.head_lane +
                                               i * head_lanes));
            }
        }
        barrier();
        for (uint stage = 0; stage < T(head_stages); ++stage) {
            vkrope_shared_stage(vkrope_shared_sums(T(parts), heads_at, T(row_heads), stage),
                                share.chunk_lane + chunk_lanes * share.head_lane,
                                chunk_lanes * head_lanes);
            barrier();
        }
        sums = vkrope_shared_rest(
            T(head_levels), vkrope_shared_sums(T(parts), heads_at, T(row_heads), T(head_stages)));
    } else {
        T(exchange_units)(what, share, norm, 0);
        sums = T(row_sum)(share.token_lane * head_lanes + share.head_lane);
    }
    return sums;
}

T(Share)
T(begin_share)
(const Token token, uint index, const uint z, uint chunk_lane, uint head_lane, uint token_lane,
 const bool in_call) {
    T(Share) share;
    share.token = token;
    share.index = index;
    if (!vkrope_has(flag_z_is_group)) share.index += z * VKROPE_PUSH.tokens;
    share.from = T(source)(index, z);
    share.to = T(to)(index, z, token);
    share.chunk_lane = chunk_lane;
    share.head_lane = head_lane;
    share.token_lane = token_lane;
    share.first = T(whole_token) ? 0u : gl_WorkGroupID.y * head_lanes;
    share.token_factor = T(token_factor)(index, z);
    share.stores = in_call;
    if (VKROPE_TENSOR_SCATTERS) share.stores = in_call && token.stored;
    if (T(second_of) != second_none) {
        T(begin_second)(share.index, share.stores);
        if (vkrope_has(flag_second)) share.stores = in_call;
    }
    share.kept = false;
#if VKROPE_TENSOR_OF_CACHE
    if (gather != 0) share.stores = in_call && token.stored;
    if (T(keeps) != 0) {
        share.kept = T(kept)(token);
        if (share.kept && T(in_place)()) share.stores = false;
    }
    if (T(scales_read) != 0) T(source_token) = share.index;
#endif
    share.a = share.b = Words(uvec4(0), uvec4(0));
    return share;
}

// Returns true if this workgroup has heads of the tensor. If a norm treats all heads as one row,
// the workgroup has all of them.
bool T(has_share)() {
    bool has = VKROPE_TENSOR_HEADS > gl_WorkGroupID.y * head_lanes;
    if (T(whole_token)) has = VKROPE_TENSOR_HEADS != 0 && gl_WorkGroupID.y == 0;
    return has;
}

// Loads the words that a lane keeps in registers. The head must be one of the lane's heads, because
// in place another lane may store any other head at the same time.
void T(load_head)(inout T(Share) share, const uint head) {
    if (T(many_chunks) == 0) {
        if (T(in_row)(share.chunk_lane))
            T(load_shared_chunk)(share, share.chunk_lane, head, share.a, share.b);
    }
}
void T(load_share)(inout T(Share) share) {
    const uint head = T(shared_head)(share, 0);
    if (share.stores && head < VKROPE_TENSOR_HEADS) T(load_head)(share, head);
}

// Returns chunk n of a lane, and sets `rotates` to true if the chunk rotates.
Chunk T(share_chunk)(T(Share) share, const uint n, out bool rotates) {
    const uint index = share.chunk_lane + n * chunk_lanes;
    Chunk chunk = share.chunk;
    rotates = false;
#if VKROPE_TENSOR_ROTATES
    if (rotating != 0) {
        rotates = T(copying) == 0 ? T(in_row)(index) : index < rotating;
        if (rotates) {
            if (T(lane_row_chunks) != 1) chunk = rotating_chunk(share.token, pairs_of(index));
            chunk = T(shifted_chunk)(chunk);
        }
    }
#endif
    if (!rotates) chunk = T(copied_chunk)(index);
    return chunk;
}

// Loads the parameters that a lane keeps in registers for all of its heads.
void T(load_share_parameters)(inout T(Share) share) {
    if (T(many_chunks) == 0) {
        bool rotates;
        const Chunk chunk = T(share_chunk)(share, 0, rotates);
        if (T(in_row)(share.chunk_lane)) T(load_chunk_parameters)(shape_channel, chunk, 0, share.p);
    }
}

// ---- Staged rows: transformed or quantised ----

// Returns the index of the words after the rows, one word for each lane of a row, or for each of
// its scales if these are more, or of the words after the row of a lane that owns it.
uint T(exchanged_words)(T(Share) share) {
    const uint row_words = VKROPE_ROW_WORDS(T(head_dim), staged_gaps);
    uint at = gl_LocalInvocationID.x - share.chunk_lane;
    if (T(row_scales) > chunk_lanes) at = gl_LocalInvocationID.x / chunk_lanes * T(row_scales);
    at += head_lanes * group_tokens * row_words;
    if (T(waits) == 0) at = gl_LocalInvocationID.x * T(words_pitch) + row_words;
    return at;
}

// Stores the scale of a row or of one of its groups.
void T(store_scale_bits)(T(Share) share, const uint head, const uint group, uint bits) {
#if VKROPE_TENSOR_OF_CACHE
    if (T(keeps) != 0 && T(scales_read) != 0) {
        T(aim_source)(head);
        if (share.kept) bits = T(source_scale_bits)(group);
    }
#endif
    const uint at = T(scales_of_row)(VKROPE_TENSOR_SCATTERS, share.index, share.token.page,
                                     share.token.line, head) +
                    group;
    if (T(scale_bytes) == 0) {
        VKROPE_TENSOR_SCALES_OUT_WORD(VKROPE_TENSOR_SCALES_OUT_AT + at) = bits;
    } else {  // other lanes store the other bytes of the word
        const uint word = VKROPE_TENSOR_SCALES_OUT_AT + at / 4, shift = 8 * (at & 3u);
        atomicAnd(VKROPE_TENSOR_SCALES_OUT_WORD(word), ~(0xffu << shift));
        atomicOr(VKROPE_TENSOR_SCALES_OUT_WORD(word), ((bits >> 23) & 0xffu) << shift);
    }
}

// Computes the scale of a row, or of a group of its channels, from its largest magnitude.
VkropeMadeScale T(scale_for)(const uint most) {
    VkropeExtremes extremes = vkrope_no_extremes(T(element_out));
    extremes.most = most;
    float least = uintBitsToFloat(T(scale_floor));
    if ((T(store_scale) & store_scale_power_of_two) != 0)
        least = vkrope_power_of_two_from(T(element_out), extremes, least);
    return vkrope_made_scale(T(element_out), extremes, least);
}

// Computes the scale of a row from the extremes that its lanes have found.
VkropeMadeScale T(made_scale)(T(Share) share, const VkropeRow row, const uint head,
                              const bool stores) {
    const uint exchanged_at = T(exchanged_words)(share);
    VKROPE_STAGED(exchanged_at + share.chunk_lane) = vkrope_staged_most(T(element_out), row);
    T(row_barrier)();
    uint most = 0;
    for (uint lane = 0; lane < chunk_lanes; ++lane)
        most = max(most, VKROPE_STAGED(exchanged_at + lane));
    const VkropeMadeScale scale = T(scale_for)(most);
    if (share.chunk_lane == 0 && stores) T(store_scale_bits)(share, head, 0, scale.bits);
    return scale;
}

// Finds the largest magnitude of each group of channels, one lane for each group, and stores the
// scales. A barrier must follow.
void T(begin_groups)(T(Share) share, const VkropeRow row, const uint head, const bool stores) {
    const uint exchanged_at = T(exchanged_words)(share);
    for (uint group = row.lane; group < T(row_scales); group += row.lanes) {
        const VkropeRow part = VkropeRow(row.at + vkrope_place(group * T(group_channels)),
                                         T(group_channels), 0, 1);
        const uint most = vkrope_staged_most(T(element_out), part);
        VKROPE_STAGED(exchanged_at + group) = most;
        if (stores) T(store_scale_bits)(share, head, group, T(scale_for)(most).bits);
    }
}

// Returns the scale of a row from the parameters.
float T(given_scale)(uint head) {
    uint at = VKROPE_OFFSET(offset_parameters) + T(store_scale_at);
    if (second_parameters != 0) at += vkrope_parameter_set;
    if (T(store_scale) == store_scale_given_head) at += T(absolute_head)(head);
    return uintBitsToFloat(VKROPE_PARAMETER_WORD(at));
}

// Quantises the blocks of a row. A block is quantised by one lane, or by several lanes together.
const uint T(block_lanes) = VKROPE_BLOCK_LANES(T(element_out), T(head_dim), chunk_lanes);
void T(stage_blocks)(T(Share) share, const VkropeRow row) {
    if (T(block_lanes) == 1) {
        vkrope_stage_blocks(T(element_out), row);
    } else {
        const uint shown = T(exchanged_words)(share);
        const uint apart = chunk_lanes * head_lanes * group_tokens;
        const VkropeShare part = vkrope_begin_blocks(T(element_out), row, shown, apart);
        T(row_barrier)();
        vkrope_end_blocks(T(element_out), row, shown, apart, part);
    }
}

// Returns true if the bytes from byte `to` on are whole words.
bool T(stores_words)(const uint to) {
    return ((to | vkrope_row_bytes(T(element_out), T(head_dim))) & 3u) == 0;
}

// Stores the codes of a row without blocks from byte `to` on if they are whole words of one code
// a byte, else stages them.
void T(store_codes)(T(Share) share, const VkropeRow row, const uint head, const uint to,
                    const bool stores) {
    VkropeMadeScale made;
    float given = 1.0;
    if (T(scale_made) && T(row_scales) != 1) {
        T(begin_groups)(share, row, head, stores);
        T(row_barrier)();
    } else if (T(scale_made))
        made = T(made_scale)(share, row, head, stores);
    else if (T(store_scale) != store_scale_none)
        given = T(given_scale)(head);
    const uint count = vkrope_quads(row);
    for (uint round = 0; round < vkrope_rounds(count, row); ++round) {
        const uint quad = row.lane + round * row.lanes;
        if (vkrope_has_item(count, row, round)) {
            uint word;
            if (T(scale_made) && T(row_scales) != 1)
                made = T(scale_for)(
                    VKROPE_STAGED(T(exchanged_words)(share) + 4 * quad / T(group_channels)));
            if (T(scale_made))
                word = vkrope_made_codes(T(element_out), row, quad, made);
            else
                word = vkrope_given_codes(T(element_out), row, quad, given);
            if (T(element_out) == element_int4 || !T(stores_words)(to))
                VKROPE_STAGED(row.at + vkrope_place(4 * quad)) = word;
            else if (stores && !share.kept)
                T(out_word)[to / 4 + quad] = word;
        }
    }
}

// Returns four bytes of a row from byte `from` on: staged ones, or those that were read, if the row
// starting at byte `source` keeps its bytes.
uint T(bytes_to_store)(const VkropeRow row, const bool kept, const uint source, const int from) {
    uint word;
#if VKROPE_TENSOR_OF_CACHE
    if (T(keeps) != 0 && kept) {
        const int bytes = int(vkrope_row_bytes(T(element_out), T(head_dim)));
        const int first = max(from, 0), end = min(from + 4, bytes);
        word = T(source_bytes)(source, source + uint(first), uint(end - first))
               << uint(8 * (first - from));
    } else
#endif
        word = vkrope_staged_bytes(T(element_out), row, from);
    return word;
}

// Stores the bytes of a row, staged blocks or codes, from byte `to` on. A lane stores whole words.
// If the row begins or ends within a word, its first and last word keep the bytes of other rows.
// Both cases are loops that may have no round, because software devices run both sides of a branch,
// but a loop only while a lane needs it.
void T(store_bytes)(const VkropeRow row, const uint to, const bool kept, const uint source) {
    const uint bytes = vkrope_row_bytes(T(element_out), T(head_dim));
    const bool whole = T(stores_words)(to);
    bool staged_words = T(in_blocks) || T(element_out) == element_int4;
    if (T(keeps) != 0) staged_words = staged_words || kept;
    for (uint pass = 0; pass < (staged_words && whole ? 1u : 0u); ++pass) {
        for (uint round = 0; round < vkrope_rounds(bytes / 4, row); ++round) {
            const uint index = row.lane + round * row.lanes;
            if (vkrope_has_item(bytes / 4, row, round)) {
                uint word;
                if (T(keeps) != 0 && kept)
                    word = T(bytes_to_store)(row, kept, source, int(4 * index));
                else
                    word = vkrope_staged_word(T(element_out), row, index);
                T(out_word)[to / 4 + index] = word;
            }
        }
    }
    for (uint at = to / 4 + row.lane; !whole && at <= (to + bytes - 1) / 4; at += row.lanes) {
        const int from = int(4 * at - to), beyond = from + 4 - int(bytes);
        const uint word = T(bytes_to_store)(row, kept, source, from);
        uint mask = ~0u;
        if (from < 0) mask <<= uint(-8 * from);
        if (beyond > 0) mask &= ~0u >> uint(8 * beyond);
        if (mask == ~0u)
            T(out_word)[at] = word;
        else
            T(merge_word)(at, mask, word & mask);
    }
}

// The levels of the Hadamard transform beyond a unit, in at most three passes of equal length.
const uint T(unit_levels) = VKROPE_UNIT_LEVELS(unit_elements);
const uint T(far_levels) = T(hadamard) > T(unit_levels) ? T(hadamard) - T(unit_levels) : 0;
const uint T(most_levels) = VKROPE_PASS_LEVELS(T(head_dim), chunk_lanes);
const uint T(passes) = (T(far_levels) + T(most_levels) - 1) / T(most_levels);
const uint T(pass_divisor) = T(passes) == 0 ? 1 : T(passes);
const uint T(pass_levels) = (T(far_levels) + T(pass_divisor) - 1) / T(pass_divisor);

void T(hadamard_pass)(const VkropeRow row, const uint level) {
    vkrope_hadamard_pass(T(hadamard), level, min(T(hadamard) - level, T(pass_levels)), row);
    T(row_barrier)();
}

// Returns the channel of the unit that a lane stores in a round.
uint T(staged_channel)(const VkropeRow row, const uint round) {
    return (row.lane + round * row.lanes) * unit_elements;
}

Words T(encode_staged)(const uint element, const VkropeRow row, const uint channel) {
    return vkrope_encode(element,
                         vkrope_staged_unit(unit_elements, row.at + vkrope_place(channel), 1));
}

#if VKROPE_TENSOR_OF_CACHE
// Stores the transformed row of a head in the second destination, before it is quantised.
void T(store_second)(const VkropeRow row, const bool stores) {
    for (uint round = 0; round < vkrope_rounds(T(units), row); ++round) {
        const uint channel = T(staged_channel)(row, round);
        if (stores && vkrope_has(flag_second) && vkrope_has_item(T(units), row, round))
            T(second_store)
        (T(second_row) + channel, T(encode_staged)(T(element_second), row, channel));
    }
    T(row_barrier)();  // quantised blocks overwrite the row
}
#endif

// Stores the staged row of a head. All lanes must call this function, because it has barriers.
void T(store_staged)(T(Share) share, const VkropeRow row, const uint head) {
    // In place, a lane may store bytes that another lane has read.
    if ((T(element_read) | T(hadamard_read)) != 0 && T(waits) != 0) memoryBarrierBuffer();
    T(row_barrier)();
    // This is not a loop, because compilers would not unroll it.
    if (T(passes) >= 1) T(hadamard_pass)(row, T(unit_levels));
    if (T(passes) >= 2) T(hadamard_pass)(row, T(unit_levels) + T(pass_levels));
    if (T(passes) >= 3) T(hadamard_pass)(row, T(unit_levels) + 2 * T(pass_levels));
    bool stores = share.stores && head < VKROPE_TENSOR_HEADS;
#if VKROPE_TENSOR_OF_CACHE
    if (T(second_of) == second_result && T(hadamard) != 0) T(store_second)(row, stores);
#endif
    if (T(second_of) != second_none) stores = stores && T(in_first);
    const uint to = share.to + head * VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(out).head;
    const uint source = share.from + head * T(source_head)();
    if (T(quantised)) {
        const uint at = to * vkrope_block_bytes(T(element_out)) +
                        VKROPE_OFFSET(VKROPE_TENSOR_AT(out));
        if (T(in_blocks))
            T(stage_blocks)(share, row);
        else
            T(store_codes)(share, row, head, at, stores);
        T(row_barrier)();
        if (stores) T(store_bytes)(row, at, share.kept, source);
    } else {
        for (uint round = 0; round < vkrope_rounds(T(units), row); ++round) {
            const uint channel = T(staged_channel)(row, round);
            if (stores && vkrope_has_item(T(units), row, round)) {
                Words words = T(encode_staged)(T(element_out), row, channel);
                if (T(keeps) != 0) {
                    if (share.kept) words = T(load)(source + channel);
                }
                T(store)(to + channel, words);
            }
        }
    }
    T(row_barrier)();  // the next row overwrites this one
}

void T(ops_staged)(T(Share) share, const VkropeNorm norm) {
    const VkropeRow row = T(staged_row)(share);
    for (uint i = 0; i < T(lane_heads); ++i) {
        const uint head = T(shared_head)(share, i);
        if (T(second_of) != second_none) T(aim_second)(head);
        for (uint n = 0; n < T(lane_row_chunks); ++n) {
            const uint index = share.chunk_lane + n * chunk_lanes;
            if (share.stores && T(in_row)(index) && head < VKROPE_TENSOR_HEADS) {
                bool rotates;
                const Chunk chunk = T(share_chunk)(share, n, rotates);
                Words A, B;
                T(take_chunk)(share, index, head, A, B);
                T(ChunkParameters) p = share.p;
                if (T(many_chunks) != 0) T(load_chunk_parameters)(shape_channel, chunk, 0, p);
                T(load_chunk_parameters)(shape_head_channel, chunk, head, p);
                T(ops_units)(rotates, chunk, A, B, row.at, p, norm, share.token_factor);
            }
        }
        bool takes_part = true;
        if (T(waits) == 0) takes_part = share.stores && head < VKROPE_TENSOR_HEADS;
        if (takes_part) T(store_staged)(share, row, head);
    }
}

// ---- Rows that are not staged: each lane stores its share ----

void T(ops_direct)(T(Share) share, const VkropeNorm norm) {
    for (uint n = 0; n < T(lane_row_chunks); ++n) {
        const uint index = share.chunk_lane + n * chunk_lanes;
        bool rotates;
        const Chunk chunk = T(share_chunk)(share, n, rotates);
        T(ChunkParameters) p = share.p;
        if (T(many_chunks) != 0 && T(in_row)(index))
            T(load_chunk_parameters)(shape_channel, chunk, 0, p);
        for (uint i = 0; i < T(lane_heads); ++i) {
            const uint head = T(shared_head)(share, i);
            if (share.stores && T(in_row)(index) && head < VKROPE_TENSOR_HEADS) {
                Words A, B;
                T(take_chunk)(share, index, head, A, B);
                const uint to = share.to + head * VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(out).head;
                T(load_chunk_parameters)(shape_head_channel, chunk, head, p);
                if (T(second_of) != second_none) T(aim_second)(head);
                T(ops_units)(rotates, chunk, A, B, to, p, norm, share.token_factor);
            }
        }
    }
}

#if VKROPE_TENSOR_OF_CACHE
// ---- Rows that have a transform ----

const uint T(read_far) = T(hadamard_read) > T(unit_levels) ? T(hadamard_read) - T(unit_levels) : 0;
const uint T(read_passes) = (T(read_far) + T(most_levels) - 1) / T(most_levels);
const uint T(read_divisor) = T(read_passes) == 0 ? 1 : T(read_passes);
const uint T(read_levels) = (T(read_far) + T(read_divisor) - 1) / T(read_divisor);

void T(undo_pass)(const VkropeRow row, const uint level) {
    vkrope_hadamard_pass(T(hadamard_read), level, min(T(hadamard_read) - level, T(read_levels)),
                         row);
    T(row_barrier)();
}

// Stages the row of a lane, and undoes its transform, which is its own inverse.
void T(undo_transform)(T(Share) share) {
    const VkropeRow row = T(staged_row)(share);
    const uint head = T(shared_head)(share, 0);
    for (uint n = 0; n < T(lane_row_chunks); ++n) {
        const uint index = share.chunk_lane + n * chunk_lanes;
        if (share.stores && T(in_row)(index) && head < VKROPE_TENSOR_HEADS) {
            Words A = share.a, B = share.b;
            if (T(many_chunks) != 0) T(load_shared_chunk)(share, index, head, A, B);
            const uvec2 channels = T(row_channels)(index);
            vkrope_stage_unit(unit_elements, row.at + vkrope_place(channels.x), 1,
                              vkrope_hadamard_inside(unit_elements, T(hadamard_read),
                                                     vkrope_decode(T(element_in), A)));
            vkrope_stage_unit(unit_elements, row.at + vkrope_place(channels.y), 1,
                              vkrope_hadamard_inside(unit_elements, T(hadamard_read),
                                                     vkrope_decode(T(element_in), B)));
        }
    }
    T(row_barrier)();
    bool takes_part = true;
    if (T(waits) == 0) takes_part = share.stores && head < VKROPE_TENSOR_HEADS;
    if (takes_part) {
        if (T(read_passes) >= 1) T(undo_pass)(row, T(unit_levels));
        if (T(read_passes) >= 2) T(undo_pass)(row, T(unit_levels) + T(read_levels));
        if (T(read_passes) >= 3) T(undo_pass)(row, T(unit_levels) + 2 * T(read_levels));
    }
}
#endif

void T(ops_share)(T(Share) share) {
#if VKROPE_TENSOR_OF_CACHE
    if (T(hadamard_read) != 0) T(undo_transform)(share);
#endif
    VkropeNorm norm = vkrope_no_norm();
    if (T(norm) != 0) {
        const float inverse_n = uintBitsToFloat(T(inverse_n));
        vec2 sums = vec2(0);
        if (T(norm) == op_layer) {
            vkrope_set_mean(norm, T(shared_sums)(sum_values, share, norm), inverse_n);
            sums = T(shared_sums)(sum_differences, share, norm);
        }
        vkrope_set_root(norm, sums, T(shared_sums)(sum_squares, share, norm), inverse_n,
                        uintBitsToFloat(T(eps)));
    }
    if (T(staged_rows))
        T(ops_staged)(share, norm);
    else
        T(ops_direct)(share, norm);
}

// Processes the heads of a workgroup in rounds. The words of a round are loaded before those of the
// previous round are stored. All lanes take the same number of rounds, which is one if the heads of
// the call fit side by side, or if there are workgroups for all of them.
const bool T(one_round) = T(scale_heads) - 1 < head_lanes;  // scale_heads 0: unknown
void T(ops_rounds)(T(Share) share) {
    T(load_share_parameters)(share);
    // On a software device a lane skips rows that it need not access, with a loop that may have no
    // round.
    if (T(keeps) != 0 && T(waits) == 0) {
        for (; share.stores && share.first < VKROPE_TENSOR_HEADS;
             share.first += head_lanes * gl_NumWorkGroups.y) {
            T(load_share)(share);
            T(ops_share)(share);
        }
    } else if (T(whole_token) || T(one_round)) {
        T(ops_share)(share);
    } else {
        while (share.first < VKROPE_TENSOR_HEADS) {
            T(Share) next = share;
            next.first += head_lanes * gl_NumWorkGroups.y;
            if (share.stores && next.first < VKROPE_TENSOR_HEADS) {
                // A lane without a next head loads its head of this round again, because a load
                // outside a branch stays in flight.
                uint head = T(shared_head)(next, 0);
                if (head >= VKROPE_TENSOR_HEADS) head = T(shared_head)(share, 0);
                T(load_head)(next, head);
            }
            T(ops_share)(share);
            share = next;
        }
    }
}
