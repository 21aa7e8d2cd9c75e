// SPDX-License-Identifier: MIT
// Rotates Q and K and copies V: index -> load -> rotate -> store. Every kernel uses this module:
// host/kernel specialises it, and prunes the code that constants exclude. A branch on a constant
// therefore decides which buffers are bound; put its condition in a separate `if`.
//
// A workgroup has one or more tokens. Its lanes divide the chunks and heads of each token. A lane
// reads the angles of its chunk once for all its heads of a tensor, or of Q and K. It loads each
// word once, before it stores the word, so that in-place calls need no special code. x counts
// blocks of tokens, y groups of heads of a token, z sequences or groups of heads.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_control_flow_attributes : require

#include "interface.h"

layout(local_size_x_id = 0) in;
#define VKROPE_DECLARE(id, name, otherwise) layout(constant_id = id) const uint name = otherwise;
VKROPE_CONSTANTS(VKROPE_DECLARE)

layout(push_constant, std430) uniform PushBlock {
    Push push;
};

// clang-format off
#define VKROPE_BUFFER(access, number, type, name) \
    layout(set = 0, binding = number, std430) access buffer name##_block { type name[]; };
// Each tensor has three views, the table and the weights have two. A specialised pipeline uses one
// of them, or one for the channels that rotate and another for those that are copied.
VKROPE_BUFFER(readonly, binding_q_in, uvec4, q_in_wide)
VKROPE_BUFFER(readonly, binding_q_in, uvec2, q_in_pair)
VKROPE_BUFFER(readonly, binding_q_in, uint, q_in_word)
VKROPE_BUFFER(, binding_q_out, uvec4, q_out_wide)
VKROPE_BUFFER(, binding_q_out, uvec2, q_out_pair)
VKROPE_BUFFER(, binding_q_out, uint, q_out_word)
VKROPE_BUFFER(readonly, binding_k_in, uvec4, k_in_wide)
VKROPE_BUFFER(readonly, binding_k_in, uvec2, k_in_pair)
VKROPE_BUFFER(readonly, binding_k_in, uint, k_in_word)
VKROPE_BUFFER(, binding_k_out, uvec4, k_out_wide)
VKROPE_BUFFER(, binding_k_out, uvec2, k_out_pair)
VKROPE_BUFFER(, binding_k_out, uint, k_out_word)
VKROPE_BUFFER(readonly, binding_v_in, uvec4, v_in_wide)
VKROPE_BUFFER(readonly, binding_v_in, uvec2, v_in_pair)
VKROPE_BUFFER(readonly, binding_v_in, uint, v_in_word)
VKROPE_BUFFER(, binding_v_out, uvec4, v_out_wide)
VKROPE_BUFFER(, binding_v_out, uvec2, v_out_pair)
VKROPE_BUFFER(, binding_v_out, uint, v_out_word)
VKROPE_BUFFER(readonly, binding_parameters, uvec4, parameters_wide)
VKROPE_BUFFER(readonly, binding_parameters, uint, parameters_word)
VKROPE_BUFFER(readonly, binding_q_weight, uvec4, q_weight_wide)
VKROPE_BUFFER(readonly, binding_q_weight, uint, q_weight_word)
VKROPE_BUFFER(readonly, binding_k_weight, uvec4, k_weight_wide)
VKROPE_BUFFER(readonly, binding_k_weight, uint, k_weight_word)
VKROPE_BUFFER(readonly, binding_v_weight, uvec4, v_weight_wide)
VKROPE_BUFFER(readonly, binding_v_weight, uint, v_weight_word)
VKROPE_BUFFER(readonly, binding_q_scales, uint, q_scales)
VKROPE_BUFFER(readonly, binding_k_scales, uint, k_scales)
VKROPE_BUFFER(readonly, binding_v_scales, uint, v_scales)
VKROPE_BUFFER(, binding_q_scales_out, uint, q_scales_out)
VKROPE_BUFFER(, binding_k_scales_out, uint, k_scales_out)
VKROPE_BUFFER(, binding_v_scales_out, uint, v_scales_out)
VKROPE_BUFFER(, binding_k_second, uvec4, k_second_wide)
VKROPE_BUFFER(, binding_k_second, uvec2, k_second_pair)
VKROPE_BUFFER(, binding_k_second, uint, k_second_word)
VKROPE_BUFFER(, binding_v_second, uvec4, v_second_wide)
VKROPE_BUFFER(, binding_v_second, uvec2, v_second_pair)
VKROPE_BUFFER(, binding_v_second, uint, v_second_word)
VKROPE_BUFFER(readonly, binding_ids, uint, ids)
VKROPE_BUFFER(readonly, binding_slot_mapping, uint, slot_mapping)
VKROPE_BUFFER(readonly, binding_source_mapping, uint, source_mapping)
VKROPE_BUFFER(readonly, binding_k_scales_in, uint, k_scales_in)
VKROPE_BUFFER(readonly, binding_v_scales_in, uint, v_scales_in)
VKROPE_BUFFER(readonly, binding_table, uvec4, table_wide)
VKROPE_BUFFER(readonly, binding_table, uint, table_word)
VKROPE_BUFFER(readonly, binding_table_sin, uint, table_sin)
VKROPE_BUFFER(, binding_out_of_range, uint, out_of_range)
VKROPE_BUFFER(readonly, binding_token_count, uint, counted_tokens)
layout(set = 0, binding = binding_turns, std140) uniform Turns {
    uvec4 turns[turn_header_vec4s + (rotary_dim / 2 + 1) / 2 * head_groups *
                                        (phase + (section_order == sections_sum ? axes : 1))];
};
layout(set = 0, binding = binding_texture) uniform texture2D angle_texture;
// clang-format on
shared float exchange[exchanged];  // sums of the units of rows
shared uint staged_words[staged];  // rows that lanes store together

