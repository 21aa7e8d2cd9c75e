// SPDX-License-Identifier: MIT
#include "kernel/modules.hpp"

#include <iterator>

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
constexpr Binding turns = {shader::binding_uniforms, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER};

// What rope.comp still binds once it has been specialised and pruned.
constexpr Binding texture_wide[] = {first_in, first_out, second_in, second_out, ids, slots, status, texture};
constexpr Binding texture_lean[] = {first_in, first_out, ids, status, texture};
constexpr Binding turns_wide[] = {first_in, first_out, second_in, second_out, ids, slots, status, turns};
constexpr Binding turns_lean[] = {first_in, first_out, ids, status, turns};
constexpr Binding pairs_wide[] = {first_in, first_out, second_in, second_out, ids, slots, status, table};
constexpr Binding pairs_lean[] = {first_in, first_out, ids, table};
constexpr Binding apart_wide[] = {first_in, first_out, second_in, second_out, ids, slots, status, table, table_sin};
constexpr Binding positions_all[] = {first_out, ids, slots, status};
constexpr Binding all[] = {first_in, first_out, second_in, second_out, ids, slots, status, table, table_sin, turns, texture};

template <std::size_t Count>
constexpr BindingList list_of(const Binding (&bindings)[Count]) {
    static_assert(Count <= max_bindings);
    BindingList list{bindings, Count, 0};
    for (const Binding& binding : bindings) list.storage_buffers += binding.type == storage;
    return list;
}

template <std::size_t Bytes, std::size_t Count>
constexpr Module module(const std::uint8_t (&packed)[Bytes], const Binding (&bindings)[Count]) {
    Module made{packed, Bytes, list_of(bindings), false};
    for (const Binding& binding : bindings) made.counts |= binding.number == shader::binding_status;
    return made;
}

constexpr BindingList everything = list_of(all);

constexpr Module positions = module(positions_words, positions_all);
constexpr Module wide[] = {module(rope_words, texture_wide), module(rope_words, turns_wide), module(rope_words, pairs_wide),
                           module(rope_words, apart_wide)};
constexpr Module lean[] = {module(rope_words, texture_lean), module(rope_words, turns_lean), module(rope_words, pairs_lean)};
static_assert(lean[0].binds.storage_buffers <= 4 && lean[1].binds.storage_buffers <= 4 && lean[2].binds.storage_buffers <= 4 &&
              positions.binds.storage_buffers <= 4);

std::size_t index_of(AngleSource angles) noexcept {
    switch (angles) {
        case AngleSource::computed: return 1;
        case AngleSource::direct_buffer: return 2;
        case AngleSource::caller_buffer: return 3;
        default: return 0;
    }
}

}  // namespace

const Module& wide_module(AngleSource angles) noexcept {
    return wide[index_of(angles)];
}

const Module* lean_module(AngleSource angles) noexcept {
    const std::size_t index = index_of(angles);
    return index < std::size(lean) ? &lean[index] : nullptr;
}

const Module& position_module() noexcept {
    return positions;
}

const BindingList& every_binding() noexcept {
    return everything;
}

}  // namespace vkrope
