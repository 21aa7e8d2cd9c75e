// SPDX-License-Identifier: MIT
// The shaders of the library as unpack() takes them. No other file knows where their words come
// from.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vkrope {

struct PackedModule {
    const std::uint8_t* bytes;
    std::size_t size;
};

/// rope.comp: every kernel is made of it.
extern const PackedModule rope_module;

/// positions.comp.
extern const PackedModule position_module;

}  // namespace vkrope
