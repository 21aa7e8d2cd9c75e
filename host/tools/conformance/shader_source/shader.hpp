// SPDX-License-Identifier: MIT
// The functions of the files that compute: element, pairing, turns, norm, quantise, blocks,
// hadamard.
#pragma once

#include "conformance/shader_source/glsl.hpp"
#include "interface.h"

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
#include <norm.inc>
//
#include <hadamard.inc>
#include <quantise.inc>
//
#include <blocks.inc>
#undef precise
}  // namespace vkrope::shader