#define VKROPE_PUSH push
#define VKROPE_CONVERSION conversion
#define VKROPE_RARE_BRANCHES (rare_branches != 0)
#define VKROPE_UNROLL [[unroll]]
#define VKROPE_ANGLE_TEXTURE angle_texture
#define VKROPE_ANGLE_WORD(index) table_word[index]
#define VKROPE_ANGLE_QUAD(index) table_wide[index]
#define VKROPE_ANGLE_QUADS (access == access_wide)
#define VKROPE_SIN_WORD(index) table_sin[index]
#define VKROPE_TURN_WORDS(index) turns[index]
#define VKROPE_ID_WORD(index) ids[index]
#define VKROPE_SLOT_WORD(index) slot_mapping[index]
#define VKROPE_SOURCE_WORD(index) source_mapping[index]
#define VKROPE_OUT_OF_RANGE_WORD(index) out_of_range[index]
#define VKROPE_PARAMETER_WORD(index) parameters_word[index]
#define VKROPE_PARAMETER_QUAD(index) parameters_wide[index]
#define VKROPE_EXCHANGED(index) exchange[index]
#define VKROPE_STAGED(index) staged_words[index]
#define VKROPE_STAGED_GAPS staged_gaps

#include "element.glsl"
#include "pairing.glsl"
#include "turns.glsl"
#include "angles.glsl"
#include "sections.glsl"
#include "token.glsl"
#include "chunks.glsl"
#include "norm.glsl"
#include "shared_sums.glsl"
#include "hadamard.glsl"
#include "quantise.glsl"
#include "blocks.glsl"
#include "dequantise.glsl"
#include "staging.glsl"

// Functions have one return and few callers, because compilers inline all of them.

ChunkWords after_q(const ChunkWords words);
ChunkWords after_k(const ChunkWords words);

