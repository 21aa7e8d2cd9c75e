// SPDX-License-Identifier: MIT
// Lanes that share a row: they exchange the sums of their units through VKROPE_EXCHANGED. Part of
// finish.glsl, which includes it.

const uint T(lane_heads) = T(whole_token) ? (T(row_heads) + head_lanes - 1) / head_lanes : 1;
// Heads of a lane, and rows of a token, whose units are exchanged together.
const uint T(round_heads) = T(lane_heads) < heads_together ? T(lane_heads) : heads_together;
const uint T(round_rows) = T(round_heads) * head_lanes;
const uint T(stages) = VKROPE_STAGES(T(levels));
const uint T(head_stages) = VKROPE_STAGES(T(head_levels));
const uint T(lane_row_steps) = (T(row_steps) + step_lanes - 1) / step_lanes;
// 0: a lane has one step of one head, which it keeps in registers; else it loads its words again.
const uint T(many_steps) = (T(lane_heads) - 1) | (T(lane_row_steps) - 1);

// What a lane does of a tensor. Every lane of a workgroup has one, since all take the barriers.
struct T(Share) {
    Token token;
    uint index;  // of the token, where tokens of all sequences follow each other
    uint from, to;
    uint step_lane, head_lane, token_lane;
    float token_factor;
    bool stores;
    Step step;   // the first step of the lane
    Words a, b;  // its words
};

uint T(shared_head)(T(Share) share, const uint i) {
    uint head = share.head_lane + i * head_lanes;
    if (!T(whole_token)) head += gl_WorkGroupID.y * head_lanes;
    return head;
}

// Loads the words of step n in head i of a lane.
void T(load_shared_step)(T(Share) share, const uint index, const uint head, out Words a,
                         out Words b) {
    const uvec2 at = share.from + head * VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(in).head +
                     T(row_channels)(index);
    a = T(load)(at.x);
    b = T(load)(at.y);
}

// 0: a lane has rows for itself.
const uint T(waits) = (step_lanes - 1) | (T(steps) & step_token);

// Between what a lane writes and what the others of its row, or of its token, read.
void T(row_barrier)() {
    if (T(waits) != 0) barrier();
}

vec2 T(leaves)(uint what, const VkropeNorm norm, const Unit u) {
    vec2 leaves = vec2(T(leaf)(what, norm, u, 1.0));
    if ((T(steps) & step_one_sum) == 0) leaves.y = T(leaf)(what, norm, u, vkrope_small);
    return leaves;
}

// Exchanges the units of `round_heads` heads of each lane from head number `first` on, and adds
// them as far as the stages of a tree go.
void T(exchange_units)(uint what, const T(Share) share, const VkropeNorm norm, const uint first) {
    T(row_barrier)();  // the sums before these have been read
    for (uint i = 0; i < T(round_heads); ++i) {
        const uint head = T(shared_head)(share, first + i);
        const uint row = share.token_lane * T(round_rows) + share.head_lane + i * head_lanes;
        for (uint n = 0; n < T(lane_row_steps); ++n) {
            const uint index = share.step_lane + n * step_lanes;
            if (index < T(row_steps) && head < VKROPE_TENSOR_HEADS) {
                Words A = share.a, B = share.b;
                if (T(many_steps) != 0) T(load_shared_step)(share, index, head, A, B);
                const T(Summed) summed = T(summed_of)(share.token, index, A, B, head);
                VKROPE_EXCHANGED(row * T(units) + summed.units.x) = T(leaves)(what, norm, summed.a);
                VKROPE_EXCHANGED(row * T(units) + summed.units.y) = T(leaves)(what, norm, summed.b);
            }
        }
    }
    T(row_barrier)();
    for (uint stage = 0; stage < T(stages); ++stage) {
        for (uint i = 0; i < T(round_heads); ++i) {
            const uint row = share.token_lane * T(round_rows) + share.head_lane + i * head_lanes;
            vkrope_shared_stage(vkrope_shared_sums(row * T(units), T(units), stage),
                                share.step_lane, step_lanes);
        }
        T(row_barrier)();
    }
}

// The sum of a row of exchanged units.
vec2 T(row_sum)(uint row) {
    return vkrope_shared_rest(T(levels), vkrope_shared_sums(row * T(units), T(units), T(stages)));
}

