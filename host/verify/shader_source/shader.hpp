// SPDX-License-Identifier: MIT
// The functions of the shader files that compute: element, pairing, turns, angles, norm, quantise,
// blocks, dequantise, hadamard.
#pragma once

#include "interface.h"
#include "verify/shader_source/glsl.hpp"

namespace vkrope::glsl {

// A texture in memory, row-major. Reads of texels outside it return 0 and are counted.
struct Texture {
    const vec4* texels = nullptr;
    std::int32_t width = 0, height = 0;
    mutable std::uint64_t outside = 0;
};

inline vec4 texelFetch(const Texture& texture, ivec2 at, int /*level*/) {
    if (at.x < 0 || at.y < 0 || at.x >= texture.width || at.y >= texture.height) {
        ++texture.outside;
        return {};
    }
    return texture.texels[std::int64_t{at.y} * texture.width + at.x];
}

// The inputs of the functions of angles.glsl.
inline thread_local Texture angle_texture;
inline thread_local const uvec4* turn_words = nullptr;

}  // namespace vkrope::glsl

namespace vkrope::shader {
using namespace glsl;
#define precise
#define VKROPE_RARE_BRANCHES rare_branches
inline bool rare_branches = false;
#include <element.inc>
//
#include <pairing.inc>
#include <turns.inc>
//
#define VKROPE_ANGLE_TEXTURE angle_texture
#define VKROPE_TURN_WORDS(index) turn_words[index]
#include <angles.inc>
#undef VKROPE_ANGLE_TEXTURE
#undef VKROPE_TURN_WORDS
//
#include <norm.inc>
//
#include <hadamard.inc>
#include <quantise.inc>
//
#include <blocks.inc>
#include <dequantise.inc>
#undef precise
}  // namespace vkrope::shader
