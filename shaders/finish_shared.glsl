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
    uint from, to;
    uint step_lane, head_lane, token_lane;
    float token_factor;
    bool stores;
    Step step;   // the first step of the lane
    Words a, b;  // its words
};

uint T(shared_head)(T(Share) share, uint i) {
    uint head = share.head_lane + i * head_lanes;
    if (!T(whole_token)) head += gl_WorkGroupID.y * head_lanes;
    return head;
}

// Loads the words of step n in head i of a lane.
void T(load_shared_step)(T(Share) share, uint index, uint head, out Words a, out Words b) {
    const uvec2 at = share.from + head * VKROPE_PUSH.VKROPE_TENSOR_SIDE(in).head +
                     T(row_channels)(index);
    a = T(load)(at.x);
    b = T(load)(at.y);
}

vec2 T(leaves)(uint what, VkropeNorm norm, Unit u) {
    vec2 leaves = vec2(T(leaf)(what, norm, u, 1.0));
    if ((T(steps) & step_one_sum) == 0) leaves.y = T(leaf)(what, norm, u, vkrope_small);
    return leaves;
}

// Exchanges the units of `round_heads` heads of each lane from head number `first` on, and adds
// them as far as the stages of a tree go.
void T(exchange_units)(uint what, T(Share) share, VkropeNorm norm, uint first) {
    barrier();  // the sums before these have been read
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
    barrier();
    for (uint stage = 0; stage < T(stages); ++stage) {
        for (uint i = 0; i < T(round_heads); ++i) {
            const uint row = share.token_lane * T(round_rows) + share.head_lane + i * head_lanes;
            vkrope_shared_stage(vkrope_shared_sums(row * T(units), T(units), stage),
                                share.step_lane, step_lanes);
        }
        barrier();
    }
}

// The sum of a row of exchanged units.
vec2 T(row_sum)(uint row) {
    return vkrope_shared_rest(T(levels), vkrope_shared_sums(row * T(units), T(units), T(stages)));
}

vec2 T(shared_sums)(uint what, T(Share) share, VkropeNorm norm) {
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
(Token token, uint index, uint z, uint step_lane, uint head_lane, uint token_lane, bool in_call) {
    T(Share) share;
    share.token = token;
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
    bool has = VKROPE_TENSOR_HEADS != 0;
    if (T(whole_token)) has = has && gl_WorkGroupID.y == 0;
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
    for (uint n = 0; n < T(lane_row_steps); ++n) {
        const uint index = share.step_lane + n * step_lanes;
        Step step = share.step;
        bool turns = false;
#if VKROPE_TENSOR_TURNS
        turns = index < rotating;
        if (turns) {
            if (T(lane_row_steps) != 1) step = rotating_step(share.token, pairs_of(index));
            step = T(turned_step)(step);
        }
#endif
        if (!turns) step = T(copied_step)(index);
        T(StepParameters) p;
        if (index < T(row_steps)) T(load_step_parameters)(shape_channel, step, 0, p);
        for (uint i = 0; i < T(lane_heads); ++i) {
            const uint head = T(shared_head)(share, i);
            if (share.stores && index < T(row_steps) && head < VKROPE_TENSOR_HEADS) {
                Words A = share.a, B = share.b;
                if (T(many_steps) != 0) T(load_shared_step)(share, index, head, A, B);
                const uint to = share.to + head * VKROPE_PUSH.VKROPE_TENSOR_SIDE(out).head;
                T(load_step_parameters)(shape_head_channel, step, head, p);
                T(finish_units)(turns, step, A, B, to, p, norm, share.token_factor);
            }
        }
    }
}
