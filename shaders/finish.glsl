// SPDX-License-Identifier: MIT
// What happens to the rows of one tensor besides their rotation: bias, norm before, clip, (rotate),
// norm after, scale. Included by tensor.glsl for each tensor, with its macros and these:
//
//   T(steps), T(row_heads), ...              the constants of VKROPE_CONSTANTS
//   VKROPE_PARAMETER_WORD(index), _QUAD      the parameters, as f32 bits
//   VKROPE_TENSOR_SCALE_WORD(index)          the factors of tokens
//   VKROPE_TENSOR_SCALE_AT                   offset_q_scales, offset_k_scales or offset_v_scales
//   VKROPE_EXCHANGED(index)                  sums that the lanes of a workgroup share: vec2
//
// A row has T(row_steps) steps of two units: the rotated ones, then the copied ones. Two ways lead
// through it. A lane that owns its rows sums them first and then takes the steps one by one, each
// in all of its heads, so that it fetches angles once. Lanes that share a row exchange the sums of
// their units.

const uint T(norm) = T(steps) & (step_rms | step_layer);
const uint T(units) = T(head_dim) / unit_elements;
const uint T(levels) = VKROPE_LEVELS(T(units));
const uint T(head_levels) = VKROPE_LEVELS(T(row_heads));
#if VKROPE_TENSOR_TURNS
const uint T(row_steps) = rotating + T(copying);
#else
const uint T(row_steps) = T(copying);
#endif
const bool T(norm_before) = (T(steps) & step_before) != 0;
const bool T(norm_after) = (T(steps) & step_after) != 0;
const bool T(whole_token) = (T(steps) & step_token) != 0;

// Steps with channels that count from the start of the row: the copied step `index`, and a step
// that turns.
Step T(copied_step)(uint index) {
    Step step;
    step.from = step.to = T(copied_channels)(index - (T(row_steps) - T(copying)));
    step.rotates = false;
    step.c = step.s = Unit(vec4(0), vec4(0));
    return step;
}

Step T(turned_step)(Step step) {
#if VKROPE_TENSOR_TURNS
    step.from += T(rotary_offset);
    step.to += T(rotary_offset);
#endif
    return step;
}

// ---- The steps of a unit ----

// The first head of this dispatch, counted over the whole call, plus `head`.
uint T(absolute_head)(uint head) {
    uint first = VKROPE_PUSH.flags / flag_first_head;
    if (vkrope_has(flag_z_is_group)) first += gl_WorkGroupID.z * VKROPE_TENSOR_HEADS;
    return first + head;
}

Unit T(parameters)(uint shape, uint at, uint head, uint channel) {
    uint index = VKROPE_OFFSET(offset_parameters) + at + channel;
    if (shape == shape_head_channel) index += T(absolute_head)(head) * T(head_dim);
    uvec4 a = uvec4(0), b = uvec4(0);
    if (unit_elements >= 4) {
        a = VKROPE_PARAMETER_QUAD(index / 4);
        if (unit_elements == 8) b = VKROPE_PARAMETER_QUAD(index / 4 + 1);
    } else {
        a.x = VKROPE_PARAMETER_WORD(index);
        if (unit_elements == 2) a.y = VKROPE_PARAMETER_WORD(index + 1);
    }
    return Unit(uintBitsToFloat(a), uintBitsToFloat(b));
}

// The parameters of a unit. Those that all heads share are loaded once for all of them.
struct T(Parameters) {
    Unit bias, weight, norm_bias;
};

// Loads what is of one of these shapes.
void T(load_parameters)(uint shape, uint head, uvec2 channels, inout T(Parameters) p) {
    if (T(bias) == shape) p.bias = T(parameters)(shape, T(bias_at), head, channels.x);
    if (T(weight) == shape) p.weight = T(parameters)(shape, T(weight_at), head, channels.y);
    if (T(norm_bias) == shape)
        p.norm_bias = T(parameters)(shape, T(norm_bias_at), head, channels.y);
}

// A unit as f32, plus its bias.
Unit T(biased)(Words w, uint head, uint channel) {
    Unit u = vkrope_decode(T(element_in), w);
    if (T(bias) != shape_none) u = vkrope_sum(u, T(parameters)(T(bias), T(bias_at), head, channel));
    return u;
}

Unit T(rounded)(Unit u) {
    if ((T(steps) & step_rounds) != 0)
        u = vkrope_decode(T(element_in), vkrope_encode(T(element_in), u));
    return u;
}

