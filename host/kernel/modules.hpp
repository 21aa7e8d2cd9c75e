// SPDX-License-Identifier: MIT
// The variant table: which SPIR-V module serves a kernel, and what it binds once it is specialised and pruned. No other file knows
// it.
#pragma once

#include <cstddef>

#include "vkrope/kernel.hpp"

namespace vkrope {

struct Binding {
    std::uint32_t number;
    VkDescriptorType type;
};

struct Module {
    const std::uint8_t* packed;  ///< see unpack()
    std::size_t packed_bytes;
    const Binding* bindings;
    std::uint32_t binding_count;
    std::uint32_t storage_buffers;  ///< of these
    bool counts;                    ///< it has a binding for out_of_range
};

inline constexpr std::uint32_t max_bindings = 9;

/// Wide: Q and K in one dispatch. Lean: one tensor a dispatch, with the 4 storage buffers that every device has.
const Module& wide_module(AngleSource angles) noexcept;
/// Null: there is none.
const Module* lean_module(AngleSource angles) noexcept;

/// positions.comp.
const Module& position_module() noexcept;

}  // namespace vkrope
