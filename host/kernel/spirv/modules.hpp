// SPDX-License-Identifier: MIT
// Declares the packed shaders of the library, for unpack(). No other file depends on the source of
// their words.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vkrope {

struct PackedModule {
    const std::uint8_t* bytes;
    std::size_t size;
};

// rope.comp, the module of every kernel.
extern const PackedModule rope_module;

// positions.comp.
extern const PackedModule position_module;

}  // namespace vkrope
