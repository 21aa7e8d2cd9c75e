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

/// What a descriptor set layout has.
struct BindingList {
    const Binding* bindings = nullptr;
    std::uint32_t count = 0;
    std::uint32_t storage_buffers = 0;  ///< of these
};

struct Module {
    const std::uint8_t* packed;  ///< see unpack()
    std::size_t packed_bytes;
    BindingList binds;
    bool counts;  ///< it has a binding for out_of_range
};

inline constexpr std::uint32_t max_bindings = 11;

/// Every binding that some module has: a layout that all kernels of a device can share.
const BindingList& every_binding() noexcept;

/// Wide: Q and K in one dispatch. Lean: one tensor a dispatch, with the 4 storage buffers that every device has.
const Module& wide_module(AngleSource angles) noexcept;
/// Null: there is none.
const Module* lean_module(AngleSource angles) noexcept;

/// positions.comp.
const Module& position_module() noexcept;

}  // namespace vkrope
