// SPDX-License-Identifier: MIT
// Computes the specialisation constants of a pipeline, VKROPE_CONSTANTS of shaders/interface.h.
#pragma once

#include "kernel/kernel_object.hpp"

namespace vkrope {

// Returns the constants. `counts` is true if the kernel can count tokens that are out of range.
shader::Constants constants_of(const Kernel& kernel, const PipelineSet& set,
                               const Geometry& geometry, bool counts);

}  // namespace vkrope