#define VKROPE_TENSOR(name) q_##name
#define VKROPE_TENSOR_ROTATES 1
#define VKROPE_TENSOR_LAYOUT(end) q_##end
#define VKROPE_TENSOR_AT(end) offset_q_##end
#define VKROPE_TENSOR_HEADS (push.heads & 0xffffu)
#define VKROPE_TENSOR_IN_PLACE flag_q_in_place
#define VKROPE_TENSOR_AFTER(words) after_q(words)
#define VKROPE_TENSOR_WEIGHT_WORD(index) q_weight_word[index]
#define VKROPE_TENSOR_WEIGHT_QUAD(index) q_weight_wide[index]
#define VKROPE_TENSOR_SCALE_AT offset_q_scales
#define VKROPE_TENSOR_SCALE_WORD(index) q_scales[index]
#define VKROPE_TENSOR_SCALES_OUT_AT VKROPE_OFFSET(offset_q_scales_out)
#define VKROPE_TENSOR_SCALES_OUT_WORD(index) q_scales_out[index]
#define VKROPE_TENSOR_SCATTERS false
#define VKROPE_TENSOR_OF_CACHE 0
#include "tensor.glsl"

#define VKROPE_TENSOR(name) k_##name
#define VKROPE_TENSOR_ROTATES 1
#define VKROPE_TENSOR_LAYOUT(end) k_##end
#define VKROPE_TENSOR_AT(end) offset_k_##end
#define VKROPE_TENSOR_HEADS (push.heads >> 16)
#define VKROPE_TENSOR_IN_PLACE flag_k_in_place
#define VKROPE_TENSOR_AFTER(words) after_k(words)
#define VKROPE_TENSOR_WEIGHT_WORD(index) k_weight_word[index]
#define VKROPE_TENSOR_WEIGHT_QUAD(index) k_weight_wide[index]
#define VKROPE_TENSOR_SCALE_AT offset_k_scales
#define VKROPE_TENSOR_SCALE_WORD(index) k_scales[index]
#define VKROPE_TENSOR_SCALES_IN_AT VKROPE_OFFSET(offset_k_scales_in)
#define VKROPE_TENSOR_SCALES_IN_WORD(index) k_scales_in[index]
#define VKROPE_TENSOR_SCALES_OUT_AT VKROPE_OFFSET(offset_k_scales_out)
#define VKROPE_TENSOR_SCALES_OUT_WORD(index) k_scales_out[index]
#define VKROPE_TENSOR_SCATTERS (scatter != 0)
#define VKROPE_TENSOR_OF_CACHE 1
#include "tensor.glsl"

#define VKROPE_TENSOR(name) v_##name
#define VKROPE_TENSOR_ROTATES 0
#define VKROPE_TENSOR_LAYOUT(end) k_##end
#define VKROPE_TENSOR_AT(end) offset_v_##end
#define VKROPE_TENSOR_HEADS (push.heads >> 16)
#define VKROPE_TENSOR_IN_PLACE 0
#define VKROPE_TENSOR_AFTER(words) words
#define VKROPE_TENSOR_WEIGHT_WORD(index) v_weight_word[index]
#define VKROPE_TENSOR_WEIGHT_QUAD(index) v_weight_wide[index]
#define VKROPE_TENSOR_SCALE_AT offset_v_scales
#define VKROPE_TENSOR_SCALE_WORD(index) v_scales[index]
#define VKROPE_TENSOR_SCALES_IN_AT VKROPE_OFFSET(offset_v_scales_in)
#define VKROPE_TENSOR_SCALES_IN_WORD(index) v_scales_in[index]
#define VKROPE_TENSOR_SCALES_OUT_AT (VKROPE_PUSH.flags / flag_v_scales_out % 64u)
#define VKROPE_TENSOR_SCALES_OUT_WORD(index) v_scales_out[index]
#define VKROPE_TENSOR_SCATTERS (scatter != 0)
#define VKROPE_TENSOR_OF_CACHE 1
#include "tensor.glsl"

// ---- A lane's share of a token ----

const uint q_heads_group = head_lanes * q_batch, k_heads_group = head_lanes * k_batch;
const bool in_batches = q_batch + k_batch != 0;
// 0 if each lane has one chunk that rotates. (glslang accepts no nested && in a constant, and turns
// || into control flow.)
const uint chunk_misfit = (lane_chunks ^ 1) | (rotating % chunk_lanes);
// 0 if channels that do not rotate are copied with the chunk of a lane, not after it.
const uint copies_misfit = chunk_misfit | few_registers;
const uint q_misfit = copies_misfit | (q_copying == 0 ? 1 : 0);
const uint k_misfit = copies_misfit | (k_copying == 0 ? 1 : 0);
// 0 if a lane copies exactly one chunk of V, loaded and stored with its chunk of K.
const uint v_misfit = chunk_misfit | (unit_elements ^ copy_elements) |
                      (v_head_dim ^ (2 * unit_elements * chunk_lanes));
