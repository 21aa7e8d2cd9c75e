// SPDX-License-Identifier: MIT
// Implements one tensor: loads and stores of units, addresses of rows, and the work of a lane.
// Include this file once for each tensor. Needs interface.h, element.glsl, pairing.glsl and
// token.glsl, and the constants of VKROPE_CONSTANTS. Includes ops.glsl if norm.glsl was included
// before. Declares no binding, push constant or workgroup size. Define these macros before each
// include, which undefines them:
//
//   VKROPE_TENSOR(name)      q_##name, k_##name or v_##name: the constants head_dim, element_in,
//                            element_out and batch, and rotary_offset if it rotates; buffers
//                            in_wide[] and out_wide[] of uvec4, in_pair[] and out_pair[] of
//                            uvec2, in_word[] and out_word[] of uint: three views of the same
//                            bindings, of which a pipeline uses one, or one for the channels that
//                            rotate and another for those that are copied
//   VKROPE_TENSOR_ROTATES      1: the tensor rotates; 0: all channels are copied
//   VKROPE_TENSOR_AT(end)   offset_q_##end, offset_k_##end or offset_v_##end
//   VKROPE_TENSOR_LAYOUT(end) q_##end or k_##end: the tensor's strides in the Push
//   VKROPE_TENSOR_HEADS      number of heads
//   VKROPE_TENSOR_IN_PLACE   the tensor's in-place flag, or 0
//   VKROPE_TENSOR_AFTER(words)  the words that the lane needs after its heads of this tensor:
//                            loaded before the last head is stored; or `words`
//   VKROPE_TENSOR_SCATTERS   a constant: true if rows go to the slots of slot_mapping
//   VKROPE_TENSOR_OF_CACHE   1: the rows may come from a cache, and there may be a second
//                            destination, which ops.glsl stores and which has buffers
//                            second_wide[], second_pair[] and second_word[]; 0: neither
//
// ops.glsl documents the macros that it needs in addition.
#ifndef VKROPE_TENSOR
#error "tensor.glsl: define VKROPE_TENSOR(name)"
#endif
#ifndef VKROPE_TENSOR_ROTATES
#error "tensor.glsl: define VKROPE_TENSOR_ROTATES as 0 or 1"
#endif
#ifndef VKROPE_TENSOR_LAYOUT
#error "tensor.glsl: define VKROPE_TENSOR_LAYOUT(end)"
#endif
#ifndef VKROPE_TENSOR_AT
#error "tensor.glsl: define VKROPE_TENSOR_AT(end)"
#endif
#ifndef VKROPE_TENSOR_HEADS
#error "tensor.glsl: define VKROPE_TENSOR_HEADS"
#endif
#ifndef VKROPE_TENSOR_IN_PLACE
#error "tensor.glsl: define VKROPE_TENSOR_IN_PLACE"
#endif
#ifndef VKROPE_TENSOR_AFTER
#error "tensor.glsl: define VKROPE_TENSOR_AFTER(words)"
#endif
#ifndef VKROPE_TENSOR_SCATTERS
#error "tensor.glsl: define VKROPE_TENSOR_SCATTERS"
#endif
#ifndef VKROPE_TENSOR_OF_CACHE
#error "tensor.glsl: define VKROPE_TENSOR_OF_CACHE as 0 or 1"
#endif
#ifndef VKROPE_TOKEN_GLSL
#error "tensor.glsl: include interface.h, element.glsl, pairing.glsl and token.glsl first"
#endif

#define T(name) VKROPE_TENSOR(name)

bool T(in_place)() {
    return vkrope_has(VKROPE_TENSOR_IN_PLACE);
}

// Returns the start of the rows of a token, in elements, and 0 for an absent tensor. For quantised
// outputs the unit is a block, counted from the first row.
uint T(from)(uint index, const uint z) {
    uint start = 0;
    if (T(head_dim) != 0) {
        const RowLayout rows = VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(in);
        start = VKROPE_OFFSET(VKROPE_TENSOR_AT(in)) + z * rows.z + index * rows.token;
    }
    return start;
}

uint T(to)(uint index, const uint z, const Token token) {
    uint start = 0;
    if (T(head_dim) != 0) {
        const RowLayout rows = VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(out);
        if (T(element_out) <= element_bf16) start = VKROPE_OFFSET(VKROPE_TENSOR_AT(out));
        if (VKROPE_TENSOR_SCATTERS)
            start += token.page * rows.z + token.line * rows.token;
        else
            start += z * rows.z + index * rows.token;
    }
    return start;
}

