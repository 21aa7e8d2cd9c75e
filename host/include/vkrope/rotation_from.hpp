// SPDX-License-Identifier: MIT
// Tier "frequencies": a rotation from the arguments that ggml calls its RoPE with, under its names
// and with its defaults. What is not an argument here belongs to the call: positions, layouts and
// directions (kernel.hpp). host/guide/model_files.md has a table for other libraries.
//
// Fails with VKROPE_ERROR_INVALID_ARGUMENT, which names the argument, its value and its rule.
// Angles are VKROPE_ANGLE_PRECISION_EXACT, although ggml computes them in float32.
#pragma once

#include "vkrope/frequencies.hpp"

namespace vkrope {

using GgmlRope = vkrope_ggml_rope;

/// vkrope_rotation_from_ggml.
Result<Rotation> rotation_from_ggml(const GgmlRope& rope);

}  // namespace vkrope