// 1 if a lane loads its first head of K, and of V, before it stores its last head of Q, or of K, so
// that it keeps the words of two heads. 0 if it loads Q, K and V at once, or, with few registers,
// each tensor after the stores of the one before.
const uint loads_ahead = q_batch > 1 ? 1 : 0;
const uint k_after_q = q_head_dim == 0 ? 0 : few_registers;

struct Lane {
    uint of_token;               // its number among the lanes of its token
    uint chunk, q_head, k_head;  // first heads of Q, and of K and V
    bool has_q, has_k, has_v;
    uint q_from, k_from, v_from;  // start of their rows
};

uint q_first_head() {
    return gl_WorkGroupID.y * q_heads_group;
}
uint k_first_head() {
    return gl_WorkGroupID.y * k_heads_group;
}
uint q_end() {
    return min(push.heads & 0xffffu, q_first_head() + q_heads_group);
}
uint k_end() {
    return min(push.heads >> 16, k_first_head() + k_heads_group);
}

uvec2 q_first(const Lane lane, const uvec2 channels) {
    return q_first_units(lane.q_from, lane.q_head, channels + q_rotary_offset);
}
uvec2 k_first(const Lane lane, const uvec2 channels) {
    return k_first_units(lane.k_from, lane.k_head, channels + k_rotary_offset);
}
uvec2 v_first(const Lane lane) {
    return v_first_units(lane.v_from, lane.k_head, v_copied_channels(lane.chunk));
}

// What a lane loads ahead: its first heads of K and V, and the channels of its chunk.
Lane ahead;
bool takes_k, takes_v;
uvec2 ahead_channels;

ChunkWords after_q(const ChunkWords words) {
    ChunkWords next = words;
    if (k_head_dim != 0 && loads_ahead != 0) {
        if (takes_k) next = k_load_chunk(k_first(ahead, ahead_channels));
    }
    return next;
}

ChunkWords after_k(const ChunkWords words) {
    ChunkWords next = words;
    if (v_misfit == 0 && loads_ahead != 0) {
        if (takes_v) next = v_load_chunk(v_first(ahead));
    }
    return next;
}

// The words of a lane's first heads.
struct FirstWords {
    ChunkWords q, k, v;
};

// Loads the first heads of a chunk that are not loaded ahead: with one chunk, before all other
// accesses to memory.
void load_first_heads(const Lane lane, const uint chunk, inout FirstWords words) {
    const uvec2 channels = channels_of(pairing, pairs_of(chunk));
    if (q_head_dim != 0) {
        if (lane.has_q) words.q = q_load_chunk(q_first(lane, channels));
    }
    if (loads_ahead == 0 && k_after_q == 0) {
        if (k_head_dim != 0) {
            if (lane.has_k) words.k = k_load_chunk(k_first(lane, channels));
        }
        if (v_misfit == 0) {
            if (lane.has_v) words.v = v_load_chunk(v_first(lane));
        }
    }
}

