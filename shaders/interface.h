// SPDX-License-Identifier: MIT
// Defines the interface between shaders and host: bindings, constant ids, enum values, push
// constants. GLSL and C++ include it.
#ifndef VKROPE_INTERFACE_H
#define VKROPE_INTERFACE_H

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
namespace vkrope::shader {
using uint = std::uint32_t;
#define VKROPE_CONSTANT inline constexpr uint
#else
#define VKROPE_CONSTANT const uint
#endif

// Bindings of descriptor set 0, in the order Q, K, V. Written buffers are those from binding_q_out
// to binding_v_second, but for binding_v_scales_in. A kernel has only the bindings that its code
// uses.
VKROPE_CONSTANT binding_q_in = 0;
VKROPE_CONSTANT binding_k_in = 1;
VKROPE_CONSTANT binding_v_in = 2;
VKROPE_CONSTANT binding_q_scales = 3;  // a factor for each token
VKROPE_CONSTANT binding_k_scales = 4;
VKROPE_CONSTANT binding_v_scales = 5;
VKROPE_CONSTANT binding_ids = 6;           // positions
VKROPE_CONSTANT binding_slot_mapping = 7;  // destination rows of K and V
VKROPE_CONSTANT binding_table = 8;         // (cos, sin) pairs, or cos alone
VKROPE_CONSTANT binding_table_sin = 9;     // sin, if separate from cos
VKROPE_CONSTANT binding_parameters = 10;   // weights, biases, given scales
VKROPE_CONSTANT binding_q_out = 11;        // in place: the same buffer as q_in
VKROPE_CONSTANT binding_k_out = 12;
VKROPE_CONSTANT binding_v_out = 13;
VKROPE_CONSTANT binding_q_scales_out = 14;  // computed scales of rows
VKROPE_CONSTANT binding_k_scales_out = 15;
VKROPE_CONSTANT binding_v_scales_out = 16;
VKROPE_CONSTANT binding_out_of_range = 17;  // counter of tokens out of range: position or slot
VKROPE_CONSTANT binding_turns = 18;         // uniforms: constants for computed angles
VKROPE_CONSTANT binding_texture = 19;       // rows of the angle table
VKROPE_CONSTANT binding_k_second = 20;  // second destinations of rows: written, like 11 to 17
VKROPE_CONSTANT binding_v_second = 21;
VKROPE_CONSTANT binding_q_weight = 22;  // weights of norms that are not parameters: read
VKROPE_CONSTANT binding_k_weight = 23;
VKROPE_CONSTANT binding_v_weight = 24;
VKROPE_CONSTANT binding_token_count = 25;  // tokens of each sequence: read, at offset 0
VKROPE_CONSTANT binding_count = 26;
// Kernels that move keys have no Q, whose bindings they use.
VKROPE_CONSTANT binding_source_mapping = binding_q_in;  // source rows of K and V
VKROPE_CONSTANT binding_k_scales_in = binding_q_scales;  // scales of source rows
VKROPE_CONSTANT binding_v_scales_in = binding_q_scales_out;

// Bindings of positions.comp. The layouts of kernels have these numbers if the device binds 12
// storage buffers, so that their arenas serve it, too.
VKROPE_CONSTANT position_binding_source = binding_q_in;  // ids, cu_seqlens or query_lens
VKROPE_CONSTANT position_binding_offsets = binding_ids;
VKROPE_CONSTANT position_binding_seq_lens = binding_slot_mapping;
VKROPE_CONSTANT position_binding_table = binding_table;  // block_table, or factors
VKROPE_CONSTANT position_binding_out = binding_q_out;
VKROPE_CONSTANT position_binding_out_of_range = binding_out_of_range;

// Specialisation constants. They differ between kernels, or between the pipelines of a kernel.
// Tables expand to X(id, name, default), in the order of ids. Id 0 is the workgroup size:
// chunk_lanes * head_lanes * group_tokens.

// Constants of a pipeline.
#define VKROPE_PIPELINE_CONSTANTS(X)                                                              \
    X(1, chunk_lanes, 1)     /* lanes per row in a workgroup */                                   \
    X(2, head_lanes, 1)      /* heads of a token side by side in a workgroup */                   \
    X(3, group_tokens, 1)    /* tokens side by side in a workgroup */                             \
    X(4, chunks_together, 1) /* consecutive chunks that a lane rotates */                         \
    X(5, units_apart, 0)     /* 1: adjacent units go to adjacent lanes; 0: to one lane */         \
    X(6, rare_branches, 0)   /* 1: rare cases branch; 0 on CPUs, which run every branch */        \
    X(7, access, 0)          /* access_* */                                                       \
    X(8, unit_elements, 1)   /* elements per unit: 1, 2, 4 or 8 */                                \
    X(9, conversion, 0)      /* conversion_* */                                                   \
    X(10, scatter, 0)        /* 1: rows of K and V go to the slots of slot_mapping */             \
    X(11, pairing, 0)        /* pairing_* */                                                      \
    X(12, pairing_out, 0)                                                                         \
    X(13, rotary_dim, 2)   /* of all windows together; 0: nothing rotates */                      \
    X(14, window_dim_0, 2) /* channels of a window; 0: absent */                                  \
    X(15, window_dim_1, 0)                                                                        \
    X(16, window_dim_2, 0)                                                                        \
    X(17, window_dim_3, 0)                                                                        \
    X(18, window_at_0, 0) /* first channel, from rotary_offset on */                              \
    X(19, window_at_1, 0)                                                                         \
    X(20, window_at_2, 0)                                                                         \
    X(21, window_at_3, 0)                                                                         \
    X(22, angles, 0)        /* angles_* */                                                        \
    X(23, positions, 0)     /* positions_* */                                                     \
    X(24, axes, 0)          /* 0: one position per token */                                       \
    X(25, section_order, 0) /* sections_* */                                                      \
    X(26, leftover_axis, 0)                                                                       \
    X(27, section_0, 1) /* pairs of a section */                                                  \
    X(28, section_1, 0)                                                                           \
    X(29, section_2, 0)                                                                           \
    X(30, section_3, 0)                                                                           \
    X(31, section_4, 0)                                                                           \
    X(32, section_5, 0)                                                                           \
    X(33, section_6, 0)                                                                           \
    X(34, section_7, 0)                                                                           \
    X(35, counter, 0)           /* 1: may count tokens whose position or slot is out of range */  \
    X(36, few_registers, 0)     /* 1: loads K and V after storing Q, and copies last */           \
    X(37, ops, 0)               /* ops_*: lanes that apply q_ops, k_ops, v_ops */                 \
    X(38, norms_held, 1)        /* rows of a tensor whose norms a lane keeps in registers */      \
    X(39, exchanged, 1)         /* floats of sums that the lanes of a workgroup share */          \
    X(40, heads_together, 1)    /* ops_shared: heads whose units a lane exchanges at once */      \
    X(41, staged, 1)            /* words of rows that the lanes of a workgroup store together */  \
    X(42, phase, 0)             /* 1: a phase is added to the angle of each pair */               \
    X(43, head_groups, 1)       /* computed: groups of heads, each with its frequencies */        \
    X(44, channel_angles, 0)    /* 1: each channel of a pair has its angle; cos_sin_cache */      \
    X(45, second_parameters, 0) /* floats from the first set of parameters to the second, or 0 */ \
    X(46, staged_gaps, 0)       /* 1: staged rows have gaps: VKROPE_ROW_WORDS */                  \
    X(47, gather, 0)            /* 1: rows of K and V come from source_mapping */                 \
    X(48, copy_access, 0)       /* without ops, of channels that do not rotate: access_*, */      \
    X(49, copy_elements, 1)     /* and elements per unit */                                       \
    X(50, token_count, 0)       /* 1: a buffer has the number of tokens */

// Constants of a tensor, with ids from `first` on, and names that begin with t. V has K's batch. In
// a dispatch with K, V also has K's strides and heads.
#define VKROPE_TENSOR_CONSTANTS(X, t, first)                                          \
    X(first + 0, t##head_dim, 2)      /* 0: the tensor is absent */                   \
    X(first + 1, t##rotary_offset, 0) /* channel from which window_at_* count */      \
    X(first + 2, t##element_in, 0)    /* element_* */                                 \
    X(first + 3, t##element_out, 0)                                                   \
    X(first + 4, t##batch, 0)     /* maximum heads per lane; 0: all */                \
    X(first + 5, t##ops, 0)       /* op_* */                                          \
    X(first + 6, t##row_heads, 1) /* heads that a norm treats as one row */           \
    X(first + 7, t##inverse_n, 0) /* f32 bits: 1 / channels of such a row */          \
    X(first + 8, t##eps, 0)       /* f32 bits */                                      \
    X(first + 9, t##clip, 0)      /* f32 bits */                                      \
    X(first + 10, t##factor, 0)   /* f32 bits; op_scale */                            \
    X(first + 11, t##bias, 0)     /* shape_* */                                       \
    X(first + 12, t##bias_at, 0)  /* floats from the start of the parameters */       \
    X(first + 13, t##weight, 0)   /* shape_* */                                       \
    X(first + 14, t##weight_at, 0)                                                    \
    X(first + 15, t##norm_bias, 0) /* shape_* */                                      \
    X(first + 16, t##norm_bias_at, 0)                                                 \
    X(first + 17, t##hadamard, 0)       /* levels: log2 of the channels of a block */ \
    X(first + 18, t##store_scale, 0)    /* store_scale_* */                           \
    X(first + 19, t##store_scale_at, 0) /* floats from the start of the parameters */ \
    X(first + 20, t##scale_floor, 0)    /* f32 bits */                                \
    X(first + 21, t##scale_heads, 1)    /* heads of the call: rows per token */      \
    X(first + 22, t##norm_first, 0)     /* part of a row that a norm takes: */        \
    X(first + 23, t##norm_dim, 2)       /* first channel, number of channels */       \
    X(first + 24, t##second_of, 0)      /* second_*: second destination */            \
    X(first + 25, t##element_second, 0)                                               \
    X(first + 26, t##row_scales, 1)  /* scales of a row: groups of channels */        \
    X(first + 27, t##scale_bytes, 0) /* 1: they are UE8M0, else f32 */                \
    X(first + 28, t##scales_paged, 0) /* 1: [pages, heads, rows of a page] */         \
    X(first + 29, t##element_read, 0) /* element_* of quantised rows, read as f32 */  \
    X(first + 30, t##scales_read, 0) /* 1: these rows have scales */                  \
    X(first + 31, t##hadamard_read, 0) /* levels of a transform to undo first */      \
    X(first + 32, t##keeps, 0)       /* 1: rows that stay keep their bytes */         \
    X(first + 33, t##weight_bound, 0) /* 1: the weight is not among the parameters: */ \
    X(first + 34, t##element_weight, 0) /* its element_*, */                           \
    X(first + 35, t##weight_added, 0) /* and what is added to it: 0 or 1 */

VKROPE_CONSTANT first_q_constant = 51, first_k_constant = 87, first_v_constant = 123;
#define VKROPE_CONSTANTS(X)                          \
    VKROPE_PIPELINE_CONSTANTS(X)                     \
    VKROPE_TENSOR_CONSTANTS(X, q_, first_q_constant) \
    VKROPE_TENSOR_CONSTANTS(X, k_, first_k_constant) \
    VKROPE_TENSOR_CONSTANTS(X, v_, first_v_constant)
VKROPE_CONSTANT max_windows = 4;
VKROPE_CONSTANT max_axes = 8;

// Words of shared memory that every device has.
#define VKROPE_SHARED_WORDS 4096u
// Words of a row in shared memory. With gaps (1), four words are left free after every 32 channels,
// and four after the row. Lanes that access 4 or 8 adjacent words each, or the same words of
// several rows, then use different banks, and four adjacent channels stay 16 aligned bytes.
#define VKROPE_ROW_WORDS(channels, gaps) \
    ((channels) + (gaps) * (((channels) + 31u) / 32u * 4u + 4u))

VKROPE_CONSTANT pairing_half_split = 0;
VKROPE_CONSTANT pairing_interleaved = 1;

VKROPE_CONSTANT element_f32 = 0;
VKROPE_CONSTANT element_f16 = 1;
VKROPE_CONSTANT element_bf16 = 2;
// Quantised types: quantise.glsl and blocks.glsl.
VKROPE_CONSTANT element_e4m3fn = 3;
VKROPE_CONSTANT element_e5m2 = 4;
VKROPE_CONSTANT element_int8 = 5;
VKROPE_CONSTANT element_q8_0 = 6;
VKROPE_CONSTANT element_q4_0 = 7;
VKROPE_CONSTANT element_q4_1 = 8;
VKROPE_CONSTANT element_q5_0 = 9;
VKROPE_CONSTANT element_q5_1 = 10;
VKROPE_CONSTANT element_iq4_nl = 11;
VKROPE_CONSTANT element_int4 = 12;
// Types with ggml's blocks: q8_0 to iq4_nl.
#define VKROPE_HAS_BLOCKS(type) ((type) - element_q8_0 <= element_iq4_nl - element_q8_0)

// The number of lanes that quantise one block together, a power of two, and the words that each
// lane shares with the others: extremes of lower and of upper channels (q8_0: of all). A block of
// iq4_nl has one lane, because its sums have an order.
#define VKROPE_BLOCK_LANES(type, channels, lanes)                            \
    ((type) == element_iq4_nl           ? 1u                                 \
     : (lanes) >= 8 * ((channels) / 32) ? ((type) == element_q8_0 ? 8u : 4u) \
     : (lanes) >= 4 * ((channels) / 32) ? 4u                                 \
     : (lanes) >= 2 * ((channels) / 32) ? 2u                                 \
                                        : 1u)
#define VKROPE_SHOWN_WORDS(type) \
    ((type) == element_q8_0 ? 1u : (type) == element_q4_1 || (type) == element_q5_1 ? 4u : 2u)

// Conversion of f16 to and from f32: with integers; with OpFConvert under RoundingModeRTE 16,
// except for subnormal halves; with OpFConvert for all halves, under DenormPreserve 16 too.
VKROPE_CONSTANT conversion_integer = 0;
VKROPE_CONSTANT conversion_normals = 1;
VKROPE_CONSTANT conversion_native = 2;

// Assignment of the ops (bias, norm, scale, ...) of a row to lanes.
VKROPE_CONSTANT ops_none = 0;    // no ops
VKROPE_CONSTANT ops_owned = 1;   // a lane owns whole rows: the heads of a token, one by one
VKROPE_CONSTANT ops_shared = 2;  // lanes share a row and exchange their sums

// Bits of q_ops, k_ops and v_ops.
VKROPE_CONSTANT op_rms = 1;
VKROPE_CONSTANT op_layer = 2;
VKROPE_CONSTANT op_token = 4;     // a norm treats all heads of a token as one row
VKROPE_CONSTANT op_before = 8;    // a norm comes before the rotation
VKROPE_CONSTANT op_after = 16;    // or after it
VKROPE_CONSTANT op_rounds = 32;   // Norm::round_between
VKROPE_CONSTANT op_one_sum = 64;  // squares cannot overflow
VKROPE_CONSTANT op_clip = 128;
VKROPE_CONSTANT op_scale = 256;
VKROPE_CONSTANT op_scale_call = 512;  // Push::q_scale is the factor
VKROPE_CONSTANT op_scale_tokens = 1024;

// Source of the scale of a row that is stored as 8-bit floats or int8.
VKROPE_CONSTANT store_scale_none = 0;
VKROPE_CONSTANT store_scale_given = 1;       // one number of the parameters
VKROPE_CONSTANT store_scale_given_head = 2;  // one number for each head
VKROPE_CONSTANT store_scale_made = 4;        // computed from the row: [tokens or slots, heads]
// Added to store_scale_made: rounded up to a power of two.
VKROPE_CONSTANT store_scale_power_of_two = 1;

// Content of a second destination: nothing, a row after all ops, or a row as it was read.
VKROPE_CONSTANT second_none = 0;
VKROPE_CONSTANT second_result = 1;
VKROPE_CONSTANT second_input = 2;

VKROPE_CONSTANT shape_none = 0;
VKROPE_CONSTANT shape_channel = 1;
VKROPE_CONSTANT shape_head_channel = 2;

VKROPE_CONSTANT positions_implicit = 0;
VKROPE_CONSTANT positions_ids = 1;  // one id per token, or one per token and axis

VKROPE_CONSTANT sections_sequential = 0;
VKROPE_CONSTANT sections_interleaved = 1;
VKROPE_CONSTANT sections_sum = 2;  // the angle of a pair is the sum over all axes

// Source of cos and sin: a texture with a row for each |position|, or for each of its two digits;
// computed; a buffer of f32 pairs with a row for each |position|; separate buffers of cos and sin
// with a row for each position.
VKROPE_CONSTANT angles_texture = 0;
VKROPE_CONSTANT angles_factored = 1;
VKROPE_CONSTANT angles_computed = 2;
VKROPE_CONSTANT angles_pairs = 3;
VKROPE_CONSTANT angles_cos_sin_cache = 4;  // plus element_*

// Bits of the fine digit of a factored table, which begins with coarse_rows(table_rows) coarse
// rows. With phases, a position below 0 has a negative coarse digit, which needs one more row.
VKROPE_CONSTANT fine_digit_bits = 11;
// Number of vec4s before the fractions of computed angles. A vec4 contains two fractions: low,
// high, low, high. Each head group has the fractions of every pair, axis after axis if axes are
// summed, and then the phases.
VKROPE_CONSTANT turn_header_vec4s = 2;

// Width of buffer accesses: the widest one that the layouts of all tensors of a call allow.
VKROPE_CONSTANT access_wide = 0;    // 16 bytes
VKROPE_CONSTANT access_pair = 1;    // 8 bytes; not with the mapping for CPUs
VKROPE_CONSTANT access_word = 2;    // 4 bytes
VKROPE_CONSTANT access_narrow = 3;  // one element; 16-bit elements merge into words atomically

// Bits of Push::flags.
VKROPE_CONSTANT flag_inverse = 1;
VKROPE_CONSTANT flag_q_in_place = 2;
VKROPE_CONSTANT flag_k_in_place = 4;
VKROPE_CONSTANT flag_count_positions = 8;   // count positions outside the table
VKROPE_CONSTANT flag_count_slots = 16;      // count slots outside the cache, at covered positions
VKROPE_CONSTANT flag_z_is_group = 32;       // z counts groups of heads, which share ids and slots
VKROPE_CONSTANT flag_slot_mapping_64 = 64;  // slots are int64
VKROPE_CONSTANT flag_ids_64 = 128;          // ids are int64
VKROPE_CONSTANT flag_v = 256;               // V is copied together with K; not in place
VKROPE_CONSTANT flag_v_scales_out = 512;    // six bits from this one on: offset of v_scales_out
VKROPE_CONSTANT flag_second = 32768;        // this dispatch stores the second destinations
VKROPE_CONSTANT flag_keeps = flag_q_in_place;  // without Q: angle 0 changes no row
VKROPE_CONSTANT flag_first_head = 65536;    // from this bit on: first head of this dispatch

// Bit of Push::first_token: this dispatch counts a number of tokens that is too large.
VKROPE_CONSTANT first_token_counts = 0x80000000u;

// Indices of the bytes of Push::offsets. A byte is the start of an item in its binding, in elements
// or words; for a quantised type, in bytes. Items of tensors are in the order Q, K, V.
VKROPE_CONSTANT offset_q_in = 0;
VKROPE_CONSTANT offset_k_in = 1;
VKROPE_CONSTANT offset_v_in = 2;
VKROPE_CONSTANT offset_q_out = 3;
VKROPE_CONSTANT offset_k_out = 4;
VKROPE_CONSTANT offset_v_out = 5;
VKROPE_CONSTANT offset_q_scales = 6;
VKROPE_CONSTANT offset_k_scales = 7;
VKROPE_CONSTANT offset_v_scales = 8;
VKROPE_CONSTANT offset_ids = 9;
VKROPE_CONSTANT offset_slots = 10;
VKROPE_CONSTANT offset_out_of_range = 11;
VKROPE_CONSTANT offset_table = 12;
VKROPE_CONSTANT offset_parameters = 13;
VKROPE_CONSTANT offset_q_scales_out = 14;
VKROPE_CONSTANT offset_k_scales_out = 15;  // V's: flag_v_scales_out
// Kernels that move keys use Q's.
VKROPE_CONSTANT offset_source = offset_q_in;
VKROPE_CONSTANT offset_k_scales_in = offset_q_scales;
VKROPE_CONSTANT offset_v_scales_in = offset_q_scales_out;

// Strides of the rows of a tensor, in elements, or in blocks of a quantised type. z is the stride
// of sequences or groups of heads. For scattered rows, z is the stride of pages, and token the
// stride of rows in a page.
struct RowLayout {
    uint z, token, head;
};

// A word of the push constants whose name depends on the kernel's constants.
#ifdef __cplusplus
#define VKROPE_EITHER(a, b) union { uint a, b; }
#define VKROPE_ONE_OF_3(a, b, c) union { uint a, b, c; }
#else
#define VKROPE_EITHER(a, b) uint a
#define VKROPE_ONE_OF_3(a, b, c) uint a
#define VKROPE_PUSH_IDS_Z VKROPE_PUSH.position_z
#define VKROPE_PUSH_FIRST_TOKEN VKROPE_PUSH.first_set_tokens
#define VKROPE_PUSH_IDS_TOKEN VKROPE_PUSH.first_position
#define VKROPE_PUSH_TABLE_STRIDE VKROPE_PUSH.texture_fold_log2
#define VKROPE_PUSH_FIRST_HEAD_GROUP VKROPE_PUSH.texture_fold_log2
#define VKROPE_PUSH_TABLE_SIN_OFFSET VKROPE_PUSH.texture_row_texels
// Kernels that move keys have no Q: source slots, as slot_z, slot_first and slot_rows.
#define VKROPE_PUSH_SOURCE_Z VKROPE_PUSH.q_in.z
#define VKROPE_PUSH_SOURCE_FIRST VKROPE_PUSH.q_in.token
#define VKROPE_PUSH_SOURCE_ROWS VKROPE_PUSH.q_in.head
#endif

// Push constants: 128 bytes, which every device supports. Strides of ids and slots are in words.
// Implicit positions are first_position + z * position_z + token; ids have strides.
struct Push {
    RowLayout q_in, q_out, k_in, k_out;  //  48
    uint offsets[4];                     //  64  a byte for each offset_*
    uint tokens;                         //  68
    uint heads;                          //  72  Q's | K's << 16; V has K's
    uint flags;                          //  76
    VKROPE_EITHER(first_position, ids_token);  //  80  first_position: int32 bits
    VKROPE_EITHER(position_z, ids_z);    //  84
    uint ids_axis;                       //  88
    VKROPE_EITHER(first_set_tokens, first_token);  //  92  of this dispatch; first_token_counts
    uint slot_z;                         //  96
    uint page_size;                      // 100  rows per page
    uint slot_first, slot_rows;          // 108  contiguous slots that this dispatch stores to
    uint table_rows;                     // 112  positions with |position| < table_rows are covered
    // 116  a texture: log2 of its rows per column; a buffer: words, or elements, per row; computed:
    //      the first head group of this dispatch
    VKROPE_ONE_OF_3(texture_fold_log2, table_stride, first_head_group);
    VKROPE_EITHER(texture_row_texels, table_sin_offset);  // 120
    uint gain;                           // 124  f32 bits: cos and sin are multiplied by it
    uint q_scale;                        // 128  f32 bits; op_scale_call
};

// Outputs of positions.comp, each from a pipeline of its own.
VKROPE_CONSTANT position_output_ids = 0;
VKROPE_CONSTANT position_output_slots = 1;
VKROPE_CONSTANT position_output_factors = 2;
VKROPE_CONSTANT position_output_token_count = 3;
VKROPE_CONSTANT position_output_count = 4;

// Flags of positions.comp.
VKROPE_CONSTANT position_flag_ids = 1;  // 64-bit ids, instead of offsets
VKROPE_CONSTANT position_flag_offsets = 2;
VKROPE_CONSTANT position_flag_offsets_64 = 4;
VKROPE_CONSTANT position_flag_ragged = 8;  // cu_seqlens or query_lens
VKROPE_CONSTANT position_flag_ragged_64 = 16;
VKROPE_CONSTANT position_flag_query_lens = 32;
VKROPE_CONSTANT position_flag_ids_f32 = 64;  // ids are f32; they become multiples of
                                             // 2^-fraction_bits
VKROPE_CONSTANT position_flag_seq_lens = 128;
VKROPE_CONSTANT position_flag_token_count = 256;  // tokens after the last sum are idle
VKROPE_CONSTANT position_flag_count_positions = 512;  // count tokens without a position, and
VKROPE_CONSTANT position_flag_count_own = 1024;       // what only this output can have out of range
VKROPE_CONSTANT position_flag_fraction_bits = 2048;   // from this bit on: 0 to 63

// Indices of the bytes of PositionPush::starts: words from the start of a binding.
VKROPE_CONSTANT position_start_source = 0;
VKROPE_CONSTANT position_start_offsets = 1;
VKROPE_CONSTANT position_start_seq_lens = 2;
VKROPE_CONSTANT position_start_table = 3;
VKROPE_CONSTANT position_start_out = 4;
VKROPE_CONSTANT position_start_out_of_range = 5;

struct PositionPush {
    uint total;             // numbers to write
    uint tokens;            // per sequence
    uint flags;             // position_flag_*
    uint first;             // int32 bits
    uint sequences;         // ragged
    uint cp_size, cp_rank;  // shards per sequence, and the index of this one
    uint starts[2];         // a byte for each position_start_*
    uint table_items;       // pages of a row of block_table, or factors
    uint item_positions;    // positions of a page, or of a factor
    uint table_stride;      // from one row of block_table to the next
    uint cache_pages;       // of which block_table has numbers
    uint shift;             // added to a position for its factor
};

#ifdef __cplusplus
// Values of the constants, in the order of ids.
#define VKROPE_MEMBER(id, name, otherwise) uint name = otherwise;
struct TensorConstants {
    VKROPE_TENSOR_CONSTANTS(VKROPE_MEMBER, , 0)
};
struct Constants {
    uint workgroup_size = 1;
    VKROPE_PIPELINE_CONSTANTS(VKROPE_MEMBER)
    TensorConstants tensor[3] = {};  // Q, K, V
};
#undef VKROPE_MEMBER
inline constexpr uint constant_count = sizeof(Constants) / 4;
#define VKROPE_IN_ORDER(id, name, otherwise) static_assert(offsetof(Constants, name) == 4 * (id));
VKROPE_PIPELINE_CONSTANTS(VKROPE_IN_ORDER)
#undef VKROPE_IN_ORDER
static_assert(offsetof(Constants, tensor) == 4 * first_q_constant &&
              sizeof(TensorConstants) == 4 * (first_k_constant - first_q_constant) &&
              sizeof(TensorConstants) == 4 * (first_v_constant - first_k_constant) &&
              offsetof(TensorConstants, weight_added) == 4 * 35);

// The numbers of coarse rows and of all rows of a factored table for `positions` positions.
constexpr std::uint64_t coarse_rows(std::uint64_t positions, bool phased) {
    return phased ? ((positions + (1u << fine_digit_bits) - 2) >> fine_digit_bits) + 1
                  : (positions + (1u << fine_digit_bits) - 1) >> fine_digit_bits;
}
constexpr std::uint64_t factored_rows(std::uint64_t positions, bool phased) {
    const bool fine_alone = !phased && positions >> fine_digit_bits == 0;
    return coarse_rows(positions, phased) + (fine_alone ? positions : 1u << fine_digit_bits);
}
// The number of rows of a direct table. With phases, rows of positions -1, -2, ... come last.
constexpr std::uint64_t direct_rows(std::uint64_t positions, bool phased) {
    return phased ? 2 * positions - 1 : positions;
}
// Bytes of the uniform buffer for the computed angles of `pairs` pairs.
constexpr std::uint64_t turn_bytes(std::uint64_t pairs, std::uint64_t groups, std::uint64_t axes,
                                   bool phased) {
    return 16 * (turn_header_vec4s + (pairs + 1) / 2 * groups * (axes + (phased ? 1 : 0)));
}
static_assert(sizeof(PositionPush) == 56);
static_assert(sizeof(Push) == 128 && offsetof(Push, tokens) == 64 && offsetof(Push, gain) == 120);
}  // namespace vkrope::shader
#endif
#endif
