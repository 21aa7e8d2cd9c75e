// SPDX-License-Identifier: MIT
// The packed shaders of the library, for unpack(). No other file knows where their words come from.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vkrope {

struct PackedModule {
    const std::uint8_t* bytes;
    std::size_t size;
};

/// rope.comp, the module of every kernel.
extern const PackedModule rope_module;

/// positions.comp.
extern const PackedModule position_module;

}  // namespace vkrope