// Rotates a chunk of Q and K, and copies one of V.
void rotate_batches(const Lane lane, const uint n, const Token token, const uint q_to,
                    const uint k_to, const uint v_to, FirstWords words) {
    const Chunk chunk = rotating_chunk(token, pairs_of(n));
    if (loads_ahead != 0) {
        ahead = lane;
        takes_k = lane.has_k && token.stored;
        takes_v = lane.has_v && token.stored;
        ahead_channels = chunk.from;
    }
    ChunkWords after = words.q;
    if (q_head_dim != 0) {
        if (q_misfit == 0)
            after = q_rotate_and_copy(words.q, chunk, lane.q_from, q_to, q_first_head(), q_end(),
                                      lane.of_token);
        else if (lane.has_q)
            after = q_rotate_batch(words.q, chunk, lane.q_from, q_to, lane.q_head, q_end());
    }
    if (k_head_dim != 0) {
        if (token.stored) {
            bool loads = k_after_q != 0;
            if (loads_ahead != 0) {
                words.k = after;
                loads = !lane.has_q;
            }
            if (loads && lane.has_k) words.k = k_load_chunk(k_first(lane, chunk.from));
            if (k_misfit == 0)
                after = k_rotate_and_copy(words.k, chunk, lane.k_from, k_to, k_first_head(),
                                          k_end(), lane.of_token);
            else if (lane.has_k)
                after = k_rotate_batch(words.k, chunk, lane.k_from, k_to, lane.k_head, k_end());
        }
    }
    if (v_misfit == 0) {
        if (lane.has_v && token.stored) {
            if (loads_ahead != 0)
                words.v = after;
            else if (k_after_q != 0)
                words.v = v_load_chunk(v_first(lane));
            v_store_batch(words.v, v_copied_channels(lane.chunk), lane.v_from, v_to, lane.k_head,
                          k_end());
        }
    }
}

Token rotate_in_batches(const Lane lane, const uint index, const uint z) {
    Token token;
    FirstWords words;
    if (chunk_misfit == 0) {
        load_first_heads(lane, lane.chunk, words);
        token = vkrope_token(index, z);
        rotate_batches(lane, lane.chunk, token, q_to(index, z, token), k_to(index, z, token),
                       v_to(index, z, token), words);
    } else {
        token = vkrope_token(index, z);
        for (uint n = 0; n < lane_chunks; ++n) {
            const uint chunk = chunk_of(lane.chunk, n);
            if (chunk < rotating) {
                load_first_heads(lane, chunk, words);
                rotate_batches(lane, chunk, token, q_to(index, z, token), k_to(index, z, token), 0,
                               words);
            }
        }
    }
    return token;
}

// Processes all channels of Q before those of K, although K needs the same angles, because the
// cache lines of all heads of one tensor stay in a CPU's cache from chunk to chunk, but those of
// two tensors may not.
Token take_all_heads(const Lane lane, const uint index, const uint z) {
    const Token token = vkrope_token(index, z);
    if (q_head_dim != 0) {
        const uint to = q_to(index, z, token);
        for (uint n = 0; n < lane_chunks; ++n) {
            const uint at = chunk_of(lane.chunk, n);
            if (uneven_chunks == 0 || at < rotating)
                q_rotate_heads(rotating_chunk(token, pairs_of(at)), lane.q_from, to,
                               push.heads & 0xffffu);
        }
        if (q_copying != 0) {
            if (lane.has_q && !q_in_place()) q_copy(lane.chunk, lane.q_from, to);
        }
    }
    if (k_head_dim != 0) {
        const uint to = k_to(index, z, token), heads = token.stored ? push.heads >> 16 : 0;
        for (uint n = 0; n < lane_chunks; ++n) {
            const uint at = chunk_of(lane.chunk, n);
            if (uneven_chunks == 0 || at < rotating)
                k_rotate_heads(rotating_chunk(token, pairs_of(at)), lane.k_from, to, heads);
        }
        if (k_copying != 0) {
            if (lane.has_k && token.stored && !k_in_place()) k_copy(lane.chunk, lane.k_from, to);
        }
    }
    return token;
}

// Copies the channels that do not rotate, but for those that were copied with a chunk. All lanes of
// a token take part, even without heads.
void copy_groups(const Lane lane, const uint q_there, const uint k_there, const uint v_there,
                 const bool stored) {
    if (copies_misfit != 0) {
        if (q_copying != 0) {
            if (!q_in_place())
                q_copy_group(lane.of_token, lane.q_from, q_there, q_first_head(), q_end());
        }
        if (k_copying != 0) {
            if (stored && !k_in_place())
                k_copy_group(lane.of_token, lane.k_from, k_there, k_first_head(), k_end());
        }
    }
    if (v_head_dim != 0) {
        bool copies = stored && vkrope_has(flag_v);
        if (v_misfit == 0) copies = false;
        if (copies) v_copy_group(lane.of_token, lane.v_from, v_there, k_first_head(), k_end());
    }
}

