// SPDX-License-Identifier: MIT
#include "spirv/interface_tables.hpp"

#include <cstddef>
#include <iterator>

namespace vkrope::tools {
namespace {

using namespace shader;

constexpr const char* strides =
    "strides in elements from one sequence or group of heads (z), token and head to the next; of a "
    "quantised output in blocks; 0 where there is only one. Scattered rows: z is the stride of "
    "pages, token that of the rows of a page";

constexpr NamedBinding bindings[] = {
    {binding_q_in, "q_in", "rows of Q"},
    {binding_q_out, "q_out", "rotated rows of Q; the buffer of q_in when in place"},
    {binding_k_in, "k_in", "rows of K"},
    {binding_k_out, "k_out", "rotated rows of K; the buffer of k_in when in place"},
    {binding_ids, "ids", "int32 or int64 positions"},
    {binding_slot_mapping, "slot_mapping", "int32 or int64 destination rows of K and V"},
    {binding_table, "table", "(cos, sin) pairs of f32, or cos alone"},
    {binding_table_sin, "table_sin", "sin, if it is separate from cos"},
    {binding_status, "status", "uint32 counter of tokens out of range; any buffer if no flag asks"},
    {binding_turns, "turns", "constants for computed angles"},
    {binding_texture, "texture", "rows of the angle table, read by texelFetch"},
    {binding_v_in, "v_in", "rows of V"},
    {binding_v_out, "v_out", "copied rows of V"},
    {binding_parameters, "parameters", "f32 weights, biases and given scales"},
    {binding_q_scales, "q_scales", "f32 factor of Q for each token"},
    {binding_k_scales, "k_scales", "f32 factor of K for each token"},
    {binding_v_scales, "v_scales", "f32 factor of V for each token"},
    {binding_q_scales_out, "q_scales_out", "f32 scales made for the rows of Q"},
    {binding_k_scales_out, "k_scales_out", "f32 scales made for the rows of K"},
    {binding_v_scales_out, "v_scales_out", "f32 scales made for the rows of V"},
};

#define VKROPE_PUSH_MEMBER(name, type) \
#name, type, uint(offsetof(Push, name)), uint(sizeof(Push::name))
constexpr PushMember members[] = {
    {VKROPE_PUSH_MEMBER(q_in, "uint[3]: z, token, head"), strides},
    {VKROPE_PUSH_MEMBER(q_out, "uint[3]: z, token, head"), strides},
    {VKROPE_PUSH_MEMBER(k_in, "uint[3]: z, token, head"), strides},
    {VKROPE_PUSH_MEMBER(k_out, "uint[3]: z, token, head"), strides},
    {VKROPE_PUSH_MEMBER(offsets, "uint8[16]"),
     "where each item of `offsets` starts in its binding, in elements or words; a quantised "
     "output: in bytes"},
    {VKROPE_PUSH_MEMBER(tokens, "uint"), "tokens of a sequence"},
    {VKROPE_PUSH_MEMBER(heads, "uint"), "heads of Q | heads of K << 16; V has K's"},
    {VKROPE_PUSH_MEMBER(flags, "uint"), "sum of `flags`"},
    {VKROPE_PUSH_MEMBER(first_position, "int"),
     "implicit positions: that of token 0; ids: tokens of the "
     "first set of parameters, if the kernel has two"},
    {VKROPE_PUSH_MEMBER(index_z, "uint"),
     "from one sequence to the next: words of ids, or implicit positions"},
    {VKROPE_PUSH_MEMBER(index_axis, "uint"), "words of ids from one axis to the next"},
    {VKROPE_PUSH_MEMBER(index_token, "uint"),
     "words of ids from one token to the next; implicit "
     "positions: tokens of the first set of parameters"},
    {VKROPE_PUSH_MEMBER(slot_z, "uint"), "words of slot_mapping from one sequence to the next"},
    {VKROPE_PUSH_MEMBER(page_size, "uint"), "rows of a page; without slots 0"},
    {VKROPE_PUSH_MEMBER(slot_first, "uint"), "first slot that this dispatch stores to"},
    {VKROPE_PUSH_MEMBER(slot_rows, "uint"), "number of slots from there on; without slots 1"},
    {VKROPE_PUSH_MEMBER(table_rows, "uint"), "positions with |position| < table_rows are rotated"},
    {VKROPE_PUSH_MEMBER(table_stride, "uint"),
     "direct_buffer: floats of a row, rotary_dim; cos_sin_cache: elements of a row; textures: log2 "
     "of the rows of a column; computed: 0"},
    {VKROPE_PUSH_MEMBER(table_texels, "uint"),
     "textures: texels of a row; cos_sin_cache: where sin starts, in words; else 0"},
    {VKROPE_PUSH_MEMBER(gain, "float"), "multiplies cos and sin; 1 applies the table as it is"},
    {VKROPE_PUSH_MEMBER(q_scale, "float"), "multiplies Q if the kernel has scale_call; else 1"},
};

constexpr NamedNumber flags[] = {
    {"inverse", flag_inverse, "rotates back"},
    {"q_in_place", flag_q_in_place, "q_out is q_in"},
    {"k_in_place", flag_k_in_place, "k_out is k_in"},
    {"count_positions", flag_count_positions, "counts tokens whose position is not covered"},
    {"count_slots", flag_count_slots, "counts tokens whose slot is outside the cache"},
    {"z_is_group", flag_z_is_group, "z counts groups of heads, not sequences"},
    {"slot_mapping_64", flag_slot_mapping_64, "slot_mapping is int64"},
    {"ids_64", flag_ids_64, "ids are int64"},
    {"v", flag_v, "V is copied along with K"},
    {"v_scales_out", flag_v_scales_out, "times the first word of v_scales_out, 0 to 63"},
    {"first_head", flag_first_head, "times the first head of this dispatch"},
};

constexpr NamedNumber offsets[] = {
    {"q_in", offset_q_in, "elements"},
    {"q_out", offset_q_out, "elements"},
    {"k_in", offset_k_in, "elements"},
    {"k_out", offset_k_out, "elements"},
    {"v_in", offset_v_in, "elements"},
    {"v_out", offset_v_out, "elements"},
    {"ids", offset_ids, "words"},
    {"slot_mapping", offset_slots, "words"},
    {"status", offset_status, "words"},
    {"table", offset_table, "words"},
    {"parameters", offset_parameters, "floats"},
    {"q_scales", offset_q_scales, "floats"},
    {"k_scales", offset_k_scales, "floats"},
    {"v_scales", offset_v_scales, "floats"},
    {"q_scales_out", offset_q_scales_out, "floats"},
    {"k_scales_out", offset_k_scales_out, "floats"},
};

constexpr bool covers_push() {
    uint end = 0;
    for (const PushMember& member : members) {
        if (member.offset != end) return false;
        end += member.bytes;
    }
    return end == sizeof(Push);
}
static_assert(covers_push(), "a member of Push is missing here");

constexpr bool covers_bindings() {
    for (uint i = 0; i < std::size(bindings); ++i) {
        if (bindings[i].number != i) return false;
    }
    return std::size(bindings) == binding_count;
}
static_assert(covers_bindings(), "a binding is missing here");
static_assert(std::size(offsets) == sizeof(Push::offsets));

}  // namespace

std::span<const NamedBinding> named_bindings() noexcept {
    return bindings;
}
std::span<const PushMember> push_members() noexcept {
    return members;
}
std::span<const NamedNumber> push_flags() noexcept {
    return flags;
}
std::span<const NamedNumber> push_offsets() noexcept {
    return offsets;
}

}  // namespace vkrope::tools