// ---- Load and store: a unit that starts at element `at` ----

// Reads a word whose other half another invocation may be merging. In-place calls read the output
// binding.
uint T(load_shared)(uint at) {
    uint w;
    if (T(in_place)())
        w = atomicOr(T(out_word)[at], 0);
    else
        w = atomicLoad(T(in_word)[at], gl_ScopeDevice, gl_StorageSemanticsNone,
                       gl_SemanticsRelaxed);
    return w;
}

#if VKROPE_TENSOR_ROTATES
#define VKROPE_LOAD_UNIT T(load)
#define VKROPE_LOAD_ACCESS access
#define VKROPE_LOAD_ELEMENTS unit_elements
#include "load.glsl"
#endif
#define VKROPE_LOAD_UNIT T(load_copied)
#define VKROPE_LOAD_ACCESS copy_access
#define VKROPE_LOAD_ELEMENTS copy_elements
#include "load.glsl"

#define VKROPE_STORE_UNIT T(store_copied)
#define VKROPE_STORE_MERGED T(merge_word)
#define VKROPE_STORE_ACCESS copy_access
#define VKROPE_STORE_ELEMENTS copy_elements
#define VKROPE_STORE_ELEMENT T(element_out)
#define VKROPE_STORE_WIDE T(out_wide)
#define VKROPE_STORE_PAIR T(out_pair)
#define VKROPE_STORE_WORD T(out_word)
#include "store.glsl"
#if VKROPE_TENSOR_ROTATES
#define VKROPE_STORE_UNIT T(store)
#define VKROPE_STORE_MERGED T(merge_word)
#define VKROPE_STORE_AGAIN
#define VKROPE_STORE_ACCESS access
#define VKROPE_STORE_ELEMENTS unit_elements
#define VKROPE_STORE_ELEMENT T(element_out)
#define VKROPE_STORE_WIDE T(out_wide)
#define VKROPE_STORE_PAIR T(out_pair)
#define VKROPE_STORE_WORD T(out_word)
#include "store.glsl"
#else
// All channels are copied.
Words T(load)(uint at) {
    return T(load_copied)(at);
}
void T(store)(uint at, const Words words) {
    T(store_copied)(at, words);
}
#endif

// ---- One chunk of one head ----

Words T(converted)(Words w) {
    Words to = w;
    if (T(element_in) != T(element_out))
        to = vkrope_encode(T(element_out), vkrope_decode(T(element_in), w));
    return to;
}

#if VKROPE_TENSOR_ROTATES
// Elements that do not rotate keep their bits if the element type does not change. With
// rare_branches, only chunks that rotate call this function.
void T(rotate)(Chunk chunk, const uint row, const Words A, const Words B) {
    const Unit a = vkrope_decode(T(element_in), A), b = vkrope_decode(T(element_in), B);
    Unit x0, x1, y0, y1, p, q;
    vkrope_to_pairs(pairing, unit_elements, a, b, x0, x1);
    vkrope_rotate_channels(x0, x1, chunk.c, chunk.s, chunk.c1, chunk.s1, y0, y1);
    if (rare_branches == 0) {
        if (T(element_in) != T(element_out)) {
            y0 = vkrope_either(chunk.rotates, y0, x0);
            y1 = vkrope_either(chunk.rotates, y1, x1);
        }
    }
    vkrope_from_pairs(pairing_out, unit_elements, y0, y1, p, q);
    Words P = A, Q = B;
    bool replaces = true;
    if (rare_branches == 0) {
        if (T(element_in) == T(element_out)) {
            if (pairing != pairing_out)
                vkrope_change_pairing(pairing, pairing_out, unit_elements, T(element_in), A, B, P,
                                      Q);
            replaces = chunk.rotates;
        }
    }
    if (replaces) {
        P = vkrope_encode(T(element_out), p);
        Q = vkrope_encode(T(element_out), q);
    }
    T(store)(row + T(rotary_offset) + chunk.to.x, P);
    T(store)(row + T(rotary_offset) + chunk.to.y, Q);
}