Unit T(normed)(VkropeNorm norm, Unit u, T(Parameters) p) {
    if (T(norm) == step_layer) u = vkrope_centred(u, norm.scale, norm.mean);
    if ((T(steps) & step_one_sum) == 0) u = vkrope_scale(u, norm.scale_d);
    if (T(norm) == step_layer) u = vkrope_centred(u, 1.0, norm.rest);
    u = T(rounded)(vkrope_scale(u, norm.root));
    if (T(weight) != shape_none) u = T(rounded)(vkrope_product(u, p.weight));
    if (T(norm_bias) != shape_none) u = vkrope_sum(u, p.norm_bias);
    return u;
}

// Clips the two units of a step, and rotates them if it turns.
void T(clip_and_turn)(bool turns, Step step, inout Unit a, inout Unit b) {
    if ((T(steps) & step_clip) != 0) {
        a = vkrope_clip(a, uintBitsToFloat(T(clip)));
        b = vkrope_clip(b, uintBitsToFloat(T(clip)));
    }
    if (turns) {
        Unit x0, x1, y0, y1;
        vkrope_to_pairs(pairing, unit_elements, a, b, x0, x1);
        vkrope_rotate(x0, x1, step.c, step.s, y0, y1);
        y0 = vkrope_either(step.rotates, y0, x0);
        y1 = vkrope_either(step.rotates, y1, x1);
        vkrope_from_pairs(pairing_out, unit_elements, y0, y1, a, b);
    }
}

// The factor of a token.
float T(token_factor)(uint index, uint z) {
    float factor = 1.0;
    if ((T(steps) & step_scale_tokens) != 0) {
        if (!vkrope_has(flag_z_is_group)) index += z * VKROPE_PUSH.tokens;
        factor = uintBitsToFloat(
            VKROPE_TENSOR_SCALE_WORD(VKROPE_OFFSET(VKROPE_TENSOR_SCALE_AT) + index));
    }
    return factor;
}

Unit T(scaled)(Unit u, float token_factor) {
    if ((T(steps) & step_scale_call) != 0)
        u = vkrope_scale(u, uintBitsToFloat(VKROPE_PUSH.q_scale));
    else if ((T(steps) & step_scale) != 0)
        u = vkrope_scale(u, uintBitsToFloat(T(factor)));
    if ((T(steps) & step_scale_tokens) != 0) u = vkrope_scale(u, token_factor);
    return u;
}

// The parameters of the two units of a step.
struct T(StepParameters) {
    T(Parameters) a, b;
};

void T(load_step_parameters)(uint shape, Step step, uint head, inout T(StepParameters) p) {
    // Biases are of the input's channels, and so are weights before the rotation.
    const uvec2 weighed = T(norm_after) ? step.to : step.from;
    T(load_parameters)(shape, head, uvec2(step.from.x, weighed.x), p.a);
    T(load_parameters)(shape, head, uvec2(step.from.y, weighed.y), p.b);
}

// All steps of two units, from their words to the store. Without any, a unit that does not rotate
// keeps its bits if its type and pairing stay.
void T(finish_units)(bool turns, Step step, Words A, Words B, uint to, T(StepParameters) p,
                     VkropeNorm norm, float token_factor) {
    Unit a = vkrope_decode(T(element_in), A), b = vkrope_decode(T(element_in), B);
    if (T(bias) != shape_none) {
        a = vkrope_sum(a, p.a.bias);
        b = vkrope_sum(b, p.b.bias);
    }
    if (T(norm_before)) {
        a = T(normed)(norm, a, p.a);
        b = T(normed)(norm, b, p.b);
    }
    T(clip_and_turn)(turns, step, a, b);
    if (T(norm_after)) {
        a = T(normed)(norm, a, p.a);
        b = T(normed)(norm, b, p.b);
    }
    Words P = vkrope_encode(T(element_out), T(scaled)(a, token_factor)),
          Q = vkrope_encode(T(element_out), T(scaled)(b, token_factor));
    if (T(steps) == 0 && T(bias) == shape_none) {
        if (pairing == pairing_out && T(element_in) == T(element_out)) {
            if (!turns || !step.rotates) {
                P = A;
                Q = B;
            }
        }
    }
    T(store)(to + step.to.x, P);
    T(store)(to + step.to.y, Q);
}

// ---- Sums ----

// What a norm sums: for a layer norm values, then differences, then their squares; for an RMS norm
// squares of values.
float T(leaf)(uint what, VkropeNorm norm, Unit u, float scale) {
    if (T(norm) == step_layer && what != sum_values) u = vkrope_centred(u, norm.scale, norm.mean);
    if ((T(steps) & step_one_sum) == 0) u = vkrope_scale(u, scale);
    if (what == sum_squares) u = vkrope_squares(u);
    return vkrope_unit_sum(unit_elements, u);
}

