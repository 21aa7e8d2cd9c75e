// SPDX-License-Identifier: MIT
// What the shaders and the host agree on: bindings, constant ids, enum values, push constants. Read by GLSL and by C++.
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

// Bindings of descriptor set 0. "First" is Q, "second" is K. Every number keeps its meaning in every module, present or not; a
// module declares only what its own code names (shaders/README.md has the table).
VKROPE_CONSTANT binding_first_in = 0;
VKROPE_CONSTANT binding_first_out = 1;  // the same buffer as 0 when in place
VKROPE_CONSTANT binding_second_in = 2;
VKROPE_CONSTANT binding_second_out = 3;
VKROPE_CONSTANT binding_index_a = 4;    // position ids, cu_seqlens
VKROPE_CONSTANT binding_index_b = 5;    // slots: destination rows of K; offsets of sequences
VKROPE_CONSTANT binding_table = 6;      // (cos, sin) pairs, or cos
VKROPE_CONSTANT binding_table_sin = 7;  // sin of a table in two parts
VKROPE_CONSTANT binding_status = 8;     // counter of tokens whose position or slot is outside
VKROPE_CONSTANT binding_uniforms = 9;   // numbers of a model, of which angles are computed
VKROPE_CONSTANT binding_texture = 10;   // angle rows
VKROPE_CONSTANT binding_count = 11;

// Specialisation constants: what changes the code, but neither a descriptor nor a capability.
VKROPE_CONSTANT constant_workgroup_size = 0;
VKROPE_CONSTANT constant_pairing = 1;
VKROPE_CONSTANT constant_rotary_dim = 2;
VKROPE_CONSTANT constant_positions = 3;
VKROPE_CONSTANT constant_access = 4;            // access_*
VKROPE_CONSTANT constant_unit_elements = 5;     // elements of one unit: 8 or 4 (wide), 2 or 1 (word), 1 (narrow)
VKROPE_CONSTANT constant_heads_batch = 6;       // heads whose loads are issued together: 1 to 4
VKROPE_CONSTANT constant_heads_owned = 7;       // heads an invocation owns; 0: all heads of the token, Q's and K's
VKROPE_CONSTANT constant_units_owned = 8;       // steps that an invocation turns in a row, side by side
VKROPE_CONSTANT constant_first_head_dim = 9;    // 0: absent
VKROPE_CONSTANT constant_first_offset = 10;     // first rotated channel
VKROPE_CONSTANT constant_first_in = 11;         // element_*
VKROPE_CONSTANT constant_first_out = 12;
VKROPE_CONSTANT constant_second_head_dim = 13;
VKROPE_CONSTANT constant_second_offset = 14;
VKROPE_CONSTANT constant_second_in = 15;
VKROPE_CONSTANT constant_second_out = 16;
VKROPE_CONSTANT constant_pairing_out = 17;
VKROPE_CONSTANT constant_scatter = 18;          // 1: K's rows go where their slots say
VKROPE_CONSTANT constant_window_dim = 19;       // channels of windows 0 to 3; 0: absent
VKROPE_CONSTANT constant_window_at = 23;        // where they start, from first_offset or second_offset on
VKROPE_CONSTANT constant_angles = 27;           // angles_*
VKROPE_CONSTANT constant_axes = 28;             // 0: one position a token
VKROPE_CONSTANT constant_section_order = 29;    // sections_*
VKROPE_CONSTANT constant_leftover_axis = 30;
VKROPE_CONSTANT constant_sections = 31;         // pairs of sections 0 to 7
VKROPE_CONSTANT constant_tensors = 39;          // 2: Q and K; 1: one tensor, first
VKROPE_CONSTANT constant_counter = 40;          // 1: tokens whose position or slot is outside may be counted
VKROPE_CONSTANT constant_conversion = 41;       // conversion_*
VKROPE_CONSTANT constant_count = 42;
VKROPE_CONSTANT most_windows = 4;
VKROPE_CONSTANT most_axes = 8;
VKROPE_CONSTANT copies_owned = 64;  // most steps that an invocation copies of a row

VKROPE_CONSTANT pairing_half_split = 0;
VKROPE_CONSTANT pairing_interleaved = 1;

VKROPE_CONSTANT element_f32 = 0;
VKROPE_CONSTANT element_f16 = 1;
VKROPE_CONSTANT element_bf16 = 2;

// Between f16 and f32: by integers; by OpFConvert under RoundingModeRTE 16, but for subnormal halves; under DenormPreserve 16 too, all.
VKROPE_CONSTANT conversion_integer = 0;
VKROPE_CONSTANT conversion_normals = 1;
VKROPE_CONSTANT conversion_native = 2;

VKROPE_CONSTANT positions_implicit = 0;
VKROPE_CONSTANT positions_ids = 1;  // one a token, or one a token and axis

VKROPE_CONSTANT sections_sequential = 0;
VKROPE_CONSTANT sections_interleaved = 1;