void T(pass)(Chunk chunk, const uint row, const Words A, const Words B) {
    Words P = A, Q = B;
    if (pairing != pairing_out)
        vkrope_change_pairing(pairing, pairing_out, unit_elements, T(element_in), A, B, P, Q);
    T(store)(row + T(rotary_offset) + chunk.to.x, T(converted)(P));
    T(store)(row + T(rotary_offset) + chunk.to.y, T(converted)(Q));
}
#endif

// ---- The pass-through channels, copied unless in place ----

const uint T(copied_units) = (T(head_dim) - VKROPE_TENSOR_ROTATES * rotary_dim) / copy_elements;
// Number of copied chunks of a row, of two units each, where a lane copies chunks.
const uint T(copying) = T(head_dim) == 0 ? 0 : (T(copied_units) + 1) / 2;
const uint T(lane_copies) = (T(copying) + chunk_lanes - 1) / chunk_lanes;

// Maps the index of a pass-through channel to its channel in the row.
uint T(around_windows)(uint channel) {
    uint at = channel;
#if VKROPE_TENSOR_ROTATES
    const uint start = T(rotary_offset);
    if (window_dim_0 != 0 && at >= start + window_at_0) at += window_dim_0;
    if (window_dim_1 != 0 && at >= start + window_at_1) at += window_dim_1;
    if (window_dim_2 != 0 && at >= start + window_at_2) at += window_dim_2;
    if (window_dim_3 != 0 && at >= start + window_at_3) at += window_dim_3;
#endif
    return at;
}

// Returns the first channels of the two units of a copied chunk. If the number of units is odd, the
// last chunk contains the last unit twice.
uvec2 T(copied_channels)(uint index) {
    uint a = 2 * index, b = 2 * index + 1;
    if (units_apart != 0) {
        a = index;
        b = index + T(copying);
    }
    if (T(copied_units) % 2 != 0) {
        if (b >= T(copied_units)) b = a;
    }
    return uvec2(T(around_windows)(a * copy_elements), T(around_windows)(b * copy_elements));
}

// ---- All heads, one after the other ----

#if VKROPE_TENSOR_ROTATES
void T(rotate_heads)(Chunk chunk, const uint from, const uint to, const uint heads) {
    const uint from_head = VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(in).head,
               to_head = VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(out).head;
    for (uint head = 0; head < heads; ++head) {
        const uvec2 at = from + head * from_head + T(rotary_offset) + chunk.from;
        const Words A = T(load)(at.x), B = T(load)(at.y);
        T(rotate)(chunk, to + head * to_head, A, B);
    }
}
#endif

void T(copy_heads)(uvec2 channels, const uint from, const uint to, const uint heads) {
    const uint from_head = VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(in).head,
               to_head = VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(out).head;
    for (uint head = 0; head < heads; ++head) {
        const uvec2 at = from + head * from_head + channels, there = to + head * to_head + channels;
        const Words A = T(load_copied)(at.x), B = T(load_copied)(at.y);
        T(store_copied)(there.x, T(converted)(A));
        T(store_copied)(there.y, T(converted)(B));
    }
}

// ---- The batch of a lane: at most `batch` heads, with the stride head_lanes ----

ChunkWords T(load_chunk)(const uvec2 at) {
    return ChunkWords(T(load)(at.x), T(load)(at.y));
}

// Returns where the two units of a chunk are in head `first`.
uvec2 T(first_units)(const uint from, const uint first, const uvec2 channels) {
    return from + first * VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(in).head + channels;
}

#if VKROPE_TENSOR_ROTATES
void T(rotate_or_pass)(const Chunk chunk, const uint row, const ChunkWords words) {
    bool rotates = true;
    if (rare_branches != 0) rotates = chunk.rotates;
    if (rotates)
        T(rotate)(chunk, row, words.a, words.b);
    else
        T(pass)(chunk, row, words.a, words.b);
}