// Channels of the two units of a step, in the input.
uvec2 T(row_channels)(uint index) {
    uvec2 channels;
#if VKROPE_TENSOR_TURNS
    if (index < rotating)
        channels = channels_of(pairing, pairs_of(index)) + T(rotary_offset);
    else
#endif
        channels = T(copied_channels)(index - (T(row_steps) - T(copying)));
    return channels;
}

// Two units of a row as a norm takes them, and their numbers in the row.
struct T(Summed) {
    uvec2 units;
    Unit a, b;
};

T(Summed) T(summed_of)(Token token, uint index, Words A, Words B, uint head) {
    uvec2 channels = T(row_channels)(index);
    Unit a = T(biased)(A, head, channels.x), b = T(biased)(B, head, channels.y);
    if (T(norm_after)) {
        Step step;
#if VKROPE_TENSOR_TURNS
        if (index < rotating) {
            step = T(turned_step)(rotating_step(token, pairs_of(index)));
            T(clip_and_turn)(true, step, a, b);
            channels = step.to;
        } else
#endif
            T(clip_and_turn)(false, step, a, b);
    }
    return T(Summed)(channels / unit_elements, a, b);
}

// ---- A lane that owns its rows ----

// Sums that wait to be added: of units, if they do not come in order, and of heads.
const uint T(owned_units) = T(norm_after) ? T(units) : 1;
float T(unit_sums)[T(owned_units)];
float T(head_sums)[T(row_heads)];
VkropeNorm T(norms)[norms_held];

float T(owned_head)(uint what, Token token, uint from, uint head, VkropeNorm norm, float scale) {
    const uint row = from + head * VKROPE_PUSH.VKROPE_TENSOR_SIDE(in).head;
    if (T(norm_after)) {
        for (uint index = 0; index < T(row_steps); ++index) {
            const uvec2 at = row + T(row_channels)(index);
            const T(Summed) summed = T(summed_of)(token, index, T(load)(at.x), T(load)(at.y), head);
            T(unit_sums)[summed.units.x] = T(leaf)(what, norm, summed.a, scale);
            T(unit_sums)[summed.units.y] = T(leaf)(what, norm, summed.b, scale);
        }
    }
    float sum = 0;
    for (uint unit = 0; unit < T(units); ++unit) {
        float leaf;
        if (T(norm_after)) {
            leaf = T(unit_sums)[unit];
        } else {
            const uint channel = unit * unit_elements;
            leaf = T(leaf)(what, norm, T(biased)(T(load)(row + channel), head, channel), scale);
        }
        sum = vkrope_tree_add(T(levels), unit, leaf);
    }
    for (uint unit = T(units); unit < 1u << T(levels); ++unit)
        sum = vkrope_tree_add(T(levels), unit, 0.0);
    return sum;
}

// Of a head, or of all heads of its token.
float T(owned_sum)(uint what, Token token, uint from, uint head, VkropeNorm norm, float scale) {
    float sum = 0;
    if (T(whole_token)) {
        for (uint each = 0; each < T(row_heads); ++each)
            T(head_sums)[each] = T(owned_head)(what, token, from, each, norm, scale);
        for (uint each = 0; each < 1u << T(head_levels); ++each) {
            float leaf = 0;
            if (each < T(row_heads)) leaf = T(head_sums)[each];
            sum = vkrope_tree_add(T(head_levels), each, leaf);
        }
    } else {
        sum = T(owned_head)(what, token, from, head, norm, scale);
    }
    return sum;
}

// The sum, and if it is not finite the sum of scaled values too. A loop, not a branch: software
// devices run both sides of a branch, and a loop only while a lane needs it.
vec2 T(owned_sums)(uint what, Token token, uint from, uint head, VkropeNorm norm) {
    vec2 sums = vec2(0);
    uint rounds = 1;
    float scale = 1;
    for (uint round = 0; round < rounds; ++round) {
        const float sum = T(owned_sum)(what, token, from, head, norm, scale);
        if (round == 0) {
            sums = vec2(sum);
            if ((T(steps) & step_one_sum) == 0) {
                if (!vkrope_is_finite(sum)) rounds = 2;
            }
        } else {
            sums.y = sum;
        }
        scale = vkrope_small;
    }
    return sums;
}

VkropeNorm T(owned_norm)(Token token, uint from, uint head) {
    VkropeNorm norm = vkrope_no_norm();
    const float inverse_n = uintBitsToFloat(T(inverse_n));
    vec2 sums = vec2(0);
    if (T(norm) == step_layer) {
        vkrope_set_mean(norm, T(owned_sums)(sum_values, token, from, head, norm), inverse_n);
        sums = T(owned_sums)(sum_differences, token, from, head, norm);
    }
    vkrope_set_root(norm, sums, T(owned_sums)(sum_squares, token, from, head, norm), inverse_n,
                    uintBitsToFloat(T(eps)));
    return norm;
}

