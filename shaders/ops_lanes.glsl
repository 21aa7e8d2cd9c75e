// SPDX-License-Identifier: MIT
// Processes the rows of a lane in kernels with ops: whole rows of tokens, or a share of them. Needs
// chunks.glsl, norm.glsl, tensor.glsl for the tensors q_, k_ and v_, and the files that those need.
// Declares no binding, push constant or workgroup size. Define these macros first:
//
//   VKROPE_OUT_OF_RANGE_WORD(index)  the counter of tokens outside a table or cache: uint
//   VKROPE_PRESENT_TOKENS            with token_count: tokens of this dispatch that exist
#ifndef VKROPE_OPS_LANES_GLSL
#define VKROPE_OPS_LANES_GLSL

#ifndef VKROPE_OUT_OF_RANGE_WORD
#error "ops_lanes.glsl: define VKROPE_OUT_OF_RANGE_WORD(index)"
#endif
#ifndef VKROPE_PRESENT_TOKENS
#error "ops_lanes.glsl: define VKROPE_PRESENT_TOKENS"
#endif
#if !defined(VKROPE_CHUNKS_GLSL) || !defined(VKROPE_NORM_GLSL)
#error "ops_lanes.glsl: include chunks.glsl, norm.glsl and tensor.glsl first"
#endif

// Returns the index of a token, counted over all sequences.
uint token_of_call(const uint index, const uint z) {
    return vkrope_has(flag_z_is_group) ? index : index + z * VKROPE_PUSH.tokens;
}

// Applies the ops to the heads `head_lane`, head_lane + apart, ... of a token.
void ops_rows(const uint index, const uint z, const uint head_lane, const uint apart) {
    const Token token = vkrope_token_of_cache(index, z);
    const uint q_heads = VKROPE_PUSH.heads & 0xffffu, k_heads = VKROPE_PUSH.heads >> 16;
    const uint q_row = q_from(index, z), k_row = k_source(index, z), v_row = v_source(index, z);
    const uint q_there = q_to(index, z, token), k_there = k_to(index, z, token),
               v_there = v_to(index, z, token);
    const float q_factor = q_token_factor(index, z), k_factor = k_token_factor(index, z),
                v_factor = v_token_factor(index, z);
    uint k_stored = token.stored ? k_heads : 0, v_stored = k_stored;
    if (k_second_of != second_none) {
        k_begin_second(token_of_call(index, z), token.stored);
        if (vkrope_has(flag_second)) k_stored = k_heads;
    }
    if (v_second_of != second_none) {
        v_begin_second(token_of_call(index, z), token.stored);
        if (vkrope_has(flag_second)) v_stored = k_heads;
    }
    if (k_keeps != 0) {
        if (k_kept(token) && k_in_place()) k_stored = 0;
    }
    if (k_scales_read != 0) k_source_token = token_of_call(index, z);
    if (v_scales_read != 0) v_source_token = token_of_call(index, z);
    if (!vkrope_has(flag_v)) v_stored = 0;
    const uint heads = max(q_heads, max(k_stored, v_stored));
    for (uint first = head_lane; first < heads; first += apart * norms_held) {
        if (q_head_dim != 0) q_hold_norms(token, q_row, first, apart, q_heads);
        if (k_head_dim != 0) k_hold_norms(token, k_row, first, apart, k_stored);
        if (rotating != 0) {  // pruning removes this code, but not the code of a loop
            for (uint n = 0; n < rotating; ++n) {
                const Chunk chunk = rotating_chunk(token, pairs_of(n));
                if (q_head_dim != 0)
                    q_ops_heads(true, q_shifted_chunk(chunk), q_row, q_there, first, apart, q_heads,
                                q_factor);
                if (k_head_dim != 0)
                    k_ops_heads(true, k_shifted_chunk(chunk), k_row, k_there, first, apart,
                                k_stored, k_factor);
            }
        }
        if (q_copying != 0) q_ops_copied(q_row, q_there, first, apart, q_heads, q_factor);
        if (k_copying != 0) k_ops_copied(k_row, k_there, first, apart, k_stored, k_factor);
        if (v_head_dim != 0) {
            v_hold_norms(token, v_row, first, apart, v_stored);
            v_ops_copied(v_row, v_there, first, apart, v_stored, v_factor);
        }
    }
    if (counter != 0) {
        if (head_lane == 0 && vkrope_counts(token, z))
            atomicAdd(VKROPE_OUT_OF_RANGE_WORD(VKROPE_OFFSET(offset_out_of_range)), 1);
    }
}

