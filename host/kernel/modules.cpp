// SPDX-License-Identifier: MIT
#include "kernel/modules.hpp"

#include "interface.h"

namespace vkrope {

namespace {

constexpr std::uint8_t texture_wide_words[] = {
#include "rope_texture_wide.inc"
};
constexpr std::uint8_t texture_lean_words[] = {
#include "rope_texture_lean.inc"
};
constexpr std::uint8_t buffer_wide_words[] = {
#include "rope_buffer_wide.inc"
};
constexpr std::uint8_t buffer_lean_words[] = {
#include "rope_buffer_lean.inc"
};

constexpr std::uint8_t positions_words[] = {
#include "positions.inc"
};

constexpr VkDescriptorType storage = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
constexpr Binding first_in = {shader::binding_first_in, storage}, first_out = {shader::binding_first_out, storage};
constexpr Binding second_in = {shader::binding_second_in, storage}, second_out = {shader::binding_second_out, storage};
constexpr Binding ids = {shader::binding_index_a, storage}, slots = {shader::binding_index_b, storage},
                  status = {shader::binding_status, storage};
constexpr Binding table = {shader::binding_table, storage}, table_sin = {shader::binding_table_sin, storage};
constexpr Binding texture = {shader::binding_texture, VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE};

constexpr Binding texture_wide[] = {first_in, first_out, second_in, second_out, ids, slots, status, texture};
constexpr Binding texture_lean[] = {first_in, first_out, ids, status, texture};
constexpr Binding buffer_wide[] = {first_in, first_out, second_in, second_out, ids, slots, status, table, table_sin};
constexpr Binding positions[] = {first_out, ids, slots, status};
constexpr Binding buffer_lean[] = {first_in, first_out, ids, table};

template <std::size_t Bytes, std::size_t Bindings>
constexpr Module module(const std::uint8_t (&packed)[Bytes], const Binding (&bindings)[Bindings]) {
    static_assert(Bindings <= max_bindings);
    Module made{packed, Bytes, bindings, Bindings, 0, false};
    for (const Binding& binding : bindings) {
        made.storage_buffers += binding.type == storage;
        made.counts |= binding.number == shader::binding_status;
    }
    return made;
}

constexpr Module texture_modules[] = {module(texture_wide_words, texture_wide), module(texture_lean_words, texture_lean)};
constexpr Module buffer_modules[] = {module(buffer_wide_words, buffer_wide), module(buffer_lean_words, buffer_lean)};
constexpr Module positions_of_tokens = module(positions_words, positions);
static_assert(positions_of_tokens.storage_buffers <= 4);
static_assert(texture_modules[1].storage_buffers <= 4 && buffer_modules[1].storage_buffers <= 4);

}  // namespace

const Module& position_module() noexcept {
    return positions_of_tokens;
}

const Module& wide_module(AngleSource angles) noexcept {
    return angles == AngleSource::direct_texture ? texture_modules[0] : buffer_modules[0];
}

const Module& lean_module(AngleSource angles) noexcept {
    return angles == AngleSource::direct_texture ? texture_modules[1] : buffer_modules[1];
}

}  // namespace vkrope