vec2 T(shared_sums)(uint what, const T(Share) share, const VkropeNorm norm) {
    vec2 sums;
    if (T(whole_token)) {
        const uint heads_at = group_tokens * T(round_rows) * T(units) +
                              share.token_lane * T(row_heads);
        for (uint first = 0; first < T(lane_heads); first += T(round_heads)) {
            T(exchange_units)(what, share, norm, first);
            for (uint i = 0; i < T(round_heads); ++i) {
                const uint head = T(shared_head)(share, first + i);
                if (share.step_lane == 0 && head < T(row_heads))
                    VKROPE_EXCHANGED(heads_at + head) = T(row_sum)(
                        share.token_lane * T(round_rows) + share.head_lane + i * head_lanes);
            }
        }
        barrier();
        for (uint stage = 0; stage < T(head_stages); ++stage) {
            vkrope_shared_stage(vkrope_shared_sums(heads_at, T(row_heads), stage),
                                share.step_lane + step_lanes * share.head_lane,
                                step_lanes * head_lanes);
            barrier();
        }
        sums = vkrope_shared_rest(T(head_levels),
                                  vkrope_shared_sums(heads_at, T(row_heads), T(head_stages)));
    } else {
        T(exchange_units)(what, share, norm, 0);
        sums = T(row_sum)(share.token_lane * head_lanes + share.head_lane);
    }
    if ((T(steps) & step_one_sum) != 0) sums.y = sums.x;
    return sums;
}

T(Share)
T(begin_share)
(const Token token, uint index, const uint z, uint step_lane, uint head_lane, uint token_lane,
 const bool in_call) {
    T(Share) share;
    share.token = token;
    share.index = index;
    if (!vkrope_has(flag_z_is_group)) share.index += z * VKROPE_PUSH.tokens;
    share.from = T(from)(index, z);
    share.to = T(to)(index, z, token);
    share.step_lane = step_lane;
    share.head_lane = head_lane;
    share.token_lane = token_lane;
    share.token_factor = T(token_factor)(index, z);
    share.stores = in_call;
    if (VKROPE_TENSOR_SCATTERS) share.stores = in_call && token.stored;
    share.a = share.b = Words(uvec4(0), uvec4(0));
    return share;
}

// Whether this workgroup has heads of the tensor: all of them, if a norm takes them as one row.
bool T(has_share)() {
    bool has = VKROPE_TENSOR_HEADS > gl_WorkGroupID.y * head_lanes;
    if (T(whole_token)) has = VKROPE_TENSOR_HEADS != 0 && gl_WorkGroupID.y == 0;
    return has;
}

// Loads what a lane keeps in registers.
void T(load_share)(inout T(Share) share) {
    if (T(many_steps) == 0) {
        const uint head = T(shared_head)(share, 0);
        if (share.step_lane < T(row_steps) && head < VKROPE_TENSOR_HEADS)
            T(load_shared_step)(share, share.step_lane, head, share.a, share.b);
    }
}

// Step n of a lane; sets whether it turns.
Step T(share_step)(T(Share) share, const uint n, out bool turns) {
    const uint index = share.step_lane + n * step_lanes;
    Step step = share.step;
    turns = false;
#if VKROPE_TENSOR_TURNS
    turns = index < rotating;
    if (turns) {
        if (T(lane_row_steps) != 1) step = rotating_step(share.token, pairs_of(index));
        step = T(turned_step)(step);
    }
#endif
    if (!turns) step = T(copied_step)(index);
    return step;
}

// ---- Rows that are staged: transformed or quantised ----

// Words that the lanes of a row exchange, behind the rows.
uint T(exchanged_words)(T(Share) share, const uint words) {
    return head_lanes * group_tokens * T(head_dim) +
           words * (gl_LocalInvocationID.x - share.step_lane);
}