// Processes a lane's share of the rows of a token. Lanes without a token process the last token and
// store nothing. The workgroup must have a token.
void ops_shares(const uint chunk_lane, const uint head_lane, const uint token_lane) {
    const uint wanted = gl_WorkGroupID.x * group_tokens + token_lane, z = gl_WorkGroupID.z;
    bool in_call = wanted < VKROPE_PUSH.tokens;
    uint index = min(wanted, VKROPE_PUSH.tokens - 1);
    if (token_count != 0) {
        in_call = wanted < VKROPE_PRESENT_TOKENS;
        index = min(wanted, VKROPE_PRESENT_TOKENS - 1);
    }
    const Token token = vkrope_token_of_cache(index, z);
    q_Share q = q_begin_share(token, index, z, chunk_lane, head_lane, token_lane, in_call);
    k_Share k = k_begin_share(token, index, z, chunk_lane, head_lane, token_lane, in_call);
    v_Share v = v_begin_share(token, index, z, chunk_lane, head_lane, token_lane, in_call);
    if (q_head_dim != 0) {
        if (q_has_share()) q_load_share(q);
    }
    if (k_head_dim != 0) {
        if (k_has_share()) k_load_share(k);
    }
    if (v_head_dim != 0) {
        if (v_has_share() && vkrope_has(flag_v)) v_load_share(v);
    }
    if (rotating != 0) {
        if (rotating >= chunk_lanes || chunk_lane < rotating)
            q.chunk = k.chunk = rotating_chunk(token, pairs_of(chunk_lane));
    }
    if (q_head_dim != 0) {
        if (q_has_share()) q_ops_rounds(q);
    }
    if (k_head_dim != 0) {
        if (k_has_share()) k_ops_rounds(k);
    }
    if (v_head_dim != 0) {
        if (v_has_share() && vkrope_has(flag_v)) v_ops_rounds(v);
    }
    if (counter != 0) {
        if (gl_WorkGroupID.y == 0 && chunk_lane == 0 && head_lane == 0 && in_call &&
            vkrope_counts(token, z))
            atomicAdd(VKROPE_OUT_OF_RANGE_WORD(VKROPE_OFFSET(offset_out_of_range)), 1);
    }
}

// log2 of the number of lanes that share the heads of a token in a call of few tokens, where lanes
// would otherwise be idle. One lane alone computes a norm over a token, because in place another
// lane would overwrite the words that the lane reads.
const uint spread_log2 = 3;

void ops_lane() {
    const uint lane = gl_LocalInvocationID.x;
    if (ops == ops_shared) {
        const uint chunk_lane = lane % chunk_lanes, head_lane = lane / chunk_lanes % head_lanes,
                   token_lane = lane / (chunk_lanes * head_lanes);
        if (token_count == 0) {
            ops_shares(chunk_lane, head_lane, token_lane);
        } else if (gl_WorkGroupID.x * group_tokens < VKROPE_PRESENT_TOKENS) {
            // All lanes of the workgroup take this branch, which has barriers, or none does.
            ops_shares(chunk_lane, head_lane, token_lane);
        }
    } else {
        uint apart_log2 = 0;
        if (((q_ops | k_ops | v_ops) & op_token) == 0) {
            if (VKROPE_PUSH.tokens <= group_tokens / (1u << spread_log2)) apart_log2 = spread_log2;
        }
        const uint apart = 1u << apart_log2;
        const uint index = gl_WorkGroupID.x * group_tokens + (lane >> apart_log2);
        if (token_count != 0) {
            if (index < VKROPE_PRESENT_TOKENS)
                ops_rows(index, gl_WorkGroupID.z, lane & (apart - 1u), apart);
        } else if (index < VKROPE_PUSH.tokens) {
            ops_rows(index, gl_WorkGroupID.z, lane & (apart - 1u), apart);
        }
    }
}

#endif