// Rotates the heads of a batch in a loop, because unrolled code is several times as long, and a GPU
// waits for instructions that are not in its cache. The heads are `first` and every head_lanes-th
// one after it, below `end`; `words` are the words of the first head. Each head is loaded before
// the previous head is stored. Returns VKROPE_TENSOR_AFTER.
ChunkWords T(rotate_batch)(ChunkWords words, const Chunk chunk, const uint from, const uint to,
                           const uint first, const uint end) {
    const uint from_head = VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(in).head,
               to_head = VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(out).head;
    if (T(batch) <= 1) {
        const ChunkWords after = VKROPE_TENSOR_AFTER(words);
        T(rotate_or_pass)(chunk, to + first * to_head, words);
        words = after;
    } else {
        const uvec2 channels = chunk.from + T(rotary_offset);
        for (uint head = first; head < end; head += head_lanes) {
            ChunkWords next;
            if (head + head_lanes < end)
                next = T(load_chunk)(from + (head + head_lanes) * from_head + channels);
            else
                next = VKROPE_TENSOR_AFTER(words);
            T(rotate_or_pass)(chunk, to + head * to_head, words);
            words = next;
        }
    }
    return words;
}
#else
// Copies chunks as T(rotate_batch) rotates them.
void T(store_batch)(ChunkWords words, const uvec2 channels, const uint from, const uint to,
                    const uint first, const uint end) {
    const uint from_head = VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(in).head,
               to_head = VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(out).head;
    for (uint head = first; head < end; head += head_lanes) {
        ChunkWords next = words;
        if (head + head_lanes < end)
            next = T(load_chunk)(from + (head + head_lanes) * from_head + channels);
        T(store)(to + head * to_head + channels.x, T(converted)(words.a));
        T(store)(to + head * to_head + channels.y, T(converted)(words.b));
        words = next;
    }
}
#endif

// Copies the channels of lane `lane`, in all heads.
void T(copy)(uint lane, const uint from, const uint to) {
    for (uint n = 0; n < T(lane_copies); ++n) {
        const uint index = lane * T(lane_copies) + n;
        if (T(copying) % chunk_lanes == 0 || index < T(copying))
            T(copy_heads)(T(copied_channels)(index), from, to, VKROPE_TENSOR_HEADS);
    }
}

// ---- Copies that all lanes of a token share ----

// The lanes of a token share the copied units of head_lanes heads at a time, head after head, even
// if few lanes rotate a row. All divisors are constants.
const uint T(units_of_head) = T(copied_units) == 0 ? 1 : T(copied_units);
const uint T(lane_units) = (T(units_of_head) + chunk_lanes - 1) / chunk_lanes;

// Returns where a unit starts, from the first of the heads on, whose stride is `head`.
uint T(unit_at)(const uint unit, const uint head) {
    return unit / T(units_of_head) * head +
           T(around_windows)(unit % T(units_of_head) * copy_elements);
}

Words T(load_unit)(const uint unit, const uint end, const uint row) {
    Words words = Words(uvec4(0), uvec4(0));
    if (unit < end)
        words = T(load_copied)(row + T(unit_at)(unit, VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(in).head));
    return words;
}

void T(store_unit)(const uint unit, const uint end, const uint row, const Words words) {
    if (unit < end) {
        const uint at = row + T(unit_at)(unit, VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(out).head);
        T(store_copied)(at, T(converted)(words));
    }
}

// Loads the units that a lane copies at a time: `unit` and the units after it that are the lane's,
// of those below `end`.
CopiedWords T(load_units)(const uint unit, const uint end, const uint row) {
    CopiedWords words;
    words.a = T(load_unit)(unit, end, row);
    words.b = words.c = words.d = words.a;
    if (T(lane_units) > 1) words.b = T(load_unit)(unit + token_lanes, end, row);
    if (T(lane_units) > 2) words.c = T(load_unit)(unit + 2 * token_lanes, end, row);
    if (T(lane_units) > 3) words.d = T(load_unit)(unit + 3 * token_lanes, end, row);
    return words;
}

void T(store_units)(const uint unit, const uint end, const uint row, const CopiedWords words) {
    T(store_unit)(unit, end, row, words.a);
    if (T(lane_units) > 1) T(store_unit)(unit + token_lanes, end, row, words.b);
    if (T(lane_units) > 2) T(store_unit)(unit + 2 * token_lanes, end, row, words.c);
    if (T(lane_units) > 3) T(store_unit)(unit + 3 * token_lanes, end, row, words.d);
}

// Copies the units of a lane from `first` on.
void T(copy_units)(const uint first, const uint end, const uint from, const uint to) {
    for (uint unit = first; unit < end; unit += units_together * token_lanes) {
        const CopiedWords words = T(load_units)(unit, end, from);
        T(store_units)(unit, end, to, words);
    }
}