// Holds the norms of the heads first, first + head_lanes, ... below `heads`.
void T(hold_norms)(Token token, uint from, uint first, uint heads) {
    if (T(norm) != 0) {
        if (T(whole_token)) {
            if (first < heads) T(norms)[0] = T(owned_norm)(token, from, 0);
        } else {
            for (uint i = 0; i < norms_held && first + i * head_lanes < heads; ++i)
                T(norms)[i] = T(owned_norm)(token, from, first + i * head_lanes);
        }
    }
}

// One step in these heads.
void T(finish_heads)(bool turns, Step step, uint from, uint to, uint first, uint heads,
                     float token_factor) {
    T(StepParameters) p;
    T(load_step_parameters)(shape_channel, step, first, p);
    for (uint i = 0; i < norms_held && first + i * head_lanes < heads; ++i) {
        const uint head = first + i * head_lanes;
        const uint at = from + head * VKROPE_PUSH.VKROPE_TENSOR_SIDE(in).head,
                   there = to + head * VKROPE_PUSH.VKROPE_TENSOR_SIDE(out).head;
        const Words A = T(load)(at + step.from.x), B = T(load)(at + step.from.y);
        VkropeNorm norm = vkrope_no_norm();
        if (T(norm) != 0) norm = T(norms)[T(whole_token) ? 0 : i];
        T(load_step_parameters)(shape_head_channel, step, head, p);
        T(finish_units)(turns, step, A, B, there, p, norm, token_factor);
    }
}

void T(finish_copied)(uint from, uint to, uint first, uint heads, float token_factor) {
    for (uint index = T(row_steps) - T(copying); index < T(row_steps); ++index) {
        T(finish_heads)(false, T(copied_step)(index), from, to, first, heads, token_factor);
    }
}

// ---- Lanes that share a row ----

const uint T(lane_heads) = T(whole_token) ? (T(row_heads) + head_lanes - 1) / head_lanes : 1;
const uint T(token_rows) = T(whole_token) ? T(row_heads) : head_lanes;
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

// The tree over `count` shared sums from `at` on: part 0 of values, part 1 of scaled ones.
float T(shared_tree)(uint levels, uint at, uint count, uint part) {
    float sum = 0;
    for (uint leaf = 0; leaf < count; ++leaf)
        sum = vkrope_tree_add(levels, leaf, VKROPE_EXCHANGED(at + leaf)[part]);
    for (uint leaf = count; leaf < 1u << levels; ++leaf) sum = vkrope_tree_add(levels, leaf, 0.0);
    return sum;
}

vec2 T(shared_trees)(uint levels, uint at, uint count) {
    vec2 sums = vec2(T(shared_tree)(levels, at, count, 0));
    if ((T(steps) & step_one_sum) == 0) sums.y = T(shared_tree)(levels, at, count, 1);
    return sums;
}

vec2 T(leaves)(uint what, VkropeNorm norm, Unit u) {
    vec2 leaves = vec2(T(leaf)(what, norm, u, 1.0));
    if ((T(steps) & step_one_sum) == 0) leaves.y = T(leaf)(what, norm, u, vkrope_small);
    return leaves;
}

vec2 T(shared_sums)(uint what, T(Share) share, VkropeNorm norm) {
    barrier();  // the sums before these have been read
    for (uint i = 0; i < T(lane_heads); ++i) {
        const uint head = T(shared_head)(share, i);
        const uint row = share.token_lane * T(token_rows) + share.head_lane + i * head_lanes;
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
    vec2 sums;
    if (T(whole_token)) {
        const uint heads_at = group_tokens * T(row_heads) * T(units) +
                              share.token_lane * T(row_heads);
        for (uint i = 0; i < T(lane_heads); ++i) {
            const uint head = share.head_lane + i * head_lanes;
            if (share.step_lane == 0 && head < T(row_heads)) {
                const uint row = share.token_lane * T(row_heads) + head;
                VKROPE_EXCHANGED(heads_at + head) = T(shared_trees)(T(levels), row * T(units),
                                                                    T(units));
            }
        }
        barrier();
        sums = T(shared_trees)(T(head_levels), heads_at, T(row_heads));
    } else {
        sums = T(shared_trees)(
            T(levels), (share.token_lane * head_lanes + share.head_lane) * T(units), T(units));
    }
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