// A scale that is made for a row, from what its lanes have found.
VkropeMadeScale T(made_scale)(T(Share) share, const VkropeRow row, const uint head) {
    const uint exchanged_at = T(exchanged_words)(share, 1);
    VKROPE_STAGED(exchanged_at + share.step_lane) = vkrope_staged_most(T(element_out), row);
    T(row_barrier)();
    VkropeExtremes extremes = vkrope_no_extremes(T(element_out));
    for (uint lane = 0; lane < step_lanes; ++lane)
        extremes.most = max(extremes.most, VKROPE_STAGED(exchanged_at + lane));
    float least = uintBitsToFloat(T(scale_floor));
    if ((T(store_scale) & store_scale_power_of_two) != 0)
        least = vkrope_power_of_two_from(T(element_out), extremes, least);
    const VkropeMadeScale scale = vkrope_made_scale(T(element_out), extremes, least);
    if (share.step_lane == 0 && head < VKROPE_TENSOR_HEADS && share.stores) {
        const uint absolute = T(absolute_head)(head);
        uint at = share.index * T(scale_heads) + absolute;
        if (VKROPE_TENSOR_SCATTERS) {
            const uint page = share.token.page * VKROPE_PUSH.page_size * T(scale_heads);
            at = page + share.token.line * T(scale_heads) + absolute;
            if ((T(store_scale) & store_scale_paged) != 0)
                at = page + absolute * VKROPE_PUSH.page_size + share.token.line;
        }
        VKROPE_TENSOR_SCALES_OUT_WORD(VKROPE_TENSOR_SCALES_OUT_AT + at) = scale.bits;
    }
    return scale;
}

// The scale that a row is multiplied by.
float T(given_scale)(uint head) {
    uint at = VKROPE_OFFSET(offset_parameters) + T(store_scale_at);
    if (second_parameters != 0) at += vkrope_parameter_set;
    if (T(store_scale) == store_scale_given_head) at += T(absolute_head)(head);
    return uintBitsToFloat(VKROPE_PARAMETER_WORD(at));
}

const uint T(blocks) = T(head_dim) < 32 ? 1 : T(head_dim) / 32;
// Lanes that share a block, if a row has more lanes than blocks.
const uint T(block_lanes) = step_lanes >= 8 * T(blocks)   ? 8
                            : step_lanes >= 4 * T(blocks) ? 4
                            : step_lanes >= 2 * T(blocks) ? 2
                                                          : 1;

void T(stage_blocks)(T(Share) share, const VkropeRow row) {
    const uint quads = 8 / T(block_lanes), first = row.lane * quads;
    const bool has_part = row.lane < T(blocks) * T(block_lanes);
    const uint exchanged_at = T(exchanged_words)(share, 2);
    if (has_part) {
        const VkropeExtremes part = vkrope_extremes_of_quads(T(element_out), row, first, quads);
        VKROPE_STAGED(exchanged_at + 2 * row.lane) = part.most;
        VKROPE_STAGED(exchanged_at + 2 * row.lane + 1) = part.least;
    }
    T(row_barrier)();
    if (has_part) {
        const uint parts_at = exchanged_at + 2 * (row.lane - row.lane % T(block_lanes));
        VkropeExtremes extremes = vkrope_no_extremes(T(element_out));
        for (uint part = 0; part < T(block_lanes); ++part)
            extremes = vkrope_join_extremes(T(element_out), extremes,
                                            VkropeExtremes(VKROPE_STAGED(parts_at + 2 * part),
                                                           VKROPE_STAGED(parts_at + 2 * part + 1)));
        vkrope_stage_block_codes(T(element_out), row, first, quads,
                                 vkrope_block(T(element_out), extremes));
    }
}

void T(stage_codes)(T(Share) share, const VkropeRow row, const uint head) {
    if (T(in_blocks)) {
        if (T(block_lanes) == 1)
            vkrope_stage_blocks(T(element_out), row);
        else
            T(stage_blocks)(share, row);
    } else if (T(scale_made)) {
        vkrope_stage_codes_of_made(T(element_out), row, T(made_scale)(share, row, head));
    } else {
        float given = 1.0;
        if (T(store_scale) != store_scale_none) given = T(given_scale)(head);
        vkrope_stage_codes(T(element_out), row, given);
    }
}

// Stores the bytes of a row from byte `to` on. A lane stores whole words; the first and the last
// one keep the bytes of others.
void T(store_bytes)(VkropeRow row, const uint to) {
    const uint bytes = vkrope_row_bytes(T(element_out), T(head_dim));
    for (uint at = to / 4 + row.lane; at <= (to + bytes - 1) / 4; at += row.lanes) {
        const int from = int(4 * at - to), beyond = from + 4 - int(bytes);
        const uint word = vkrope_staged_bytes(T(element_out), row, from);
        uint mask = ~0u;
        if (from < 0) mask <<= uint(-8 * from);
        if (beyond > 0) mask &= ~0u >> uint(8 * beyond);
        if (mask == ~0u)
            T(out_word)[at] = word;
        else
            T(merge_word)(at, mask, word & mask);
    }
}