// Where cos and sin come from: rows by |position| in a texture, or by its two digits; computed; rows by |position| in a buffer of f32
// pairs; or apart in buffers, by position.
VKROPE_CONSTANT angles_texture = 0;
VKROPE_CONSTANT angles_factored = 1;
VKROPE_CONSTANT angles_computed = 2;
VKROPE_CONSTANT angles_pairs = 3;
VKROPE_CONSTANT angles_apart = 4;  // plus element_*

// Factored: bits of the fine digit. Rows of the coarse one come first, as many as table_rows needs.
VKROPE_CONSTANT fine_digit_bits = 11;
// Computed: vec4s before the fractions, of which each holds two: low, high, low, high.
VKROPE_CONSTANT turn_header_vec4s = 2;

// How a buffer is accessed: the widest that the layout of every tensor of a call allows.
VKROPE_CONSTANT access_wide = 0;    // 16 bytes
VKROPE_CONSTANT access_word = 1;    // 4 bytes
VKROPE_CONSTANT access_narrow = 2;  // one element; half words are merged atomically

// Bits of Push::flags.
VKROPE_CONSTANT flag_inverse = 1;
VKROPE_CONSTANT flag_first_in_place = 2;
VKROPE_CONSTANT flag_second_in_place = 4;
VKROPE_CONSTANT flag_count_positions = 8;  // outside the table
VKROPE_CONSTANT flag_count_slots = 16;     // outside the cache; where positions are not counted, only of covered positions
VKROPE_CONSTANT flag_z_is_group = 32;      // z counts groups of heads, not sequences: ids, slots and the counter are shared
VKROPE_CONSTANT flag_slots_64 = 64;        // slots are int64
VKROPE_CONSTANT flag_gain = 128;           // cos and sin are multiplied by Push::gain
VKROPE_CONSTANT flag_ids_64 = 256;         // ids are int64

// Where the rows of a tensor are, in elements; `offset` counts from the start of the binding, z steps by sequence or by group of
// heads. Scattered: z steps by page, token by row of a page.
struct Side {
    uint offset, z, token, head;
};

// 128 bytes, the least that every device has.
struct Push {
    Side first_in, first_out, second_in, second_out;  //  64
    uint tokens;                                      //  68
    uint heads;                                       //  72  Q's | K's << 16
    uint flags;                                       //  76
    uint first_position;                              //  80  implicit: int32 bits
    uint index_z;                                     //  84  ids: words from z to z; implicit: positions
    uint index_axis, index_token;                     //  92  ids: words from axis to axis, from token to token
    uint offsets;                                     //  96  words from the start of a binding: ids | slots << 8 | counter << 16 | table << 24
    uint slot_z;                                      // 100  words from z to z
    uint page_size;                                   // 104  rows
    uint slot_first, slot_rows;                       // 112  the slots that this dispatch serves; slot_first begins a page
    uint table_rows;                                  // 116  positions with |position| < table_rows are covered
    uint table_stride;                                // 120  texture: log2 of the rows of a column; buffer: words a row; apart: elements a row
    uint table_texels;                                // 124  texture: texels a row; apart: words from the start of the binding to sin
    uint gain;                                        // 128  f32 bits
};

// What positions.comp turns into int32 ids.
VKROPE_CONSTANT position_flag_ids = 1;         // 64-bit ids, instead of offsets
VKROPE_CONSTANT position_flag_offsets = 2;
VKROPE_CONSTANT position_flag_offsets_64 = 4;
VKROPE_CONSTANT position_flag_ragged = 8;      // cu_seqlens
VKROPE_CONSTANT position_flag_ragged_64 = 16;
VKROPE_CONSTANT position_flag_count = 32;

struct PositionPush {
    uint total;                // ids to write
    uint tokens;               // of a sequence
    uint flags;                // position_flag_*
    uint first;                // int32 bits
    uint sequences;            // ragged
    uint cp_size, cp_rank;     // shards of a sequence, and which one
    uint offsets;              // words from the start of a binding: ids or cu_seqlens | offsets << 8 | counter << 16 | out << 24
};

#ifdef __cplusplus
// Rows by the coarse digit, and all rows, of a factored table for so many positions.
constexpr std::uint64_t coarse_rows(std::uint64_t positions) {
    return (positions + (1u << fine_digit_bits) - 1) >> fine_digit_bits;
}
constexpr std::uint64_t factored_rows(std::uint64_t positions) {
    return coarse_rows(positions) + (positions >> fine_digit_bits == 0 ? positions : 1u << fine_digit_bits);
}
// Bytes of the numbers from which the angles of so many pairs are computed.
constexpr std::uint64_t turn_bytes(std::uint64_t pairs) {
    return 16 * (turn_header_vec4s + (pairs + 1) / 2);
}
static_assert(sizeof(PositionPush) == 32);
static_assert(sizeof(Push) == 128 && offsetof(Push, tokens) == 64 && offsetof(Push, gain) == 124);
}  // namespace vkrope::shader
#endif
#endif