void serve(const uint index, const uint z, const uint chunk_lane, const uint head_lane) {
    Lane lane;
    lane.of_token = chunk_lane + chunk_lanes * head_lane;
    lane.chunk = chunk_lane;
    lane.q_head = q_first_head() + head_lane;
    lane.k_head = k_first_head() + head_lane;
    lane.has_q = lane.has_k = lane.has_v = false;
    if (q_head_dim != 0) lane.has_q = lane.q_head < (push.heads & 0xffffu);
    if (k_head_dim != 0) lane.has_k = lane.k_head < (push.heads >> 16);
    if (v_head_dim != 0) lane.has_v = lane.has_k && vkrope_has(flag_v);
    lane.q_from = q_from(index, z);
    lane.k_from = k_from(index, z);
    lane.v_from = v_from(index, z);
    Token token;
    if (rotary_dim == 0)
        token = vkrope_token(index, z);
    else if (in_batches)
        token = rotate_in_batches(lane, index, z);
    else
        token = take_all_heads(lane, index, z);
    if (in_batches) {
        copy_groups(lane, q_to(index, z, token), k_to(index, z, token), v_to(index, z, token),
                    token.stored);
    } else {
        if (rotary_dim == 0) {
            if (q_copying != 0) {
                if (lane.has_q && !q_in_place())
                    q_copy(lane.chunk, lane.q_from, q_to(index, z, token));
            }
            if (k_copying != 0) {
                if (lane.has_k && token.stored && !k_in_place())
                    k_copy(lane.chunk, lane.k_from, k_to(index, z, token));
            }
        }
        if (v_head_dim != 0) {
            if (lane.has_v && token.stored) v_copy(lane.chunk, lane.v_from, v_to(index, z, token));
        }
    }
    if (counter != 0) {
        if (gl_WorkGroupID.y == 0 && lane.of_token == 0 && vkrope_counts(token, z))
            atomicAdd(VKROPE_OUT_OF_RANGE_WORD(VKROPE_OFFSET(offset_out_of_range)), 1);
    }
}

// Returns the number of tokens of this dispatch, of each sequence, that the call has: all, or those
// that come before the counted end.
uint present_tokens() {
    const uint first = VKROPE_PUSH_FIRST_TOKEN & ~first_token_counts;
    const uint end = counted_tokens[0];
    return min(end - min(end, first), push.tokens);
}

#define VKROPE_PRESENT_TOKENS present_tokens()
#include "ops_lanes.glsl"

// Counts a number of tokens that exceeds those of the call.
void count_excess() {
    const uint first = VKROPE_PUSH_FIRST_TOKEN;
    if ((first & first_token_counts) != 0) {
        const uint end = (first & ~first_token_counts) + push.tokens;
        if (gl_GlobalInvocationID == uvec3(0) && counted_tokens[0] > end)
            atomicAdd(VKROPE_OUT_OF_RANGE_WORD(VKROPE_OFFSET(offset_out_of_range)), 1);
    }
}

void main() {
    const uint lane = gl_LocalInvocationID.x;
    const uint chunk_lane = lane % chunk_lanes, head_lane = lane / chunk_lanes % head_lanes;
    if (token_count != 0) {
        if (counter != 0) count_excess();
    }
    if (ops != ops_none) {
        ops_lane();
    } else if (token_count != 0) {
        const uint index = gl_WorkGroupID.x * group_tokens + lane / token_lanes;
        if (index < present_tokens()) serve(index, gl_WorkGroupID.z, chunk_lane, head_lane);
    } else if (group_tokens == 1) {
        serve(gl_WorkGroupID.x, gl_WorkGroupID.z, chunk_lane, head_lane);
    } else {
        const uint index = gl_WorkGroupID.x * group_tokens + lane / token_lanes;
        if (index < push.tokens) serve(index, gl_WorkGroupID.z, chunk_lane, head_lane);
    }
}
