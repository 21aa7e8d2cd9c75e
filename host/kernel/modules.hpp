// SPDX-License-Identifier: MIT
// The variant table: which SPIR-V module serves a kernel, and which bindings it declares. No other file knows it.
#pragma once

#include <cstddef>

#include "vkrope/kernel.hpp"

namespace vkrope {

struct Binding {
    std::uint32_t number;
    VkDescriptorType type;
};

struct Module {
    const std::uint32_t* words;
    std::size_t bytes;
    const Binding* bindings;
    std::uint32_t binding_count;
};

inline constexpr std::uint32_t max_bindings = 8;

/// Storage buffers that a module binds.
std::uint32_t storage_buffers(const Module& module) noexcept;

const Module& module_for(const KernelInfo& info) noexcept;

}  // namespace vkrope
