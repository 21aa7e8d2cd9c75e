// SPDX-License-Identifier: MIT
// The kinds of random operations that a report names. Long because it is a list.
#include <algorithm>

#include "base/meaning.hpp"
#include "verify/random.hpp"

namespace vkrope::verify {
namespace {

using Info = const KernelInfo&;
using Tensors = const Shape&;
using Whole = const Unplaced&;

bool has(const TensorInfo& of) {
    return of.head_dim != 0;
}

template <class Is>
bool any(Info info, const Is& is) {
    return std::any_of(
        std::begin(info.tensor), std::end(info.tensor),
        [&](const TensorInfo& of) { return has(of) && is(of); });
}

bool has_steps(const TensorInfo& of) {
    const Ops& ops = of.ops;
    return ops.bias != VKROPE_PARAMETER_NONE || ops.norm.kind != VKROPE_NORM_NONE ||
           ops.clip != 0 || scale_of(ops) != 1 || ops.scale_call || ops.scale_tokens ||
           ops.hadamard != 0;
}

bool any_quantised(Info info) {
    return any(
        info, [](const TensorInfo& of) { return is_quantised(of.out); });
}

// On a CPU a lane then owns its rows.
bool lanes_own_rows(Info info) {
    return !any_quantised(info) &&
           !any(
               info, [](const TensorInfo& of) { return of.ops.hadamard != 0; });
}

bool has_second(const TensorInfo& of) {
    return of.second_of != VKROPE_SECOND_NONE;
}

// Without ops, quantised outputs and second destinations, a kernel only rotates.
bool rotates(Info info) {
    return info.rotary_dim != 0 && !any(info, has_steps) && !any_quantised(info) &&
           !any(info, has_second);
}

bool has_norm(const TensorInfo& of, NormKind kind, NormSpan span = VKROPE_NORM_SPAN_HEAD) {
    return of.ops.norm.kind == kind && of.ops.norm.span == span;
}

// Returns the number of channels of a norm over a part of a row, or 0.
std::uint32_t normed_channels(Info info, TensorIndex which) {
    return info.tensor[which].ops.norm.channels;
}

// The oracle compares ops around a rotation unless the caller made the angles.
bool has_known_angles(Info info) {
    return info.angles != VKROPE_ANGLES_COS_SIN_CACHE;
}

bool any_norm(Info info, NormSpan span = VKROPE_NORM_SPAN_HEAD) {
    return any(
        info,
        [=](const TensorInfo& of) {
            return of.ops.norm.kind != VKROPE_NORM_NONE && of.ops.norm.span == span;
        });
}

bool by_head(const TensorInfo& of) {
    return of.ops.bias == VKROPE_PARAMETER_HEAD_CHANNEL ||
           of.ops.norm.weight == VKROPE_PARAMETER_HEAD_CHANNEL ||
           of.ops.store_scale == VKROPE_STORE_SCALE_GIVEN_HEAD;
}

template <AngleSource source>
bool has_phases(Info info, Tensors) {
    return info.phase && info.angles == source && rotates(info);
}

// Rows are accessed `unit` elements at a time where a call allows it.
bool has_units(Info info, std::uint32_t unit) {
    return info.windows[0].rotary_dim == 0 && info.rotary_dim % (2 * unit) == 0 &&
           !any(
               info,
               [=](const TensorInfo& of) {
                   return of.head_dim % unit != 0 || of.rotary_offset % unit != 0;
               });
}

// Rotates units of eight elements of 16 bits.
bool rotates_eight(Info info) {
    return rotates(info) && has_units(info, 8) &&
           !any(
               info,
               [](const TensorInfo& of) { return of.in == VKROPE_F32 || of.out == VKROPE_F32; });
}

// V moves in the dispatch of K.
bool v_like_k(Info info, Tensors shape) {
    const TensorInfo &k = info.tensor[K], &v = info.tensor[V];
    return rotates(info) && has(k) && k.head_dim == v.head_dim && k.in == v.in && k.out == v.out &&
           shape.v_heads() == shape.groups && !info.scatter_kv && info.head_groups < 2 &&
           info.windows[0].rotary_dim == 0;
}

// Side by side, K and V start at different bytes of 16.
bool starts_apart(Info info, Tensors shape) {
    const TensorInfo& k = info.tensor[K];
    return shape.groups * k.head_dim * element_bytes(k.out) % 16 != 0;
}

// V has numbers of f32 that no op changes, so that each code is known.
template <Element out>
bool stores(Info info, Tensors) {
    const TensorInfo& v = info.tensor[V];
    return v.out == out && v.in == VKROPE_F32 && !has_steps(v) &&
           v.ops.store_scale == VKROPE_STORE_SCALE_NONE && v.head_dim >= 16;
}

template <Arrangement first, Arrangement second>
bool is_arranged(Whole operation) {
    return (operation.in == first || operation.in == second) &&
           (operation.out == first || operation.out == second);
}

// K and V have one stride, and V has to move.
bool moves_v_with_k(Whole operation) {
    return is_arranged<Arrangement::packed_qkv, Arrangement::packed_kv>(operation) &&
           !operation.absent[K] && !operation.absent[V] && !operation.in_place[V];
}

// On a GPU a lane has several heads only in calls of 2^16 lanes. A token has 32 or more.
constexpr std::uint32_t tokens_of_many_lanes = 1u << 11;

// Heads that lanes of a GPU take in turn.
bool has_lanes_of_several_heads(Whole operation) {
    const auto in_groups = [](Arrangement rows) {
        return rows == Arrangement::grouped_qkv || rows == Arrangement::groups_first ||
               rows == Arrangement::gathered;
    };
    const Shape& shape = operation.shape;
    return !operation.absent[Q] && shape.q_heads() > 8 && shape.q_heads() < 40 &&
           shape.rows() > tokens_of_many_lanes && !in_groups(operation.in) &&
           !in_groups(operation.out);
}

// A lane of a GPU takes several heads of Q and K in turn, however few the tokens are.
bool takes_heads_in_turn(Info info, Tensors shape) {
    const TensorInfo &q = info.tensor[Q], &k = info.tensor[K];
    return rotates(info) && info.tuning.lane_heads > 1 && info.tuning.group_lanes == 32 &&
           q.heads > 32 && q.head_dim < 40 && has(k) && k.head_dim < 40 && shape.groups < 64;
}

bool has_q_and_k(Whole operation) {
    return !operation.absent[Q] && !operation.absent[K] && !operation.in_place[Q];
}

// Keys of one type that rotate and have no other op.
bool moves(Info info, Element element) {
    TensorInfo k = info.tensor[K];
    k.ops.hadamard = 0;
    return moves_keys(info) && k.in == element && k.out == element && !has_steps(k) &&
           info.rotary_dim != 0 && has_known_angles(info);
}

bool moves_in_place(Info info, Element element) {
    return moves(info, element) && info.scatter_kv == info.gather_kv &&
           output_pairing(info) == info.pairing;
}

// Keys that move from slots to slots.
bool gathers_and_scatters(Info info, Tensors) {
    return info.gather_kv && info.scatter_kv && info.rotary_dim != 0;
}

bool is_k_in_place(Whole operation) {
    return operation.in_place[K] && !operation.absent[K];
}

bool has_other_slots(Whole operation) {
    return !operation.absent[K] && !operation.sources.empty();
}

bool binds_weight(const TensorInfo& of) {
    return of.ops.norm.weight_bound != 0;
}

bool has_slots_of_v(Whole operation) {
    return !operation.v_slots.empty();
}

// A token_count of some tokens, but not all, of several sequences.
bool has_some_tokens(Whole operation) {
    return operation.shape.batch > 1 && operation.token_count > 0 &&
           operation.token_count < operation.shape.tokens;
}

bool counts_some_tokens(Whole operation) {
    return operation.counts && has_some_tokens(operation);
}

constexpr ReportedLimits few_workgroups = {.workgroups_x = 3, .workgroups_y = 2, .workgroups_z = 3};
constexpr std::uint32_t arm = 0x13b5, broadcom = 0x14e4;  // vendors
constexpr ReportedLimits short_range = {.storage_range = 1u << 14};

constexpr Kind all[] = {
    // Rows
    {"four_windows", [](Info info, Tensors) { return info.windows[3].rotary_dim != 0; }},
    {"other_pairing",
     [](Info info, Tensors) {
         return output_pairing(info) != info.pairing && has(info.tensor[Q]) && has(info.tensor[K]);
     }},
    {"long_rows", [](Info info, Tensors) { return rotates(info) && info.rotary_dim > 256; }},
    {"single_elements",
     [](Info info, Tensors) {
         return rotates(info) && info.tensor[Q].head_dim % 2 == 1 &&
                info.tensor[Q].out == VKROPE_F16;
     }},
    {"several_heads_a_lane",
     [](Info info, Tensors) {
         const TensorInfo& q = info.tensor[Q];
         return rotates(info) && q.in == VKROPE_F32 && q.head_dim % 4 == 2 && q.heads == 0 &&
                info.tensor[K].heads == 0 && info.rotary_dim >= 16 && q.head_dim < 32 &&
                has_units(info, 2);
     },
     has_lanes_of_several_heads, 800000},
    {"heads_in_turn",
     [](Info info, Tensors shape) {
         return takes_heads_in_turn(info, shape) && info.rotary_dim == info.tensor[Q].head_dim;
     },
     has_q_and_k, 3000},
    {"heads_in_turn_with_copies",
     [](Info info, Tensors shape) {
         return takes_heads_in_turn(info, shape) && info.rotary_dim < info.tensor[Q].head_dim;
     },
     has_q_and_k, 3000},
    {"heads_of_v_in_turn",
     [](Info info, Tensors shape) {
         return takes_heads_in_turn(info, shape) && v_like_k(info, shape) && shape.groups > 1 &&
                info.rotary_dim == info.tensor[K].head_dim;
     },
     [](Whole operation) { return has_q_and_k(operation) && moves_v_with_k(operation); }, 3000},
    {"copies_wider_than_rotations",
     [](Info info, Tensors) {
         return rotates(info) && info.mapping == VKROPE_MAPPING_GPU && has_units(info, 4) &&
                info.rotary_dim % 16 == 8 && info.tensor[Q].in == VKROPE_F16 &&
                info.tensor[Q].rotary_offset % 8 == 0 && info.tensor[Q].head_dim % 8 == 0 &&
                info.tensor[Q].head_dim > 2 * info.rotary_dim;
     },
     [](Whole operation) { return !operation.in_place[Q] && !operation.absent[Q]; }},
    {"interleaved_units_of_8",
     [](Info info, Tensors) {
         return rotates_eight(info) && info.pairing == VKROPE_INTERLEAVED &&
                output_pairing(info) == VKROPE_INTERLEAVED;
     }},
    {"half_split_units_of_8",
     [](Info info, Tensors) {
         return rotates_eight(info) && info.pairing == VKROPE_HALF_SPLIT &&
                output_pairing(info) == VKROPE_HALF_SPLIT;
     }},
    {"units_of_4",
     [](Info info, Tensors) {
         return rotates(info) && has_units(info, 4) && !has_units(info, 8) &&
                !any(info, [](const TensorInfo& of) { return of.in == VKROPE_F32; });
     }},
    // Types
    {"mixed_elements_in_units_of_4",
     [](Info info, Tensors) {
         const TensorInfo& q = info.tensor[Q];
         return rotates(info) && info.mapping == VKROPE_MAPPING_GPU && has_units(info, 4) &&
                !has_units(info, 8) && q.in == VKROPE_F32 && q.out != VKROPE_F32 &&
                has(info.tensor[K]) && info.tensor[K].out == VKROPE_F32;
     },
     has_q_and_k},
    {"mixed_elements",
     [](Info info, Tensors) {
         const TensorInfo &q = info.tensor[Q], &k = info.tensor[K];
         return rotates(info) && has_units(info, 8) && has(q) && has(k) && q.in != q.out &&
                k.in != k.out && q.in != k.in && (q.out == VKROPE_F32 || k.out == VKROPE_F32);
     }},
    {"bf16_beside_f16",
     [](Info info, Tensors) {
         return rotates(info) && info.conversion == VKROPE_CONVERSION_NATIVE &&
                any(info, [](const TensorInfo& of) { return of.in == VKROPE_F16; }) &&
                any(info, [](const TensorInfo& of) { return of.in == VKROPE_BF16; });
     }},
    // Angles
    {"phases_of_a_factored_texture", has_phases<VKROPE_ANGLES_FACTORED_TEXTURE>},
    {"phases_of_a_direct_texture", has_phases<VKROPE_ANGLES_DIRECT_TEXTURE>},
    {"phases_of_a_direct_buffer", has_phases<VKROPE_ANGLES_DIRECT_BUFFER>},
    {"phases_of_computed_angles", has_phases<VKROPE_ANGLES_COMPUTED>},
    {"sum_of_3_axes",
     [](Info info, Tensors) {
         return rotates(info) && summed_axes(info.sections) == 3 && info.head_groups < 2;
     }},
    {"sum_of_axes_with_phases",
     [](Info info, Tensors) { return info.phase && summed_axes(info.sections) > 1; }},
    {"sections_in_sequence",
     [](Info info, Tensors) {
         return rotates_eight(info) && info.sections.axes > 2 &&
                info.sections.order == VKROPE_SECTIONS_SEQUENTIAL;
     }},
    {"sections_interleaved",
     [](Info info, Tensors) {
         const std::uint32_t* const pairs = info.sections.pairs;
         return rotates(info) && info.sections.order == VKROPE_SECTIONS_INTERLEAVED &&
                info.sections.axes == 4 && info.sections.leftover_axis == 3 &&
                3 * pairs[0] < pairs[0] + pairs[1] + pairs[2] + pairs[3] &&
                6 * pairs[0] < info.rotary_dim;
     }},
    {"head_groups",
     [](Info info, Tensors) {
         return info.head_groups > 1 && has(info.tensor[Q]) && has(info.tensor[K]);
     }},
    {"angles_of_channels", [](Info info, Tensors) { return info.channel_angles && rotates(info); }},
    {"cos_sin_cache_of_bf16",
     [](Info info, Tensors) {
         return info.table == VKROPE_BF16 && !info.channel_angles && rotates(info);
     }},
    // Positions and memory
    {"ids_of_64_bits",
     [](Info info, Tensors) {
         return rotates(info) && info.positions != VKROPE_POSITIONS_IMPLICIT;
     },
     [](Whole operation) { return operation.call.positions.int64 != 0; }},
    {"in_place",
     [](Info info, Tensors) {
         const TensorInfo& q = info.tensor[Q];
         return rotates(info) && has(q) && q.in == q.out && output_pairing(info) == info.pairing;
     },
     [](Whole operation) { return operation.in_place[Q]; }},
    {"grouped_heads",
     [](Info info, Tensors shape) { return rotates(info) && shape.own_q_heads == 0; },
     is_arranged<Arrangement::grouped_qkv, Arrangement::groups_first>},
    {"pages", [](Info info, Tensors) { return rotates(info) && info.scatter_kv; },
     [](Whole operation) { return operation.call.paged_cache.page_size > 1; }},
    {"k_and_v_in_one_row",
     [](Info info, Tensors shape) {
         return info.scatter_kv && has(info.tensor[V]) && shape.v_heads() == shape.groups &&
                info.tensor[V].head_dim == info.tensor[K].head_dim &&
                info.tensor[V].out == info.tensor[K].out;
     },
     [](Whole operation) { return operation.beside; }},
    // V
    {"v_like_k_in_whole_rows_gpu",
     [](Info info, Tensors shape) {
         return v_like_k(info, shape) && info.mapping == VKROPE_MAPPING_GPU &&
                info.rotary_dim == info.tensor[K].head_dim && info.rotary_dim <= 4 &&
                starts_apart(info, shape);
     },
     moves_v_with_k},
    {"v_like_k_gpu",
     [](Info info, Tensors shape) {
         return v_like_k(info, shape) && info.mapping == VKROPE_MAPPING_GPU &&
                info.rotary_dim < info.tensor[K].head_dim && starts_apart(info, shape);
     },
     moves_v_with_k},
    {"v_like_k_cpu",
     [](Info info, Tensors shape) {
         return v_like_k(info, shape) && info.mapping == VKROPE_MAPPING_CPU &&
                starts_apart(info, shape);
     },
     moves_v_with_k},
    {"v_unlike_k",
     [](Info info, Tensors shape) {
         return rotates(info) && has(info.tensor[K]) && has(info.tensor[V]) &&
                shape.v_heads() != shape.groups &&
                info.tensor[K].head_dim != info.tensor[V].head_dim;
     }},
    // Norms and other ops
    {"norms_of_heads",
     [](Info info, Tensors) {
         return has_norm(info.tensor[Q], VKROPE_NORM_RMS) &&
                info.tensor[Q].ops.norm.place == VKROPE_NORM_PLACE_BEFORE;
     }},
    {"norms_after_the_rotation",
     [](Info info, Tensors) {
         return has_norm(info.tensor[Q], VKROPE_NORM_RMS) &&
                info.tensor[Q].ops.norm.place == VKROPE_NORM_PLACE_AFTER && by_head(info.tensor[Q]);
     }},
    {"layer_norms",
     [](Info info, Tensors) {
         return any(info, [](const TensorInfo& of) {
             return has_norm(of, VKROPE_NORM_LAYER) && of.ops.norm.bias != VKROPE_PARAMETER_NONE;
         });
     }},
    {"norms_of_a_token",
     [](Info info, Tensors shape) {
         return has_norm(info.tensor[Q], VKROPE_NORM_RMS, VKROPE_NORM_SPAN_TOKEN) &&
                info.tensor[Q].in == VKROPE_F32 && shape.q_heads() > 16;
     }},
    {"norms_of_many_heads",
     [](Info info, Tensors shape) {
         const TensorInfo& q = info.tensor[Q];
         return q.ops.norm.span == VKROPE_NORM_SPAN_TOKEN &&
                q.ops.norm.kind == VKROPE_NORM_RMS && shape.q_heads() > 64 &&
                shape.q_heads() < 140 && q.head_dim < 20 && q.in == q.out &&
                output_pairing(info) == info.pairing && lanes_own_rows(info) &&
                info.mapping == VKROPE_MAPPING_CPU;
     },
     [](Whole operation) { return operation.in_place[Q]; }},
    {"norms_of_long_rows",
     [](Info info, Tensors) {
         return any(info, [](const TensorInfo& of) {
             return of.head_dim > 512 && of.ops.norm.kind != VKROPE_NORM_NONE;
         });
     }},
    {"norms_of_few_tokens",
     [](Info info, Tensors) {
         return any_norm(info) && !any_norm(info, VKROPE_NORM_SPAN_TOKEN) && lanes_own_rows(info) &&
                info.head_groups < 2 && info.tensor[Q].heads > 512;
     }},
    {"squares_that_overflow",
     [](Info info, Tensors) {
         return any(info, [](const TensorInfo& of) {
             return has_norm(of, VKROPE_NORM_RMS) && of.in == VKROPE_F32;
         });
     }},
    {"squares_of_differences_that_overflow",
     [](Info info, Tensors) {
         return any(info, [](const TensorInfo& of) {
             return has_norm(of, VKROPE_NORM_LAYER) && of.in == VKROPE_F32;
         });
     }},
    {"round_between",
     [](Info info, Tensors) {
         return any(info, [](const TensorInfo& of) {
             const Norm& norm = of.ops.norm;
             return norm.round_between && of.in != VKROPE_F32 && of.out == VKROPE_F32 &&
                    norm.weight != VKROPE_PARAMETER_NONE && of.ops.hadamard == 0;
         });
     }},
    {"scales_of_tokens",
     [](Info info, Tensors) {
         return any(info, [](const TensorInfo& of) { return of.ops.scale_tokens; });
     }},
    {"two_parameter_sets",
     [](Info info, Tensors) {
         return info.two_parameter_sets && any(info, [](const TensorInfo& of) {
                    return of.ops.store_scale == VKROPE_STORE_SCALE_GIVEN_HEAD ||
                           of.ops.store_scale == VKROPE_STORE_SCALE_GIVEN;
                });
     }},
    {"long_hadamard",
     [](Info info, Tensors) {
         return any(info, [](const TensorInfo& of) { return of.ops.hadamard >= 128; });
     }},
    // Quantised outputs
    {"int8", stores<VKROPE_INT8>, nullptr, 6000},
    {"e4m3fn", stores<VKROPE_E4M3FN>, nullptr, 6000},
    {"e5m2",
     [](Info info, Tensors shape) {
         return stores<VKROPE_E5M2>(info, shape) && !info.scatter_kv && shape.v_heads() > 1;
     },
     nullptr, 6000},
    {"q8_0", stores<VKROPE_Q8_0>},
    {"q4_0", stores<VKROPE_Q4_0>},
    {"q4_1", stores<VKROPE_Q4_1>},
    {"q5_0", stores<VKROPE_Q5_0>},
    {"q5_1", stores<VKROPE_Q5_1>},
    {"iq4_nl", stores<VKROPE_IQ4_NL>},
    {"int4", stores<VKROPE_INT4>, nullptr, 6000},
    {"scales_given_by_head",
     [](Info info, Tensors shape) {
         return info.tensor[K].ops.store_scale == VKROPE_STORE_SCALE_GIVEN_HEAD && shape.groups > 1;
     }},
    {"scales_made_for_a_cache",
     [](Info info, Tensors shape) {
         return info.scatter_kv && is_made(info.tensor[K].ops.store_scale) && shape.groups > 1;
     }},
    {"scale_group",
     [](Info info, Tensors) {
         const TensorInfo& k = info.tensor[K];
         return info.scatter_kv && k.ops.store_scale_group != 0 && scale_groups(k) > 1;
     }},
    {"ue8m0",
     [](Info info, Tensors shape) {
         return info.tensor[K].ops.scale_type == VKROPE_SCALE_TYPE_UE8M0 && shape.groups > 1;
     }},
    {"many_stored_heads",
     [](Info info, Tensors) {
         const TensorInfo& q = info.tensor[Q];
         return q.heads == 0 && info.tensor[K].heads == 0 && q.head_dim % 2 == 1 &&
                q.head_dim > 15 && q.head_dim < 24 && is_quantised(q.out);
     },
     has_lanes_of_several_heads, 800000},
    // Calls in parts
    {"parts_of_few_workgroups", [](Info info, Tensors) { return rotates(info); }, nullptr, 20000,
     few_workgroups},
    {"parts_of_short_ranges",
     [](Info info, Tensors) {
         return rotates(info) && info.angles != VKROPE_ANGLES_DIRECT_BUFFER &&
                info.angles != VKROPE_ANGLES_DIRECT_TEXTURE &&
                info.angles != VKROPE_ANGLES_COS_SIN_CACHE;
     },
     nullptr, 20000, short_range},
    {"parts_of_heads",
     [](Info info, Tensors shape) {
         const TensorInfo& q = info.tensor[Q];
         return by_head(q) && q.head_dim > 32 && q.head_dim % 2 == 1 && shape.q_heads() > 16 &&
                !any_norm(info, VKROPE_NORM_SPAN_TOKEN) && info.mapping != VKROPE_MAPPING_GPU;
     },
     nullptr, 4000, few_workgroups},
    {"few_storage_buffers",
     [](Info info, Tensors) {
         return rotates(info) && !info.scatter_kv && info.angles != VKROPE_ANGLES_DIRECT_BUFFER &&
                info.angles != VKROPE_ANGLES_DIRECT_TEXTURE &&
                info.angles != VKROPE_ANGLES_COS_SIN_CACHE && has(info.tensor[Q]) &&
                has(info.tensor[K]);
     },
     [](Whole operation) { return !operation.absent[Q] && !operation.absent[K]; },
     1500,
     {.storage_buffers = 4}},
    // Layers without a rotation
    {"ops_without_a_rotation",
     [](Info info, Tensors) {
         const TensorInfo& q = info.tensor[Q];
         return info.rotary_dim == 0 && has_norm(q, VKROPE_NORM_RMS) && q.ops.scale_tokens;
     }},
    {"quantised_without_a_rotation",
     [](Info info, Tensors) {
         return info.rotary_dim == 0 && info.scatter_kv && is_quantised(info.tensor[K].out);
     }},
    {"copies_to_a_cache",
     [](Info info, Tensors) {
         return info.rotary_dim == 0 && info.scatter_kv && has(info.tensor[V]) &&
                !any(info, has_steps) && !any_quantised(info) && !any(info, has_second);
     }},
    // Norms of a part of a row
    {"latent_rows",
     [](Info info, Tensors) {
         return info.rotary_dim == 64 && info.tensor[K].head_dim == 576 &&
                normed_channels(info, K) == 512 && has_known_angles(info);
     }},
    {"norms_of_odd_parts",
     [](Info info, Tensors) {
         return normed_channels(info, Q) % 2 == 1 &&
                info.tensor[Q].ops.norm.first_channel % 2 == 1 && has_known_angles(info);
     }},
    {"norms_of_parts_of_a_token",
     [](Info info, Tensors) {
         return normed_channels(info, Q) > 1 && info.tensor[Q].heads > 1 &&
                info.tensor[Q].ops.norm.span == VKROPE_NORM_SPAN_TOKEN && has_known_angles(info);
     }},
    // Second destinations
    {"second_of_results",
     [](Info info, Tensors) {
         const TensorInfo& k = info.tensor[K];
         return k.second_of == VKROPE_SECOND_RESULT && is_quantised(k.out) && info.scatter_kv &&
                info.rotary_dim != 0 && has_known_angles(info);
     }},
    {"second_of_inputs",
     [](Info info, Tensors) {
         const TensorInfo& k = info.tensor[K];
         return k.second_of == VKROPE_SECOND_INPUT && k.second != k.in && has_steps(k) &&
                info.rotary_dim != 0 && info.head_groups < 2 && has_known_angles(info);
     }},
    {"second_in_place",
     [](Info info, Tensors) {
         const TensorInfo &k = info.tensor[K], &v = info.tensor[V];
         return has_second(k) && has_second(v) && !info.scatter_kv && k.in == k.out &&
                v.in == v.out && output_pairing(info) == info.pairing;
     },
     [](Whole operation) { return operation.in_place[K] && operation.in_place[V]; }},
    {"second_with_few_storage_buffers",
     [](Info info, Tensors) {
         return info.rotary_dim != 0 && !any(info, has_steps) && !any_quantised(info) &&
                !info.scatter_kv && info.angles != VKROPE_ANGLES_DIRECT_BUFFER &&
                info.angles != VKROPE_ANGLES_DIRECT_TEXTURE &&
                info.angles != VKROPE_ANGLES_COS_SIN_CACHE && has(info.tensor[Q]) &&
                has_second(info.tensor[K]);
     },
     [](Whole operation) { return !operation.absent[Q] && !operation.absent[K]; },
     1500,
     {.storage_buffers = 4}},
    // Keys that move
    {"moved_in_place_q8_0",
     [](Info info, Tensors) { return moves_in_place(info, VKROPE_Q8_0) && info.scatter_kv; },
     is_k_in_place},
    {"moved_in_place_e4m3fn",
     [](Info info, Tensors) {
         const Ops& ops = info.tensor[K].ops;
         return moves_in_place(info, VKROPE_E4M3FN) && ops.scales_in && is_made(ops.store_scale);
     },
     is_k_in_place},
    {"moved_in_place_with_hadamard",
     [](Info info, Tensors) {
         const Ops& ops = info.tensor[K].ops;
         return moves_in_place(info, VKROPE_F16) && ops.hadamard_of_input > 2 &&
                ops.hadamard_of_input == ops.hadamard;
     },
     is_k_in_place},
    {"moved_to_other_slots",
     [](Info info, Tensors shape) {
         return gathers_and_scatters(info, shape) && info.tensor[K].in == info.tensor[K].out &&
                output_pairing(info) == info.pairing;
     },
     [](Whole operation) { return is_k_in_place(operation) && has_other_slots(operation); }},
    {"moved_to_another_cache", gathers_and_scatters,
     [](Whole operation) { return !is_k_in_place(operation) && has_other_slots(operation); }},
    {"moved_in_parts",
     [](Info info, Tensors shape) {
         return gathers_and_scatters(info, shape) && is_quantised(info.tensor[K].in) &&
                info.angles == VKROPE_ANGLES_COMPUTED;
     },
     has_other_slots, 6000, short_range},
    {"gathered_rows",
     [](Info info, Tensors) {
         return info.gather_kv && !info.scatter_kv && is_quantised(info.tensor[K].in) &&
                !is_quantised(info.tensor[K].out);
     },
     has_other_slots},
    {"converted",
     [](Info info, Tensors) {
         const TensorInfo& k = info.tensor[K];
         return is_quantised(k.in) && is_quantised(k.out) && k.in != k.out;
     }},
    {"kept_rows",
     [](Info info, Tensors) {
         const TensorInfo& k = info.tensor[K];
         return gathers_and_scatters(info, {}) && moves(info, k.in) &&
                k.ops.scales_in == is_made(k.ops.store_scale) &&
                k.ops.hadamard_of_input == k.ops.hadamard && !info.phase &&
                output_pairing(info) == info.pairing;
     },
     [](Whole operation) {
         return has_other_slots(operation) && operation.call.gain == VKROPE_GAIN_OMIT;
     }},
    // Slots of V's own
    {"slots_of_v",
     [](Info info, Tensors shape) {
         return info.scatter_kv && rotates(info) && has(info.tensor[V]) &&
                info.tensor[V].head_dim == info.tensor[K].head_dim &&
                shape.v_heads() == shape.groups;
     },
     [](Whole operation) { return has_slots_of_v(operation) && operation.counts; }},
    {"slots_of_v_in_parts",
     [](Info info, Tensors) {
         return info.scatter_kv && has(info.tensor[V]) && info.angles == VKROPE_ANGLES_COMPUTED;
     },
     has_slots_of_v, 6000, short_range},
    {"moved_with_slots_of_v",
     [](Info info, Tensors shape) {
         return gathers_and_scatters(info, shape) && has(info.tensor[V]);
     },
     [](Whole operation) {
         return has_slots_of_v(operation) && !operation.v_sources.empty();
     }},
    // Weights that a call binds
    {"bound_weights",
     [](Info info, Tensors) {
         const Norm& norm = info.tensor[Q].ops.norm;
         return binds_weight(info.tensor[Q]) && norm.weight_type == VKROPE_F16 &&
                norm.weight_offset == 1 && info.rotary_dim != 0 && has_known_angles(info);
     }},
    {"bound_weights_of_heads",
     [](Info info, Tensors shape) {
         const TensorInfo& k = info.tensor[K];
         return binds_weight(k) && k.ops.norm.weight == VKROPE_PARAMETER_HEAD_CHANNEL &&
                k.ops.norm.weight_type == VKROPE_BF16 && k.head_dim % 2 == 1 && shape.groups > 1;
     }},
    {"bound_weights_with_few_storage_buffers",
     [](Info info, Tensors) {
         return binds_weight(info.tensor[Q]) && binds_weight(info.tensor[K]) &&
                !info.scatter_kv && info.rotary_dim != 0 &&
                info.angles != VKROPE_ANGLES_DIRECT_BUFFER &&
                info.angles != VKROPE_ANGLES_DIRECT_TEXTURE && has_known_angles(info) &&
                !any(info, [](const TensorInfo& of) {
                    return of.ops.scale_tokens || is_made(of.ops.store_scale) || has_second(of);
                });
     },
     [](Whole operation) { return !operation.absent[Q] && !operation.absent[K]; },
     1500,
     {.storage_buffers = 6}},
    {"bound_weights_in_units_of_8",
     [](Info info, Tensors) {
         const TensorInfo& q = info.tensor[Q];
         return binds_weight(q) && q.ops.norm.weight_type == VKROPE_F32 && q.head_dim >= 16 &&
                has_units(info, 8) && info.rotary_dim != 0 &&
                !any(info, [](const TensorInfo& of) {
                    return of.in == VKROPE_F32 || of.out == VKROPE_F32 ||
                           of.ops.norm.channels != 0;
                });
     }},
    // Lanes of GPUs. With another vendor, the other mapping runs.
    {"heads_of_v_after_rotated_heads",
     [](Info info, Tensors shape) {
         return takes_heads_in_turn(info, shape) && v_like_k(info, shape) && shape.groups > 32 &&
                info.rotary_dim < info.tensor[K].head_dim;
     },
     [](Whole operation) { return has_q_and_k(operation) && moves_v_with_k(operation); }, 3000},
    {"few_registers",
     [](Info info, Tensors) {
         return rotates(info) && info.mapping == VKROPE_MAPPING_CPU && has(info.tensor[Q]) &&
                has(info.tensor[K]) && info.tensor[Q].head_dim > info.rotary_dim;
     },
     has_q_and_k, 1500, {.vendor = arm}},
    {"few_registers_for_ops",
     [](Info info, Tensors) {
         return any_norm(info) && info.mapping == VKROPE_MAPPING_CPU && has_units(info, 8) &&
                info.tensor[Q].in == VKROPE_F16;
     },
     nullptr, 1500, {.vendor = broadcom}},
    // Numbers of tokens in a buffer
    {"token_count",
     [](Info info, Tensors) {
         return rotates(info) && info.positions != VKROPE_POSITIONS_IMPLICIT &&
                info.angles != VKROPE_ANGLES_COMPUTED && has(info.tensor[V]) && !info.scatter_kv;
     },
     counts_some_tokens, 4000, {}, true},
    {"token_count_of_all_or_more",
     [](Info info, Tensors shape) {
         return rotates(info) && has(info.tensor[Q]) && has(info.tensor[K]) &&
                has(info.tensor[V]) && !v_like_k(info, shape);
     },
     [](Whole operation) {
         return has_q_and_k(operation) && !operation.absent[V] && operation.counts &&
                operation.token_count >= operation.shape.tokens;
     },
     20000, few_workgroups, true},
    {"token_count_in_parts",
     [](Info info, Tensors) {
         return rotates(info) && info.mapping == VKROPE_MAPPING_CPU && info.head_groups < 2 &&
                has_known_angles(info);
     },
     [](Whole operation) {
         return counts_some_tokens(operation) &&
                operation.token_count > operation.shape.tokens / 2;
     },
     20000, few_workgroups, true},
    {"token_count_of_slots",
     [](Info info, Tensors) {
         return info.scatter_kv && has(info.tensor[V]) && is_made(info.tensor[K].ops.store_scale);
     },
     counts_some_tokens, 4000, {}, true},
    {"token_count_of_a_cache",
     [](Info info, Tensors) {
         return moves_keys(info) && info.gather_kv && info.scatter_kv && info.rotary_dim != 0 &&
                has(info.tensor[V]) && info.tensor[K].head_dim < 200;
     },
     counts_some_tokens, 4000, {}, true},
    {"token_count_with_second",
     [](Info info, Tensors) {
         return has_second(info.tensor[K]) && is_made(info.tensor[K].ops.store_scale) &&
                !info.scatter_kv && info.head_groups < 2;
     },
     [](Whole operation) { return !operation.absent[K] && has_some_tokens(operation); }, 4000, {},
     true},
    {"token_count_with_norms",
     [](Info info, Tensors) {
         return any_norm(info, VKROPE_NORM_SPAN_TOKEN) && lanes_own_rows(info) &&
                info.mapping == VKROPE_MAPPING_CPU;
     },
     has_some_tokens, 4000, {}, true},
};

}  // namespace

std::span<const Kind> kinds() {
    return all;
}

}  // namespace vkrope::verify
