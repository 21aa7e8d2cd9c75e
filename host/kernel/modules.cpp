// SPDX-License-Identifier: MIT
#include "kernel/modules.hpp"

#include <iterator>

#include "interface.h"

namespace vkrope {

namespace {

constexpr std::uint32_t texture_words[] = {
#include "rope_texture.inc"
};
constexpr std::uint32_t buffer_words[] = {
#include "rope_buffer.inc"
};

constexpr VkDescriptorType storage = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;

#define VKROPE_WIDE_BINDINGS                                                                                         \
    {shader::binding_first_in, storage}, {shader::binding_first_out, storage}, {shader::binding_second_in, storage}, \
        {shader::binding_second_out, storage}, {shader::binding_index_a, storage}, {                                 \
        shader::binding_status, storage                                                                              \
    }

constexpr Binding texture_bindings[] = {VKROPE_WIDE_BINDINGS, {shader::binding_texture, VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE}};
constexpr Binding buffer_bindings[] = {VKROPE_WIDE_BINDINGS, {shader::binding_table, storage}};

#undef VKROPE_WIDE_BINDINGS

constexpr Module modules[] = {
    {texture_words, sizeof texture_words, texture_bindings, std::uint32_t(std::size(texture_bindings))},
    {buffer_words, sizeof buffer_words, buffer_bindings, std::uint32_t(std::size(buffer_bindings))},
};
static_assert(std::size(texture_bindings) <= max_bindings && std::size(buffer_bindings) <= max_bindings);

}  // namespace

std::uint32_t storage_buffers(const Module& module) noexcept {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < module.binding_count; ++i) count += module.bindings[i].type == storage;
    return count;
}

const Module& module_for(const KernelInfo& info) noexcept {
    return modules[info.angles == AngleSource::direct_texture ? 0 : 1];
}

}  // namespace vkrope