// Stores the staged row of a head. Every lane that waits takes part in the barriers.
void T(store_staged)(T(Share) share, const VkropeRow row, const uint head) {
    T(row_barrier)();
    for (uint level = 0; level < T(hadamard); level += 3) {
        vkrope_hadamard_stage(T(hadamard), level, row);
        T(row_barrier)();
    }
    const bool stores = share.stores && head < VKROPE_TENSOR_HEADS;
    const uint to = share.to + head * VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(out).head;
    if (T(quantised)) {
        T(stage_codes)(share, row, head);
        T(row_barrier)();
        if (stores) T(store_bytes)
        (row, to * vkrope_block_bytes(T(element_out)) + VKROPE_OFFSET(VKROPE_TENSOR_AT(out)));
    } else {
        for (uint unit = row.lane; unit < T(units) && stores; unit += row.lanes) {
            const uint channel = unit * unit_elements;
            T(store)
            (to + channel,
             vkrope_encode(T(element_out), vkrope_staged_unit(unit_elements, row.at + channel, 1)));
        }
    }
    T(row_barrier)();  // the next row takes the place of this one
}

void T(finish_staged)(T(Share) share, const VkropeNorm norm) {
    const VkropeRow row = VkropeRow((share.token_lane * head_lanes + share.head_lane) * T(head_dim),
                                    T(head_dim), share.step_lane, step_lanes);
    for (uint i = 0; i < T(lane_heads); ++i) {
        const uint head = T(shared_head)(share, i);
        for (uint n = 0; n < T(lane_row_steps); ++n) {
            const uint index = share.step_lane + n * step_lanes;
            if (share.stores && index < T(row_steps) && head < VKROPE_TENSOR_HEADS) {
                bool turns;
                const Step step = T(share_step)(share, n, turns);
                Words A = share.a, B = share.b;
                if (T(many_steps) != 0) T(load_shared_step)(share, index, head, A, B);
                T(StepParameters) p;
                T(load_step_parameters)(shape_channel, step, 0, p);
                T(load_step_parameters)(shape_head_channel, step, head, p);
                T(finish_units)(turns, step, A, B, row.at, p, norm, share.token_factor);
            }
        }
        bool takes_part = true;
        if (T(waits) == 0) takes_part = share.stores && head < VKROPE_TENSOR_HEADS;
        if (takes_part) T(store_staged)(share, row, head);
    }
}

// ---- Rows that each lane stores its share of ----

void T(finish_direct)(T(Share) share, const VkropeNorm norm) {
    for (uint n = 0; n < T(lane_row_steps); ++n) {
        const uint index = share.step_lane + n * step_lanes;
        bool turns;
        const Step step = T(share_step)(share, n, turns);
        T(StepParameters) p;
        if (index < T(row_steps)) T(load_step_parameters)(shape_channel, step, 0, p);
        for (uint i = 0; i < T(lane_heads); ++i) {
            const uint head = T(shared_head)(share, i);
            if (share.stores && index < T(row_steps) && head < VKROPE_TENSOR_HEADS) {
                Words A = share.a, B = share.b;
                if (T(many_steps) != 0) T(load_shared_step)(share, index, head, A, B);
                const uint to = share.to + head * VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(out).head;
                T(load_step_parameters)(shape_head_channel, step, head, p);
                T(finish_units)(turns, step, A, B, to, p, norm, share.token_factor);
            }
        }
    }
}

void T(finish_share)(T(Share) share) {
    VkropeNorm norm = vkrope_no_norm();
    if (T(norm) != 0) {
        const float inverse_n = uintBitsToFloat(T(inverse_n));
        vec2 sums = vec2(0);
        if (T(norm) == step_layer) {
            vkrope_set_mean(norm, T(shared_sums)(sum_values, share, norm), inverse_n);
            sums = T(shared_sums)(sum_differences, share, norm);
        }
        vkrope_set_root(norm, sums, T(shared_sums)(sum_squares, share, norm), inverse_n,
                        uintBitsToFloat(T(eps)));
    }
    if (T(staged_rows)) {
        T(finish_staged)(share, norm);
    } else {
        T(finish_direct)(share, norm);
    }
}
