// SPDX-License-Identifier: MIT
#include "c/structs.hpp"

#include <algorithm>
#include <cstring>

#include "c/guard.hpp"
#include "status.hpp"

namespace vkrope::c {

namespace {

using ull = unsigned long long;  // what printf's %llu takes everywhere

// A field added later must not be where an older caller has padding, which may hold anything:
// structs end with their last field. Checked only for 64-bit pointers; elsewhere, sizes are those
// of one version.
#define VKROPE_ENDS_WITH(type, last)                                                               \
    static_assert(sizeof(void*) != 8 || offsetof(type, last) + sizeof(type::last) == sizeof(type), \
                  #type " ends with padding")
VKROPE_ENDS_WITH(vkrope_llama3_scaling, original_max_position_embeddings);
VKROPE_ENDS_WITH(vkrope_proportional_scaling, partial_rotary_factor);
VKROPE_ENDS_WITH(vkrope_dynamic_ntk_scaling, max_position_embeddings);
VKROPE_ENDS_WITH(vkrope_yarn_scaling, truncate);
VKROPE_ENDS_WITH(vkrope_deepseek_yarn_scaling, mscale_all_dim);
VKROPE_ENDS_WITH(vkrope_longrope_scaling, long_mscale);
VKROPE_ENDS_WITH(vkrope_ggml_scaling, reserved);
VKROPE_ENDS_WITH(vkrope_query_scale, beta);
VKROPE_ENDS_WITH(vkrope_dual_chunk, local_size);
VKROPE_ENDS_WITH(vkrope_xpos_scaling, centre);
VKROPE_ENDS_WITH(vkrope_ggml_rope, freq_factor_count);
VKROPE_ENDS_WITH(vkrope_model_finish, reserved);
VKROPE_ENDS_WITH(vkrope_rotation_info, windows);
VKROPE_ENDS_WITH(vkrope_angle_plan, channel_angles);
VKROPE_ENDS_WITH(vkrope_angle_lines, bytes);
VKROPE_ENDS_WITH(vkrope_model_query, pairing);
VKROPE_ENDS_WITH(vkrope_requirements, enabled_in_core);
VKROPE_ENDS_WITH(vkrope_device_ref, allocator);
VKROPE_ENDS_WITH(vkrope_head_format, rotary_offset);
VKROPE_ENDS_WITH(vkrope_norm, round_between);
VKROPE_ENDS_WITH(vkrope_finish, reserved);
VKROPE_ENDS_WITH(vkrope_kernel_info, two_parameter_sets);
VKROPE_ENDS_WITH(vkrope_parameter_plan, bytes);
VKROPE_ENDS_WITH(vkrope_parameter_sources, v);
VKROPE_ENDS_WITH(vkrope_tensor, buffer_size);
VKROPE_ENDS_WITH(vkrope_paged_cache, batch_stride);
VKROPE_ENDS_WITH(vkrope_positions, token_stride);
VKROPE_ENDS_WITH(vkrope_angles, sin);
VKROPE_ENDS_WITH(vkrope_call, first_set_tokens);
VKROPE_ENDS_WITH(vkrope_sections, reserved);
VKROPE_ENDS_WITH(vkrope_position_call, fraction_bits);
VKROPE_ENDS_WITH(vkrope_boundary, reserved);
VKROPE_ENDS_WITH(vkrope_device_options, pipeline_cache_bytes);
VKROPE_ENDS_WITH(vkrope_device_info, limits);
VKROPE_ENDS_WITH(vkrope_host_shape, v_head_dim);
VKROPE_ENDS_WITH(vkrope_host_run, reserved);
VKROPE_ENDS_WITH(vkrope_angle_upload, lines);
#undef VKROPE_ENDS_WITH

// Reads the size that the struct at `pointer` states.
Status size_of(const void* pointer, const char* name, std::size_t& size) noexcept {
    if (Status s = not_null(pointer, name); !s) return s;
    std::memcpy(&size, pointer, sizeof size);
    if (size >= sizeof size) return {};
    return error(Code::invalid_argument, "%s.struct_size is %llu: it must be sizeof of the struct",
                 name, ull{size});
}

}  // namespace

Status read_bytes(const void* from, const char* name, void* to, std::size_t known) noexcept {
    std::size_t size = 0;
    if (Status s = size_of(from, name, size); !s) return s;
    const auto* bytes = static_cast<const unsigned char*>(from);
    for (std::size_t i = known; i < size; ++i) {
        if (bytes[i] == 0) continue;
        return error(
            Code::invalid_argument,
            "%s.struct_size is %llu: this version reads %llu bytes, and byte %llu is not 0", name,
            ull{size}, ull{known}, ull{i});
    }
    std::memset(to, 0, known);
    std::memcpy(to, from, std::min(size, known));
    return {};
}

Status check_reserved(const char* name, const char* field, std::uint32_t value) noexcept {
    if (value == 0) return {};
    return error(Code::invalid_argument, "%s.%s is %u: it must be 0", name, field, value);
}

Status write_bytes(const void* from, const char* name, void* to, std::size_t known) noexcept {
    std::size_t size = 0;
    if (Status s = size_of(to, name, size); !s) return s;
    const std::size_t header = sizeof size, copied = std::min(size, known);
    std::memset(static_cast<unsigned char*>(to) + header, 0, size - header);
    std::memcpy(static_cast<unsigned char*>(to) + header,
                static_cast<const unsigned char*>(from) + header, copied - header);
    return {};
}

}  // namespace vkrope::c