void T(copy_some_heads)(const uint lane, const uint units, const uint from, const uint to) {
    if (T(lane_units) <= units_together) {
        const CopiedWords words = T(load_units)(lane, units, from);
        T(store_units)(lane, units, to, words);
    } else {
        T(copy_units)(lane, units, from, to);
    }
}

// Copies the heads of a group of lanes, from `first` to `end`.
void T(copy_group)(const uint lane, const uint from, const uint to, const uint first,
                   const uint end) {
    const uint from_head = VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(in).head,
               to_head = VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(out).head;
    if (T(batch) <= 1) {
        const uint units = (end - first) * T(units_of_head);
        if (first < end)
            T(copy_some_heads)(lane, units, from + first * from_head, to + first * to_head);
    } else {
        for (uint head = first; head < end; head += head_lanes) {
            const uint units = min(head_lanes, end - head) * T(units_of_head);
            T(copy_some_heads)(lane, units, from + head * from_head, to + head * to_head);
        }
    }
}

#if VKROPE_TENSOR_ROTATES
// Rotates head `first` + head_lane of a token, whose words are given, and copies the channels of
// head_lanes heads that do not rotate. All loads come before the first store, except those of rows
// with many such channels. Returns the words of the lane's next head, or VKROPE_TENSOR_AFTER.
ChunkWords T(rotate_and_copy_heads)(const ChunkWords words, const Chunk chunk, const uint from,
                                    const uint to, const uint first, const uint end,
                                    const uint lane) {
    const uint from_head = VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(in).head,
               to_head = VKROPE_PUSH.VKROPE_TENSOR_LAYOUT(out).head;
    const uint head = first + lane / chunk_lanes;
    const uint from_row = from + first * from_head, to_row = to + first * to_head;
    const uint units = T(in_place)() ? 0 : min(head_lanes, end - first) * T(units_of_head);
    ChunkWords next = words;
    bool is_last = true;
    if (T(batch) > 1) is_last = head + head_lanes >= end;
    if (!is_last) {
        next = T(load_chunk)(from + (head + head_lanes) * from_head + chunk.from +
                             T(rotary_offset));
    } else if (head < end) {
        next = VKROPE_TENSOR_AFTER(words);
    }
    const CopiedWords copied = T(load_units)(lane, units, from_row);
    if (head < end) T(rotate_or_pass)(chunk, to + head * to_head, words);
    T(store_units)(lane, units, to_row, copied);
    if (T(lane_units) > units_together)
        T(copy_units)(lane + units_together * token_lanes, units, from_row, to_row);
    return next;
}

// Does so for the heads of a group of lanes, from `first` to `end`.
ChunkWords T(rotate_and_copy)(ChunkWords words, const Chunk chunk, const uint from, const uint to,
                              const uint first, const uint end, const uint lane) {
    if (T(batch) <= 1) {
        if (first < end) words = T(rotate_and_copy_heads)(words, chunk, from, to, first, end, lane);
    } else {
        for (uint head = first; head < end; head += head_lanes)
            words = T(rotate_and_copy_heads)(words, chunk, from, to, head, end, lane);
    }
    return words;
}
#endif

#ifdef VKROPE_NORM_GLSL
#include "ops.glsl"
#endif

#undef T
#undef VKROPE_TENSOR
#undef VKROPE_TENSOR_ROTATES
#undef VKROPE_TENSOR_LAYOUT
#undef VKROPE_TENSOR_AT
#undef VKROPE_TENSOR_HEADS
#undef VKROPE_TENSOR_IN_PLACE
#undef VKROPE_TENSOR_AFTER
#undef VKROPE_TENSOR_SCATTERS
#undef VKROPE_TENSOR_OF_CACHE
#undef VKROPE_TENSOR_WEIGHT_WORD
#undef VKROPE_TENSOR_WEIGHT_QUAD
#undef VKROPE_TENSOR_SCALE_AT
#undef VKROPE_TENSOR_SCALE_WORD
#undef VKROPE_TENSOR_SCALES_OUT_AT
#undef VKROPE_TENSOR_SCALES_OUT_WORD
#undef VKROPE_TENSOR_SCALES_IN_AT
#undef VKROPE_TENSOR_SCALES_IN_WORD
