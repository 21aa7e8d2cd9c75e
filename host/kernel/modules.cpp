// SPDX-License-Identifier: MIT
#include "kernel/modules.hpp"

#include "interface.h"

namespace vkrope {

namespace {

constexpr std::uint8_t rope_words[] = {
#include "rope.inc"
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

// What rope.comp still binds once it has been specialised and pruned.
constexpr Binding texture_wide[] = {first_in, first_out, second_in, second_out, ids, slots, status, texture};
constexpr Binding texture_lean[] = {first_in, first_out, ids, status, texture};
constexpr Binding pairs_wide[] = {first_in, first_out, second_in, second_out, ids, slots, status, table};
constexpr Binding pairs_lean[] = {first_in, first_out, ids, table};
constexpr Binding apart_wide[] = {first_in, first_out, second_in, second_out, ids, slots, status, table, table_sin};
constexpr Binding positions_all[] = {first_out, ids, slots, status};

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

constexpr Module positions = module(positions_words, positions_all);
constexpr Module wide[] = {module(rope_words, texture_wide), module(rope_words, pairs_wide), module(rope_words, apart_wide)};
constexpr Module lean[] = {module(rope_words, texture_lean), module(rope_words, pairs_lean)};
static_assert(lean[0].storage_buffers <= 4 && lean[1].storage_buffers <= 4 && positions.storage_buffers <= 4);

}  // namespace

const Module& wide_module(AngleSource angles) noexcept {
    switch (angles) {
        case AngleSource::direct_texture: return wide[0];
        case AngleSource::direct_buffer: return wide[1];
        default: return wide[2];
    }
}

const Module* lean_module(AngleSource angles) noexcept {
    switch (angles) {
        case AngleSource::direct_texture: return &lean[0];
        case AngleSource::direct_buffer: return &lean[1];
        default: return nullptr;
    }
}

const Module& position_module() noexcept {
    return positions;
}

}  // namespace vkrope
